//! Agents that answer everything that they are told, at once, and ask another one besides; a modest agent, with one
//! that helps it; and an agent at a node that keeps no budgets.
//!
//! They come and ask: an item of an inbox is confirmed when everything that it led to was answered. Until then it comes again
//! when the agent does, and sends are repeated.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        budget::{Answered, Budgets, Conversing, OverBudget},
        command::{Outcome, Refused, Say},
    },
    limits::{HANDED_COUNTS_FOR, HANDED_PER_AGENT_MAX},
    name::id::{MessageId, RoomId},
    wire::{conversation::Conversation, entry::DedupId},
};
use store::Row;

use super::{
    Correspondents, Role,
    asked::{Act, Item, Saying, Why},
    conversations,
    writing::words,
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::may_be_in_the_way,
    plan::{Circle, Correspondence},
    promises::{Broken, broken},
};

/// Questions that agents begin with.
const QUESTIONS: u64 = 8;
/// So long do slow agents think.
const THINKS_MS_MAX: u64 = 8_000;
/// A modest agent waits for so long after a question.
const MODEST_EVERY: Duration = Duration::from_secs(8);

/// Thoughts of an agent.
#[derive(Debug, Default)]
pub(super) struct Mind {
    /// It has looked at all items up to this one.
    seen: u64,
    /// It has confirmed these.
    confirmed: u64,
    /// How many messages each item has led to that were not answered yet.
    open: BTreeMap<u64, usize>,
    /// It looks at its items again from the ones that it has confirmed.
    again: bool,
    /// Messages that wait until two agents have rested.
    later: Vec<(Duration, Saying)>,
    /// Questions of a modest agent that are without an answer.
    unanswered: BTreeSet<MessageId>,
    asked_at: Duration,
    /// Questions that it began with.
    begun: u64,
}

impl Mind {
    /// It has registered, and knows nothing of its node's answers from before.
    pub(super) fn comes_back(&mut self) {
        self.open.clear();
        self.later.clear();
    }

    pub(super) fn begins_at(&mut self, mark: u64) {
        (self.seen, self.confirmed, self.again) = (mark, mark, false);
    }
}

/// Their acts.
impl Correspondents {
    /// All of them look around.
    pub(super) fn answer_all(&mut self, cluster: &mut Cluster) {
        for i in 0..self.agents.len() {
            let agent = &self.agents[i];
            if agent.place.is_none() {
                let home = agent.home;
                self.register(cluster, i, home);
            } else {
                self.think(cluster, i);
            }
        }
    }

    fn think(&mut self, cluster: &mut Cluster, i: usize) {
        let unfiled = self.agents[i].inbox.as_ref().map(|inbox| inbox.unfiled.is_some());
        match unfiled {
            None => return self.inbox(cluster, i, Act::Open),
            Some(true) => return self.inbox(cluster, i, Act::File),
            Some(false) => {}
        }
        for with in self.circle(cluster, i) {
            if self.room_of(i, with).is_none() {
                self.open_direct(cluster, i, with);
            }
        }
        self.say_later(cluster, i);
        self.look_on(cluster, i);
        if !cluster.quiet {
            self.begin(cluster, i);
        }
    }

    /// The agents that one asks of its own accord, or brags to.
    fn circle(&self, cluster: &Cluster, i: usize) -> Vec<usize> {
        let Some(Correspondence::Answering { circle, .. }) = cluster.plan.correspondence else {
            return Vec::new();
        };
        let answers = |i: &usize| self.agents[*i].role == Role::Answers;
        let all: Vec<usize> = (0..self.agents.len()).filter(answers).collect();
        match (self.agents[i].role, circle) {
            (Role::Asks(with), _) => vec![with],
            (Role::Helps | Role::Writes, _) => Vec::new(),
            (Role::Answers, Circle::Pairs) => vec![i ^ 1],
            (Role::Answers, Circle::Ring) => vec![(i + 1) % all.len()],
            (Role::Answers, Circle::Crowd) => all.into_iter().filter(|other| *other != i).collect(),
            (Role::Brags, _) => all,
        }
    }

