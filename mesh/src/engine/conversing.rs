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
    },
    limits::{
        BUDGETS_KEPT_MAX, HANDED_COUNTS_FOR, HANDED_PER_AGENT_MAX, REQUEST_OPEN_FOR,
        REQUESTS_PER_AGENT_MAX,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::{conversation::Conversation, entry::Said},
};

/// A message in a conversation that another agent began, as it was handed to an agent of this node.
#[derive(Clone, Copy, Debug)]
struct Handed {
    message: MessageId,
    hops: u32,
    at: Duration,
    /// It expects an answer and has none.
    is_open: bool,
}

/// The state of one agent.
#[derive(Debug, Default)]
struct OfAgent {
    /// The newest last; at most [`HANDED_PER_AGENT_MAX`].
    handed: VecDeque<Handed>,
    /// Its own requests without an answer, and when they were made; at most [`REQUESTS_PER_AGENT_MAX`].
    asked: BTreeMap<MessageId, Duration>,
}

/// The messages that the agents of a direct room have exchanged lately.
#[derive(Debug, Default)]
struct OfPair {
    at: VecDeque<Duration>,
    rests_until: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    agents: BTreeMap<AgentId, OfAgent>,
    pairs: BTreeMap<RoomId, OfPair>,
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
        let Conversing { answers, expects_reply } = *conversing;
        let conversation = match answers {
            Some(answered) => goes_on(&budgets, answered, expects_reply)?,
            None => self.begins(&budgets, now, &caller.agent, expects_reply)?,
        };
        if known.directory.direct.get(room).is_some() {
            self.pairs.entry(room).or_default().may_go_on(&budgets.pair, now)?;
        }
        Ok(conversation)
    }

    fn begins(
        &mut self,
        budgets: &Budgets,
        now: Duration,
        agent: &AgentId,
        expects_reply: bool,
    ) -> Result<Conversation, OverBudget> {
        let hops = match self.agents.get_mut(agent) {
            Some(of) => {
                of.forget_before(now);
                let unanswered = of.asked.len();
                if expects_reply && unanswered >= budgets.outstanding {
                    return Err(OverBudget::Outstanding { unanswered });
                }
                of.handed.iter().map(|handed| handed.hops.saturating_add(1)).max().unwrap_or(0)
            }
            None => 0,
        };
        if hops > budgets.hops {
            return Err(OverBudget::Hops { hop: hops });
        }
        let max_turns = budgets.turns;
        Ok(Conversation { begun_by: None, turn: 0, max_turns, hops, expects_reply, answers: None })
    }

    /// An agent of this node has said a message with this place.
    pub(super) fn note_said(
        &mut self,
        now: Duration,
        agent: &AgentId,
        message: MessageId,
        place: &Conversation,
    ) {
        let of = self.agents.entry(agent.clone()).or_default();
        if let Some(answered) = place.answers {
            let open = of.handed.iter_mut().filter(|handed| handed.message == answered);
            open.for_each(|handed| handed.is_open = false);
        }
        if place.expects_reply && of.asked.len() < REQUESTS_PER_AGENT_MAX {
            of.asked.insert(message, now);
        }
        self.bound(now);
    }

    /// A message was delivered here. Returns whether this node's budgets keep it from agents of this node.
    pub(super) fn on_delivered(&mut self, known: &Known, room: RoomId, entry: &Delivered) -> bool {
        let direct = known.directory.direct.get(room);
        let Some(said) = &entry.said else { return false };
        let now = known.cx.now.mono;
        if direct.is_some() {
            self.pairs.entry(room).or_default().note(&known.config.budgets.pair, now);
        }
        let Some(place) = said.conversation else { return false };
        let is_over = entry.log.author != known.cx.me
            && (place.turn > known.config.budgets.turns.saturating_add(1)
                || place.hops > known.config.budgets.hops);
        if is_over {
            // In a room of many it is told, but a node that writes any number is not to end conversations of others.
            return direct.is_some();
        }
        let to: Vec<AgentId> = match direct {
            Some(direct) => vec![direct.sides.peer_of(&said.agent).clone()],
            None => said.mentions.clone(),
        };
        // An agent of a direct room that is not here now reads it when it comes.
        let is_given = |agent: &AgentId| {
            let inbox = known.cx.addressees.contains(agent);
            direct.is_some() || inbox || known.rosters.own(agent).is_some()
        };
        for agent in to.into_iter().filter(is_given) {
            self.hand(now, &agent, (entry.message, said), direct.is_some());
        }
        false
    }

    /// A message is given to an agent of this node.
    fn hand(
        &mut self,
        now: Duration,
        agent: &AgentId,
        (message, said): (MessageId, &Said),
        direct: bool,
    ) {
        let Some(place) = said.conversation.filter(|_| said.agent != *agent) else { return };
        let of = self.agents.entry(agent.clone()).or_default();
        if let Some(answered) = place.answers {
            of.asked.remove(&answered);
        }
        // An agent is not on a chain because it is answered, but it is if it is asked in return, or has answered that: else two
        // agents that ask each other anew with each answer would never end.
        let is_answered = direct && place.turn == 1 && !place.expects_reply;
        if !is_answered {
            of.forget_before(now);
            if of.handed.len() >= HANDED_PER_AGENT_MAX {
                of.handed.pop_front();
            }
            let (hops, is_open) = (place.hops, place.expects_reply);
            of.handed.push_back(Handed { message, hops, at: now, is_open });
        }
        self.bound(now);
    }

    /// Forgets states that say nothing any more, when there are many.
    fn bound(&mut self, now: Duration) {
        if self.agents.len() > BUDGETS_KEPT_MAX {
            self.agents.retain(|_, of| {
                of.forget_before(now);
                !(of.handed.is_empty() && of.asked.is_empty())
            });
            while self.agents.len() > BUDGETS_KEPT_MAX {
                self.agents.pop_first();
            }
        }
        if self.pairs.len() > BUDGETS_KEPT_MAX {
            self.pairs.retain(|_, pair| pair.at.back().is_some_and(|at| *at + LATELY > now));
            while self.pairs.len() > BUDGETS_KEPT_MAX {
                self.pairs.pop_first();
            }
        }
    }
}

