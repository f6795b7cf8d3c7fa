//! Waking agents: a post to the host of an agent when something has come into its inbox. A hint, and no message: messages
//! are in the inbox, and the next post or the next call of the agent shows it. It names how many wait and from whom, never
//! what they say: hosts trust what they are told so.

mod board;
mod body;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use mesh::name::{
    group::agent_ref,
    id::{AgentId, KeyPrint},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

pub(crate) use self::board::Board;
pub use self::{
    board::Woken,
    body::{BadBody, WakeBody},
};
use crate::{
    backend::ReadError,
    delivery::hub::{Hub, Watched, Way},
    limits::{WAKE_AFTER, WAKE_NAMED_MAX, WAKE_POSTS, WAKE_REPEATS_MAX, WAKE_ROWS_MAX},
    seam::refusal::BadUrl,
    secret::Secret,
    webhooks::{
        post::{Delivery, Post, Poster, Shown},
        target::Target,
    },
};

/// An agent, and how its host is woken.
#[derive(Clone)]
pub struct Wake {
    agent: AgentId,
    target: Target,
    token: Option<Secret>,
    body: WakeBody,
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wake({:?})", self.agent)
    }
}

impl Wake {
    /// By posts to this URL, which may lead anywhere: the operator has chosen it. `token`: the host's.
    ///
    /// # Errors
    /// It is no URL that can be posted to.
    pub fn new(agent: &str, url: &str, token: Option<Secret>) -> Result<Wake, BadUrl> {
        let body = WakeBody::default();
        Ok(Wake { agent: agent.into(), target: Target::parse(url)?, token, body })
    }

