//! Members of teams, by the records of their rooms: `teams.members.*`, `teams.known_users`, `teams.events.list`.

use std::collections::{BTreeMap, BTreeSet};

use bridge::{
    read::Overheard,
    seam::{
        call::{CreateRoom, CreateShared, DescribeRoom, From, History, SetMember, SetRoom},
        event::Event,
    },
};
use mesh::{
    api::command::{AgentView, MemberAct, NewRoom, RoomInfo, RoomView},
    name::id::{AgentId, KeyPrint},
    records::{
        details::DetailsUpdate,
        members::{Member, Role},
    },
};
use serde_json::{Value, json};

use crate::{
    agents::{Known, is_online},
    caller::Caller,
    limits::{KNOWN_USERS_MAX, KNOWN_USERS_MESSAGES, TEAM_MEMBERS_AT_ONCE_MAX},
    names::{user_of, uuid_of},
    outcome::{No, Outcome},
    params::{MEMBER, Names, Params, TEAM, must_be},
    shared::Shared,
    tasks,
    teams::owned,
    times,
};

/// The agent that leads a team: by record, else the one that made the room.
pub(crate) fn lead_of(room: &RoomView) -> Option<&AgentId> {
    let lead = room.on_record.iter().find(|member| member.role == Role::Lead);
    lead.map(|member| &member.agent).or(room.created_by.as_ref())
}

/// Whether a client is told of a team: administrators who may see it, and operators whose principal is on its list.
pub(crate) fn is_told(
    client: &Caller,
    may_read: impl Fn(KeyPrint) -> bool,
    list: &[Member],
) -> bool {
    let is_listed = || list.iter().any(|member| member.agent == client.principal);
    may_read(client.print()) && (client.is_admin() || client.is_operator() && is_listed())
}

/// The agents of a team that a client names, before anything is made.
struct Named {
    lead: Option<Known>,
    members: Vec<Known>,
}

impl Named {
    async fn of(caller: &Caller, params: &Params) -> Result<Named, No> {
        const MEMBERS: &Names = &["members", "agent_ids", "agentIds"];
        let given = params.list(MEMBERS)?.cloned().unwrap_or_default();
        if given.len() > TEAM_MEMBERS_AT_ONCE_MAX {
            let text = format!("members must have at most {TEAM_MEMBERS_AT_ONCE_MAX} agents");
            return Err(No::invalid(text));
        }
        let mut members: Vec<Known> = Vec::with_capacity(given.len());
        for named in &given {
            let named = named.as_str().ok_or_else(|| must_be(MEMBERS, "an array of strings"))?;
            let known = caller.agent(named).await?;
            if members.iter().all(|other| other.agent != known.agent) {
                members.push(known);
            }
        }
        let lead = match params.filled(&["lead", "lead_agent_id", "leadAgentId"])? {
            Some(named) => Some(caller.agent(&named).await?),
            None => members.first().cloned(),
        };
        if let Some(lead) = &lead {
            members.retain(|member| member.agent != lead.agent);
        }
        Ok(Named { lead, members })
    }

    /// The lead is the last: each lead takes the place of the one before.
    fn all(&self) -> impl Iterator<Item = (&Known, Role)> {
        let members = self.members.iter().map(|member| (member, Role::Member));
        members.chain(self.lead.iter().map(|lead| (lead, Role::Lead)))
    }
}

/// The room of a team that is made, with the agents that are named: of the caller's key if all are, else one that is shared with
/// their keys.
pub(crate) async fn make(caller: &Caller, params: &Params, new: NewRoom) -> Result<RoomView, No> {
    let named = Named::of(caller, params).await?;
    let mut of_others = false;
    for (known, _) in named.all() {
        of_others |= !caller.owns(known).await?;
    }
    let who = caller.speaker();
    let room = if of_others && !new.public {
        caller.act(&who, CreateShared(new)).await?
    } else {
        caller.act(&who, CreateRoom(new)).await?
    };
    for (known, role) in named.all() {
        let act = MemberAct::Put(role);
        let set = SetMember { room: room.room, agent: known.agent.clone(), act };
        if let Err(no) = caller.act(&who, set).await {
            // A team without some of its members is none that was asked for.
            let closes = DetailsUpdate { closes: true, ..DetailsUpdate::default() };
            caller.act(&who, SetRoom { room: room.room, update: closes }).await?;
            return Err(no);
        }
    }
    Ok(caller.read(DescribeRoom(room.room)).await?.room)
}

