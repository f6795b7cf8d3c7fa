//! The links between nodes, and those along which gossip is passed on.

use net::limits::FULL_MESH_PEERS;

use super::slot::Slot;
use crate::sim::dice::Dice;

/// `mesh_n` and `mesh_n_high` of gossipsub, and `mesh_n_low` (`node/net/src/behaviour.rs`).
const GOSSIP_DEGREE: usize = 3;
const GOSSIP_DEGREE_MIN: usize = 2;
/// How long a link takes, in slots: 0.5 to 1.5 ms.
const LINK_SLOTS: (Slot, Slot) = (5, 15);
/// Draws for a free partner before a node is content with fewer links.
const TRIES: usize = 400;

/// One end of a link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) to: usize,
    /// Which link of `to` this one is.
    pub(super) back: usize,
    /// How long a message takes.
    pub(super) slots: Slot,
    pub(super) up: bool,
    /// New gossip that came by it.
    pub(super) fresh: u64,
}

/// All links, by node.
pub(super) type Links = Vec<Vec<Link>>;

/// Links of so many nodes: all with all, or each with [`FULL_MESH_PEERS`] others as chance has it, in one
/// piece.
pub(super) fn links(nodes: usize, dice: &mut Dice) -> Links {
    let mut pairs = vec![Vec::new(); nodes];
    if nodes <= FULL_MESH_PEERS + 1 {
        for (a, of) in pairs.iter_mut().enumerate() {
            of.extend((0..nodes).filter(|b| *b != a));
        }
    } else {
        // A ring through all of them keeps it in one piece.
        let order = shuffled(nodes, dice);
        for (nth, node) in order.iter().enumerate() {
            join(&mut pairs, *node, order[(nth + 1) % nodes]);
        }
        for node in shuffled(nodes, dice) {
            for _ in 0..TRIES {
                if pairs[node].len() >= FULL_MESH_PEERS {
                    break;
                }
                let other = dice.index(nodes);
                let free = pairs[other].len() < FULL_MESH_PEERS && !pairs[node].contains(&other);
                if other != node && free {
                    join(&mut pairs, node, other);
                }
            }
        }
        pairs.iter_mut().for_each(|of| of.sort_unstable());
    }
    ends(&pairs, dice)
}

fn join(pairs: &mut [Vec<usize>], a: usize, b: usize) {
    pairs[a].push(b);
    pairs[b].push(a);
}

fn ends(pairs: &[Vec<usize>], dice: &mut Dice) -> Links {
    let mut links: Links = Vec::with_capacity(pairs.len());
    for (a, of) in pairs.iter().enumerate() {
        let end = |b: &usize| {
            let back = pairs[*b].iter().position(|node| *node == a).expect("links have two ends");
            // Both ends take as long: the lower node's end draws.
            let slots = match links.get(*b) {
                Some(other) => other[back].slots,
                None => dice.within(LINK_SLOTS.0, LINK_SLOTS.1),
            };
            Link { to: *b, back, slots, up: false, fresh: 0 }
        };
        let of = of.iter().map(end).collect();
        links.push(of);
    }
    links
}

/// Along which links gossip of one topic is passed on, by node: some three of each, in one piece.
pub(super) fn gossip_mesh(links: &Links, dice: &mut Dice) -> Vec<Vec<usize>> {
    let mut mesh: Vec<Vec<usize>> = vec![Vec::new(); links.len()];
    for node in shuffled(links.len(), dice) {
        for nth in shuffled(links[node].len(), dice) {
            if mesh[node].len() >= GOSSIP_DEGREE {
                break;
            }
            if mesh[links[node][nth].to].len() < GOSSIP_DEGREE {
                graft(&mut mesh, links, node, nth);
            }
        }
        // Nobody near has a place left: it is taken in all the same.
        for nth in shuffled(links[node].len(), dice) {
            if mesh[node].len() >= GOSSIP_DEGREE_MIN.min(links[node].len()) {
                break;
            }
            graft(&mut mesh, links, node, nth);
        }
    }
    while let Some((node, nth)) = bridge(&mesh, links) {
        graft(&mut mesh, links, node, nth);
    }
    mesh
}

fn graft(mesh: &mut [Vec<usize>], links: &Links, node: usize, nth: usize) {
    let link = &links[node][nth];
    if !mesh[node].contains(&nth) {
        mesh[node].push(nth);
        mesh[link.to].push(link.back);
    }
}

/// A link between nodes that can be reached from the first node and others.
fn bridge(mesh: &[Vec<usize>], links: &Links) -> Option<(usize, usize)> {
    let mut reached = vec![false; mesh.len()];
    *reached.first_mut()? = true;
    let mut next = vec![0];
    while let Some(node) = next.pop() {
        for nth in &mesh[node] {
            let to = links[node][*nth].to;
            if !std::mem::replace(&mut reached[to], true) {
                next.push(to);
            }
        }
    }
    let nodes = (0..mesh.len()).filter(|node| reached[*node]);
    let mut ways = nodes.flat_map(|node| (0..links[node].len()).map(move |nth| (node, nth)));
    ways.find(|(node, nth)| !reached[links[*node][*nth].to])
}

fn shuffled(len: usize, dice: &mut Dice) -> Vec<usize> {
    let mut all: Vec<usize> = (0..len).collect();
    for i in (1..len).rev() {
        all.swap(i, dice.index(i + 1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_meshes_have_links_to_some_and_small_ones_to_all() {
        assert_eq!(
            FULL_MESH_PEERS + 1,
            mesh::limits::LINKED_MAX,
            "up to here no hearsay is needed"
        );
        for (nodes, seed) in [(2, 1), (12, 2), (51, 3), (52, 4), (300, 5)] {
            let mut dice = Dice::new(seed);
            let links = links(nodes, &mut dice);
            for (node, of) in links.iter().enumerate() {
                let most = FULL_MESH_PEERS.min(nodes - 1);
                assert!(of.len() <= most && of.len() * 5 >= most * 4, "{} of {nodes}", of.len());
                for (nth, link) in of.iter().enumerate() {
                    let other = &links[link.to][link.back];
                    assert_eq!((other.to, other.back, other.slots), (node, nth, link.slots));
                }
            }
            let mesh = gossip_mesh(&links, &mut dice);
            assert_eq!(bridge(&mesh, &links), None, "it is in one piece");
            let three = mesh.iter().filter(|links| links.len() == GOSSIP_DEGREE).count();
            assert!(nodes < 4 || three * 10 >= nodes * 8, "{three} of {nodes}");
        }
    }
}
