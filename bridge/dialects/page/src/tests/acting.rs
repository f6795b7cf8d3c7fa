//! Things that people do in rooms, by forms.

use bridge::seam::call::{
    CastVote, DescribeRoom, ListApprovals, ListDirect, ListTasks, ListVotes, OpenDirect,
    RequestApproval,
};
use mesh::{
    api::{agenda::VoteView, approval::ApprovalTerms},
    wire::tasks::TaskStatus,
};

use super::*;

/// What is not plain in a form's value.
fn form_text(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A person with a page of the lobby open.
struct Person<'a> {
    node: &'a Node,
    cookie: String,
    form: String,
}

impl<'a> Person<'a> {
    async fn of(node: &'a Node, key: &str, name: &str) -> Person<'a> {
        let cookie = node.enter(key, name).await;
        let form = node.get(&lobby_path(), &cookie).await.form().to_owned();
        Person { node, cookie, form }
    }

    /// Sends a form in a room.
    async fn does(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let fields = fields.iter().map(|(name, value)| format!("&{name}={}", form_text(value)));
        let body = format!("form={}{}", self.form, fields.collect::<String>());
        self.node.post(path, &self.cookie, &body).await
    }

    async fn in_lobby(&self, act: &str, fields: &[(&str, &str)]) {
        let answer = self.does(&format!("{}/{act}", lobby_path()), fields).await;
        assert_eq!(answer.status, 303, "{act}: {}", answer.body);
    }

    async fn sees(&self, path: &str) -> String {
        self.node.get(path, &self.cookie).await.body
    }
}

async fn votes(node: &Node, by: &Visitor) -> Vec<VoteView> {
    node.bridge.desk().ask(by, ListVotes { room: lobby(), limit: 10 }).await.unwrap()
}

#[tokio::test]
async fn a_person_opens_a_vote_all_cast_and_the_result_shows() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    let ada = Person::of(&node, KEY, "ada").await;
    let fields = [("title", "Ship <it>?"), ("options", " yes \r\n\r\nno\r\n"), ("minutes", "10")];
    ada.in_lobby("open-vote", &fields).await;
    let vote = votes(&node, &bob).await.remove(0);
    assert_eq!(
        (&*vote.title, &*vote.options),
        ("Ship <it>?", &["yes".to_owned(), "no".to_owned()][..])
    );
    assert_eq!(vote.closes_ms, Some(vote.created_ms + 600_000));
    assert_eq!(vote.eligible, 2, "the person has joined, and votes");
    assert!(vote.created_by.ends_with("-ada"));
    let page = ada.sees(&lobby_path()).await;
    assert!(page.contains("Ship &lt;it&gt;?") && page.contains("0 of 2 voted"), "{page}");
    let id = vote.vote.to_uuid();
    assert!(page.contains(&format!("name=\"vote\" value=\"{id}\"")), "{page}");
    ada.in_lobby("cast", &[("vote", &id), ("option", "1")]).await;
    let again =
        ada.does(&format!("{}/cast", lobby_path()), &[("vote", &id), ("option", "0")]).await;
    assert_eq!(again.status, 409, "once: {}", again.body);
    let cast = CastVote { vote: vote.vote, option: 1 };
    node.bridge.desk().ask(&bob, cast).await.unwrap();
    node.fake.pass(Duration::from_secs(2));
    let page = ada.sees(&lobby_path()).await;
    assert!(page.contains("closed; 2 of 2 voted") && page.contains("no: 2"), "{page}");
}

#[tokio::test]
async fn a_person_who_has_not_joined_is_shown_no_ballot_and_joins_and_leaves() {
    let node = Node::new().await;
    let ada = Person::of(&node, KEY, "ada").await;
    let members = async || {
        let info = node.bridge.desk().ask(&Visitor::stranger(), DescribeRoom(lobby())).await;
        info.unwrap().agents.len()
    };
    ada.in_lobby("say", &[("text", "hello")]).await;
    assert_eq!(members().await, 0, "words are said from outside");
    ada.in_lobby("join", &[]).await;
    assert_eq!(members().await, 1);
    ada.in_lobby("leave", &[]).await;
    assert_eq!(members().await, 0);
    let open = format!("{}/open-vote", lobby_path());
    let bad = ada.does(&open, &[("title", "one"), ("options", "a")]).await;
    assert_eq!(bad.status, 409, "one option is no choice");
    let bad = [("title", "one"), ("options", "a\nb"), ("minutes", "soon")];
    assert_eq!(ada.does(&format!("{}/open-vote", lobby_path()), &bad).await.status, 409);
}