fn role(params: &Params) -> Result<Role, No> {
    let Some(name) = params.filled(&["role"])? else { return Ok(Role::Member) };
    Role::named(&name).ok_or_else(|| {
        let names = Role::ALL.map(Role::name).join(", ");
        must_be_one_of("role", &names)
    })
}

fn must_be_one_of(field: &str, names: &str) -> No {
    No::invalid(format!("{field} must be one of {names}"))
}

pub(crate) async fn add(caller: &Caller, params: &Params) -> Outcome {
    let role = role(params)?;
    let room = caller.team(params, TEAM).await?;
    owned(caller, &room)?;
    let agent = caller.agent(&params.required(MEMBER)?).await?.agent;
    let set = SetMember { room: room.room, agent, act: MemberAct::Put(role) };
    caller.act(&caller.speaker(), set).await?;
    Ok(json!({"ok": true}))
}

pub(crate) async fn remove(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    owned(caller, &room)?;
    let named = params.required(MEMBER)?;
    // One that is gone for good is on the list all the same.
    let is_it = |member: &&Member| *member.agent == *named || uuid_of(&member.agent) == named;
    let agent = match room.on_record.iter().find(is_it) {
        Some(member) => member.agent.clone(),
        None => caller.agent(&named).await?.agent,
    };
    if lead_of(&room) == Some(&agent) {
        return Err(No::invalid("cannot remove team lead"));
    }
    if room.on_record.iter().all(|member| member.agent != agent) {
        return Err(No::not_found(format!("not a member of this team: {agent}")));
    }
    let set = SetMember { room: room.room, agent, act: MemberAct::Remove };
    caller.act(&caller.speaker(), set).await?;
    Ok(json!({"ok": true}))
}

/// The members of a team: those on its list, and those with a seat.
pub(crate) async fn rows(caller: &Caller, info: &RoomInfo) -> Result<Vec<Value>, No> {
    let RoomInfo { room, agents, .. } = info;
    let seated: BTreeMap<&AgentId, &AgentView> =
        agents.iter().map(|view| (&view.agent, view)).collect();
    let elsewhere: Vec<AgentView> =
        if room.on_record.iter().all(|it| seated.contains_key(&it.agent)) {
            Vec::new()
        } else {
            caller.attached(true).await?
        };
    let listed: BTreeMap<&AgentId, &Member> =
        room.on_record.iter().map(|member| (&member.agent, member)).collect();
    let lead = lead_of(room);
    let all: BTreeSet<&AgentId> = listed.keys().chain(seated.keys()).copied().collect();
    let row = |agent: &AgentId| {
        let (member, view) = (listed.get(agent), seated.get(agent).copied());
        let there = view.or_else(|| elsewhere.iter().find(|view| view.agent == *agent));
        let role = match member {
            _ if lead == Some(agent) => Role::Lead,
            Some(member) => member.role,
            None => Role::Member,
        };
        let joined_ms = member.map(|member| member.since_ms);
        let joined_ms = joined_ms.or(view.map(|view| view.connected_ms)).unwrap_or_default();
        json!({
            "team_id": room.room.to_uuid(),
            "agent_id": uuid_of(agent),
            "agent_key": &**agent,
            "display_name": there.map_or(&**agent, |view| &view.name),
            "role": role.name(),
            "joined_at": times::text(joined_ms),
            "online": there.is_some_and(is_online),
            "seated": view.is_some(),
        })
    };
    Ok(all.into_iter().map(row).collect())
}

/// Whether a client may work at the tasks of a team: its key made the room, or has an agent there, or the client's principal is on
/// the list. The lobby is everybody's.
pub(crate) async fn works_in(caller: &Caller, room: &RoomView) -> Result<(), No> {
    let is_own = |member: &Member| member.agent == caller.principal || member.key == caller.print();
    let is_open = room.room == caller.shared.lobby || room.owner == Some(caller.print());
    if is_open || room.on_record.iter().any(is_own) {
        return Ok(());
    }
    let seated = caller.read(DescribeRoom(room.room)).await?.agents;
    if seated.iter().any(|view| view.key == caller.print()) {
        return Ok(());
    }
    Err(No::unauthorized("permission denied: not a member of this team"))
}

