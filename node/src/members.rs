//! Members of the mesh, as operators name and see them.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use mesh::{
    api::status::MemberStatus,
    name::id::{NodeId, parse_hex},
    wire::entry::Parting,
};
use protocol::operator::{Joined, Member, MemberState, Parted, PartedHow};

/// Fewer digits of an id are too easily those of another one.
const PREFIX_MIN: usize = 6;

/// A node's id as it is written.
pub(crate) fn node_id(text: &str) -> Result<NodeId> {
    parse_hex(text).map(NodeId).context("a node's id has 64 hex digits")
}

/// The kind of a removal, as the core has it.
pub(crate) fn core_parting(how: PartedHow) -> Parting {
    match how {
        PartedHow::Expelled => Parting::Expelled,
        PartedHow::Left => Parting::Left,
        PartedHow::Retired => Parting::Retired,
    }
}

/// The removal of a node, as operators see it.
pub(crate) fn removal(removal: mesh::wire::entry::Parted) -> Parted {
    let how = match removal.why {
        Parting::Expelled => PartedHow::Expelled,
        Parting::Left => PartedHow::Left,
        Parting::Retired => PartedHow::Retired,
    };
    Parted { how, by: removal.by.to_string(), at: clawchat::timestamp(removal.wall_ms) }
}

/// A member as operators see it.
pub(crate) fn member(status: MemberStatus) -> Member {
    let removal = status.parted.map(removal);
    let state = match (&removal, status.me, status.connected, status.alive) {
        (Some(removal), ..) => match removal.how {
            PartedHow::Expelled => MemberState::Expelled,
            PartedHow::Left => MemberState::Left,
            PartedHow::Retired => MemberState::Retired,
        },
        (None, true, ..) => MemberState::Here,
        (None, false, true, _) => MemberState::Connected,
        (None, false, false, true) => MemberState::Heard,
        (None, false, false, false) => MemberState::Away,
    };
    Member {
        node_id: status.node.to_string(),
        name: status.name,
        since: clawchat::timestamp(status.since_ms),
        relay: status.relay,
        // It claims no era.
        lane: status.lane.filter(|_| !status.relay),
        state,
        secret: status.about.as_ref().map(|about| about.epoch.number),
        version: status.about.map(|about| about.version),
        joined: status.founder.then_some(Joined::Founded),
        heard_ms_ago: status.heard_ago.and_then(|age| u64::try_from(age.as_millis()).ok()),
        parted: removal,
    }
}

/// For people.
pub(crate) fn table(members: &[Member]) -> String {
    let mut text = String::new();
    let mut row = |cells: [&str; 8]| {
        let [node, name, since, joined, lane, secret, version, state] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{node:<12}  {name:<20}  {since:<20}  {joined:<16}  {lane:>6}  {secret:>6}  {version:<8}  {state}"
        );
    };
    row(["NODE", "NAME", "SINCE", "JOINED", "LANE", "SECRET", "VERSION", "STATE"]);
    for member in members {
        let lane = member.lane.map_or_else(String::new, |lane| lane.to_string());
        let secret = member.secret.map_or_else(String::new, |number| number.to_string());
        let joined = match &member.joined {
            Some(Joined::Founded) => "founder",
            Some(Joined::Invited(id)) => id,
            None => "",
        };
        let (name, state) = (shown(&member.name), state(member, members));
        let version = member.version.as_deref().map_or_else(String::new, shown);
        let node = short(&member.node_id);
        row([node, &name, &member.since, joined, &lane, &secret, &version, &state]);
    }
    text
}

/// A member's name, which other operators choose: one line in any case.
pub(crate) fn shown(name: &str) -> String {
    name.escape_debug().to_string()
}

pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

fn state(member: &Member, members: &[Member]) -> String {
    if let Some(removal) = &member.parted {
        let by = members.iter().find(|other| other.node_id == removal.by);
        let by = by.map_or_else(|| short(&removal.by).to_owned(), |other| shown(&other.name));
        return match removal.how {
            PartedHow::Left => format!("left {}", removal.at),
            PartedHow::Retired => format!("retired by {by} {}", removal.at),
            PartedHow::Expelled => format!("expelled by {by} {}", removal.at),
        };
    }
    let state = place(member);
    if member.relay { format!("{state}, a relay") } else { state }
}

fn place(member: &Member) -> String {
    match (member.state, member.heard_ms_ago) {
        (MemberState::Here, _) => "this node".to_owned(),
        (MemberState::Connected, _) => "connected".to_owned(),
        (MemberState::Heard, _) => "heard through others".to_owned(),
        (_, Some(ms)) => format!("away for {} s", ms / 1_000),
        (_, None) => "away since before this node started".to_owned(),
    }
}

/// The member that is meant: by the first digits of its id, or by its name if no other has it.
pub(crate) fn choose<'m>(members: &'m [Member], named: &str) -> Result<&'m Member> {
    let digits = named.to_ascii_lowercase();
    let is_id = named.len() >= PREFIX_MIN && named.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits =
        |member: &&Member| member.name == named || (is_id && member.node_id.starts_with(&digits));
    let mut found = members.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(member), None) => Ok(member),
        (Some(_), Some(_)) => bail!("several members are called {named:?}: give more of the id"),
        (None, _) => bail!(
            "no member is called {named:?}: give its name, or at least {PREFIX_MIN} digits of its id; \
             `clawmeshd members` shows all"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mesh::{name::identity::Epoch, wire::message::About};

    use super::*;

    fn status(n: u8, name: &str) -> MemberStatus {
        MemberStatus {
            node: NodeId([n; 32]),
            name: name.to_owned(),
            since_ms: 0,
            lane: Some(7),
            me: n == 1,
            connected: false,
            alive: false,
            founder: n == 1,
            relay: n == 2,
            about: Some(About {
                node: NodeId([n; 32]),
                epoch: Epoch { number: 3, print: [0; 16] },
                version: "1.2\n.3".to_owned(),
            }),
            heard_ago: Some(Duration::from_secs(90)),
            through: None,
            step: None,
            parted: None,
        }
    }

    #[test]
    fn a_member_is_named_by_what_no_other_has() {
        let twins = [status(1, "a"), status(2, "twin"), status(3, "twin"), status(0xab, "b\n")];
        let members: Vec<Member> = twins.into_iter().map(member).collect();
        assert_eq!(choose(&members, "a").unwrap().node_id, "01".repeat(32));
        assert_eq!(choose(&members, "ABABAB").unwrap().node_id, "ab".repeat(32));
        for wrong in ["twin", "ababa", "nobody", "", "020203"] {
            assert!(choose(&members, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_table_says_what_became_of_everybody() {
        let mut third = status(3, "third");
        third.parted = Some(mesh::wire::entry::Parted {
            why: Parting::Expelled,
            by: NodeId([1; 32]),
            wall_ms: 0,
        });
        let members = [status(1, "first"), status(2, "se\ncond"), third].map(member);
        let text = table(&members);
        assert_eq!(text.lines().count(), 4, "{text}");
        for part in [
            "this node",
            "away for 90 s, a relay",
            "expelled by first 1970",
            "founder",
            "     3  1.2\\n.3",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(members[2].state, MemberState::Expelled);
    }
}