    /// Things that nobody has led to.
    fn begin(&mut self, cluster: &mut Cluster, i: usize) {
        let now = cluster.now();
        let mind = &self.agents[i].mind;
        match self.agents[i].role {
            Role::Answers if mind.begun < QUESTIONS && cluster.dice.chance(3) => {
                self.agents[i].mind.begun += 1;
                self.ask_some(cluster, i, None);
            }
            Role::Asks(with)
                if mind.unanswered.is_empty() && now >= mind.asked_at + MODEST_EVERY =>
            {
                if let Some(room) = self.room_of(i, with) {
                    self.agents[i].mind.asked_at = now;
                    let say = Say { conversing: Some(Box::new(ASKS)), ..words(cluster, room) };
                    self.say(cluster, Saying { by: i, room, say, why: Why::Question });
                }
            }
            Role::Brags if cluster.dice.chance(25) => self.brag(cluster, i),
            Role::Answers | Role::Asks(_) | Role::Helps | Role::Brags | Role::Writes => {}
        }
        // Now and then one is away for a while.
        if self.agents[i].role != Role::Brags && cluster.dice.chance(1) {
            let wait = Duration::from_millis(cluster.dice.within(100, 4_000));
            self.detach(cluster, i, wait);
        }
    }

    /// An agent asks one of its circle.
    fn ask_some(&mut self, cluster: &mut Cluster, i: usize, item: Option<Item>) {
        let rooms = self.circle(cluster, i).into_iter();
        let rooms: Vec<RoomId> = rooms.filter_map(|with| self.room_of(i, with)).collect();
        if rooms.is_empty() {
            return;
        }
        let room = *cluster.dice.pick(&rooms);
        let say = Say { conversing: Some(Box::new(ASKS)), ..words(cluster, room) };
        match item {
            None => self.say(cluster, Saying { by: i, room, say, why: Why::Chat }),
            Some(item) => {
                self.say_for(cluster, Saying { by: i, room, say, why: Why::Ask { item } })
            }
        }
    }

    /// Something that an item has led to. If it is said again, it is the same message.
    fn say_for(&mut self, cluster: &mut Cluster, saying: Saying) {
        let (kind, item) = match saying.why {
            Why::Answer { item } | Why::Help { item } => ("answer", item),
            Why::Ask { item } => ("ask", item),
            Why::Chat | Why::Question | Why::Brag => return,
        };
        let agent = &mut self.agents[saying.by];
        *agent.mind.open.entry(item.place).or_default() += 1;
        let (key, id) = (self.keys[agent.key].print, format!("{kind} {:?}", item.at));
        let dedup = Some(DedupId::new(key, &agent.id, &id));
        let saying = Saying { say: Say { dedup, ..saying.say }, ..saying };
        if let Some(Correspondence::Answering { slow: true, .. }) = cluster.plan.correspondence {
            let thought = Duration::from_millis(cluster.dice.within(0, THINKS_MS_MAX));
            agent.mind.later.push((cluster.now() + thought, saying));
        } else {
            self.say(cluster, saying);
        }
    }

    fn say_later(&mut self, cluster: &mut Cluster, i: usize) {
        let now = cluster.now();
        let later = std::mem::take(&mut self.agents[i].mind.later);
        for (due, saying) in later {
            if due <= now {
                self.say(cluster, saying);
            } else {
                self.agents[i].mind.later.push((due, saying));
            }
        }
    }