/// Pairs that have said nothing for so long may be forgotten when there are many.
const LATELY: Duration = Duration::from_secs(3_600);

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
    };
    if place.turn > place.last_turn() {
        return Err(OverBudget::Turns { max: max_turns });
    }
    Ok(place)
}

impl OfAgent {
    /// What counts no more.
    fn forget_before(&mut self, now: Duration) {
        self.asked.retain(|_, at| *at + REQUEST_OPEN_FOR > now);
        self.handed.retain(|handed| {
            let counts = if handed.is_open { REQUEST_OPEN_FOR } else { HANDED_COUNTS_FOR };
            handed.at + counts > now
        });
    }
}

impl OfPair {
    fn may_go_on(&mut self, pace: &Pace, now: Duration) -> Result<(), OverBudget> {
        self.settle(pace, now);
        if now < self.rests_until {
            let retry_after = self.rests_until.saturating_sub(now);
            return Err(OverBudget::Pair { pace: *pace, retry_after });
        }
        Ok(())
    }

    fn note(&mut self, pace: &Pace, now: Duration) {
        self.settle(pace, now);
        // Messages of the other side's node may come while the two rest: they count for the next time.
        self.at.push_back(now);
        let most = usize::try_from(pace.messages).unwrap_or(usize::MAX).max(1);
        while self.at.len() > most {
            self.at.pop_front();
        }
    }

    /// Begins a rest if the pace was reached, or ends one.
    fn settle(&mut self, pace: &Pace, now: Duration) {
        while self.at.front().is_some_and(|at| *at + pace.within <= now) {
            self.at.pop_front();
        }
        let most = usize::try_from(pace.messages).unwrap_or(usize::MAX).max(1);
        if now >= self.rests_until && self.at.len() >= most {
            self.at.clear();
            self.rests_until = now + pace.rest;
        }
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
        let mut pair = OfPair::default();
        for second in [0, 4, 8] {
            assert_eq!(pair.may_go_on(&PACE, at(second)), Ok(()));
            pair.note(&PACE, at(second));
        }
        let retry_after = Duration::from_secs(60);
        let resting = Err(OverBudget::Pair { pace: PACE, retry_after });
        assert_eq!(pair.may_go_on(&PACE, at(9)), resting);
        assert!(pair.may_go_on(&PACE, at(68)).is_err());
        assert_eq!(pair.may_go_on(&PACE, at(69)), Ok(()), "the minute is over");
        for second in [69, 78, 87, 96] {
            assert_eq!(pair.may_go_on(&PACE, at(second)), Ok(()), "they are slow enough");
            pair.note(&PACE, at(second));
        }
    }

