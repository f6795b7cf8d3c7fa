//! Conversations of this node's agents, and their budgets ([`crate::api::budget`]). All of it is memory: after a restart
//! budgets count anew, but for turns and hops that stand in the messages themselves.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::known::Known;
use crate::{
    api::{
        budget::{Answered, Budgets, Conversing, OverBudget, Pace},
        command::Caller,
        event::Delivered,
        policy::Withheld,
    },
    limits::{
        BUDGETS_KEPT_MAX, HANDED_COUNTS_FOR, HANDED_PER_AGENT_MAX, REQUEST_OPEN_FOR,
        REQUESTS_PER_AGENT_MAX,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::{conversation::Conversation, entry::Said, kinds::CHAT},
};

/// A message in a conversation that another agent began, as it was handed to an agent of this node.
#[derive(Clone, Copy, Debug)]
struct Handed {
    hops: u32,
    at: Duration,
}

/// A request of an agent that has no answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    room: RoomId,
    at: Duration,
}

/// The state of one agent.
#[derive(Clone, Debug, Default)]
struct OfAgent {
    /// The newest last; at most [`HANDED_PER_AGENT_MAX`].
    handed: VecDeque<Handed>,
    /// At most [`REQUESTS_PER_AGENT_MAX`].
    asked: BTreeMap<MessageId, Asked>,
}

/// The messages that one of the two agents of a direct room has sent lately to the other.
#[derive(Clone, Debug, Default)]
struct OneWay {
    at: VecDeque<Duration>,
}

/// The messages that the agents of a direct room have exchanged lately.
#[derive(Clone, Debug, Default)]
struct OfPair {
    /// By author.
    ways: BTreeMap<AgentId, OneWay>,
    rests_until: Duration,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversations {
    agents: BTreeMap<AgentId, OfAgent>,
    /// The agents that wait for an answer to these.
    waits: BTreeMap<MessageId, AgentId>,
    pairs: BTreeMap<RoomId, OfPair>,
}

/// A message of this node that was written just now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) agent: &'a AgentId,
    pub(super) room: RoomId,
    pub(super) message: MessageId,
    /// It counts as a request.
    pub(super) counts: bool,
}

impl Conversations {
    /// The place of a message that is to be said, if the budgets allow it.
    pub(super) fn place(
        &mut self,
        known: &Known,
        caller: &Caller,
        room: RoomId,
        conversing: &Conversing,
    ) -> Result<Conversation, OverBudget> {
        let (budgets, now) = (known.config.budgets, known.cx.now.mono);
        let Conversing { answers, expects_reply, counts, announces, of_person } = *conversing;
        let sides = known.directory.direct.get(room).map(|direct| &direct.sides);
        // With itself an agent has no budget.
        let own = sides.is_some_and(|sides| *sides.peer_of(&caller.agent) == caller.agent);
        let conversation = match answers {
            Some(answered) => goes_on(&budgets, answered, expects_reply)?,
            None if own => begun(&budgets, 0, expects_reply),
            None => {
                let asks = expects_reply && counts;
                let hops = self.may_begin(&budgets, now, &caller.agent, asks)?;
                begun(&budgets, hops, expects_reply)
            }
        };
        let of_person = of_person || conversation.of_person;
        let conversation = Conversation { announces, of_person, ..conversation };
        if sides.is_some() && !own && !of_person {
            let pair = self.pairs.entry(room).or_default();
            pair.may_go_on(&budgets.pair, now, &caller.agent)?;
        }
        Ok(conversation)
    }

    /// The hops of a conversation that an agent begins.
    fn may_begin(
        &mut self,
        budgets: &Budgets,
        now: Duration,
        agent: &AgentId,
        asks: bool,
    ) -> Result<u32, OverBudget> {
        let Some(of) = self.agents.get_mut(agent) else { return Ok(0) };
        of.forget_before(now, &mut self.waits);
        let unanswered = of.asked.len();
        if asks && unanswered >= budgets.outstanding {
            return Err(OverBudget::Outstanding { unanswered });
        }
        let hop = of.handed.iter().map(|handed| handed.hops.saturating_add(1)).max().unwrap_or(0);
        if hop > budgets.hops { Err(OverBudget::Hops { hop }) } else { Ok(hop) }
    }

