//! The engine, with receivers that do what a test says.

use std::{collections::VecDeque, sync::atomic::Ordering};

use bytes::Bytes;
use mesh::api::command::Refused as No;
use mesh::{
    api::{
        command::{Access, NewRoom, Say, Speech},
        event::{AgentEvent, RoomEvent},
    },
    name::id::RoomId,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::{
    post::{Delivery, PostError, Posting},
    *,
};
use crate::{
    seam::{
        answer::{Filter, SubscriptionStatus},
        call::PostNotice,
    },
    secret::Secret,
    testing::{Fake, chat, lobby, own_key},
};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any test.
const EVER: Duration = Duration::from_secs(3_600);

/// The key of all who speak.
fn mine() -> KeyPrint {
    own_key()
}

const OTHER: KeyPrint = KeyPrint([6; 16]);

/// What a receiver does with a delivery.
type Verdict = Result<(), PostError>;

/// All receivers there are.
#[derive(Clone, Default)]
struct Receivers(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    came: Notify,
}

#[derive(Default)]
struct State {
    /// What came and has no answer yet.
    open: VecDeque<(Delivery, oneshot::Sender<Verdict>)>,
    /// Hosts that subscribers may not name.
    private: Vec<&'static str>,
}

impl Receivers {
    /// The next delivery, and the way to answer it.
    async fn next(&self) -> (Delivery, oneshot::Sender<Verdict>) {
        let next = async {
            loop {
                let came = self.0.came.notified();
                if let Some(next) = self.0.state.lock().unwrap().open.pop_front() {
                    return next;
                }
                came.await;
            }
        };
        timeout(PATIENCE, next).await.expect("a delivery")
    }

    /// Takes the next delivery: number and content.
    async fn take(&self) -> (u64, String) {
        let (delivery, answer) = self.next().await;
        answer.send(Ok(())).unwrap();
        told(&delivery)
    }

    async fn fail(&self) -> (u64, String) {
        let (delivery, answer) = self.next().await;
        answer.send(Err(PostError::TimedOut)).unwrap();
        told(&delivery)
    }

    fn is_quiet(&self) -> bool {
        self.0.state.lock().unwrap().open.is_empty()
    }
}

fn body(delivery: &Delivery) -> Value {
    serde_json::from_slice(&delivery.body).unwrap()
}

fn told(delivery: &Delivery) -> (u64, String) {
    let body = body(delivery);
    let message = &body["message"];
    (message["seq"].as_u64().unwrap(), message["content"].as_str().unwrap().to_owned())
}

impl Post for Receivers {
    fn check<'a>(&'a self, _: KeyPrint, target: &'a Target) -> Posting<'a> {
        let host = target.host().to_string();
        let private = self.0.state.lock().unwrap().private.iter().any(|it| *it == host);
        let address = [10, 0, 0, 1].into();
        let checked = if private { Err(PostError::NotPublic(address)) } else { Ok(()) };
        Box::pin(std::future::ready(checked))
    }

    fn post(&self, delivery: Delivery) -> Posting<'_> {
        let (answer, answered) = oneshot::channel();
        self.0.state.lock().unwrap().open.push_back((delivery, answer));
        self.0.came.notify_one();
        Box::pin(async { answered.await.unwrap_or(Err(PostError::TimedOut)) })
    }
}

#[derive(Debug)]
enum Answered {
    Made(SubscriptionView),
    Done(()),
    Listed(Vec<SubscriptionView>),
}

fn voice() -> Arc<dyn Voice> {
    Arc::new(crate::testing::echo::EchoVoice::default())
}

fn room_of(payload: &Value) -> Option<RoomId> {
    let room = payload["room_id"].as_str()?;
    Some(if room == "lobby" { lobby() } else { RoomId::from_uuid(room).unwrap() })
}

fn subscribe(payload: &Value) -> Subscribe {
    let text = |name: &str| payload[name].as_str().map(String::from);
    Subscribe {
        room: room_of(payload).unwrap(),
        url: text("webhook_url").unwrap(),
        secret: Secret::new(text("secret").unwrap()),
        filter: Filter {
            kinds: serde_json::from_value(payload["kinds"].clone()).unwrap(),
            only_from: text("only_from"),
            not_from: text("not_from"),
            exclude_thinking: payload["exclude_thinking"].as_bool().unwrap_or_default(),
        },
        since: payload["since_seq"].as_u64(),
    }
}