#[tokio::test]
async fn a_person_makes_a_task_claims_it_notes_gives_it_on_and_ends_it() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let ada = Person::of(&node, KEY, "ada").await;
    let tasks = async || {
        let all = node.bridge.desk().ask(&bob, ListTasks { room: lobby(), status: None }).await;
        all.unwrap().remove(0)
    };
    ada.in_lobby("make-task", &[("title", "sweep <b>"), ("description", "the floor")]).await;
    let task = tasks().await;
    assert_eq!((&*task.title, task.assignee), ("sweep <b>", None));
    let id = task.task.to_uuid();
    let change = async |word: &str, more: &[(&str, &str)]| {
        let fields = [&[("task", &*id), ("do", word)], more].concat();
        ada.does(&format!("{}/change-task", lobby_path()), &fields).await.status
    };
    assert_eq!(change("claim", &[]).await, 303);
    let task = tasks().await;
    assert!(task.assignee.as_ref().is_some_and(|agent| agent.ends_with("-ada")), "{task:?}");
    assert_eq!(task.status, TaskStatus::InProgress);
    assert_eq!(change("claim", &[]).await, 409, "it is held");
    assert_eq!(change("note", &[("note", "")]).await, 409);
    assert_eq!(change("note", &[("note", "half of it")]).await, 303);
    assert_eq!(change("assign", &[("assignee", "bob")]).await, 303);
    let task = tasks().await;
    assert_eq!((task.assignee.as_deref(), task.note.as_deref()), (Some("bob"), Some("half of it")));
    let page = ada.sees(&lobby_path()).await;
    assert!(page.contains("sweep &lt;b&gt;") && page.contains("half of it"), "{page}");
    assert_eq!(change("complete", &[]).await, 303);
    assert_eq!(tasks().await.status, TaskStatus::Completed);
    assert_eq!(change("nothing", &[]).await, 403, "no such act");
}

#[tokio::test]
async fn a_person_decides_what_an_agent_asks_to_be_allowed() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    let asks = async |text: &str| {
        let terms = ApprovalTerms {
            text: text.to_owned(),
            approvers: Vec::new(),
            within: Duration::from_secs(600),
        };
        let say = Say::chat(lobby(), format!("may I {text}?"));
        node.bridge.desk().ask(&bob, RequestApproval { say, terms }).await.unwrap().approval.id
    };
    let (first, second) = (asks("rm <all>").await, asks("reboot").await);
    let ada = Person::of(&node, KEY, "ada").await;
    assert!(ada.sees("/ui/rooms").await.contains("rm &lt;all&gt;"));
    let page = ada.sees(&lobby_path()).await;
    assert!(page.contains("rm &lt;all&gt;") && page.contains("value=\"approve\""), "{page}");
    let (first, second) = (first.to_uuid(), second.to_uuid());
    ada.in_lobby("decide", &[("approval", &first), ("choice", "deny"), ("reason", "no")]).await;
    ada.in_lobby("decide", &[("approval", &second), ("choice", "always")]).await;
    let late = [("approval", &*first), ("choice", "approve")];
    let late = ada.does(&format!("{}/decide", lobby_path()), &late).await;
    assert!(late.status == 409 && late.body.contains("denied"), "{}", late.body);
    let left = node.bridge.desk().ask(&bob, ListApprovals { room: Some(lobby()) }).await.unwrap();
    assert!(left.len() == 1 && left[0].is_rule, "{left:?}");
    assert!(ada.sees(&lobby_path()).await.contains("value=\"withdraw\""));
    // One that reads only, and decides nothing.
    node.mint(OTHER, &[Scope::Read]);
    let eve = Person::of(&node, OTHER, "eve").await;
    let third = asks("more").await.to_uuid();
    let no = eve
        .does(&format!("{}/decide", lobby_path()), &[("approval", &third), ("choice", "approve")])
        .await;
    assert_eq!(no.status, 409);
    assert!(!eve.sees(&lobby_path()).await.contains("value=\"approve\""));
}