    /// An agent of this node has said something with this place.
    pub(super) fn note_said(&mut self, known: &Known, written: Written<'_>, place: &Conversation) {
        let (now, Written { agent, room, message, counts }) = (known.cx.now.mono, written);
        if known.directory.direct.get(room).is_some() && !place.of_person {
            let pair = self.pairs.entry(room).or_default();
            pair.note(&known.config.budgets.pair, now, agent);
        }
        if place.expects_reply && counts {
            let of = self.agents.entry(agent.clone()).or_default();
            if of.asked.len() < REQUESTS_PER_AGENT_MAX {
                of.asked.insert(message, Asked { room, at: now });
                self.waits.insert(message, agent.clone());
            }
        }
        self.bound(now);
    }

    /// A message was delivered here. Returns why it is kept from agents of this node, if it is: by the node's policies, or by
    /// its budgets.
    pub(super) fn on_delivered(
        &mut self,
        known: &Known,
        room: RoomId,
        entry: &Delivered,
    ) -> Option<Withheld> {
        // It is no part of their conversations.
        if let Some(why) = known.withheld(room, entry) {
            return Some(why);
        }
        let said = entry.said.as_ref().filter(|_| entry.facts.kind == CHAT)?;
        let (now, budgets) = (known.cx.now.mono, &known.config.budgets);
        let foreign = entry.log.author != known.cx.me;
        let direct = known.directory.direct.get(room);
        let of_person = said.conversation.is_some_and(|place| place.of_person);
        if direct.is_some() && foreign && !of_person {
            self.pairs.entry(room).or_default().note(&budgets.pair, now, &said.agent);
        }
        let place = said.conversation?;
        if let Some(answered) = place.answers {
            self.is_answered(answered, room);
        }
        // The author of a mention in a room has no say in the conversations of the agent.
        let direct = direct?;
        if foreign && place.turn > budgets.turns.saturating_add(1) {
            return Some(Withheld::Turns);
        }
        if foreign && place.hops > budgets.hops {
            return Some(Withheld::Hops);
        }
        // Also if it is away: it reads it when it comes.
        self.hand(now, direct.sides.peer_of(&said.agent), said);
        self.bound(now);
        None
    }

    /// A request has an answer, and with it all that its author has asked before in the same room.
    fn is_answered(&mut self, request: MessageId, room: RoomId) {
        let Some(agent) = self.waits.get(&request) else { return };
        let Some(of) = self.agents.get_mut(agent) else { return };
        let Some(upto) = of.asked.get(&request).map(|asked| asked.at) else { return };
        let is_older = |asked: &Asked| asked.room == room && asked.at <= upto;
        for (message, _) in of.asked.extract_if(.., |_, asked| is_older(asked)) {
            self.waits.remove(&message);
        }
    }

    /// A request was given up, or refused: there is to be no answer.
    pub(super) fn is_over(&mut self, request: MessageId) {
        if let Some(of) = self.waits.remove(&request).and_then(|agent| self.agents.get_mut(&agent))
        {
            of.asked.remove(&request);
        }
    }

    /// A message is given to an agent of this node.
    fn hand(&mut self, now: Duration, agent: &AgentId, said: &Said) {
        let Some(place) = said.conversation.filter(|_| said.agent != *agent) else { return };
        // An agent is not on a chain because it is answered, but it is if it is asked in return, or has answered that: else two
        // agents that ask each other anew with each answer never end.
        if place.turn == 1 && !place.expects_reply {
            return;
        }
        let of = self.agents.entry(agent.clone()).or_default();
        of.forget_before(now, &mut self.waits);
        if of.handed.len() >= HANDED_PER_AGENT_MAX {
            of.handed.pop_front();
        }
        of.handed.push_back(Handed { hops: place.hops, at: now });
    }