/// A node with webhooks. Pauses after failures are nothing, and cursors are written at once, unless
/// a test says otherwise.
struct Node {
    fake: Arc<Fake>,
    hub: Arc<Hub>,
    receivers: Receivers,
    webhooks: Arc<Webhooks>,
}

const HASTE: Policy = Policy { retry_after: [Duration::ZERO; 5], keep_after: Duration::ZERO };

impl Node {
    fn start(policy: Policy) -> Node {
        let (fake, hub) = Fake::new();
        let receivers = Receivers::default();
        let webhooks =
            Webhooks::with(hub.clone(), fake.clone(), voice(), Box::new(receivers.clone()), policy);
        Node { fake, hub, receivers, webhooks }
    }

    /// The same store and rooms, another process. What was not answered never came.
    async fn restart(self, policy: Policy) -> Node {
        self.restart_without(policy, None).await
    }

    async fn restart_without(self, policy: Policy, later: Option<RoomId>) -> Node {
        self.webhooks.close().await;
        self.crash(policy, later).await
    }

    /// The same, but nobody told the one before that it ends.
    async fn crash(self, policy: Policy, later: Option<RoomId>) -> Node {
        self.crash_with(policy, later, |_| true).await
    }

    async fn crash_with(
        self,
        policy: Policy,
        later: Option<RoomId>,
        own: impl Fn(KeyPrint) -> bool,
    ) -> Node {
        let (fake, hub) = self.fake.restarted(later);
        let receivers = Receivers::default();
        let post = Box::new(receivers.clone());
        let webhooks = Webhooks::with(hub.clone(), fake.clone(), voice(), post, policy);
        webhooks.open(own).await.unwrap();
        Node { fake, hub, receivers, webhooks }
    }

    async fn ask(&self, key: KeyPrint, kind: &str, payload: Value) -> Result<Answered, Refusal> {
        let id = payload["subscription_id"].as_str().unwrap_or_default().to_owned();
        let hooks = &self.webhooks;
        let answered = async {
            Ok(match kind {
                "subscribe" => Answered::Made(hooks.subscribe(key, subscribe(&payload)).await?),
                "unsubscribe" => Answered::Done(hooks.unsubscribe(key, id).await?),
                "enable_subscription" => Answered::Done(hooks.enable(key, id).await?),
                _ => Answered::Listed(hooks.list(key, room_of(&payload)).await?),
            })
        };
        timeout(PATIENCE, answered).await.expect("an answer")
    }

    /// Subscribes to the lobby, with more fields.
    async fn subscribe(&self, more: Value) -> SubscriptionView {
        match self.ask(mine(), "subscribe", wish(more)).await.unwrap() {
            Answered::Made(made) => made,
            other @ (Answered::Done(()) | Answered::Listed(_)) => panic!("{other:?}"),
        }
    }

    async fn refused(&self, key: KeyPrint, kind: &str, payload: Value) -> Refusal {
        self.ask(key, kind, payload).await.unwrap_err()
    }

    async fn list(&self) -> Vec<SubscriptionView> {
        self.list_of(mine()).await
    }

    async fn list_of(&self, key: KeyPrint) -> Vec<SubscriptionView> {
        match self.ask(key, "list_subscriptions", json!({})).await.unwrap() {
            Answered::Listed(listed) => listed,
            other @ (Answered::Done(()) | Answered::Made(_)) => panic!("{other:?}"),
        }
    }

    /// Until the one subscription there is looks so.
    async fn until(&self, what: &str, is: impl Fn(&SubscriptionView) -> bool) {
        self.until_for(mine(), what, is).await;
    }

