//! Attaching an agent: checks, the mesh's word, and events that an agent which comes back missed.

use std::sync::Arc;

use mesh::{
    api::{
        agenda::Standing,
        command::{self, Attached, Caller, Command, Roamed},
        rules::check_attach,
    },
    name::{
        agent::drawn,
        id::{AgentId, KeyPrint, RoomId},
        key::KeySecret,
        number::Number,
    },
    wire::signatures::KeySignature,
};

use super::{
    ask::Ask,
    job::{Claim, Cursor, Missed, MissedIn, Origin},
    party::Party,
    seat::{Place, Resuming, Seat, State, Step, Then},
};
use crate::{
    backend::ReadError,
    config::Shown,
    delivery::{ending::Ending, link, notice, reread},
    delivery::{hook::Hook, hub::Beside},
    ids, limits,
    seam::{
        answer::{self, Resumed, Welcome},
        call::{Attach, Call, Identity},
        refusal::{Bound, Refusal},
    },
    secret::Secret,
};

/// A room whose cursor the mesh was asked to number for.
#[derive(Debug)]
struct Claimed {
    room: RoomId,
    cursor: Cursor,
    tries: u8,
}

/// An agent, until the mesh has attached it.
struct Attaching {
    reader: link::Me,
    name: String,
    /// Signs for its key. `None`: the node checks no keys.
    signer: Option<Arc<KeySecret>>,
    /// Other connections may be the same agent.
    shares: bool,
}

impl Seat {
    pub(super) fn attach(&mut self, call: Attach, then: Then<Welcome>) {
        match &self.state {
            State::Fresh => {}
            State::Attached(_) => return then(self, Err(Refusal::AttachedAlready)),
            State::Attaching | State::Resuming(_) => return then(self, Err(Refusal::NotAttached)),
        }
        let Some(shown) = self.rules.config.auth.identify(call.key.expose()) else {
            return then(self, Err(Refusal::Mesh(command::Refused::NoKey)));
        };
        let Shown { key, own, opener, secret } = shown;
        if let Err(refusal) = check(&call) {
            if own {
                return then(self, Err(refusal));
            }
            // A client with a wrong key is told that first.
            self.state = State::Attaching;
            return self.check_key(key, own, move |seat, checked| {
                seat.state = State::Fresh;
                then(seat, Err(checked.err().unwrap_or(refusal)));
            });
        }
        self.linger = Some(call.linger.min(limits::LINGER_MAX)).filter(|time| !time.is_zero());
        let (stable, agent): (bool, AgentId) = match &call.identity {
            Identity::Fresh => (false, drawn(ids::random(), key)),
            Identity::Drawn(random) => (true, drawn(*random, key)),
            Identity::Named(agent) | Identity::Shared(agent) => (true, agent.as_str().into()),
        };
        let me = link::Me { agent, key, stable };
        let shown = Shown { key, own, opener, secret };
        match call.identity {
            Identity::Fresh | Identity::Named(_) => attach_alone(self, call, me, shown, then),
            Identity::Drawn(_) | Identity::Shared(_) => {
                self.state = State::Attaching;
                let (voice, sitter) = (self.voice.clone(), me.clone());
                let then = move |seat: &mut Seat, beside| match beside {
                    Beside::Alone => attach_alone(seat, call, me, shown, then),
                    Beside::Full => {
                        seat.state = State::Fresh;
                        let max = limits::CONNECTIONS_PER_AGENT_MAX;
                        then(seat, Err(Refusal::Mesh(command::Refused::TooManyAgents { max })));
                    }
                    Beside::Seated(party) => {
                        seat.state = State::Attached(party);
                        then(seat, Ok(Welcome { agent: me.agent, name: call.name, resumed: None }));
                        seat.steps.push(Step::Open);
                    }
                };
                self.steps.push(Step::Beside { me: sitter, voice, then: Box::new(then) });
            }
        }
    }

    /// Asks of which kind a key is, if it is valid here.
    fn check_key(
        &mut self,
        key: KeyPrint,
        own: bool,
        then: impl FnOnce(&mut Seat, Result<Standing, Refusal>) + Send + 'static,
    ) {
        self.call(Command::CheckKey { key, own }, Bound::Node, then);
    }

