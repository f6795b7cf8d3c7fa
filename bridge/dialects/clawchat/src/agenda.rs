//! Votes, elections and subscriptions (spec §3, §11).

use bridge::seam::refusal::Refusal;
use bridge::{
    seam::{
        answer::Filter,
        call::{
            CastVote, CreateVote, DeclineElection, ElectLeader, EnableSubscription, GetVote,
            ListSubscriptions, ListVotes, Subscribe, Unsubscribe,
        },
    },
    secret::Secret,
    session::seat::Seat,
};
use mesh::{
    api::{agenda::NewVote, command::Refused},
    name::id::{MessageId, RoomId},
};
use protocol::{
    object::SubscriptionStatus,
    reply::{
        BallotCast, Declined, Election, Enabled, Reply as Frame, Subscriptions, Unsubscribed, Votes,
    },
    request,
};

use crate::{conversation::Turn, encode};

/// The next step, for people.
const ELECTION_STARTED: &str = "candidates may decline within 2 seconds; then a leader is drawn";

impl Turn {
    pub(crate) fn create_vote(self, seat: &mut Seat, vote: request::CreateVote) {
        let room = vote.room_id.clone();
        self.at(seat, &room, |turn, seat, room| {
            let vote = NewVote {
                room,
                title: vote.title,
                description: vote.description,
                options: vote.options,
                duration_secs: vote.duration_secs,
            };
            turn.ask_in_turn(seat, CreateVote(vote), |voice, vote| {
                Frame::Vote(Box::new(encode::vote(voice.lobby(), &vote)))
            });
        });
    }

    pub(crate) fn cast_vote(self, seat: &mut Seat, ballot: &request::CastVote) {
        let Some(vote) = MessageId::from_uuid(&ballot.vote_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoVote));
        };
        self.ask(seat, CastVote { vote, option: ballot.option_index }, move |_, cast| {
            Frame::BallotCast(BallotCast {
                vote_id: vote.to_uuid(),
                votes_cast: cast.cast as u64,
                eligible_voters: cast.eligible as u64,
            })
        });
    }

    pub(crate) fn get_vote(self, seat: &mut Seat, vote: &request::GetVoteStatus) {
        let Some(vote) = MessageId::from_uuid(&vote.vote_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoVote));
        };
        self.ask(seat, GetVote(vote), |voice, vote| {
            Frame::Vote(Box::new(encode::vote(voice.lobby(), &vote)))
        });
    }

    pub(crate) fn list_votes(self, seat: &mut Seat, list: &request::ListVotes) {
        self.at(seat, &list.room_id, |turn, seat, room| {
            turn.ask(seat, ListVotes { room, limit: list.limit }, move |voice, votes| {
                let votes = votes.iter().map(|vote| encode::vote(voice.lobby(), vote)).collect();
                Frame::Votes(Votes { room_id: voice.name(room), votes })
            });
        });
    }

    pub(crate) fn elect_leader(self, seat: &mut Seat, room: RoomId) {
        self.ask_in_turn(seat, ElectLeader(room), move |voice, candidates| {
            Frame::Election(Election {
                room_id: voice.name(room),
                candidates: encode::agent_ids(&candidates),
                message: String::from(ELECTION_STARTED),
            })
        });
    }

    pub(crate) fn decline_election(self, seat: &mut Seat, room: RoomId) {
        self.ask(seat, DeclineElection(room), move |voice, ()| {
            let message = String::from("you do not stand in this election");
            Frame::Declined(Declined { room_id: voice.name(room), message })
        });
    }

    pub(crate) fn subscribe(self, seat: &mut Seat, wish: request::Subscribe) {
        let room = wish.room_id.clone();
        // It counts, whatever it names.
        if self.voice.room(&room).is_err()
            && let Err(refusal) = seat.count_act()
        {
            return self.refuse(seat, refusal);
        }
        self.at(seat, &room, |turn, seat, room| {
            let subscribe = Subscribe {
                room,
                url: wish.webhook_url,
                secret: Secret::new(wish.secret.expose()),
                filter: Filter {
                    kinds: wish.kinds,
                    only_from: wish.only_from,
                    not_from: wish.not_from,
                    exclude_thinking: wish.exclude_thinking,
                },
                since: wish.since_seq,
            };
            turn.ask(seat, subscribe, |voice, made| {
                Frame::Subscription(Box::new(encode::subscription(voice.lobby(), made)))
            });
        });
    }

    pub(crate) fn unsubscribe(self, seat: &mut Seat, id: String) {
        self.ask(seat, Unsubscribe { id }, |_, ()| {
            Frame::Unsubscribed(Unsubscribed { deleted: true })
        });
    }

    pub(crate) fn list_subscriptions(self, seat: &mut Seat, list: &request::ListSubscriptions) {
        let room = match list.room_id.as_deref().map(|room| self.voice.room(room)).transpose() {
            Ok(room) => room,
            Err(refusal) => return self.refuse(seat, refusal),
        };
        self.ask(seat, ListSubscriptions { room }, |voice, all| {
            let all = all.into_iter().map(|one| encode::subscription(voice.lobby(), one));
            Frame::Subscriptions(Subscriptions { subscriptions: all.collect() })
        });
    }

    pub(crate) fn enable(self, seat: &mut Seat, id: String) {
        let subscription_id = id.clone();
        self.ask(seat, EnableSubscription { id }, move |_, ()| {
            let status = SubscriptionStatus::Active;
            Frame::Enabled(Enabled { subscription_id, status })
        });
    }
}