    async fn until_for(&self, key: KeyPrint, what: &str, is: impl Fn(&SubscriptionView) -> bool) {
        let wait = async {
            while !self.list_of(key).await.iter().any(&is) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
    }

    fn say(&self, content: &str) {
        self.fake.tell(lobby(), "ann", chat(lobby(), content));
    }

    fn kept(&self) -> usize {
        self.fake.kept.lock().unwrap().len()
    }
}

/// A `subscribe` to the lobby.
fn wish(more: Value) -> Value {
    let mut wish =
        json!({"room_id": "lobby", "webhook_url": "https://hook.example/x", "secret": "s"});
    for (name, value) in more.as_object().unwrap() {
        wish[name] = value.clone();
    }
    wish
}

fn id(it: &SubscriptionView) -> Value {
    json!({"subscription_id": it.id})
}

/// Id, time and signature of a delivery.
fn signed(delivery: &Delivery) -> (String, u64, String) {
    match &delivery.shown {
        post::Shown::Signature { id, timestamp, signature } => {
            (id.clone(), *timestamp, signature.clone())
        }
        post::Shown::Token(_) => panic!("deliveries are signed"),
    }
}

#[tokio::test]
async fn messages_are_delivered_in_order_one_at_a_time() {
    let node = Node::start(HASTE);
    node.say("before");
    let made = node.subscribe(json!({})).await;
    assert_eq!((made.since, made.delivered, made.failures), (Number(1), Number(1), 0));
    assert_eq!(made.status, SubscriptionStatus::Active);
    node.say("one");
    node.say("two");
    let (delivery, answer) = node.receivers.next().await;
    assert_eq!(told(&delivery), (2, "one".into()));
    let body = body(&delivery);
    assert_eq!(body["subscription"], made.id);
    assert_eq!(body["message"]["agent"], "ann");
    assert!(node.receivers.is_quiet(), "the second waits for the first");
    let (id, timestamp, signature) = signed(&delivery);
    assert_eq!(signature, sign::signature("s", &id, timestamp, &delivery.body));
    assert!(!id.contains('.'), "it would be ambiguous in what is signed");
    answer.send(Ok(())).unwrap();
    let (second, answer) = node.receivers.next().await;
    assert_eq!(told(&second), (3, "two".into()));
    assert_ne!(signed(&second).0, id);
    answer.send(Ok(())).unwrap();
    node.until("the cursor moves", |it| it.delivered == Number(3)).await;
}

#[tokio::test]
async fn while_they_are_switched_off_nothing_is_delivered_and_nothing_is_lost() {
    let node = Node::start(HASTE);
    node.subscribe(json!({})).await;
    node.hub.switch_webhooks(false);
    node.say("one");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(node.receivers.is_quiet());
    node.hub.switch_webhooks(true);
    assert_eq!(node.receivers.take().await.1, "one");
}

fn notice(subscription: &str) -> PostNotice {
    let body = Bytes::from_static(b"{\"content\":\"swept\"}");
    PostNotice { subscription: subscription.to_owned(), id: "job_7".to_owned(), body }
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_posted_and_signed_as_messages_are_and_tried_again() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    let notified = tokio::spawn(node.webhooks.notify(mine(), notice(&made.id)));
    let (first, answer) = node.receivers.next().await;
    answer.send(Err(PostError::TimedOut)).unwrap();
    let (second, answer) = node.receivers.next().await;
    let (id, timestamp, signature) = signed(&second);
    assert_eq!((&id, &signed(&first).0), (&format!("{}_job_7", made.id), &id), "the same");
    assert_eq!(signature, sign::signature("s", &id, timestamp, &second.body));
    assert_eq!(body(&second), json!({"content": "swept"}));
    assert!(!notified.is_finished());
    answer.send(Ok(())).unwrap();
    assert_eq!(notified.await.unwrap(), Ok(()));
    assert_eq!(node.list().await[0].delivered, made.delivered, "it is no message");
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_nobody_takes_is_given_up_and_others_post_none() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    let notified = tokio::spawn(node.webhooks.notify(mine(), notice(&made.id)));
    for _ in 0..=limits::NOTICE_RETRY_AFTER.len() {
        node.receivers.next().await.1.send(Err(PostError::NoAddress)).unwrap();
    }
    let reachable = |refused: Result<(), Refusal>| {
        let Err(Refusal::Webhook(_, WebhookRule::Reachable(why))) = refused else {
            panic!("{refused:?}");
        };
        why
    };
    assert_eq!(reachable(notified.await.unwrap()), "the host has no address");
    let other = node.webhooks.notify(OTHER, notice(&made.id)).await;
    assert_eq!(other, Err(Refusal::NoSubscription));
    node.hub.switch_webhooks(false);
    let off = node.webhooks.notify(mine(), notice(&made.id)).await;
    assert!(reachable(off).contains("switched off"));
    assert!(node.receivers.is_quiet());
}

#[tokio::test]
async fn one_that_is_slow_holds_up_no_other() {
    let node = Node::start(HASTE);
    node.subscribe(json!({"webhook_url": "http://slow.example/"})).await;
    node.subscribe(json!({"webhook_url": "http://quick.example/"})).await;
    node.say("one");
    let (mut slow, mut contents) = (Vec::new(), Vec::new());
    while contents.len() < 3 {
        let (delivery, answer) = node.receivers.next().await;
        if delivery.target.authority() == "slow.example" {
            slow.push(answer);
            continue;
        }
        contents.push(told(&delivery).1);
        answer.send(Ok(())).unwrap();
        node.say("more");
    }
    assert_eq!((contents[0].as_str(), slow.len()), ("one", 1));
}

#[tokio::test]
async fn a_failure_is_tried_again_under_the_same_id_and_then_ends_it() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    node.say("one");
    node.say("two");
    let mut ids = Vec::new();
    for _ in 0..6 {
        let (delivery, answer) = node.receivers.next().await;
        assert_eq!(told(&delivery).1, "one");
        ids.push(signed(&delivery).0);
        answer.send(Err(PostError::TimedOut)).unwrap();
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    node.until("it fails", |it| it.status == SubscriptionStatus::Failed && it.failures == 5).await;
    assert_eq!(node.list().await[0].delivered, Number(0), "it keeps its cursor");
    node.say("three");
    node.ask(mine(), "enable_subscription", id(&made)).await.unwrap();
    assert_eq!(node.list().await[0].status, SubscriptionStatus::Active);
    let (delivery, answer) = node.receivers.next().await;
    assert_eq!((told(&delivery).1.as_str(), &signed(&delivery).0), ("one", &ids[0]));
    answer.send(Ok(())).unwrap();
    assert_eq!(node.receivers.take().await.1, "two");
    assert_eq!(node.receivers.take().await.1, "three");
    node.until("no failures left", |it| it.failures == 0).await;
}

#[tokio::test]
async fn enabling_does_not_wait_for_the_next_try() {
    let policy = Policy { retry_after: [EVER; 5], ..HASTE };
    let node = Node::start(policy);
    let made = node.subscribe(json!({})).await;
    node.say("one");
    node.receivers.fail().await;
    node.until("a failure", |it| it.failures == 1).await;
    node.ask(mine(), "enable_subscription", id(&made)).await.unwrap();
    assert_eq!(node.receivers.take().await.1, "one");
}

#[tokio::test]
async fn a_restart_goes_on_with_the_cursor_and_the_next_try() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({"kinds": ["x"], "only_from": "ann"})).await;
    let tagged =
        |content: &str| Say { metadata: Some(r#"{"kind":"x"}"#.into()), ..chat(lobby(), content) };
    node.fake.tell(lobby(), "ann", tagged("one"));
    assert_eq!(node.receivers.take().await.1, "one");
    node.until("the cursor moves", |it| it.delivered == Number(1)).await;
    node.fake.tell(lobby(), "ann", tagged("two"));
    let first = node.receivers.next().await;
    let first_id = signed(&first.0).0;
    first.1.send(Err(PostError::TimedOut)).unwrap();
    // The second try is on its way when the node stops.
    let (again, _unanswered) = node.receivers.next().await;
    assert_eq!(signed(&again).0, first_id);

    let node = node.restart(HASTE).await;
    let listed = node.list().await;
    assert_eq!(listed.len(), 1);
    let view = SubscriptionView { delivered: Number(1), failures: 1, ..made.clone() };
    assert_eq!(listed[0], view);
    let (again, answer) = node.receivers.next().await;
    assert_eq!((told(&again).1.as_str(), signed(&again).0), ("two", first_id));
    answer.send(Ok(())).unwrap();
    node.until("it goes on", |it| it.delivered == Number(2) && it.failures == 0).await;
}

#[tokio::test]
async fn a_restart_does_not_try_before_its_time() {
    let slow = Policy { retry_after: [EVER; 5], keep_after: EVER };
    let node = Node::start(slow);
    let made = node.subscribe(json!({})).await;
    node.say("one");
    node.receivers.fail().await;
    node.until("a failure", |it| it.failures == 1).await;
    let node = node.crash(slow, None).await;
    // Would it post, it would do so before another one that is made now.
    let other = node.subscribe(json!({"since_seq": 0})).await;
    let (delivery, answer) = node.receivers.next().await;
    assert_eq!(body(&delivery)["subscription"], other.id);
    answer.send(Ok(())).unwrap();
    node.until("the other one goes on", |it| it.delivered == Number(1)).await;
    assert!(node.receivers.is_quiet());
    node.ask(mine(), "enable_subscription", id(&made)).await.unwrap();
    assert_eq!(node.receivers.take().await.1, "one");
}

#[tokio::test]
async fn what_failed_is_failed_after_a_restart() {
    let node = Node::start(HASTE);
    node.subscribe(json!({})).await;
    node.say("one");
    for _ in 0..6 {
        node.receivers.fail().await;
    }
    node.until("it fails", |it| it.status == SubscriptionStatus::Failed).await;
    let node = node.restart(HASTE).await;
    let listed = node.list().await;
    assert_eq!((listed[0].status, listed[0].failures), (SubscriptionStatus::Failed, 5));
}

#[tokio::test]
async fn a_cursor_that_was_not_written_yet_is_written_at_the_end() {
    let lazy = Policy { keep_after: EVER, ..HASTE };
    let node = Node::start(lazy);
    node.subscribe(json!({})).await;
    node.say("one");
    node.receivers.take().await;
    node.until("the cursor moves", |it| it.delivered == Number(1)).await;
    let node = node.restart(lazy).await;
    assert_eq!(node.list().await[0].delivered, Number(1));
}

#[tokio::test]
async fn what_a_filter_drops_moves_the_cursor() {
    let node = Node::start(HASTE);
    node.subscribe(json!({"not_from": "bob", "exclude_thinking": true, "since_seq": 0})).await;
    for n in 0..200 {
        node.fake.tell(lobby(), "bob", chat(lobby(), &format!("noise {n}")));
    }
    node.fake.tell(lobby(), "ann", Say { speech: Speech::Thinking, ..chat(lobby(), "hm") });
    node.until("all is passed", |it| it.delivered == Number(201)).await;
    node.say("at last");
    assert_eq!(node.receivers.take().await, (202, "at last".into()));
}

#[tokio::test]
async fn since_seq_is_where_it_begins() {
    let node = Node::start(HASTE);
    for content in ["one", "two", "three"] {
        node.say(content);
    }
    node.subscribe(json!({"since_seq": 1})).await;
    assert_eq!(node.receivers.take().await, (2, "two".into()));
    assert_eq!(node.receivers.take().await, (3, "three".into()));
    let far = node.subscribe(json!({"since_seq": u64::MAX})).await;
    assert_eq!(far.since, Number(limits::NUMBERS_END - 1));
}

#[tokio::test]
async fn a_deleted_one_is_gone_even_if_it_was_being_delivered() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    assert_eq!(node.kept(), 1);
    node.say("one");
    let (_, mut answer) = node.receivers.next().await;
    node.ask(mine(), "unsubscribe", id(&made)).await.unwrap();
    // Nobody waits for the receiver any more.
    timeout(PATIENCE, answer.closed()).await.unwrap();
    assert_eq!((node.list().await.len(), node.kept()), (0, 0));
    assert_eq!(node.refused(mine(), "unsubscribe", id(&made)).await, Refusal::NoSubscription);
    let node = node.restart(HASTE).await;
    assert!(node.list().await.is_empty());
}

