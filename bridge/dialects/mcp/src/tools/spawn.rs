//! Handing a task over to another agent: a room of its own, a task in it, and a message that waits for the result.

use std::time::Duration;

use bridge::{
    seam::call::{AssignTask, From, History, ListTasks, OnGiven, OpenDirect, Say},
    tokens::Visibility,
};
use mesh::{
    api::{
        agenda::{GivenAct, NewTask},
        command::SaidOk,
    },
    name::{
        group::TaskSeed,
        id::{AgentId, MessageId},
        number::Number,
    },
    wire::given::{Chosen, TaskTerms},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::send::{self, Ending, Request, Target, refuse_wrong_targets};
use crate::{
    arguments::Arguments,
    asking::Asking,
    children::{Child, begun, children},
    limits::{
        IDEMPOTENCY_CHARS_MAX, LABEL_CHARS_MAX, PAGE_MIN, RUN_SECS_MAX, SEARCH_CHARS_MAX,
        TITLE_CHARS_MAX,
    },
    outcome::{No, Outcome, object},
    reach::{Reachable, everybody},
    sessions::Session,
};

pub(super) mod ended;
pub(crate) mod replacing;

/// The capability of agents that take tasks of others.
const OFFERS: &str = "spawn";

/// What is to be handed over.
struct Wanted {
    text: String,
    label: Option<String>,
    capability: Option<String>,
    named: Option<String>,
    wait: Duration,
    /// The task's time.
    run: Option<Duration>,
    keeps: bool,
    idempotency: Option<String>,
}

impl Wanted {
    fn of(arguments: &mut Arguments) -> Result<Wanted, No> {
        refuse_wrong_targets(arguments)?;
        let run = arguments.integer("runTimeoutSeconds", 0, RUN_SECS_MAX)?.unwrap_or(0);
        Ok(Wanted {
            text: arguments.required("task", usize::MAX)?,
            label: arguments.filled("label", LABEL_CHARS_MAX)?,
            capability: arguments.filled("capability", SEARCH_CHARS_MAX)?,
            named: arguments.filled("agentId", crate::limits::KEY_CHARS_MAX)?,
            wait: arguments.wait(0)?,
            run: (run > 0).then(|| Duration::from_secs(run)),
            keeps: match arguments.text("cleanup")?.as_deref() {
                None | Some("delete") => false,
                Some("keep") => true,
                Some(_) => return Err(No::argument("cleanup", "must be delete or keep")),
            },
            idempotency: arguments.filled("idempotencyKey", IDEMPOTENCY_CHARS_MAX)?,
        })
    }

    fn capability(&self) -> &str {
        self.capability.as_deref().unwrap_or(OFFERS)
    }
}

pub(super) async fn spawn(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let wanted = Wanted::of(arguments)?;
    if asking.grant.visibility < Visibility::Spawned {
        // It would not see what comes of it.
        return Err(asking.not_visible("subagent"));
    }
    let seed = seed(asking, wanted.idempotency.as_deref());
    let children = children(asking).await?;
    if wanted.idempotency.is_none() {
        may_have_one_more(asking, &children)?;
    }
    let worker = worker(asking, &wanted, &children, seed).await?;
    // Nothing is given by a call that could not wait.
    let held = if wanted.wait == Duration::ZERO { None } else { Some(asking.wait()?) };
    let room = asking.act(OpenDirect { agent: worker.clone(), task: Some(seed) }).await;
    let room = room.map_err(|no| if wanted.idempotency.is_some() { is_over(no) } else { no })?;
    let target = Target::of_task(asking, room, worker.clone());
    let given = match given(asking, &target).await? {
        Some((given, said)) if said == wanted.text => (given, true),
        Some(_) => return Err(No::error("idempotencyKey was used for another task")),
        None => {
            if wanted.idempotency.is_some() {
                may_have_one_more(asking, &children)?;
            }
            let terms = terms(&wanted, depth(asking, &children), seed);
            let title = wanted.label.clone().unwrap_or_else(|| title(&wanted.text));
            (give(asking, &target, Giving { text: &wanted.text, title, terms }).await?, false)
        }
    };
    let ((message, number), is_repeat) = given;
    if wanted.named.is_none() {
        replacing::look_after(asking, target.room.room);
    }
    let mut fields = object(json!({
        "childSessionKey": target.key,
        "sessionKey": target.key,
        "runId": message.to_uuid(),
        "worker": worker,
    }));
    if is_repeat {
        fields.insert("duplicate".to_owned(), json!(true));
    }
    if wanted.wait == Duration::ZERO {
        let note = "the result comes to your inbox; do not wait in a loop";
        fields.extend(object(json!({
            "status": "accepted", "delivery": send::pending(), "note": note,
        })));
        return Ok(fields);
    }
    let request = Request { message, number };
    // When its time is up there is nothing to wait for: a result that comes later is an item.
    let wait = wanted.run.map_or(wanted.wait, |run| run.min(wanted.wait));
    let ended = send::wait_for_answer(asking, &target, request, Ending { wait, fields }).await;
    drop(held);
    if ended.as_ref().is_ok_and(|fields| fields.contains_key("replyId")) {
        let act = GivenAct::Returned;
        // An error: its room stays as it is. The result is the same.
        drop(asking.act(OnGiven { room: target.room.room, act }).await);
    }
    ended
}

fn terms(wanted: &Wanted, depth: u32, seed: TaskSeed) -> TaskTerms {
    let chosen = Chosen { capability: wanted.capability().to_owned(), first: None };
    TaskTerms {
        run_ms: wanted.run.map(|run| u64::try_from(run.as_millis()).unwrap_or(u64::MAX)),
        keeps: wanted.keeps,
        depth: depth.saturating_add(1),
        chosen: wanted.named.is_none().then_some(chosen),
        name: wanted.idempotency.is_some().then_some(seed),
    }
}

fn title(text: &str) -> String {
    text.chars().take(TITLE_CHARS_MAX).collect()
}

/// A room that was made for the same name is gone.
fn is_over(no: No) -> No {
    let is_gone =
        matches!(&no, No::Error { more, .. } if more.get("code") == Some(&json!("room_not_found")));
    if is_gone {
        return No::error(
            "the task of this idempotencyKey is over, and its session is closed: use another one",
        );
    }
    no
}

/// The agent that is to do it.
async fn worker(
    asking: &Asking,
    wanted: &Wanted,
    children: &[Child],
    seed: TaskSeed,
) -> Result<AgentId, No> {
    if let Some(named) = &wanted.named {
        return match asking.agent_of(named.trim()).await? {
            Session::Agent(agent) => Ok(agent),
            Session::Main | Session::Room(_) | Session::Thread(..) => {
                Err(No::argument("agentId", "must be another agent"))
            }
        };
    }
    let own = || children.iter().filter(|child| child.task.created_by == asking.agent);
    if wanted.idempotency.is_some() {
        let is_same = |child: &&Child| {
            let terms = child.task.marks.terms.as_ref();
            terms.is_some_and(|terms| terms.name == Some(seed))
        };
        if let Some(before) = own().find(is_same).and_then(|child| child.task.assignee.clone()) {
            return Ok(before);
        }
    }
    let own: Vec<&Child> = own().collect();
    let capability = wanted.capability();
    let others = Others { own: &own, without: Vec::new() };
    let best = offering(asking, capability, others, seed).await?;
    best.ok_or_else(|| No::error(format!("no agent offers {capability:?}")))
}

/// How many tasks lead to the agent: of those that it has begun and not finished.
fn depth(asking: &Asking, children: &[Child]) -> u32 {
    begun(asking, children).map(Child::depth).max().unwrap_or(0)
}

/// Of an agent that works on a task of another one, or has given as many as it may, none is taken.
fn may_have_one_more(asking: &Asking, children: &[Child]) -> Result<(), No> {
    let spawning = asking.shared.settings.spawning;
    if spawning.depth == 0 {
        let text = "sessions_spawn is not allowed on this node: it has max-depth = 0";
        return Err(No::forbidden("depth", text));
    }
    if let Some(child) = begun(asking, children).find(|child| child.depth() >= spawning.depth) {
        let task = child.task.task.to_uuid();
        let text =
            format!("sessions_spawn is not allowed from sub-agent sessions: complete {task} first");
        return Err(No::forbidden("depth", text));
    }
    let own = children.iter().filter(|child| child.task.created_by == asking.agent);
    let active = own.filter(|child| child.goes_on()).count();
    if active >= spawning.children {
        let text = format!("you have {active} active spawned tasks, which is the limit");
        return Err(No::forbidden("max_children", text));
    }
    Ok(())
}

/// The same for the same name of a task, so that a repeated call finds the room of the first one.
fn seed(asking: &Asking, name: Option<&str>) -> TaskSeed {
    let Some(name) = name else { return TaskSeed(bridge::ids::random()) };
    let parts = [b"clawmesh task".as_slice(), &[0], asking.agent.as_bytes(), &[0], name.as_bytes()];
    digest(&parts.concat())
}

fn digest(bytes: &[u8]) -> TaskSeed {
    let hash = Sha256::digest(bytes);
    let mut seed = [0; 16];
    seed.copy_from_slice(&hash[..16]);
    TaskSeed(seed)
}

/// What counts where an agent is chosen.
struct Others<'o> {
    /// Tasks that the agent has given.
    own: &'o [&'o Child],
    /// These are not chosen.
    without: Vec<AgentId>,
}