    fn brag(&mut self, cluster: &mut Cluster, i: usize) {
        let all = self.circle(cluster, i);
        let with = *cluster.dice.pick(&all);
        let lobby = cluster.lobby();
        let conversing = Some(Box::new(some_place(cluster, self.agents[with].home)));
        if cluster.dice.chance(40) {
            if !self.agents[i].rooms.contains(&lobby) {
                return self.join(cluster, i, lobby);
            }
            let mentions = vec![self.agents[with].id.clone()];
            let say = Say { mentions, conversing, ..words(cluster, lobby) };
            return self.say(cluster, Saying { by: i, room: lobby, say, why: Why::Brag });
        }
        if let Some(room) = self.room_of(i, with) {
            let say = Say { conversing, ..words(cluster, room) };
            self.say(cluster, Saying { by: i, room, say, why: Why::Brag });
        }
    }
}

const ASKS: Conversing = Conversing {
    answers: None,
    expects_reply: true,
    counts: true,
    announces: false,
    of_person: false,
};

/// Any place: some below and some above the budgets of a node.
fn some_place(cluster: &mut Cluster, node: usize) -> Conversing {
    let Budgets { turns, hops, .. } = *cluster.nodes[node].budgets();
    let dice = &mut cluster.dice;
    let message = MessageId([dice.byte(); 16]);
    let conversation = Conversation {
        begun_by: Some(MessageId([dice.byte(); 16])),
        turn: *dice.pick(&[0, turns, turns.saturating_add(1), u32::MAX - 1]),
        max_turns: u32::MAX,
        hops: *dice.pick(&[0, hops, hops.saturating_add(1), u32::MAX]),
        expects_reply: true,
        answers: None,
        announces: false,
        of_person: false,
    };
    Conversing {
        answers: Some(Answered { message, conversation }),
        expects_reply: true,
        counts: true,
        announces: false,
        of_person: false,
    }
}

/// Items of inboxes.
impl Correspondents {
    /// Something came for an agent.
    pub(super) fn look(&mut self, cluster: &mut Cluster, i: usize) {
        if self.agents[i].role != Role::Writes && self.agents[i].inbox.is_some() {
            self.look_on(cluster, i);
        }
    }

    fn look_on(&mut self, cluster: &mut Cluster, i: usize) {
        let mind = &mut self.agents[i].mind;
        if mind.again && mind.open.is_empty() {
            (mind.seen, mind.again) = (mind.confirmed, false);
        }
        let seen = mind.seen;
        let Some(reader) = self.reader(cluster, i).cloned() else { return };
        let page = reader.inbox(&self.agents[i].id, seen, 100).expect("a sound store reads");
        for (place, item) in page.items {
            self.agents[i].mind.seen = place;
            let row = reader.by_number(item.room, item.number).expect("a sound store reads");
            if let Some(row) = row {
                self.react(cluster, i, (place, item.room), &row);
            }
        }
        let mind = &mut self.agents[i].mind;
        let done = mind.open.keys().next().map_or(mind.seen, |first| first - 1);
        if !mind.again && done > mind.confirmed {
            mind.confirmed = done;
            self.inbox(cluster, i, Act::Confirm(done));
        }
    }

    /// An agent is told something.
    fn react(&mut self, cluster: &mut Cluster, i: usize, (place, room): (u64, RoomId), row: &Row) {
        let Some(said) = row.said.as_ref().filter(|said| said.agent != self.agents[i].id) else {
            return;
        };
        let Some(conversation) = said.conversation else { return };
        let hops = conversations::leads_on(cluster, self.agents[i].home, self.sides(room), row);
        let item = Item { place, at: (room, row.number), told: cluster.now(), hops };
        let answered = Answered { message: row.message, conversation };
        let answers = Conversing {
            answers: Some(answered),
            expects_reply: true,
            counts: true,
            announces: false,
            of_person: false,
        };
        let role = self.agents[i].role;
        match role {
            Role::Answers => {
                let say = Say { conversing: Some(Box::new(answers)), ..words(cluster, room) };
                if self.sides(room).is_some() {
                    self.say_for(cluster, Saying { by: i, room, say, why: Why::Answer { item } });
                }
                self.ask_some(cluster, i, Some(item));
            }
            Role::Helps => {
                let help = Conversing { expects_reply: false, ..answers };
                let say = Say { conversing: Some(Box::new(help)), ..words(cluster, room) };
                self.say_for(cluster, Saying { by: i, room, say, why: Why::Help { item } });
            }
            Role::Asks(_) => {
                let question = conversation.answers;
                if question.is_some_and(|one| self.agents[i].mind.unanswered.remove(&one)) {
                    cluster.coverage.count(Happening::Modest);
                }
            }
            Role::Brags | Role::Writes => {}
        }
    }