#[tokio::test]
async fn subscriptions_are_their_keys_own() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    for kind in ["unsubscribe", "enable_subscription"] {
        assert_eq!(node.refused(OTHER, kind, id(&made)).await, Refusal::NoSubscription);
        let unknown = json!({"subscription_id": "nobody's"});
        assert_eq!(node.refused(mine(), kind, unknown).await, Refusal::NoSubscription);
    }
    assert!(node.list_of(OTHER).await.is_empty());
    let private = room(&node, false, false);
    let there = json!({"room_id": private.to_uuid()});
    let refused = node.refused(OTHER, "subscribe", wish(there.clone())).await;
    assert_eq!(refused, Refusal::Mesh(No::NotYours));
    let refused = node.refused(OTHER, "list_subscriptions", there.clone()).await;
    assert_eq!(refused, Refusal::Mesh(No::NotYours));
    node.subscribe(there).await;
    node.fake.tell(private, "ann", chat(private, "among us"));
    assert_eq!(node.receivers.take().await.1, "among us");
}

/// A room of the key.
fn room(node: &Node, public: bool, ephemeral: bool) -> RoomId {
    let room = NewRoom {
        name: format!("room {public} {ephemeral}"),
        description: None,
        parent: None,
        ephemeral,
        public,
        encrypted: false,
    };
    node.fake.found(room)
}