/// Of agents that are there and offer it, the one with the fewest tasks of this kind of this agent; of several one at this
/// node, and of several of those any.
async fn offering(
    asking: &Asking,
    capability: &str,
    others: Others<'_>,
    seed: TaskSeed,
) -> Result<Option<AgentId>, No> {
    let here = asking.shared.desk.config().here.node;
    let busy = |agent: &AgentId| {
        let of_kind = |child: &&&Child| {
            child.goes_on()
                && child.task.assignee.as_ref() == Some(agent)
                && child.chosen().is_none_or(|chosen| chosen.capability == capability)
        };
        others.own.iter().filter(of_kind).count()
    };
    let drawn = |agent: &AgentId| {
        let hash = Sha256::digest([&seed.0, agent.as_bytes()].concat());
        hash.to_vec()
    };
    let may = &asking.shared.desk.config().policies.agent_to_agent;
    let offers = |other: &Reachable| {
        let suits =
            |agent: &AgentId| may.allows(&asking.agent, agent) && !others.without.contains(agent);
        let view = other.view.as_ref().filter(|_| suits(&other.agent))?;
        let offers = view.capabilities.iter().any(|own| own == capability);
        offers.then(|| (busy(&other.agent), view.node != here, drawn(&other.agent)))
    };
    // Also of those that it is not shown: one that may hand tasks over has to find somebody who takes them.
    let all = everybody(asking, Some(capability)).await?;
    let best = all.iter().filter_map(|other| Some((offers(other)?, &other.agent))).min();
    Ok(best.map(|(_, agent)| agent.clone()))
}