    #[test]
    fn a_conversation_has_its_turns_and_the_lower_limit_holds() {
        let budgets = |turns| Budgets { turns, ..Budgets::default() };
        let mut place = Conversations::default()
            .begins(&budgets(2), at(0), &"ann".into(), true)
            .expect("nothing was used");
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
    fn a_chain_of_agents_that_ask_each_other_has_its_hops() {
        let mut all = Conversations::default();
        let budgets = Budgets { hops: 2, ..Budgets::default() };
        let mut hops = Vec::new();
        for n in 0..9_u8 {
            let agent: AgentId = format!("agent {n}").as_str().into();
            let place = match all.begins(&budgets, at(u64::from(n)), &agent, true) {
                Ok(place) => place,
                Err(over) => {
                    assert_eq!(over, OverBudget::Hops { hop: 3 });
                    break;
                }
            };
            hops.push(place.hops);
            let next: AgentId = format!("agent {}", n + 1).as_str().into();
            let said = said_in(&agent, place);
            all.hand(at(u64::from(n)), &next, (MessageId([n; 16]), &said), true);
        }
        assert_eq!(hops, [0, 1, 2]);
    }

    #[test]
    fn an_agent_that_asks_is_not_on_a_chain_because_it_is_answered() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { hops: 1, ..Budgets::default() }, AgentId::from("ann"));
        for n in 0..9_u8 {
            let place = all.begins(&budgets, at(1), &ann, true).expect("a new question");
            assert_eq!(place.hops, 0);
            let message = MessageId([n; 16]);
            all.note_said(at(1), &ann, message, &place);
            let answered = Answered { message, conversation: place };
            let answer = goes_on(&budgets, answered, false).expect("turn 1");
            let said = said_in(&"bob".into(), answer);
            all.hand(at(1), &ann, (MessageId([100 + n; 16]), &said), true);
        }
        assert!(all.agents[&ann].asked.is_empty(), "each was answered");
    }

    #[test]
    fn two_agents_that_ask_each_other_anew_with_each_answer_stop() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { hops: 3, ..Budgets::default() }, AgentId::from("ann"));
        let mut hops = Vec::new();
        for n in 0..9_u8 {
            let Ok(place) = all.begins(&budgets, at(1), &ann, true) else { break };
            hops.push(place.hops);
            let message = MessageId([n; 16]);
            all.note_said(at(1), &ann, message, &place);
            let answered = Answered { message, conversation: place };
            let answer = goes_on(&budgets, answered, true).expect("turn 1");
            let said = said_in(&"bob".into(), answer);
            all.hand(at(1), &ann, (MessageId([100 + n; 16]), &said), true);
        }
        assert_eq!(hops, [0, 1, 2, 3], "it is asked in return, each time");
    }

    #[test]
    fn a_conversation_beyond_a_nodes_hops_is_not_gone_on_with() {
        let (ann, message) = ("ann".into(), MessageId([7; 16]));
        let far = Budgets::default();
        let place = Conversations::default().begins(&far, at(0), &ann, true).expect("a question");
        let conversation = Conversation { hops: 3, ..place };
        let answered = Answered { message, conversation };
        let near = Budgets { hops: 2, ..far };
        assert_eq!(goes_on(&near, answered, true), Err(OverBudget::Hops { hop: 3 }));
        assert!(goes_on(&far, answered, true).is_ok());
    }

    #[test]
    fn an_agent_that_nobody_answers_asks_no_more_until_a_day_has_passed() {
        let mut all = Conversations::default();
        let (budgets, ann) = (Budgets { outstanding: 2, ..Budgets::default() }, "ann".into());
        for n in 0..2 {
            let place = all.begins(&budgets, at(n), &ann, true).expect("few are open");
            all.note_said(at(n), &ann, MessageId([u8::try_from(n).unwrap(); 16]), &place);
        }
        let over = Err(OverBudget::Outstanding { unanswered: 2 });
        assert_eq!(all.begins(&budgets, at(3), &ann, true), over);
        assert!(all.begins(&budgets, at(3), &ann, false).is_ok(), "it does not ask");
        assert!(all.begins(&budgets, REQUEST_OPEN_FOR + at(3), &ann, true).is_ok());
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