#[tokio::test]
async fn what_cannot_be_delivered_to_is_refused() {
    let node = Node::start(HASTE);
    node.receivers.0.state.lock().unwrap().private.push("inside.example");
    let check = async |more: Value, field: WebhookField, text: &str| {
        let refused = node.refused(mine(), "subscribe", wish(more)).await;
        let Refusal::Webhook(broken, rule) = refused else { panic!("{refused:?}") };
        assert_eq!(broken, field);
        let said = match rule {
            WebhookRule::Text(rule) => format!("{rule:?}"),
            WebhookRule::Url(bad) => format!("{bad:?}"),
            WebhookRule::Reachable(why) => why,
        };
        assert!(said.contains(text), "{said}");
    };
    let url = async |url: &str, text: &str| {
        check(json!({"webhook_url": url}), WebhookField::Url, text).await;
    };
    url("ftp://hook.example", "Scheme").await;
    url("hook", "NotAUrl").await;
    url("http://a:b@hook.example", "UserInfo").await;
    url("http://inside.example", "10.0.0.1, which is not public").await;
    let long = "s".repeat(limits::WEBHOOK_SECRET_BYTES_MAX + 1);
    for secret in ["", &long] {
        check(json!({"secret": secret}), WebhookField::Secret, "Within").await;
    }
    let (most, bytes) = (limits::WEBHOOK_KINDS_MAX, limits::WEBHOOK_KIND_BYTES_MAX);
    for kinds in [vec!["k".to_owned(); most + 1], vec!["k".repeat(bytes + 1)]] {
        check(json!({"kinds": kinds}), WebhookField::Kinds, "Entries").await;
    }
    let long = "n".repeat(mesh::limits::NAME_BYTES_MAX + 1);
    check(json!({"only_from": long}), WebhookField::OnlyFrom, "AtMost").await;
    let nowhere = wish(json!({"room_id": RoomId([9; 16]).to_uuid()}));
    assert_eq!(node.refused(mine(), "subscribe", nowhere).await, Refusal::Mesh(No::NoRoom));
    assert_eq!((node.list().await.len(), node.kept()), (0, 0), "nothing half done stays behind");
}