    /// With another body than OpenClaw's.
    #[must_use]
    pub fn with_body(self, body: WakeBody) -> Wake {
        Wake { body, ..self }
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

/// Items that wait for an agent, and that it has not fetched.
struct Waiting {
    /// The newest of them.
    upto: u64,
    count: usize,
    from: Vec<String>,
}

/// Wakes one agent, as long as the node runs.
struct Waker {
    hub: Arc<Hub>,
    post: Arc<dyn Post>,
    wake: Wake,
}

/// Wakes all these agents. Does not end by itself.
pub(crate) async fn run(hub: Arc<Hub>, wakes: Vec<Wake>) {
    // The operator's own words say where: it need not be public.
    let post: Arc<dyn Post> = Arc::new(Poster::new(true));
    let mut wakers = JoinSet::new();
    for wake in wakes {
        let waker = Waker { hub: hub.clone(), post: post.clone(), wake };
        wakers.spawn(async move { waker.run().await });
    }
    while wakers.join_next().await.is_some() {}
}

impl Waker {
    async fn run(self) {
        let agent = self.wake.agent.clone();
        let mut watch = self.hub.watch(Watched::Inbox(agent.clone()));
        // Something may wait since before the start.
        let mut told: Option<Told> = None;
        loop {
            let Some(waiting) = self.waiting().await else {
                told = None;
                self.hub.woken.set(&agent, Woken::Nothing);
                watch.news().await;
                continue;
            };
            let fetched = self.hub.mails.of(&agent).fetched;
            // All that its host was told of has been fetched: what waits is news.
            if let Some(told) = told.as_mut().filter(|told| told.upto > fetched) {
                told.has_fetched(fetched);
                let now = Instant::now();
                if now < told.until || told.times > WAKE_REPEATS_MAX {
                    self.hub.woken.set(&agent, told.woken(now));
                    // One notice at a time: messages that come meanwhile are told with the next.
                    let look = now + LOOK_EVERY;
                    let look = if now < told.until { told.until.min(look) } else { look };
                    timeout_at(look, watch.news()).await.ok();
                } else {
                    let is_taken = self.tell(&waiting).await;
                    told.again(waiting.upto, is_taken);
                }
                continue;
            }
            // A call of the agent may be returning it just now, and others may come with it.
            sleep(WAKE_AFTER).await;
            told = None;
            if let Some(waiting) = self.waiting().await {
                let fetched = self.hub.mails.of(&agent).fetched;
                let is_taken = self.tell(&waiting).await;
                told = Some(Told::first(waiting.upto, fetched, is_taken));
            }
        }
    }

    /// Messages that wait for the agent and were not given to it.
    async fn waiting(&self) -> Option<Waiting> {
        let (hub, agent) = (self.hub.clone(), self.wake.agent.clone());
        let read = tokio::task::spawn_blocking(move || waiting(&hub, &agent)).await;
        match read {
            Ok(Ok(waiting)) => waiting,
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Whether the host has taken it.
    async fn tell(&self, waiting: &Waiting) -> bool {
        let notice = notice(waiting.count, &waiting.from);
        let delivery = Delivery {
            owner: KeyPrint::OPEN,
            target: self.wake.target.clone(),
            shown: Shown::Token(self.wake.token.clone()),
            body: Bytes::from(self.wake.body.filled(&notice, waiting.count, &waiting.from)),
        };
        let mut failure = None;
        for pause in WAKE_POSTS {
            match self.post.post(delivery.clone()).await {
                Ok(()) => {
                    self.hub.mails.tell_upto(&self.wake.agent, waiting.upto, Way::Post);
                    return true;
                }
                Err(error) => failure = Some(error),
            }
            sleep(pause).await;
        }
        if let Some(error) = failure {
            let agent = &*self.wake.agent;
            tracing::warn!(event = "wake_failed", agent, %error, "the host of an agent was not told that something waits");
        }
        false
    }
}

/// The text that hosts are told.
#[must_use]
pub(crate) fn notice(count: usize, from: &[String]) -> String {
    let noun = if count == 1 { "message" } else { "messages" };
    format!("{count} unread mesh {noun} from {}: call inbox_wait.", from.join(", "))
}

/// How often the agent is looked at that was told.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Between one notice and the next, as long as the agent fetches nothing.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
];

/// The notices that an agent's host was told, of which the agent has not fetched everything.
struct Told {
    /// The newest item that it was told of.
    upto: u64,
    /// The newest that the agent had fetched.
    fetched: u64,
    /// Notices that its host has taken.
    times: usize,
    /// Notices, also those that it has not taken.
    tries: usize,
    is_taken: bool,
    /// The next one is not before.
    until: Instant,
}

impl Told {
    fn first(upto: u64, fetched: u64, is_taken: bool) -> Told {
        let mut told =
            Told { upto, fetched, times: 0, tries: 0, is_taken: true, until: Instant::now() };
        told.again(upto, is_taken);
        told
    }

    /// A host that was not reached was not told: it hears of it when it is back, however long that takes.
    fn again(&mut self, upto: u64, is_taken: bool) {
        self.until = Instant::now() + PAUSES[self.tries.min(PAUSES.len() - 1)];
        self.tries += 1;
        self.times += usize::from(is_taken);
        self.upto = self.upto.max(upto);
        self.is_taken = is_taken;
    }

    /// The agent reads: what is left is told as if it were new, after the first pause.
    fn has_fetched(&mut self, upto: u64) {
        if upto > self.fetched {
            (self.fetched, self.times, self.tries) = (upto, 1, 1);
            self.until = Instant::now() + PAUSES[0];
        }
    }

    fn woken(&self, now: Instant) -> Woken {
        if !self.is_taken {
            Woken::Unreached
        } else if self.times > WAKE_REPEATS_MAX && now >= self.until {
            Woken::Unread
        } else {
            Woken::Told(self.times)
        }
    }
}

fn waiting(hub: &Hub, agent: &AgentId) -> Result<Option<Waiting>, ReadError> {
    let reads = hub.reads();
    let mark = reads.inbox_mark(agent)?.unwrap_or(0);
    let after = mark.max(hub.mails.of(agent).fetched);
    let items = reads.inbox(agent, after, WAKE_ROWS_MAX)?;
    let Some(upto) = items.items.last().map(|item| item.place) else { return Ok(None) };
    let mut from = BTreeSet::new();
    let mut count = items.left;
    for item in &items.items {
        if item.notice.is_some() {
            // Of a request of its own: from nobody.
            count += 1;
            continue;
        }
        // A task has ended without an answer of the other agent.
        let sides = hub.facts(item.room).and_then(|facts| facts.access.sides);
        if let Some(sides) = sides.filter(|_| item.is_notice()) {
            count += 1;
            from.insert(agent_ref(sides.peer_of(agent)));
            continue;
        }
        let row = reads.by_number(item.room, item.number)?;
        let row = row.filter(|row| !row.is_kept_from(Some(agent)));
        let Some(said) = row.and_then(|row| row.said).filter(|said| said.agent != *agent) else {
            continue;
        };
        count += 1;
        if from.len() < WAKE_NAMED_MAX {
            from.insert(agent_ref(&said.agent));
        }
    }
    let from = from.into_iter().collect();
    Ok((count > 0).then_some(Waiting { upto, count, from }))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    use mesh::api::command::{Command, InboxAct, Say};
    use tokio::sync::Notify;

    use super::*;
    use crate::{
        testing::{Fake, chat, lobby},
        webhooks::post::{PostError, Posting},
    };

    /// A host that counts.
    #[derive(Default)]
    struct Host {
        told: Mutex<Vec<String>>,
        came: Notify,
        refuses: AtomicBool,
    }

    impl Post for Host {
        fn check<'a>(&'a self, _: KeyPrint, _: &'a Target) -> Posting<'a> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn post(&self, delivery: Delivery) -> Posting<'_> {
            self.told.lock().unwrap().push(String::from_utf8(delivery.body.to_vec()).unwrap());
            self.came.notify_one();
            let refuses = self.refuses.load(Relaxed);
            let answer = if refuses { Err(PostError::TimedOut) } else { Ok(()) };
            Box::pin(std::future::ready(answer))
        }
    }

    impl Host {
        fn told(&self) -> usize {
            self.told.lock().unwrap().len()
        }

        fn last(&self) -> String {
            self.told.lock().unwrap().last().unwrap().clone()
        }
    }

    /// Agents with inboxes, whose hosts are woken.
    struct Sleepers {
        fake: Arc<Fake>,
        hub: Arc<Hub>,
        hosts: Vec<Arc<Host>>,
        _wakers: JoinSet<()>,
    }

    impl Sleepers {
        async fn new(agents: &[&str]) -> Sleepers {
            let (fake, hub) = Fake::new();
            let mut sleepers = Sleepers { fake, hub, hosts: Vec::new(), _wakers: JoinSet::new() };
            for agent in agents {
                sleepers.fake.say(lobby(), agent, "hello");
                let (caller, act) = (sleepers.fake.caller(agent), InboxAct::File(Vec::new()));
                sleepers.fake.does(Command::Inbox { caller, act }).unwrap();
                let host = Arc::new(Host::default());
                let wake = Wake::new(agent, "http://127.0.0.1:1/wake", None).unwrap();
                let waker = Waker { hub: sleepers.hub.clone(), post: host.clone(), wake };
                sleepers._wakers.spawn(waker.run());
                sleepers.hosts.push(host);
            }
            tokio::task::yield_now().await;
            sleepers
        }

        fn mention(&self, agent: &str, by: &str) {
            let text = format!("{agent}: look");
            let say = Say { mentions: vec![agent.into()], ..chat(lobby(), &text) };
            self.fake.tell(lobby(), by, say);
        }

        /// The items that an agent is given with its next call.
        fn fetch(&self, agent: &str, limit: usize) -> usize {
            let agent = AgentId::from(agent);
            let after = self.hub.mails.of(&agent).fetched;
            let page = self.hub.reads().inbox(&agent, after, limit).unwrap().items;
            if let Some(item) = page.last() {
                self.hub.mails.fetched(&agent, item.place);
            }
            page.len()
        }

        fn woken(&self) -> Woken {
            self.hub.woken.all()[0].1
        }
    }

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    #[tokio::test(start_paused = true)]
    async fn many_messages_that_come_together_wake_once_and_name_no_words() {
        let sleepers = Sleepers::new(&["ada"]).await;
        let host = &sleepers.hosts[0];
        for by in ["bob", "Cy"] {
            (0..50).for_each(|_| sleepers.mention("ada", by));
        }
        host.came.notified().await;
        let cy = agent_ref("Cy");
        let text = format!("100 unread mesh messages from bob, {cy}: call inbox_wait.");
        assert_eq!(host.last(), format!(r#"{{"text":"{text}","mode":"now"}}"#));
        // It fetches, and is not told of that again.
        assert_eq!(sleepers.fetch("ada", 100), 100);
        sleep(DAY).await;
        assert_eq!((host.told(), sleepers.woken()), (1, Woken::Nothing));
        sleepers.mention("ada", "bob");
        host.came.notified().await;
        assert!(host.last().contains("1 unread mesh message from bob"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_to_each_of_ten_idle_agents_is_one_wake_for_each_within_two_seconds() {
        let agents: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        let sleepers = Sleepers::new(&agents).await;
        agents.iter().for_each(|agent| sleepers.mention(agent, "bob"));
        let begun = Instant::now();
        for (agent, host) in agents.iter().zip(&sleepers.hosts) {
            host.came.notified().await;
            assert!(begun.elapsed() <= Duration::from_secs(2), "{agent}: {:?}", begun.elapsed());
            assert_eq!(sleepers.fetch(agent, 50), 1);
        }
        sleep(DAY).await;
        assert!(sleepers.hosts.iter().all(|host| host.told() == 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_ten_senders_is_one_wake_and_all_of_it_is_fetched_page_by_page() {
        let sleepers = Sleepers::new(&["ada"]).await;
        let host = &sleepers.hosts[0];
        for number in 0..100 {
            sleepers.mention("ada", &format!("sender-{}", number % 10));
        }
        host.came.notified().await;
        // Five are named.
        assert!(host.last().contains("100 unread") && host.last().matches("sender-").count() == 5);
        // A model reads between two pages.
        let mut pages = Vec::new();
        for _ in 0..3 {
            pages.push(sleepers.fetch("ada", 50));
            sleep(Duration::from_secs(20)).await;
        }
        assert_eq!(pages, [50, 50, 0]);
        sleep(DAY).await;
        assert_eq!(host.told(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_day_of_silence_is_no_request() {
        let sleepers = Sleepers::new(&["ada", "bob", "cy"]).await;
        // What others say in a room, and what one says oneself, is no mail.
        sleepers.fake.say(lobby(), "dan", "good morning");
        sleepers.mention("ada", "ada");
        sleep(DAY).await;
        let told: Vec<usize> = sleepers.hosts.iter().map(|host| host.told()).collect();
        assert_eq!(told, [0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_after_a_fetch_is_told_at_once() {
        let sleepers = Sleepers::new(&["ada"]).await;
        let host = &sleepers.hosts[0];
        for _ in 0..5 {
            sleepers.mention("ada", "bob");
            let begun = Instant::now();
            host.came.notified().await;
            assert!(begun.elapsed() <= Duration::from_secs(2), "{:?}", begun.elapsed());
            assert_eq!(sleepers.fetch("ada", 50), 1);
        }
        assert_eq!(host.told(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_fetch_is_told_again_less_and_less_often_and_then_no_more() {
        let sleepers = Sleepers::new(&["ada"]).await;
        let host = &sleepers.hosts[0];
        sleepers.mention("ada", "bob");
        host.came.notified().await;
        let begun = Instant::now();
        let mut after = Vec::new();
        for _ in 0..WAKE_REPEATS_MAX {
            host.came.notified().await;
            after.push(begun.elapsed().as_secs());
        }
        assert_eq!(after, [30, 90, 210, 510, 810, 1_110, 1_410, 1_710, 2_010, 2_310]);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(sleepers.woken(), Woken::Told(1 + WAKE_REPEATS_MAX));
        // What comes now is for the same silence.
        sleepers.mention("ada", "cy");
        sleep(DAY).await;
        assert_eq!((host.told(), sleepers.woken()), (1 + WAKE_REPEATS_MAX, Woken::Unread));
        // A fetch begins anew: what is left then was never told.
        sleepers.fetch("ada", 1);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(host.told(), 2 + WAKE_REPEATS_MAX);
        assert!(host.last().contains("1 unread mesh message from cy"), "{}", host.last());
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_is_away_is_posted_in_vain_and_told_when_it_is_back() {
        let sleepers = Sleepers::new(&["ada"]).await;
        let host = &sleepers.hosts[0];
        host.refuses.store(true, Relaxed);
        sleepers.mention("ada", "bob");
        for _ in WAKE_POSTS {
            host.came.notified().await;
        }
        let quiet = tokio::time::timeout(Duration::from_secs(20), host.came.notified()).await;
        assert!(quiet.is_err(), "{} posts", host.told());
        assert_eq!(sleepers.woken(), Woken::Unreached);
        // It is away for much longer than ten notices take.
        sleep(DAY).await;
        host.refuses.store(false, Relaxed);
        let in_vain = host.told();
        sleep(Duration::from_secs(6 * 60)).await;
        assert!(host.told() > in_vain, "it is back, and was not told");
        assert!(matches!(sleepers.woken(), Woken::Told(1 | 2)), "{:?}", sleepers.woken());
    }
}