#[tokio::test]
async fn a_person_writes_to_an_agent_and_answers_what_it_asks() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let ada = Person::of(&node, KEY, "ada").await;
    assert!(ada.sees("/ui/agents").await.contains("action=\"/ui/agents/write\""));
    let opened = ada.does("/ui/agents/write", &[("agent", "bob")]).await;
    assert_eq!(opened.status, 303, "{}", opened.body);
    let path = opened.header("location").unwrap().trim_end_matches("#end").to_owned();
    let direct = node.bridge.desk().ask(&bob, ListDirect).await.unwrap().remove(0).room;
    assert_eq!(path, format!("/ui/rooms/{}", direct.to_uuid()));
    node.bridge.desk().ask(&bob, Say::chat(direct, "which <one>?".into())).await.unwrap();
    let page = ada.sees(&path).await;
    assert!(page.contains("which &lt;one&gt;?") && page.contains(">asks<"), "{page}");
    let (_, rest) = page.split_once("?answer=").expect("it can be answered");
    let asked = rest.split('#').next().unwrap();
    let page = ada.sees(&format!("{path}?answer={asked}")).await;
    assert!(page.contains("Answers bob: which &lt;one&gt;?"), "{page}");
    let said = ada.does(&format!("{path}/say"), &[("text", "the left"), ("answers", asked)]).await;
    assert_eq!(said.status, 303, "{}", said.body);
    let page = ada.sees(&path).await;
    assert!(page.contains("the left") && page.contains("answers bob"), "{page}");
    // In a direct room of two others of the key the person reads, and has no form.
    drop(node.agent("carl", KEY).await);
    let other = node.bridge.desk().ask(&bob, OpenDirect::with("carl")).await.unwrap().room;
    let other = format!("/ui/rooms/{}", other.to_uuid());
    assert!(ada.sees(&other).await.contains("its two agents write"));
    assert_eq!(ada.does(&format!("{other}/say"), &[("text", "x")]).await.status, 409);
}

#[tokio::test]
async fn a_person_stops_an_agent_and_all_of_the_key_and_lets_them_go() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read, Scope::Write]);
    let (bob, carl) = (node.agent("bob", OTHER).await, node.agent("carl", KEY).await);
    for agent in [&bob, &carl] {
        node.bridge.desk().ask(agent, Join(lobby())).await.unwrap();
    }
    let says = async |agent: &Visitor| {
        let said = node.bridge.desk().ask(agent, Say::chat(lobby(), "x".into())).await;
        said.err().map(|refusal| crate::views::why(&refusal))
    };
    let eve = Person::of(&node, OTHER, "eve").await;
    let stop = async |who: &str, word: &str| {
        let fields = [("who", who), ("agent", "bob"), ("do", word)];
        let answer = eve.does("/ui/agents/stop", &fields).await;
        assert_eq!(answer.status, 303, "{who} {word}");
    };
    stop("one", "stop").await;
    let refused = says(&bob).await.expect("it is stopped");
    assert!(refused.contains("eve has stopped this agent"), "{refused}");
    let seen = eve.sees("/ui/agents").await;
    assert!(seen.contains("stopped by eve") && seen.contains("come back under another"), "{seen}");
    // As it says: its key has other agents.
    let other = node.agent("bob-again", OTHER).await;
    node.bridge.desk().ask(&other, Join(lobby())).await.unwrap();
    assert_eq!(says(&other).await, None);
    stop("one", "go").await;
    assert!(!eve.sees("/ui/agents").await.contains("come back under another"));
    assert_eq!(says(&bob).await, None);
    stop("all", "stop").await;
    for agent in [&bob, &other] {
        let why = says(agent).await;
        assert!(why.is_some_and(|why| why.contains("eve has stopped all agents")));
    }
    assert_eq!(says(&carl).await, None, "eve is no operator");
    assert!(eve.sees("/ui/agents").await.contains("Let all go"));
    eve.in_lobby("say", &[("text", "sorry")]).await;
    stop("all", "go").await;
    assert_eq!(says(&bob).await, None);
    let bad = eve.does("/ui/agents/stop", &[("who", "some"), ("do", "stop")]).await;
    assert_eq!(bad.status, 403);
    node.mint("a key that may only read, for tests", &[Scope::Read]);
    let reads = Person::of(&node, "a key that may only read, for tests", "rae").await;
    let no = reads.does("/ui/agents/stop", &[("who", "all"), ("do", "stop")]).await;
    assert_eq!(no.status, 409);
}