#[tokio::test]
async fn what_the_store_does_not_take_does_not_exist() {
    let node = Node::start(HASTE);
    let made = node.subscribe(json!({})).await;
    node.fake.knobs.full.store(true, Ordering::Relaxed);
    let refused = node.refused(mine(), "subscribe", wish(json!({}))).await;
    assert_eq!(refused, Refusal::Overloaded);
    assert_eq!(node.list().await.len(), 1);
    // And one that cannot be deleted goes on.
    assert_eq!(node.refused(mine(), "unsubscribe", id(&made)).await, Refusal::Overloaded);
    node.fake.knobs.full.store(false, Ordering::Relaxed);
    node.say("one");
    assert_eq!(node.receivers.take().await.1, "one");
    assert_eq!(node.list().await.len(), 1);
}

#[tokio::test]
async fn a_key_has_so_many_and_no_more() {
    let node = Node::start(HASTE);
    for _ in 0..limits::WEBHOOKS_PER_KEY_MAX {
        node.subscribe(json!({})).await;
    }
    let refused = node.refused(mine(), "subscribe", wish(json!({}))).await;
    let most = Refusal::KeySubscriptionsFull { max: limits::WEBHOOKS_PER_KEY_MAX };
    assert_eq!(refused, most);
    node.receivers.0.state.lock().unwrap().private.push("lan.example");
    let lan = wish(json!({"webhook_url": "http://lan.example"}));
    let refused = node.refused(mine(), "subscribe", lan).await;
    assert_eq!(refused, most, "before it is looked up");
    node.ask(OTHER, "subscribe", wish(json!({}))).await.unwrap();
    let first = node.list().await.remove(0);
    node.ask(mine(), "unsubscribe", id(&first)).await.unwrap();
    node.subscribe(json!({})).await;
    assert_eq!(node.kept(), limits::WEBHOOKS_PER_KEY_MAX + 1);
}