    fn attached(&mut self, who: Attaching, attached: Attached, then: Then<Welcome>) {
        let Attaching { reader, name, signer, shares } = who;
        let Attached { registration, restored, addressed, standing, .. } = attached;
        let link::Me { agent, key, stable } = reader.clone();
        let caller = Caller { agent, key, registration };
        let me = Arc::new(Party::Agent { caller, standing, stable, signer });
        self.rules.hub.knows(&me, shares);
        if restored.is_none() && addressed.is_empty() {
            let welcome = Welcome { agent: reader.agent, name, resumed: None };
            self.state = State::Attached(me);
            then(self, Ok(welcome));
            return self.steps.push(Step::Open);
        }
        let rooms: Option<Vec<RoomId>> =
            restored.as_ref().map(|seats| seats.iter().map(|(room, _)| *room).collect());
        let held: Vec<(RoomId, Number)> = restored.into_iter().flatten().chain(addressed).collect();
        let seats = held.iter().map(|(room, _)| *room).collect();
        let cursors = held
            .into_iter()
            .map(|(room, number)| (room, Cursor::of(number, &self.rules.hub.served(&reader, room))))
            .collect();
        self.state = State::Resuming(Box::new(Resuming {
            me,
            reader,
            name,
            then,
            rooms,
            seats,
            missed: Missed::default(),
            claims: 0,
            again: Vec::new(),
        }));
        self.read_missed(cursors);
    }

    fn read_missed(&mut self, cursors: Vec<(RoomId, Cursor)>) {
        self.read(MissedIn(cursors), |seat, found| match found {
            Ok(found) => seat.missed(found),
            Err(error) => seat.give_up(error),
        });
    }

    /// A part of the missed messages has been read.
    fn missed(&mut self, mut found: Missed) {
        let State::Resuming(resuming) = &mut self.state else { return };
        let claims = std::mem::take(&mut found.claims);
        resuming.again.append(&mut found.later);
        resuming.missed.merge(found);
        resuming.claims = claims.len();
        if claims.is_empty() {
            return self.missed_again();
        }
        for Claim { room, cursor, entries } in claims {
            let command = Command::Roam { room, cursor: cursor.number, entries };
            self.claim(command, Claimed { room, cursor, tries: 0 });
        }
    }

    fn claim(&mut self, command: Command, claimed: Claimed) {
        self.call(command, Bound::Node, move |seat, answer| {
            seat.missed_claim(claimed, answer.unwrap_or(Roamed::Never));
        });
    }

    /// The mesh has numbered missing entries of a room, or has not.
    fn missed_claim(&mut self, claimed: Claimed, roamed: Roamed) {
        let State::Resuming(resuming) = &mut self.state else { return };
        let Claimed { room, cursor, tries } = claimed;
        match roamed {
            Roamed::Behind if tries < limits::BEHIND_TRIES_MAX => {
                let command = Command::Roam { room, cursor: cursor.number, entries: Vec::new() };
                return self.claim(command, Claimed { room, cursor, tries: tries + 1 });
            }
            Roamed::Ready | Roamed::Behind => {
                resuming.again.push((room, Cursor { origin: Origin::Claimed, ..cursor }));
            }
            Roamed::Heard => resuming.again.push((room, cursor)),
            // The cursor counts as the tip: nothing was missed that could be told.
            Roamed::Never => {}
        }
        resuming.claims -= 1;
        if resuming.claims == 0 {
            self.missed_again();
        }
    }

    /// Reads rooms that could not be read before, if there are any.
    fn missed_again(&mut self) {
        let State::Resuming(resuming) = &mut self.state else { return };
        let again = std::mem::take(&mut resuming.again);
        if again.is_empty() { self.resume() } else { self.read_missed(again) }
    }

    /// Answer first, then missed events, then live ones.
    fn resume(&mut self) {
        let State::Resuming(resuming) = std::mem::replace(&mut self.state, State::Fresh) else {
            return;
        };
        let Resuming { me, reader, name, then, rooms, seats, missed, .. } = *resuming;
        let Missed { rows, seen, .. } = missed;
        let notices = self.rules.hub.missed(&reader.agent);
        let mut replays = self.replays(&reader, notice::merge(rows, notices));
        replays.drain(..replays.len().saturating_sub(limits::MISSED_MAX));
        let resumed = rooms.map(|rooms| Resumed { rooms, missed: replays.len() });
        let welcome = Welcome { agent: reader.agent, name, resumed };
        self.state = State::Attached(me);
        then(self, Ok(welcome));
        self.steps.append(&mut replays);
        for room in seats {
            let seen = seen.iter().filter(|(seen, _)| *seen == room);
            let seen = seen.map(|(_, number)| *number).max().unwrap_or(Number::ZERO);
            self.steps.push(Step::Release(room, seen));
        }
        self.steps.push(Step::Open);
    }

