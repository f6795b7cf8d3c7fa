//! A mesh from its start: it finds itself, is idle, talks.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use mesh::{
    api::command::{Attach, CallId, Caller, Command, Encryption, Say, Speech},
    name::id::{AgentId, KeyPrint},
};

use super::{
    report::{Known, Lost, Size, Talk},
    setting::Setting,
    slot::{Slot, slots, time_of},
    tally::Tally,
    world::{Answer, STARTED_WITHIN, World},
};
use crate::{distribution::Distribution, proc::resident};

/// The one key of all agents.
const KEY: KeyPrint = KeyPrint([1; 16]);
/// Members of the lobby that talk, each at a node of its own.
const SPEAKERS: usize = 10;
/// Messages a second, of all of them together.
const PER_SECOND: u32 = 20;
/// Bytes of a message.
const CONTENT_BYTES: usize = 200;
/// How often nodes are asked whether they know all.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// From a question to all answers.
const ANSWERED: Duration = Duration::from_millis(5);
/// How long members may take to be seen, and the last messages to be delivered.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take until a node that is gone is missed.
const LOST_WITHIN: Duration = Duration::from_secs(10);
/// Messages under way come before the messages of an idle mesh are counted, and nodes find out that nothing happens.
const CALM: Duration = Duration::from_secs(5);

/// Plays a mesh and counts.
///
/// # Errors
///
/// Something that cannot be played: too few nodes, or memory of this process cannot be read.
pub fn measure(setting: &Setting, tell: &mut dyn FnMut(&str)) -> Result<Size> {
    ensure!(setting.nodes >= 2, "a mesh of {} nodes has nobody to talk to", setting.nodes);
    let (began, before) = (Instant::now(), resident(std::process::id())?);
    let nodes = setting.nodes;
    let mut world = World::new(setting);
    tell(&format!("{nodes} nodes: they start"));
    let members = Command::Members;
    let known = until_known(&mut world, setting.settles, nodes, &members);
    let settling = std::mem::take(&mut world.tally);
    let memory = resident(std::process::id())?.saturating_sub(before);

    tell(&format!("{nodes} nodes: agents join"));
    let speakers = join(&mut world, nodes)?;
    let lobby = world.lobby;
    let seats = Command::ListAgents { by: KEY.into(), room: Some(lobby) };
    let seated = until_known(&mut world, SEEN_WITHIN, speakers.len(), &seats);

    tell(&format!("{nodes} nodes: nobody says anything"));
    world.go_on(CALM);
    let idle = count(&mut world, |world| world.go_on(setting.lasts));
    let links = world.links.iter().flatten();
    let busiest_link = links.clone().map(|link| link.fresh).max().unwrap_or(0);
    let link_ends = links.count();

    tell(&format!("{nodes} nodes: there is talk"));
    let mut said = Vec::new();
    let talk = count(&mut world, |world| said = talk(world, &speakers, setting.lasts));
    let talk = talked(&world, &said, talk);
    tell(&format!("{nodes} nodes: a node with an agent loses power, and then the sequencer"));
    // Replacing the sequencer is no alarm of the mesh before.
    let alarms = world.alarms;
    let lost = lose(&mut world, speakers);
    Ok(Size {
        nodes,
        links: link_ends as f64 / nodes as f64,
        known,
        settling,
        seated,
        idle,
        busiest_link,
        seconds: setting.lasts.as_secs_f64(),
        talk,
        lost,
        alarms,
        memory: memory as f64 / nodes as f64,
        took: began.elapsed(),
    })
}

/// The counts of a time.
fn count(world: &mut World, meanwhile: impl FnOnce(&mut World)) -> Tally {
    world.tally = Tally::default();
    world.links.iter_mut().flatten().for_each(|link| link.fresh = 0);
    meanwhile(world);
    std::mem::take(&mut world.tally)
}

/// Asks everybody until all of them count as many.
fn until_known(world: &mut World, within: Duration, each: usize, question: &Command) -> Known {
    let (began, nodes) = (world.now, world.nodes.len());
    world.run_until(world.now.max(slots(STARTED_WITHIN)));
    loop {
        let calls: Vec<CallId> = (0..nodes).map(|node| world.ask(node, question.clone())).collect();
        let asked = world.now;
        world.go_on(ANSWERED);
        let known: usize = calls.iter().map(|call| counted(world, *call).min(each)).sum();
        let share = known as f64 / (nodes * each) as f64;
        let after = (known == nodes * each).then(|| time_of(asked - began));
        if after.is_some() || time_of(world.now - began) >= within {
            return Known { after, share, within };
        }
        world.go_on(LOOK_EVERY.saturating_sub(ANSWERED));
    }
}

fn counted(world: &mut World, call: CallId) -> usize {
    match world.answers.remove(&call) {
        Some((_, Answer::Members(count) | Answer::Agents(count))) => count,
        Some((_, Answer::Attached(_) | Answer::Said(_) | Answer::Other | Answer::Refused(_)))
        | None => 0,
    }
}