#[tokio::test]
async fn they_end_with_their_ephemeral_room() {
    let node = Node::start(HASTE);
    let quick = room(&node, true, true);
    let made = node.subscribe(json!({"room_id": quick.to_uuid()})).await;
    assert_eq!(node.kept(), 0, "of what is memory only nothing is written");
    node.fake.tell(quick, "ann", chat(quick, "one"));
    assert_eq!(node.receivers.take().await.1, "one");
    let access =
        Access { public: true, owner: Some(mine()), sealed: false, sides: None, shared: None };
    node.hub.notify(quick, RoomEvent::Destroyed { access });
    let refused = node.refused(mine(), "enable_subscription", id(&made)).await;
    assert_eq!(refused, Refusal::NoSubscription);
    assert!(node.list().await.is_empty());
}

#[tokio::test]
async fn they_end_with_their_key() {
    let node = Node::start(HASTE);
    node.subscribe(json!({})).await;
    node.ask(OTHER, "subscribe", wish(json!({}))).await.unwrap();
    node.hub.tell(AgentEvent::KeyInvalid { key: mine() });
    assert!(node.list().await.is_empty());
    let forgotten = async {
        while node.kept() > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, forgotten).await.unwrap();
    node.say("one");
    assert_eq!(node.receivers.take().await.1, "one");
    node.until_for(OTHER, "it is told", |it| it.delivered == Number(1)).await;
    assert!(node.receivers.is_quiet(), "the other key's alone");

    // Also if nobody told: the key is looked at when the node starts.
    let node = node.crash_with(HASTE, None, |key| key != OTHER).await;
    assert!(node.list_of(OTHER).await.is_empty());
}

#[tokio::test]
async fn a_room_that_is_not_there_yet_is_waited_for() {
    let node = Node::start(HASTE);
    let private = room(&node, false, false);
    node.subscribe(json!({"room_id": private.to_uuid()})).await;
    node.fake.tell(private, "ann", chat(private, "one"));
    let view = node.fake.views().into_iter().find(|it| it.room == private).unwrap();
    let node = node.restart_without(HASTE, Some(private)).await;
    assert_eq!(node.list().await.len(), 1);
    node.hub.notify(private, RoomEvent::Opened { view, announce: false });
    assert_eq!(node.receivers.take().await.1, "one");
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_asked_again() {
    let node = Node::start(HASTE);
    node.subscribe(json!({})).await;
    node.fake.knobs.broken.store(true, Ordering::Relaxed);
    node.say("one");
    let asked = async {
        while node.fake.knobs.failed_reads.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, asked).await.unwrap();
    node.fake.knobs.broken.store(false, Ordering::Relaxed);
    node.say("two");
    assert_eq!(node.receivers.take().await.1, "one");
    assert_eq!(node.receivers.take().await.1, "two");
}