    /// Nothing for the agent's own messages, and for those that can no longer be shown.
    fn replays(&self, reader: &link::Me, missed: Vec<notice::Missed>) -> Vec<Step> {
        let again = |rendered| Step::Replay { message: None, rendered };
        let mut replays = Vec::new();
        for missed in missed {
            match missed {
                notice::Missed::Message(room, row) => {
                    let facts = self.rules.hub.facts(room);
                    if !reread::is_given(facts.as_ref(), &row) {
                        continue;
                    }
                    let number = row.number;
                    let (said, mention) = reread::frames(reader, &self.voice, room, *row);
                    let message = Some((room, number));
                    replays.extend(said.map(|rendered| Step::Replay { message, rendered }));
                    replays.extend(mention.map(again));
                }
                notice::Missed::Notice(notice) => {
                    replays.extend(notice.told.rendered(&self.voice).map(again));
                }
            }
        }
        replays
    }

    /// Missed messages cannot be read. The agent is not told that there are none: it may come back.
    fn give_up(&mut self, error: ReadError) {
        match std::mem::replace(&mut self.state, State::Attaching) {
            State::Resuming(resuming) => {
                let Resuming { me, then, .. } = *resuming;
                // It has to be detached.
                self.state = State::Attached(me);
                then(self, Err(error.into()));
                self.steps.push(Step::Close(Ending::Failed));
            }
            other @ (State::Fresh | State::Attaching | State::Attached(_)) => self.state = other,
        }
    }
}

/// Has the mesh attach an agent that has no other connection here that this one could share.
fn attach_alone(seat: &mut Seat, call: Attach, me: link::Me, shown: Shown, then: Then<Welcome>) {
    let Shown { key, own, opener, secret } = shown;
    let link::Me { agent, stable, .. } = me.clone();
    let shares = matches!(call.identity, Identity::Drawn(_) | Identity::Shared(_));
    // A key that is too short signs nothing: the mesh says so where the id has to be claimed.
    let here = &seat.rules.config.here;
    let shown = secret.as_ref().and_then(|secret| KeySignature::of_voucher(secret, here).ok());
    let claim = secret.as_ref().filter(|_| stable);
    let claim = claim.and_then(|secret| KeySignature::of_claim(secret, here.mesh, &agent).ok());
    let name = call.name.clone();
    let mailbox = secret.as_ref().and_then(|secret| secret.mailbox().ok().cloned());
    let signer = secret.map(Arc::new);
    let attach = command::Attach {
        agent: me.agent.clone(),
        stable,
        reconnect: call.reconnect,
        key,
        own,
        opener,
        mailbox,
        claim: claim.map(Box::new),
        shown: shown.map(Box::new),
        name: call.name,
        capabilities: call.capabilities,
    };
    let hook = Hook::Attach { me: me.clone(), voice: seat.voice.clone() };
    seat.state = State::Attaching;
    seat.send(Command::Attach(attach), hook, Place::Any, move |seat, ended| {
        // Refused: it may try again on the same connection.
        seat.state = State::Fresh;
        match answer::read(ended, Bound::Agents) {
            Ok(attached) => {
                let who = Attaching { reader: me, name, signer, shares };
                seat.attached(who, attached, then)
            }
            Err(refusal) => then(seat, Err(refusal)),
        }
    });
}

/// Show a key, without becoming an agent. The answer is its holder.
pub(crate) struct ShowKey(pub(crate) Secret);

impl Call for ShowKey {
    type Answer = Party;
}

impl Ask for ShowKey {
    fn begin(self, seat: &mut Seat, then: Then<Party>) {
        match seat.rules.config.auth.identify(self.0.expose()) {
            Some(Shown { key, own, secret, .. }) => {
                seat.check_key(key, own, move |seat, checked| {
                    let signer = secret.map(Arc::new);
                    let holder = |standing| Party::Holder { key, standing, signer, named: None };
                    then(seat, checked.map(holder));
                })
            }
            None => then(seat, Err(Refusal::Mesh(command::Refused::NoKey))),
        }
    }
}

fn check(call: &Attach) -> Result<(), Refusal> {
    Ok(check_attach(&call.name, call.identity.named(), &call.capabilities)?)
}