    /// A message was answered. Whether in a way that is expected.
    pub(super) fn said(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        saying: &Saying,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        let i = saying.by;
        match result {
            Ok(Outcome::Said(said)) => {
                if let Why::Question = saying.why {
                    self.agents[i].mind.unanswered.insert(said.message);
                } else if let Why::Brag = saying.why {
                    cluster.coverage.count(Happening::Bragged);
                } else if let Why::Ask { item } = saying.why {
                    let life = self.inboxes.delivered_in(node, item.at);
                    // Its node forgets older ones.
                    let young = cluster.now() < item.told + HANDED_COUNTS_FOR / 2
                        && self.agents[i].mind.seen < item.place + HANDED_PER_AGENT_MAX as u64 / 2;
                    let same = life == Some(cluster.nodes[node].life);
                    if young && same && said.fresh.is_some() {
                        conversations::is_further(
                            cluster,
                            node,
                            (saying.room, said.message),
                            item,
                        )?;
                    }
                }
                let part = saying.say.conversing.as_ref();
                let asks = part.is_some_and(|part| part.expects_reply);
                let others = self.sides(saying.room).is_some_and(|(one, other)| one != other);
                if asks && others {
                    self.requests.is_asked(said.message, saying.room, i);
                }
                self.is_done(saying);
                Ok(true)
            }
            Err(Refused::Budget(over)) => self.is_over(cluster, node, saying, over),
            Err(refused) if may_be_in_the_way(refused) => {
                self.agents[i].mind.again = true;
                self.is_done(saying);
                Ok(true)
            }
            Ok(_) | Err(_) => Ok(false),
        }
    }

    fn is_over(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        saying: &Saying,
        over: &OverBudget,
    ) -> Result<bool, Broken> {
        let agent = &mut self.agents[saying.by];
        let modest = matches!(saying.why, Why::Question | Why::Help { .. });
        if modest || saying.say.conversing.is_none() {
            let what = format!("node{node} refuses {}, which asks seldom: {over}", agent.id);
            return broken("budgets", what);
        }
        cluster.coverage.count(match over {
            OverBudget::Turns { .. } => Happening::OutOfTurns,
            OverBudget::Hops { .. } => Happening::OutOfHops,
            OverBudget::Pair { .. } => Happening::Resting,
            OverBudget::Outstanding { .. } => Happening::Unanswered,
        });
        let patient = cluster.plan.correspondence;
        let patient = matches!(patient, Some(Correspondence::Answering { patient: true, .. }));
        // It owes an answer, but not a question.
        let owes = patient && matches!(saying.why, Why::Answer { .. });
        if let OverBudget::Pair { retry_after, .. } = over
            && owes
            && agent.place.is_some()
        {
            agent.mind.later.push((cluster.now() + *retry_after, saying.clone()));
        } else {
            self.is_done(saying);
        }
        Ok(true)
    }

    /// One of the messages that an item has led to needs no more.
    fn is_done(&mut self, saying: &Saying) {
        let item = match saying.why {
            Why::Answer { item } | Why::Ask { item } | Why::Help { item } => item,
            Why::Chat | Why::Question | Why::Brag => return,
        };
        let open = &mut self.agents[saying.by].mind.open;
        if let Some(left) = open.get_mut(&item.place) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                open.remove(&item.place);
            }
        }
    }
}