/// Agents at nodes that do not give the lobby's numbers, all over the mesh.
fn join(world: &mut World, nodes: usize) -> Result<Vec<(usize, Caller)>> {
    let many = SPEAKERS.min(nodes - 1);
    let mut speakers = Vec::new();
    for nth in 0..many {
        let (node, agent) = (1 + nth * (nodes - 1) / many, AgentId::from(format!("agent{nth}")));
        let attach = Attach {
            agent: agent.clone(),
            stable: false,
            reconnect: false,
            key: KEY,
            own: true,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: format!("name{nth}"),
            capabilities: Vec::new(),
        };
        let call = world.ask(node, Command::Attach(attach));
        world.go_on(ANSWERED);
        let registration = match world.answers.remove(&call) {
            Some((_, Answer::Attached(registration))) => registration,
            Some((_, Answer::Refused(why))) => bail!("an agent cannot attach: {why}"),
            other => bail!("an agent that wants to attach is answered {other:?}"),
        };
        let caller = Caller { agent, key: KEY, registration };
        world.ask(node, Command::Join { caller: caller.clone(), room: world.lobby });
        speakers.push((node, caller));
    }
    Ok(speakers)
}

/// A message of a speaker.
struct Said {
    node: usize,
    call: CallId,
    at: Slot,
}

fn talk(world: &mut World, speakers: &[(usize, Caller)], lasts: Duration) -> Vec<Said> {
    let (began, every) = (world.now, slots(Duration::from_secs(1) / PER_SECOND));
    let many = slots(lasts) / every;
    let mut said = Vec::new();
    for nth in 0..many {
        let jitter = world.dice.within(0, every - 1);
        world.run_until(began + nth * every + jitter);
        let speaker = world.dice.pick(speakers).clone();
        said.push(say_one(world, &speaker, nth));
    }
    world.run_until(began + many * every);
    let late = world.now + slots(SEEN_WITHIN);
    let all = said.len() * world.nodes.len();
    while world.delivered.values().map(Vec::len).sum::<usize>() < all && world.now < late {
        world.go_on(LOOK_EVERY);
    }
    said
}

fn say_one(world: &mut World, speaker: &(usize, Caller), nth: Slot) -> Said {
    let (node, caller) = speaker.clone();
    let say = Say {
        room: world.lobby,
        speech: Speech::Chat,
        content: format!("{nth:>CONTENT_BYTES$}"),
        encryption: Encryption::None,
        durable: None,
        conversing: None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    };
    let call = world.ask(node, Command::Say { caller, say });
    Said { node, call, at: world.now }
}

/// A node with an agent loses power, and then the sequencer of the lobby: how long it takes until all others have seen the agent
/// leave, and until another node's message has a number, and a message that is said at once after that.
fn lose(world: &mut World, mut speakers: Vec<(usize, Caller)>) -> Lost {
    let mut lost = Lost::default();
    if speakers.len() < 2 {
        return lost;
    }
    let Some((node, _)) = speakers.pop() else { return lost };
    let others = (world.nodes.len() - 1) as u64;
    world.nodes[node].die();
    let died = world.now;
    let left = count(world, |world| world.go_on(LOST_WITHIN)).left;
    lost.seen = (left, others);
    lost.gone = time_of(world.last_left.saturating_sub(died));
    // The founder gives the lobby's numbers.
    world.nodes[0].die();
    let died = world.now;
    let said = say_one(world, &speakers[0], 1_000_000);
    world.go_on(LOST_WITHIN);
    if let Some((answered, Answer::Said(_))) = world.answers.get(&said.call) {
        lost.numbered = Some(time_of(answered - died));
    }
    lost
}

/// How the messages fared, at their speakers and at the others.
fn talked(world: &World, said: &[Said], tally: Tally) -> Talk {
    let mut talk = Talk { said: said.len(), tally, ..Talk::default() };
    let (mut acknowledged, mut heard) = (Vec::new(), Vec::new());
    for said in said {
        let Some((answered, Answer::Said(message))) = world.answers.get(&said.call) else {
            continue;
        };
        acknowledged.push(time_of(answered - said.at));
        let delivered = world.delivered.get(message).map_or(&[][..], Vec::as_slice);
        let mut at: Vec<usize> = delivered.iter().map(|(node, _)| *node).collect();
        at.sort_unstable();
        talk.everywhere_once += usize::from(at.into_iter().eq(0..world.nodes.len()));
        let others = delivered.iter().filter(|(node, _)| *node != said.node);
        heard.extend(others.map(|(_, at)| time_of(at - said.at)));
    }
    talk.acknowledged = acknowledged.into_iter().collect::<Distribution>();
    talk.delivered = heard.into_iter().collect();
    talk
}
