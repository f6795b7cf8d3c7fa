//! Nodes in networks as people have them, each in a network namespace of its own: behind all kinds of NAT, behind a firewall,
//! with IPv6 alone, over a link of small packets, on a machine that moves.
//!
//! All share two public nodes and an internet, so the steps run one after the other, and this program runs them itself. Where
//! namespaces cannot be made (no root, no `ip`, no `nft`) they are skipped, by name, and counted. Nothing here fails because it
//! is slow: how long each took is printed.

mod company;
mod internet;
mod nodes;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use company::Company;
use internet::{Internet, Kind};
use nodes::{Node, direct_or_through};

/// Nobody is judged by it: machines that run tests are busy.
const WITHIN: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The public nodes, which carry.
const PUBLIC: [&str; 2] = ["hub", "hut"];

/// A relay, public too, that takes links at port 443 as the web does. It is the third of them.
const GATE: &str = "gate";
const GATE_AT: &str = "wss://203.0.3.2:443";

type Step = (&'static str, fn(&mut World) -> Result<()>);

const STEPS: &[Step] = &[
    ("all_pairs_are_linked_through_one_relay_at_most", all_linked),
    ("who_gets_out_at_443_alone_reaches_all_through_a_relay_there", only_443),
    ("what_each_says_is_at_all_in_one_order", all_agree),
    ("promises_hold_across_each_pair_in_private_directly_and_in_a_vote", promises_hold),
    ("a_node_that_moves_is_back_as_the_same", moves),
    ("when_a_relay_is_killed_the_other_carries", relay_killed),
    ("what_each_says_without_it_is_at_all_in_one_order", all_agree),
    ("who_has_one_relay_alone_catches_up_when_that_comes_back", only_relay_killed),
];

struct World {
    internet: Internet,
    nodes: Vec<Node>,
    said: usize,
    company: Option<Company>,
}

fn main() -> ExitCode {
    let mut out = io::stdout();
    let args: Vec<String> = env::args().skip(1).collect();
    let done = if args.iter().any(|arg| arg == "--list") {
        let listed: String = STEPS.iter().map(|(name, _)| format!("{name}: test\n")).collect();
        write!(out, "{listed}").map_err(Into::into)
    } else if args.iter().any(|arg| !arg.starts_with('-')) {
        // A filter is for other tests: these steps are one story.
        Ok(())
    } else if let Err(why) = internet::possible() {
        skipped(&mut out, &why)
    } else {
        run(&mut out)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If nobody can read that either, the code says it.
            drop(writeln!(io::stderr(), "{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn skipped(out: &mut impl io::Write, why: &str) -> Result<()> {
    for (name, _) in STEPS {
        writeln!(out, "test {name} ... skipped")?;
    }
    writeln!(out, "skipped: {} tests, for {why}", STEPS.len())?;
    Ok(())
}

fn run(out: &mut impl io::Write) -> Result<()> {
    let began = Instant::now();
    writeln!(out, "\nrunning {} tests in network namespaces", STEPS.len())?;
    let mut world = World::up()?;
    writeln!(out, "{} nodes are up after {:.1?}", world.nodes.len(), began.elapsed())?;
    for (name, step) in STEPS {
        let at = Instant::now();
        let ended = step(&mut world);
        let word = if ended.is_ok() { "ok" } else { "FAILED" };
        writeln!(out, "test {name} ... {word} ({:.1?})", at.elapsed())?;
        // The next step begins where this one has ended.
        ended.with_context(|| name.to_string())?;
    }
    writeln!(out, "\n{} passed, in {:.1?}\n", STEPS.len(), began.elapsed())?;
    Ok(())
}

impl World {
    /// The public nodes first: the others have a ticket of each.
    fn up() -> Result<World> {
        let internet = Internet::lay()?;
        let mut nodes = Vec::new();
        for name in PUBLIC {
            let tickets: Vec<String> = nodes.iter().map(Node::ticket).collect();
            nodes.push(Node::start(internet.place(name)?, name, &tickets)?.ready()?);
        }
        let inviter = nodes[0].ticket();
        nodes.push(Node::start_relay(internet.place(GATE)?, GATE, &inviter, GATE_AT)?.ready()?);
        let tickets: Vec<String> = nodes.iter().map(Node::ticket).collect();
        // Several tickets of one mesh: a node that comes in by IPv6 needs one of each kind of address in them.
        let started: Result<Vec<Node>> = Kind::ALL
            .iter()
            .map(|kind| Node::start(internet.place(kind.name())?, kind.name(), &tickets))
            .collect();
        for node in started? {
            nodes.push(node.ready()?);
        }
        Ok(World { internet, nodes, said: 0, company: None })
    }

    fn until(&self, what: &str, mut is: impl FnMut() -> Result<Result<(), String>>) -> Result<()> {
        let end = Instant::now() + WITHIN;
        loop {
            match is()? {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < end => std::thread::sleep(LOOK_EVERY),
                Err(missing) => bail!("{what}: {missing}"),
            }
        }
    }

    /// Every node that runs has a link with every other one: directly, or through one that runs, too, whichever that is.
    fn linked(&self) -> Result<Result<(), String>> {
        let up: Vec<&Node> = self.nodes.iter().filter(|node| node.is_up()).collect();
        for node in &up {
            let status = node.status()?;
            for other in up.iter().filter(|other| other.name != node.name) {
                let Some(through) = direct_or_through(&status, &other.name) else {
                    return Ok(Err(format!("{} has no link with {}", node.name, other.name)));
                };
                if through.as_ref().is_some_and(|relay| !up.iter().any(|node| node.name == *relay))
                {
                    let (from, to) = (&node.name, &other.name);
                    return Ok(Err(format!("{from} is linked with {to} through {through:?}")));
                }
            }
        }
        Ok(Ok(()))
    }

    fn node(&mut self, name: &str) -> Result<&mut Node> {
        let found = self.nodes.iter_mut().find(|node| node.name == name);
        found.ok_or_else(|| anyhow!("there is no node {name}"))
    }
}

fn all_linked(world: &mut World) -> Result<()> {
    world.until("all pairs are linked", || world.linked())?;
    let carried = world.nodes.iter().map(Node::carried).sum::<Result<usize>>()?;
    // What cannot be dialled from outside: if nothing is carried, the walls have holes.
    if carried == 0 {
        bail!("no link is carried: the networks keep nobody apart");
    }
    Ok(())
}

/// The one that gets out at port 443 alone is linked with the relay there directly, and with all others through it.
fn only_443(world: &mut World) -> Result<()> {
    let inside = Kind::Only443.name();
    world.until("it goes through the relay at 443", || {
        let node = world.nodes.iter().find(|node| node.name == inside);
        let status = node.context("it is one of them")?.status()?;
        for other in world.nodes.iter().filter(|other| other.name != inside) {
            let through = direct_or_through(&status, &other.name);
            let expected = (other.name != GATE).then(|| GATE.to_owned());
            if through != Some(expected) {
                return Ok(Err(format!("{} is reached through {through:?}", other.name)));
            }
        }
        Ok(Ok(()))
    })?;
    let gate = world.nodes.iter().find(|node| node.name == GATE).context("it is one of them")?;
    if !gate.status()?.relay || !gate.status()?.rooms.is_empty() {
        bail!("the relay keeps rooms");
    }
    Ok(())
}

fn all_agree(world: &mut World) -> Result<()> {
    world.said += 1;
    let up: Vec<&Node> = world.nodes.iter().filter(|node| node.is_up() && node.talks()).collect();
    let mut texts: Vec<String> =
        up.iter().map(|node| format!("word {} of {}", world.said, node.name)).collect();
    for (node, text) in up.iter().zip(&texts) {
        node.say(text)?;
    }
    texts.sort();
    world.until("all have everything", || {
        let first = up[0].heard(&texts)?;
        for node in &up {
            let heard = node.heard(&texts)?;
            if heard != first || heard.len() != texts.len() {
                return Ok(Err(format!("{} has {heard:?}, {} {first:?}", node.name, up[0].name)));
            }
        }
        Ok(Ok(()))
    })
}

/// A private room, direct rooms of each two, a vote with all ballots: all that is answered comes to each, and is told once.
fn promises_hold(world: &mut World) -> Result<()> {
    let mut company = Company::gather(world)?;
    company.talk(world)?;
    company.has_heard(world)?;
    company.vote(world)?;
    world.company = Some(company);
    Ok(())
}

fn moves(world: &mut World) -> Result<()> {
    let moving = Kind::Moving.name();
    let id = world.node(moving)?.id.clone();
    world.internet.move_away()?;
    let began = Instant::now();
    let text = "said after the move";
    world.node(moving)?.say(text)?;
    let wanted = [text.to_owned()];
    world.until("it is heard from its new network", || {
        let missing = |node: &&Node| node.heard(&wanted).is_ok_and(|heard| heard.is_empty());
        Ok(world
            .nodes
            .iter()
            .filter(|node| node.talks())
            .find(missing)
            .map_or(Ok(()), |node| Err(node.name.clone())))
    })?;
    writeln!(io::stdout(), "  heard everywhere {:.1?} after it moved", began.elapsed())?;
    world.until("all pairs are linked", || world.linked())?;
    for node in world.nodes.iter().filter(|node| node.name != moving) {
        let peers = node.status()?.peers;
        let same = peers.iter().filter(|peer| peer.name.as_deref() == Some(moving));
        let ids: Vec<Option<&str>> = same.map(|peer| peer.node_id.as_deref()).collect();
        if ids != [Some(id.as_str())] {
            bail!("{} takes it for {ids:?}", node.name);
        }
    }
    Ok(())
}

/// What is said while nobody has found another way yet comes to all, too.
fn relay_killed(world: &mut World) -> Result<()> {
    world.node(PUBLIC[0])?.kill()?;
    let mut company = world.company.take().context("they have come together")?;
    company.talk(world)?;
    world.until("all pairs are linked without it", || world.linked())?;
    company.has_heard(world)?;
    company.vote(world)?;
    world.company = Some(company);
    Ok(())
}

/// The relay at port 443 is killed, and comes back: the one that has no other way is alone meanwhile, and neither it nor the
/// others lack anything after that.
fn only_relay_killed(world: &mut World) -> Result<()> {
    world.node(GATE)?.kill()?;
    let inside = Kind::Only443.name();
    world.until("it is alone", || {
        let status = world.nodes.iter().find(|node| node.name == inside).map(Node::status);
        let peers = status.context("it is one of them")??.peers;
        let linked = peers.iter().filter(|peer| peer.connected).count();
        Ok(if linked == 0 { Ok(()) } else { Err(format!("it has {linked} links")) })
    })?;
    let mut company = world.company.take().context("they have come together")?;
    // Not directly: a chain of agents that answer each other is short.
    company.talk_in_private(world)?;
    let space = world.internet.place(GATE)?;
    world.node(GATE)?.restart_relay(space, GATE_AT)?;
    world.until("all pairs are linked", || world.linked())?;
    company.has_heard(world)?;
    all_agree(world)
}
