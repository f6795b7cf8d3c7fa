//! Members of teams.

use bridge::seam::call::ListSeats;

use super::*;

impl Node {
    /// The rooms in which an agent has a seat.
    async fn seats(&self, agent: &Agent) -> Vec<RoomId> {
        self.bridge.desk().ask(&agent.visitor, ListSeats).await.unwrap()
    }
}

fn roles(got: &Value) -> Vec<(&str, &str, bool)> {
    let rows = got["members"].as_array().unwrap().iter();
    rows.map(|row| {
        let text = |name: &str| row[name].as_str().unwrap();
        (text("agent_key"), text("role"), row["seated"].as_bool().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn a_team_is_made_with_members_who_have_seats_and_others_come_and_go() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let cid = node.agent("cid", KEY).await;
    let mut client = node.owner().await;
    let params = json!({"name": "shearers", "agent_ids": ["bob"]});
    let made = client.gets("teams.create", params).await;
    let id = made["id"].clone();
    let room = RoomId::from_uuid(id.as_str().unwrap()).unwrap();
    assert_eq!(
        (&made["team"]["lead_agent_key"], &made["team"]["member_count"]),
        (&json!("bob"), &json!(1))
    );
    assert_eq!(node.seats(&bob).await, [room]);
    let mut told = [client.event().await, client.event().await];
    told.sort_by_key(|event| event["event"].to_string());
    assert_eq!(
        (&told[0]["event"], &told[1]["event"]),
        (&json!("team.created"), &json!("team.member.added"))
    );
    assert_eq!(
        (&told[1]["payload"]["agent_key"], &told[1]["payload"]["role"]),
        (&json!("bob"), &json!("lead"))
    );
    let add = json!({"team_id": id, "agent": "cid", "role": "reviewer"});
    assert_eq!(client.gets("teams.members.add", add.clone()).await, json!({"ok": true}));
    assert_eq!(node.seats(&cid).await, [room]);
    let told = client.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["agent_key"], &told["payload"]["team_id"]),
        (&json!("team.member.added"), &json!("cid"), &id)
    );
    let get = json!({"teamId": id});
    let got = client.gets("teams.get", get.clone()).await;
    assert_eq!(roles(&got), [("bob", "lead", true), ("cid", "reviewer", true)]);
    // A second lead takes the place of the first, who can be removed then.
    let remove = |agent: &str| json!({"teamId": id, "agentId": agent});
    let lead = ("INVALID_REQUEST".to_owned(), "cannot remove team lead".to_owned());
    assert_eq!(client.refused("teams.members.remove", remove("bob")).await, lead);
    let add = json!({"teamId": id, "agentId": "cid", "role": "lead"});
    client.gets("teams.members.add", add).await;
    client.gets("teams.members.remove", remove("bob")).await;
    assert_eq!(node.seats(&bob).await, []);
    let got = client.gets("teams.get", get).await;
    assert_eq!(roles(&got), [("cid", "lead", true)]);
    let names: Vec<_> = [client.event().await, client.event().await, client.event().await]
        .iter()
        .map(|event| (event["event"].clone(), event["payload"]["agent_key"].clone()))
        .collect();
    assert_eq!(names[2], (json!("team.member.removed"), json!("bob")));
    assert_eq!(client.refused("teams.members.remove", remove("bob")).await.0, "NOT_FOUND");
    let add = json!({"teamId": id, "agentId": "bob", "role": "boss"});
    assert_eq!(client.refused("teams.members.add", add).await.0, "INVALID_REQUEST");
    let add = json!({"teamId": "lobby", "agentId": "bob"});
    assert_eq!(client.refused("teams.members.add", add).await.0, "UNAUTHORIZED");
    let events = client.gets("teams.events.list", json!({"team_id": id})).await;
    let kinds: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|it| &it["event_type"]).collect();
    assert_eq!(kinds, ["team.member.added", "team.created"], "who is on the list now");
    node.stop().await;
}

#[tokio::test]
async fn a_team_with_agents_of_another_key_is_shared_with_that_key_and_nobody_else() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let bob = node.agent("bob", MINTED).await;
    let mut client = node.owner().await;
    let mut other = node.connected(MINTED, "eve").await;
    let made = client.gets("teams.create", json!({"name": "plans", "members": ["bob"]})).await;
    let id = made["id"].clone();
    assert_eq!(made["team"]["mesh"]["shared"], true);
    assert_eq!(node.seats(&bob).await.len(), 1);
    assert_eq!(other.gets("teams.get", json!({"id": id})).await["id"], id, "his key has it");
    let refused = other.refused("teams.members.add", json!({"teamId": id, "agentId": "bob"})).await;
    assert_eq!(refused.0, "UNAUTHORIZED", "and the other one says who is in it");
    // In a private room of one key others have no place.
    let own = client.gets("teams.create", json!({"name": "own"})).await["id"].clone();
    let add = json!({"teamId": own, "agentId": "bob"});
    let no = client.refused("teams.members.add", add).await;
    assert!(no.0 == "INVALID_REQUEST" && no.1.starts_with("private room of another key"), "{no:?}");
    // Somebody else leads before he goes, and with him his key.
    node.agent("ann", KEY).await;
    let lead = json!({"teamId": id, "agentId": "ann", "role": "lead"});
    client.gets("teams.members.add", lead).await;
    client.gets("teams.members.remove", json!({"teamId": id, "agentId": "bob"})).await;
    assert_eq!(other.refused("teams.get", json!({"id": id})).await.0, "NOT_FOUND");
    node.stop().await;
}

#[tokio::test]
async fn operators_hear_of_tasks_of_teams_on_whose_lists_they_are() {
    let node = Node::new().await;
    let mut admin = node.owner().await;
    node.mint(MINTED, Some(&[Scope::Write]));
    let mut operator = node.connected(MINTED, "ada").await;
    // Its principal is there when it has written.
    node.agent("bob", KEY).await;
    let hello = json!({"channel": "room", "to": "lobby", "message": "hello"});
    operator.gets("send", hello).await;
    let settings = json!({"visibility": "public"});
    let made = admin.gets("teams.create", json!({"name": "readers", "settings": settings})).await;
    let id = made["id"].clone();
    let users = admin.gets("teams.known_users", json!({"teamId": "lobby"})).await;
    assert_eq!(users["users"], json!(["ada"]));
    let task = |title: &str| json!({"teamId": id, "subject": title});
    let first = admin.gets("teams.tasks.create", task("one")).await;
    let update = json!({"teamId": id, "taskId": first["id"], "progress": 5});
    let no = operator.refused("mesh.tasks.update", update.clone()).await;
    assert_eq!(no.0, "UNAUTHORIZED", "{no:?}");
    assert!(operator.events.is_empty(), "{:?}", operator.events);
    let print = mesh::name::id::KeyPrint::of(MINTED);
    let principal = crate::names::principal(print, "ada");
    let add = json!({"teamId": id, "agentId": &*principal});
    admin.gets("teams.members.add", add).await;
    assert_eq!(operator.event().await["event"], "team.member.added");
    admin.gets("teams.tasks.create", task("two")).await;
    let told = operator.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["subject"]),
        (&json!("team.task.created"), &json!("two"))
    );
    operator.gets("mesh.tasks.update", update).await;
    // Another user of the key hears nothing.
    let mut other = node.connected(MINTED, "eve").await;
    admin.gets("teams.tasks.create", task("three")).await;
    assert_eq!(other.gets("health", json!({})).await["status"], "ok");
    assert!(other.events.is_empty(), "{:?}", other.events);
    node.stop().await;
}
