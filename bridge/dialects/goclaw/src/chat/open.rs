//! Runs that are open, as their rooms say.

use std::{collections::BTreeSet, sync::Arc};

use bridge::seam::{
    call::{From, History, OneMessage},
    event::Message,
};
use mesh::{
    api::command::Speech,
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
};
use tokio::time::Instant;

use super::{Target, session_key};
use crate::{
    caller::{Caller, Speaker},
    limits::{RUN_MESSAGES_MAX, SESSION_ROOMS_MAX},
    names::{self, Session, room_session},
    outcome::No,
    params::{AGENT, Params, SESSION, is_required},
    runs::{Asked, Run, open_in},
    threads::{Direct, keys, metadata},
    times,
};

/// The newest one of a session.
pub(super) async fn of_target(caller: &Caller, target: &Target) -> Result<Option<MessageId>, No> {
    match &target.asked {
        Asked::Peer(agent) => {
            let direct = Direct {
                room: target.room,
                tip: Number::ZERO,
                active_ms: 0,
                agent: agent.clone(),
                principal: target.who.agent.clone(),
            };
            let open = in_direct(caller, &direct, Some(&target.session)).await?;
            Ok(open.into_iter().next_back().map(|(run, _)| run))
        }
        Asked::Member(_) => {
            let open = in_room(caller, target.room).await?;
            let own = open.into_iter().rfind(|run| run.speaker.agent == target.who.agent);
            Ok(own.map(|run| run.id))
        }
    }
}

/// Requests that were made before this are none any more. Unix milliseconds.
fn since_ms(caller: &Caller) -> u64 {
    times::now_ms().saturating_sub(times::ms(caller.shared.settings.run_limit))
}

/// Those of a direct room, or of one session of it, with their sessions.
pub(super) async fn in_direct(
    caller: &Caller,
    direct: &Direct,
    session: Option<&str>,
) -> Result<Vec<(MessageId, String)>, No> {
    let messages = caller.newest(direct, RUN_MESSAGES_MAX).await?;
    let keys = keys(&messages, &direct.agent);
    let rows = messages.iter().zip(&keys).map(|(message, key)| (message, key.as_str()));
    let rows: Vec<(&Message, &str)> =
        rows.filter(|(_, key)| session.is_none_or(|session| *key == session)).collect();
    let open = open_in(&rows, &direct.principal, since_ms(caller));
    let key_of = |run: &MessageId| {
        let found = rows.iter().find(|(message, _)| message.message == *run);
        found.map(|(_, key)| (*key).to_owned()).unwrap_or_default()
    };
    Ok(open.into_iter().map(|run| (run, key_of(&run))).collect())
}

/// Those of a room of many that the user has begun; an administrator's are those of all users of the key.
pub(super) async fn in_room(caller: &Caller, room: RoomId) -> Result<Vec<Run>, No> {
    let slot = caller.shared.reading.acquire().await;
    let call = History { room, from: From::Newest, limit: RUN_MESSAGES_MAX, before_ms: None };
    let mut messages = caller.read(call).await?.messages;
    drop(slot);
    messages.retain(|message| message.speech != Speech::Thinking);
    let (session, begins) = (room_session(room), names::principals_of(caller.print()));
    let is_own = |agent: &AgentId| {
        *agent == caller.principal || (caller.is_admin() && agent.starts_with(&*begins))
    };
    let rows: Vec<(&Message, &str)> = messages.iter().map(|message| (message, &*session)).collect();
    let asking: BTreeSet<&AgentId> =
        messages.iter().map(|message| &message.said.agent).filter(|agent| is_own(agent)).collect();
    let of_all = asking.into_iter().flat_map(|by| open_in(&rows, by, since_ms(caller)));
    let of_all: BTreeSet<MessageId> = of_all.collect();
    let mut open = Vec::new();
    for request in messages.iter().filter(|message| of_all.contains(&message.message)) {
        let (said, told) = (&request.said, metadata(request));
        if told["session"] != *session {
            continue;
        }
        let agent = said.mentions.first().map(|agent| AgentId::from(&**agent));
        let user = told["from"].as_str().unwrap_or(&said.name).to_owned();
        open.push(Run {
            id: request.message,
            number: request.number,
            session: session.clone(),
            asked: Asked::Member(agent),
            room,
            speaker: Speaker { agent: said.agent.clone(), user },
            key: caller.print(),
            text: String::new(),
            begun: Instant::now(),
        });
    }
    Ok(open)
}

/// Those that a client means to end.
pub(super) async fn meant(caller: &Arc<Caller>, params: &Params) -> Result<Vec<Run>, No> {
    let (key, run) = (session_key(params, SESSION)?, params.filled(&["runId", "run_id"])?);
    let named = params.filled(AGENT)?;
    if key.is_none() && run.is_none() && named.is_none() {
        return Err(is_required(SESSION));
    }
    let run = match run.as_deref().map(MessageId::from_uuid) {
        Some(None) => return Ok(Vec::new()),
        Some(Some(run)) => Some(run),
        None => None,
    };
    let agent = match named {
        Some(named) => Some(caller.agent(&named).await?.agent),
        None => None,
    };
    let known = run.and_then(|run| caller.shared.runs.get(run));
    let of_key = match key.as_deref().map(Session::parse) {
        Some(Some(session)) => Some(session),
        Some(None) => return Ok(Vec::new()),
        None => known.as_ref().and_then(|run| Session::parse(&run.session)),
    };
    let mut open = match of_key {
        Some(Session::Room(room)) => in_room(caller, room).await?,
        Some(Session::Thread { agent: of_key, .. }) => {
            let is_it = |direct: &Direct| *direct.agent == *of_key;
            in_directs(caller, is_it, (run, key.as_deref())).await?
        }
        None => {
            let is_it = |direct: &Direct| agent.as_ref().is_none_or(|it| direct.agent == *it);
            in_directs(caller, is_it, (run, key.as_deref())).await?
        }
    };
    open.retain(|open| {
        run.is_none_or(|run| run == open.id)
            && agent.as_ref().is_none_or(|agent| open.asked.agent() == Some(agent))
    });
    Ok(open)
}

/// Those of some direct rooms: of a run, or of a session, if one is meant.
async fn in_directs(
    caller: &Caller,
    is_it: impl Fn(&Direct) -> bool,
    (run, session): (Option<MessageId>, Option<&str>),
) -> Result<Vec<Run>, No> {
    let rooms = caller.direct_rooms().await?.into_iter().take(SESSION_ROOMS_MAX);
    let mut found = Vec::new();
    for direct in rooms.filter(is_it) {
        if let Some(run) = run {
            let call = OneMessage { room: direct.room, message: run };
            if caller.read_as(&direct.principal, call).await?.is_none() {
                continue;
            }
        }
        for (id, session) in in_direct(caller, &direct, session).await? {
            found.push(Run {
                id,
                number: direct.tip,
                session,
                asked: Asked::Peer(direct.agent.clone()),
                room: direct.room,
                speaker: caller.speaker_of(&direct).await?,
                key: caller.print(),
                text: String::new(),
                begun: Instant::now(),
            });
        }
    }
    Ok(found)
}
