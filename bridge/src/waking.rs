//! Waking agents: a post to the host of an agent when something has come into its inbox. A hint, and no message: messages
//! are in the inbox, and the next post or the next call of the agent shows it. It names how many wait and from whom, never
//! what they say: hosts trust what they are told so.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use mesh::name::{
    group::agent_ref,
    id::{AgentId, KeyPrint},
    number::Number,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    backend::ReadError,
    delivery::hub::{Hub, Watched},
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
        Ok(Wake { agent: agent.into(), target: Target::parse(url)?, token })
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

/// Items that wait for an agent.
struct Waiting {
    /// The newest that it has not been given.
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
        let mut rests: Option<Rest> = None;
        loop {
            let waiting = self.waiting().await;
            let told = self.hub.mails.of(&agent);
            if waiting.as_ref().is_none_or(|waiting| waiting.upto <= told.fetched) {
                rests = None;
                watch.news().await;
                continue;
            }
            // The agent has fetched something since: what waits is news, and the pauses begin anew.
            rests = rests.filter(|rest| rest.told == 0 || told.fetched <= rest.fetched);
            let Some(rest) = &mut rests else {
                // A call of the agent may be returning it just now, and others may come with it.
                sleep(WAKE_AFTER).await;
                rests = Some(Rest::default());
                continue;
            };
            if let Some(until) = rest.until {
                // One notice at a time: messages that come meanwhile are told with the next. A fetch ends it.
                if Instant::now() < until {
                    let look = until.min(Instant::now() + LOOK_EVERY);
                    timeout_at(look, watch.news()).await.ok();
                    continue;
                }
                if rest.told > WAKE_REPEATS_MAX {
                    // Nobody reads. A fetch, or a restart, begins anew.
                    timeout_at(Instant::now() + LOOK_EVERY, watch.news()).await.ok();
                    continue;
                }
            }
            if let Some(waiting) = waiting {
                if self.tell(&waiting).await {
                    self.hub.mails.tell_upto(&agent, waiting.upto);
                }
                rest.go_on(told.fetched);
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
        let text = notice(waiting.count, &waiting.from);
        let body = json!({"text": text, "mode": "now"}).to_string();
        let delivery = Delivery {
            owner: KeyPrint::OPEN,
            target: self.wake.target.clone(),
            shown: Shown::Token(self.wake.token.clone()),
            body: Bytes::from(body),
        };
        for pause in WAKE_POSTS {
            match self.post.post(delivery.clone()).await {
                Ok(()) => return true,
                Err(error) => {
                    let agent = &*self.wake.agent;
                    tracing::warn!(event = "wake_failed", agent, %error, "the host of an agent was not told that something waits");
                }
            }
            sleep(pause).await;
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

/// The time after a notice in which there is no other one.
#[derive(Default)]
struct Rest {
    told: usize,
    /// So far the agent had fetched then.
    fetched: u64,
    until: Option<Instant>,
}

impl Rest {
    fn go_on(&mut self, fetched: u64) {
        self.fetched = fetched;
        const PAUSES: [u64; 4] = [30, 60, 120, 300];
        let pause = PAUSES[self.told.min(PAUSES.len() - 1)];
        self.told += 1;
        self.until = Some(Instant::now() + Duration::from_secs(pause));
    }
}

fn waiting(hub: &Hub, agent: &AgentId) -> Result<Option<Waiting>, ReadError> {
    let reads = hub.reads();
    let mark = reads.inbox_mark(agent)?.unwrap_or(0);
    let after = mark.max(hub.mails.of(agent).fetched);
    let items = reads.inbox(agent, after, WAKE_ROWS_MAX)?;
    let Some(upto) = items.items.last().map(|(place, ..)| *place) else { return Ok(None) };
    let mut from = BTreeSet::new();
    let mut count = items.left;
    for (_, room, number) in &items.items {
        // A task has ended without an answer of the other agent.
        let sides = hub.facts(*room).and_then(|facts| facts.access.sides);
        if let Some(sides) = sides.filter(|_| *number == Number::ZERO) {
            count += 1;
            from.insert(agent_ref(sides.peer_of(agent)));
            continue;
        }
        let row = reads.by_number(*room, *number)?;
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
    use std::sync::Mutex;

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
        refuses: std::sync::atomic::AtomicBool,
    }

    impl Post for Host {
        fn check<'a>(&'a self, _: KeyPrint, _: &'a Target) -> Posting<'a> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn post(&self, delivery: Delivery) -> Posting<'_> {
            self.told.lock().unwrap().push(String::from_utf8(delivery.body.to_vec()).unwrap());
            self.came.notify_one();
            let refuses = self.refuses.load(std::sync::atomic::Ordering::Relaxed);
            let answer = if refuses { Err(PostError::TimedOut) } else { Ok(()) };
            Box::pin(std::future::ready(answer))
        }
    }

    impl Host {
        fn told(&self) -> usize {
            self.told.lock().unwrap().len()
        }
    }

    /// Ada has an inbox, and her host is woken.
    fn sleeping() -> (Arc<Fake>, Arc<Hub>, Arc<Host>, JoinSet<()>) {
        let (fake, hub) = Fake::new();
        fake.say(lobby(), "ada", "hello");
        let (caller, act) = (fake.caller("ada"), InboxAct::File(Vec::new()));
        fake.does(Command::Inbox { caller, act }).unwrap();
        let host = Arc::new(Host::default());
        let wake = Wake::new("ada", "http://127.0.0.1:1/wake", None).unwrap();
        let waker = Waker { hub: hub.clone(), post: host.clone(), wake };
        let mut tasks = JoinSet::new();
        tasks.spawn(waker.run());
        (fake, hub, host, tasks)
    }

    fn mention(fake: &Fake, by: &str) {
        let say = Say { mentions: vec!["ada".into()], ..chat(lobby(), "ada: look") };
        fake.tell(lobby(), by, say);
    }

    #[tokio::test(start_paused = true)]
    async fn many_messages_that_come_together_wake_once_and_name_no_words() {
        let (fake, hub, host, _tasks) = sleeping();
        tokio::task::yield_now().await;
        for by in ["bob", "Cy"] {
            (0..50).for_each(|_| mention(&fake, by));
        }
        host.came.notified().await;
        let cy = agent_ref("Cy");
        let text = format!("100 unread mesh messages from bob, {cy}: call inbox_wait.");
        assert_eq!(*host.told.lock().unwrap(), [json!({"text": text, "mode": "now"}).to_string()]);
        // It fetches, and is not told of that again.
        hub.mails.fetched(&"ada".into(), 100);
        sleep(Duration::from_secs(24 * 3_600)).await;
        assert_eq!(host.told(), 1);
        mention(&fake, "bob");
        host.came.notified().await;
        assert!(host.told.lock().unwrap()[1].contains("1 unread mesh message from bob"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_together_with_a_fetch_is_told_at_once() {
        let (fake, hub, host, _tasks) = sleeping();
        tokio::task::yield_now().await;
        for fetched in 1..=5 {
            mention(&fake, "bob");
            let begun = Instant::now();
            host.came.notified().await;
            assert!(begun.elapsed() <= LOOK_EVERY + WAKE_AFTER, "{:?}", begun.elapsed());
            // The waker sees both at once.
            hub.mails.fetched(&"ada".into(), fetched);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_fetch_is_told_again_less_and_less_often_and_then_no_more() {
        let (fake, _hub, host, _tasks) = sleeping();
        tokio::task::yield_now().await;
        mention(&fake, "bob");
        host.came.notified().await;
        let begun = Instant::now();
        let mut after = Vec::new();
        for _ in 0..WAKE_REPEATS_MAX {
            host.came.notified().await;
            after.push(begun.elapsed().as_secs());
        }
        assert_eq!(after[..5], [30, 90, 210, 510, 810]);
        sleep(Duration::from_secs(24 * 3_600)).await;
        assert_eq!(host.told(), 1 + WAKE_REPEATS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_notice_that_is_not_taken_is_posted_again() {
        let (fake, _hub, host, _tasks) = sleeping();
        tokio::task::yield_now().await;
        host.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
        mention(&fake, "bob");
        for _ in WAKE_POSTS {
            host.came.notified().await;
        }
        let quiet = tokio::time::timeout(Duration::from_secs(20), host.came.notified()).await;
        assert!(quiet.is_err(), "{} posts", host.told());
    }
}