/// People who are members, or have written: of the newest messages.
pub(crate) async fn known_users(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let info = caller.read(DescribeRoom(room.room)).await?;
    let limit = KNOWN_USERS_MESSAGES;
    let call = History { room: room.room, from: From::Newest, limit, before_ms: None };
    let said = caller.read(call).await?.messages;
    let tasks = tasks::tasks_of(caller, room.room).await?;
    let agents = info.room.on_record.iter().map(|member| &member.agent);
    let agents = agents.chain(info.agents.iter().map(|view| &view.agent));
    let agents = agents.chain(said.iter().rev().map(|message| &message.said.agent));
    let agents = agents.chain(tasks.iter().map(|task| &task.created_by));
    let mut users: Vec<&str> = Vec::new();
    for user in agents.filter_map(|agent| user_of(agent)) {
        if users.len() < KNOWN_USERS_MAX && !users.contains(&user) {
            users.push(user);
        }
    }
    Ok(json!({"users": users}))
}

/// The making of the team, the agents that are on its list, and all that is remembered of its tasks, the newest first.
pub(crate) async fn events(caller: &Caller, params: &Params) -> Outcome {
    let (limit, offset) = (params.limit(50, 200)?, params.offset()?);
    let room = caller.team(params, TEAM).await?;
    let team = room.room.to_uuid();
    let made_by = room.created_by.as_deref().unwrap_or_default();
    let mut events = vec![json!({
        "id": team, "team_id": team, "event_type": "team.created", "actor_id": made_by,
        "created_at": times::text(room.created_ms),
    })];
    events.extend(room.on_record.iter().map(|member| {
        json!({
            "id": format!("{team}:{}", uuid_of(&member.agent)),
            "team_id": team,
            "event_type": "team.member.added",
            "actor_type": "system",
            "actor_id": "",
            "data": {"agent_key": &*member.agent, "role": member.role.name()},
            "created_at": times::text(member.since_ms),
        })
    }));
    events.extend(tasks::team_events(caller, room.room).await?);
    let at = |event: &Value| event["created_at"].as_str().unwrap_or_default().to_owned();
    events.sort_by_key(|event| std::cmp::Reverse(at(event)));
    let (skipped, taken) = (times::count(offset), times::count(limit));
    let events: Vec<Value> = events.into_iter().skip(skipped).take(taken).collect();
    Ok(json!({"count": events.len(), "events": events}))
}

/// Tells of agents that came onto the list of a team, or went from it, and of teams that were made or have ended: by whatever
/// dialect, at whichever node.
pub(crate) fn tell(shared: &Shared, news: &Overheard) {
    if let Event::RoomOpened { room, .. } = &news.event {
        return tell_of(shared, news, "team.created", lead_of(room));
    }
    if let Event::RoomClosed { .. } = &news.event {
        let lead = news.facts.on_record.iter().find(|member| member.role == Role::Lead);
        return tell_of(shared, news, "team.deleted", lead.map(|member| &member.agent));
    }
    let Event::MembersChanged { room, came, gone, name } = &news.event else { return };
    let list = &news.facts.on_record;
    let lead = list.iter().find(|member| member.role == Role::Lead);
    let tell = |what: &str, member: &Member| {
        let mut told = json!({
            "team_id": room.to_uuid(), "team_name": &**name, "member_count": list.len(),
            "agent_key": &*member.agent, "role": member.role.name(),
        });
        if let Some(lead) = lead {
            told["lead_agent_key"] = json!(&*lead.agent);
        }
        shared.tell(&format!("team.member.{what}"), &told, |client| {
            let may_read = |key| news.facts.readable_by(key, None);
            // One that was taken off is told so.
            is_told(client, may_read, list) || is_told(client, may_read, gone)
        });
    };
    came.iter().for_each(|member| tell("added", member));
    gone.iter().for_each(|member| tell("removed", member));
}

fn tell_of(shared: &Shared, news: &Overheard, what: &str, lead: Option<&AgentId>) {
    let list = &news.facts.on_record;
    let mut told = json!({
        "team_id": news.room.to_uuid(), "team_name": &*news.facts.name, "member_count": list.len(),
    });
    if let Some(lead) = lead {
        told["lead_agent_key"] = json!(&**lead);
    }
    shared
        .tell(what, &told, |client| is_told(client, |key| news.facts.readable_by(key, None), list));
}