    /// Forgets states that say nothing any more, when there are many.
    fn bound(&mut self, now: Duration) {
        if self.agents.len() > BUDGETS_KEPT_MAX {
            let waits = &mut self.waits;
            self.agents.retain(|_, of| {
                of.forget_before(now, waits);
                !(of.handed.is_empty() && of.asked.is_empty())
            });
            while self.agents.len() > BUDGETS_KEPT_MAX {
                let Some((_, of)) = self.agents.pop_first() else { break };
                of.asked.keys().for_each(|message| drop(self.waits.remove(message)));
            }
        }
        if self.pairs.len() > BUDGETS_KEPT_MAX {
            self.pairs.retain(|_, pair| pair.was_busy_since(now.saturating_sub(LATELY)));
            while self.pairs.len() > BUDGETS_KEPT_MAX {
                self.pairs.pop_first();
            }
        }
    }
}

/// Pairs that have said nothing for so long may be forgotten when there are many.
const LATELY: Duration = Duration::from_secs(3_600);

fn begun(budgets: &Budgets, hops: u32, expects_reply: bool) -> Conversation {
    Conversation {
        begun_by: None,
        turn: 0,
        max_turns: budgets.turns,
        hops,
        expects_reply,
        answers: None,
        announces: false,
        of_person: false,
    }
}

fn goes_on(
    budgets: &Budgets,
    answered: Answered,
    expects_reply: bool,
) -> Result<Conversation, OverBudget> {
    let Answered { message, conversation } = answered;
    // One that its node has not kept back: it is from before, or from a time of other budgets.
    if conversation.hops > budgets.hops {
        return Err(OverBudget::Hops { hop: conversation.hops });
    }
    let max_turns = conversation.max_turns.min(budgets.turns);
    let turn = conversation.turn.saturating_add(1);
    let place = Conversation {
        begun_by: Some(conversation.id(message)),
        turn,
        max_turns,
        hops: conversation.hops,
        // The last turn can have no answer.
        expects_reply: expects_reply && turn <= max_turns,
        answers: Some(message),
        announces: false,
        of_person: conversation.of_person,
    };
    if place.turn > place.last_turn() {
        return Err(OverBudget::Turns { max: max_turns });
    }
    Ok(place)
}

impl OfAgent {
    /// Things that count no more.
    fn forget_before(&mut self, now: Duration, waits: &mut BTreeMap<MessageId, AgentId>) {
        self.handed.retain(|handed| handed.at + HANDED_COUNTS_FOR > now);
        let is_old = |asked: &Asked| asked.at + REQUEST_OPEN_FOR <= now;
        for (message, _) in self.asked.extract_if(.., |_, asked| is_old(asked)) {
            waits.remove(&message);
        }
    }
}

impl OfPair {
    /// Both together have their pace; but an agent that has said less than half of it is not silenced by the other one.
    fn may_go_on(&mut self, pace: &Pace, now: Duration, by: &AgentId) -> Result<(), OverBudget> {
        self.settle(pace, now);
        let most = usize::try_from(pace.messages).unwrap_or(usize::MAX).max(1);
        let own = self.ways.get(by).map_or(0, |way| way.at.len());
        let all: usize = self.ways.values().map(|way| way.at.len()).sum();
        if now >= self.rests_until && all >= most && own >= most.div_ceil(2) {
            self.rests_until = now + pace.rest;
        }
        if now < self.rests_until && own >= most.div_ceil(2) {
            let retry_after = self.rests_until.saturating_sub(now);
            return Err(OverBudget::Pair { pace: *pace, retry_after });
        }
        Ok(())
    }

    fn note(&mut self, pace: &Pace, now: Duration, by: &AgentId) {
        self.settle(pace, now);
        let most = usize::try_from(pace.messages).unwrap_or(usize::MAX).max(1);
        let way = self.ways.entry(by.clone()).or_default();
        if way.at.len() >= most {
            way.at.pop_front();
        }
        way.at.push_back(now);
    }