#[tokio::test]
async fn nothing_is_done_by_a_form_of_another_page() {
    let node = Node::new().await;
    let ada = Person::of(&node, KEY, "ada").await;
    let acts = ["say", "join", "leave", "open-vote", "cast", "make-task", "change-task", "decide"];
    let paths = acts.map(|act| format!("{}/{act}", lobby_path()));
    for path in paths.iter().map(|path| &**path).chain(["/ui/agents/write", "/ui/agents/stop"]) {
        for form in ["", "form=", "form=wrong", "title=x&options=a%0Ab&text=x&agent=bob"] {
            assert_eq!(node.post(path, &ada.cookie, form).await.status, 403, "{path} {form}");
            assert_eq!(node.post(path, "", form).await.status, 401, "{path} {form}");
        }
        assert_ne!(node.get(path, &ada.cookie).await.status, 200, "a link does nothing: {path}");
    }
    let path = format!("{}/nothing", lobby_path());
    assert_eq!(ada.does(&path, &[]).await.status, 404);
}

#[tokio::test]
async fn an_envelope_is_a_card_with_its_challenges() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    node.says(&bob, r#"{"v":"lantern/0.1.1","type":"ASSERT","from":"bob","body":{"claim":"the <plan> holds","confidence":0.74,"falsifiable_by":"a rollback step"}}"#).await;
    let ada = Person::of(&node, KEY, "ada").await;
    let page = ada.sees(&lobby_path()).await;
    let number = page.split("id=\"n").nth(1).unwrap().split('"').next().unwrap().to_owned();
    node.says(&bob, &format!(r#"{{"v":"lantern/0.1.1","type":"CHALLENGE","thread":{number},"from":"bob","body":{{"target_seq":{number},"counter_claim":"it <does> not","confidence":9,"test":"grep"}}}}"#)).await;
    let page = ada.sees(&lobby_path()).await;
    for part in [
        "card assert",
        "the &lt;plan&gt; holds",
        "74 %",
        "a rollback step",
        "Challenged",
        "card challenge",
        "it &lt;does&gt; not",
        "grep",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("it &lt;does&gt; not").count(), 2, "at the claim, and by itself");
    assert!(!page.contains("900 %"), "no such confidence");
    assert!(!page.contains("counter_claim"), "no JSON");
}

#[tokio::test]
async fn the_life_of_a_message_is_shown_to_those_who_may_read_it() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    node.says(&bob, "where am I?").await;
    let ada = Person::of(&node, KEY, "ada").await;
    let page = ada.sees(&lobby_path()).await;
    let (_, rest) = page.split_once("/trace/").expect("a link");
    let id = rest.split('"').next().unwrap();
    let trace = ada.sees(&format!("{}/trace/{id}", lobby_path())).await;
    assert!(trace.contains("where am I?") && trace.contains("Held durably by 1 of 1"), "{trace}");
    let none = format!("{}/trace/{}", lobby_path(), lobby().to_uuid());
    assert_eq!(node.get(&none, &ada.cookie).await.status, 404);
    let opened = ada.does("/ui/agents/write", &[("agent", "bob")]).await;
    let direct = opened.header("location").unwrap().trim_end_matches("#end").to_owned();
    ada.does(&format!("{direct}/say"), &[("text", "between us")]).await;
    let page = ada.sees(&direct).await;
    let id = page.split_once("/trace/").unwrap().1.split('"').next().unwrap().to_owned();
    assert!(ada.sees(&format!("{direct}/trace/{id}")).await.contains("between us"));
    node.mint(OTHER, &[Scope::Read]);
    let eve = Person::of(&node, OTHER, "eve").await;
    assert_eq!(node.get(&format!("{direct}/trace/{id}"), &eve.cookie).await.status, 404);
}