/// The message of a task that was given before, in a room that a repeated call has found.
async fn given(
    asking: &Asking,
    target: &Target,
) -> Result<Option<((MessageId, Number), String)>, No> {
    let (room, from) = (target.room.room, From::Number(0));
    let call = History { room, from, limit: PAGE_MIN, before_ms: None };
    let page = asking.read(call).await?.messages;
    let first = page.into_iter().find(|message| {
        let begins = message.said.conversation.is_some_and(|place| place.turn == 0);
        begins && message.said.agent == asking.agent
    });
    Ok(first.map(|first| ((first.message, first.number), first.said.content.clone())))
}

/// A task as it is given.
struct Giving<'g> {
    text: &'g str,
    title: String,
    terms: TaskTerms,
}

/// The task, its terms, and then the message: all that is said of it is true when the other agent hears of it.
async fn give(
    asking: &Asking,
    target: &Target,
    Giving { text, title, terms }: Giving<'_>,
) -> Result<(MessageId, Number), No> {
    let (room, worker) = (target.room.room, target.peer.clone());
    let tasks = asking.read(ListTasks { room, status: None }).await?;
    let (task, has_terms) = match tasks.into_iter().next() {
        Some(task) => (task.task, task.marks.terms.is_some()),
        None => {
            let new = NewTask { assignee: worker.clone(), ..NewTask::of(room, title) };
            (asking.act(AssignTask(new)).await?.task, false)
        }
    };
    if !has_terms {
        asking.act(OnGiven { room, act: GivenAct::Terms(terms) }).await?;
    }
    let metadata = json!({"kind": "task", "expects_reply": true, "task_id": task.to_uuid()});
    let say = Say {
        mentions: worker.iter().map(|worker| worker.to_string()).collect(),
        metadata: Some(metadata.to_string()),
        expects_reply: Some(true),
        counted: true,
        by_tool: true,
        ..Say::chat(room, text.to_owned())
    };
    let SaidOk { message, number, .. } = asking.act(say).await?;
    Ok((message, number))
}