    /// While the two rest what was said stays counted; after it all begins anew.
    fn settle(&mut self, pace: &Pace, now: Duration) {
        if self.rests_until > Duration::ZERO {
            if now >= self.rests_until {
                *self = OfPair::default();
            }
            return;
        }
        for way in self.ways.values_mut() {
            while way.at.front().is_some_and(|at| *at + pace.within <= now) {
                way.at.pop_front();
            }
        }
        self.ways.retain(|_, way| !way.at.is_empty());
    }

    fn was_busy_since(&self, since: Duration) -> bool {
        self.rests_until > since
            || self.ways.values().any(|way| way.at.back().is_some_and(|at| *at > since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { messages: 3, within: Duration::from_secs(10), rest: Duration::from_secs(60) };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn two_agents_that_write_too_fast_rest_and_go_on_after_it() {
        let (mut pair, ann) = (OfPair::default(), AgentId::from("ann"));
        for second in [0, 4, 8] {
            assert_eq!(pair.may_go_on(&PACE, at(second), &ann), Ok(()));
            pair.note(&PACE, at(second), &ann);
        }
        let retry_after = Duration::from_secs(60);
        let resting = Err(OverBudget::Pair { pace: PACE, retry_after });
        assert_eq!(pair.may_go_on(&PACE, at(9), &ann), resting);
        assert!(pair.may_go_on(&PACE, at(68), &ann).is_err());
        assert_eq!(pair.may_go_on(&PACE, at(69), &ann), Ok(()), "the minute is over");
        for second in [69, 78, 87, 96] {
            assert_eq!(pair.may_go_on(&PACE, at(second), &ann), Ok(()), "they are slow enough");
            pair.note(&PACE, at(second), &ann);
        }
    }

    #[test]
    fn an_agent_that_is_flooded_can_still_say_stop() {
        let (mut pair, ann, eve) = (OfPair::default(), AgentId::from("ann"), AgentId::from("eve"));
        (0..100).for_each(|_| pair.note(&PACE, at(1), &eve));
        assert_eq!(pair.may_go_on(&PACE, at(1), &ann), Ok(()));
        pair.note(&PACE, at(1), &ann);
        assert!(pair.may_go_on(&PACE, at(1), &eve).is_err());
        assert_eq!(pair.may_go_on(&PACE, at(2), &ann), Ok(()), "while the other one rests");
        pair.note(&PACE, at(2), &ann);
        assert!(pair.may_go_on(&PACE, at(2), &ann).is_err(), "but not for ever");
    }

    #[test]
    fn a_conversation_has_its_turns_and_the_lower_limit_holds() {
        let budgets = |turns| Budgets { turns, ..Budgets::default() };
        let mut place = begun(&budgets(2), 0, true);
        let mut turns = vec![place.turn];
        let over = loop {
            let answered = Answered { message: MessageId([7; 16]), conversation: place };
            match goes_on(&budgets(5), answered, true) {
                Ok(next) => place = next,
                Err(over) => break over,
            }
            turns.push(place.turn);
        };
        assert_eq!((turns, over), (vec![0, 1, 2, 3], OverBudget::Turns { max: 2 }));
        assert_eq!(place.begun_by, Some(MessageId([7; 16])), "all are of the first one");
    }

    #[test]
    fn a_chain_of_agents_that_ask_each_other_has_its_hops_and_is_forgotten() {
        let mut all = Conversations::default();
        let budgets = Budgets { hops: 2, ..Budgets::default() };
        let mut hops = Vec::new();
        let agent = |n: u64| AgentId::from(format!("agent {n}").as_str());
        let over = (0..9).find_map(|n| match all.may_begin(&budgets, at(n), &agent(n), true) {
            Ok(hop) => {
                hops.push(hop);
                let said = said_in(&agent(n), begun(&budgets, hop, true));
                all.hand(at(n), &agent(n + 1), &said);
                None
            }
            Err(over) => Some((n, over)),
        });
        assert_eq!((hops, over), (vec![0, 1, 2], Some((3, OverBudget::Hops { hop: 3 }))));
        let later = HANDED_COUNTS_FOR + at(3);
        assert_eq!(all.may_begin(&budgets, later, &agent(3), true), Ok(0), "not for ever");
        let high = begun(&budgets, u32::MAX, true);
        all.hand(later, &agent(5), &said_in(&agent(4), high));
        let over = all.may_begin(&budgets, later, &agent(5), true);
        assert_eq!(over, Err(OverBudget::Hops { hop: u32::MAX }), "whatever a peer writes");
    }

    #[test]
    fn an_agent_that_asks_is_not_on_a_chain_because_it_is_answered() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { hops: 1, ..Budgets::default() }, AgentId::from("ann"));
        for n in 0..9_u8 {
            let hops = all.may_begin(&budgets, at(1), &ann, true).expect("a new question");
            let (place, message) = (begun(&budgets, hops, true), MessageId([n; 16]));
            assert_eq!(place.hops, 0);
            let answer = goes_on(&budgets, Answered { message, conversation: place }, false);
            let said = said_in(&"bob".into(), answer.expect("turn 1"));
            all.hand(at(1), &ann, &said);
        }
    }

    #[test]
    fn two_agents_that_ask_each_other_anew_with_each_answer_stop() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { hops: 3, ..Budgets::default() }, AgentId::from("ann"));
        let mut hops = Vec::new();
        for n in 0..9_u8 {
            let Ok(hop) = all.may_begin(&budgets, at(1), &ann, true) else { break };
            hops.push(hop);
            let (message, conversation) = (MessageId([n; 16]), begun(&budgets, hop, true));
            let answer = goes_on(&budgets, Answered { message, conversation }, true);
            all.hand(at(1), &ann, &said_in(&"bob".into(), answer.expect("turn 1")));
        }
        assert_eq!(hops, [0, 1, 2, 3], "it is asked in return, each time");
    }

    #[test]
    fn a_conversation_beyond_a_nodes_hops_is_not_gone_on_with() {
        let far = Budgets::default();
        let conversation = Conversation { hops: 3, ..begun(&far, 0, true) };
        let answered = Answered { message: MessageId([7; 16]), conversation };
        let near = Budgets { hops: 2, ..far };
        assert_eq!(goes_on(&near, answered, true), Err(OverBudget::Hops { hop: 3 }));
        assert!(goes_on(&far, answered, true).is_ok());
    }

    #[test]
    fn an_agent_that_nobody_answers_asks_no_more_until_it_is_answered_or_a_day_has_passed() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { outstanding: 2, ..Budgets::default() }, "ann".into());
        let (room, other) = (RoomId([1; 16]), RoomId([2; 16]));
        let message = |n: u8| MessageId([n; 16]);
        let ask = |all: &mut Conversations, n: u8, room| {
            let of = all.agents.entry(AgentId::from("ann")).or_default();
            of.asked.insert(message(n), Asked { room, at: at(n.into()) });
            all.waits.insert(message(n), "ann".into());
        };
        ask(&mut all, 1, room);
        ask(&mut all, 2, room);
        let over = Err(OverBudget::Outstanding { unanswered: 2 });
        assert_eq!(all.may_begin(&budgets, at(3), &ann, true), over);
        assert!(all.may_begin(&budgets, at(3), &ann, false).is_ok(), "it does not ask");
        all.is_answered(message(2), other);
        assert_eq!(all.may_begin(&budgets, at(3), &ann, true), over, "not in this room");
        all.is_answered(message(2), room);
        assert!(all.waits.is_empty(), "the one before has no other answer to wait for");
        assert!(all.may_begin(&budgets, at(3), &ann, true).is_ok());
        ask(&mut all, 3, room);
        ask(&mut all, 4, room);
        assert!(all.may_begin(&budgets, REQUEST_OPEN_FOR + at(4), &ann, true).is_ok());
        assert!(all.waits.is_empty());
    }

    fn said_in(agent: &AgentId, place: Conversation) -> Said {
        Said {
            agent: agent.clone(),
            name: String::new(),
            content: String::new(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
            turn: None,
            id: None,
            key: None,
            conversation: Some(place),
        }
    }
}
