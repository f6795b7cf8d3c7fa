//! Followers of the private rooms of each group: nodes show it with a token in their rosters, and when
//! they speak of these rooms. Only of groups that this node follows itself: the tokens of others mean
//! nothing to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    limits::{KEYS_FOLLOWED_MAX, NODES_MAX, PAIRS_FOLLOWED_MAX, SHARED_FOLLOWED_MAX},
    name::{
        group::Group,
        id::{KeyPrint, MeshId, NodeId, RoomId, RoomKey},
    },
    records::space::Brief,
    wire::seal::{self, Seal, Token},
};

/// A group whose rooms are followed here.
#[derive(Clone, Debug)]
struct Known {
    opener: RoomKey,
    /// This node's token of it.
    token: Token,
    /// Where its rooms are listed.
    directory: RoomId,
    /// The nodes that follow them, this one included.
    nodes: BTreeSet<NodeId>,
    /// The digest of this node's records of them, as others are told.
    records: Brief,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Followers {
    mesh: MeshId,
    me: NodeId,
    groups: BTreeMap<Group, Known>,
    /// How many of them are pairs, and shared rooms.
    pairs: usize,
    shared: usize,
    /// Tokens that each node's roster shows; at most [`NODES_MAX`] nodes, [`crate::limits::GROUPS_FOLLOWED_MAX`] of
    /// each.
    shown: BTreeMap<NodeId, BTreeSet<Token>>,
    /// Tokens that connected peers are expected to show, of each group: so that they are computed
    /// once.
    expected: BTreeMap<NodeId, BTreeMap<Token, Group>>,
}

impl Followers {
    pub(crate) fn new(mesh: MeshId, me: NodeId) -> Followers {
        let (groups, shown, expected) = Default::default();
        Followers { mesh, me, groups, pairs: 0, shared: 0, shown, expected }
    }

    /// This node follows a group's rooms from now on. Returns what it shows of it; `None` if it follows
    /// them already, or too many.
    pub(crate) fn follow(&mut self, group: Group, opener: &RoomKey) -> Option<Token> {
        if self.groups.contains_key(&group) || !self.has_room_for(group) {
            return None;
        }
        let shows = |(node, tokens): (&NodeId, &BTreeSet<Token>)| {
            tokens.contains(&Token::of(self.mesh, opener, *node)).then_some(*node)
        };
        let nodes = self.shown.iter().filter_map(shows).chain([self.me]).collect();
        for (node, tokens) in &mut self.expected {
            tokens.insert(Token::of(self.mesh, opener, *node), group);
        }
        let token = Token::of(self.mesh, opener, self.me);
        let (directory, records) = (seal::directory(self.mesh, opener), Brief::default());
        self.pairs += usize::from(matches!(group, Group::Pair(_)));
        self.shared += usize::from(matches!(group, Group::Shared(_)));
        let opener = opener.clone();
        self.groups.insert(group, Known { opener, token, directory, nodes, records });
        Some(token)
    }

    /// Whether one more group of its kind can be followed.
    pub(crate) fn has_room_for(&self, group: Group) -> bool {
        match group {
            Group::Key(_) => self.groups.len() - self.pairs - self.shared < KEYS_FOLLOWED_MAX,
            Group::Pair(_) => self.pairs < PAIRS_FOLLOWED_MAX,
            Group::Shared(_) => self.shared < SHARED_FOLLOWED_MAX,
        }
    }

    /// All that are followed here.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.groups.keys().copied().collect()
    }

    /// The secret that opens the rooms of a group that is followed here.
    pub(crate) fn opener(&self, group: Group) -> Option<&RoomKey> {
        self.groups.get(&group).map(|known| &known.opener)
    }

    /// The digest of this node's records of a group's rooms.
    pub(crate) fn records(&self, group: Group) -> Brief {
        self.groups.get(&group).map_or(Brief::default(), |known| known.records)
    }

    pub(crate) fn set_records(&mut self, group: Group, digest: Brief) {
        if let Some(known) = self.groups.get_mut(&group) {
            known.records = digest;
        }
    }

    /// The group that a connected peer's token is of, if this node follows it, too.
    pub(crate) fn shown_by(&self, peer: NodeId, token: Token) -> Option<Group> {
        self.expected.get(&peer)?.get(&token).copied()
    }

    /// This node's token of a group.
    pub(crate) fn token(&self, group: Group) -> Option<Token> {
        self.groups.get(&group).map(|known| known.token)
    }

    /// The room that lists the private rooms of a group that is followed here.
    pub(crate) fn directory(&self, group: Group) -> Option<RoomId> {
        self.groups.get(&group).map(|known| known.directory)
    }

    /// The directories of all groups that a key is in.
    pub(crate) fn directories_of(&self, key: KeyPrint) -> impl Iterator<Item = RoomId> {
        let groups = self.groups.iter().filter(move |(group, _)| group.has(key));
        groups.map(|(_, known)| known.directory)
    }

    /// Nodes that follow a group's rooms; none if this node does not.
    pub(crate) fn of(&self, group: Group) -> &BTreeSet<NodeId> {
        const NOBODY: &BTreeSet<NodeId> = &BTreeSet::new();
        self.groups.get(&group).map_or(NOBODY, |known| &known.nodes)
    }

    /// Those that have a room with this seal. `None`: everybody does.
    pub(crate) fn have(&self, seal: Option<&Seal>) -> Option<&BTreeSet<NodeId>> {
        seal.map(|seal| self.of(seal.group))
    }

    /// Groups that this node and another one follow.
    pub(crate) fn shared_with(&self, node: NodeId) -> Vec<Group> {
        let shared = self.groups.iter().filter(|(_, known)| known.nodes.contains(&node));
        shared.map(|(group, _)| *group).collect()
    }

    /// Whether what a node's roster shows is known: then it follows what it shows and nothing else.
    pub(crate) fn is_rostered(&self, node: NodeId) -> bool {
        self.shown.contains_key(&node)
    }

    /// A node's roster shows these. Returns the groups whose followers that changes.
    pub(crate) fn show(&mut self, node: NodeId, tokens: &BTreeSet<Token>) -> Vec<Group> {
        if !self.shown.contains_key(&node) && self.shown.len() >= NODES_MAX {
            return Vec::new();
        }
        if self.shown.insert(node, tokens.clone()).as_ref() == Some(tokens) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (group, known) in &mut self.groups {
            let follows = tokens.contains(&Token::of(self.mesh, &known.opener, node));
            let did = if follows { !known.nodes.insert(node) } else { known.nodes.remove(&node) };
            if did != follows {
                changed.push(*group);
            }
        }
        changed
    }

    /// It has no part any more. Returns the groups whose followers that changes.
    pub(crate) fn forget(&mut self, node: NodeId) -> Vec<Group> {
        self.shown.remove(&node);
        self.expected.remove(&node);
        let followed = self.groups.iter_mut().filter_map(|(group, known)| {
            let did = node != self.me && known.nodes.remove(&node);
            did.then_some(*group)
        });
        followed.collect()
    }

    /// A connected peer shows a token itself. Returns the group it is of, and whether that is news.
    pub(crate) fn prove(&mut self, node: NodeId, token: Token) -> Option<(Group, bool)> {
        let group = *self.expected.get(&node)?.get(&token)?;
        let news = self.groups.get_mut(&group)?.nodes.insert(node);
        Some((group, news))
    }

    pub(crate) fn peer_up(&mut self, peer: NodeId) {
        let token =
            |(group, known): (&Group, &Known)| (Token::of(self.mesh, &known.opener, peer), *group);
        let tokens = self.groups.iter().map(token).collect();
        self.expected.insert(peer, tokens);
    }

    pub(crate) fn peer_down(&mut self, peer: NodeId) {
        self.expected.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESH: MeshId = MeshId([1; 16]);
    const ME: NodeId = NodeId([2; 32]);
    const OTHER: NodeId = NodeId([3; 32]);
    const KEY: Group = Group::Key(KeyPrint([4; 16]));

    fn token(node: NodeId) -> Token {
        Token::of(MESH, &RoomKey::of("one"), node)
    }

    #[test]
    fn a_roster_shows_who_follows_whichever_came_first() {
        let opener = RoomKey::of("one");
        let shows = BTreeSet::from([token(OTHER)]);
        let mut first = Followers::new(MESH, ME);
        assert_eq!(first.show(OTHER, &shows), []);
        assert_eq!(first.follow(KEY, &opener), Some(token(ME)));
        assert_eq!(first.of(KEY), &BTreeSet::from([ME, OTHER]));
        let mut later = Followers::new(MESH, ME);
        later.follow(KEY, &opener);
        assert_eq!(later.of(KEY), &BTreeSet::from([ME]));
        assert_eq!(later.show(OTHER, &shows), [KEY]);
        assert_eq!(later.show(OTHER, &shows), []);
        assert_eq!(later.of(KEY), &BTreeSet::from([ME, OTHER]));
        assert_eq!(later.show(OTHER, &BTreeSet::new()), [KEY]);
        assert_eq!(later.of(KEY), &BTreeSet::from([ME]));
    }

    #[test]
    fn nobody_shows_what_another_node_shows() {
        let mut followers = Followers::new(MESH, ME);
        followers.follow(KEY, &RoomKey::of("one"));
        followers.peer_up(OTHER);
        for stolen in [token(ME), Token([0; 16])] {
            assert_eq!(followers.show(OTHER, &BTreeSet::from([stolen])), []);
            assert_eq!(followers.prove(OTHER, stolen), None);
        }
        assert_eq!(followers.of(KEY), &BTreeSet::from([ME]));
        assert_eq!(followers.prove(OTHER, token(OTHER)), Some((KEY, true)));
        assert_eq!(followers.prove(OTHER, token(OTHER)), Some((KEY, false)));
    }

    #[test]
    fn a_key_that_is_presented_while_peers_are_there_is_known_of_them_too() {
        let mut followers = Followers::new(MESH, ME);
        followers.peer_up(OTHER);
        followers.follow(KEY, &RoomKey::of("one"));
        assert_eq!(followers.prove(OTHER, token(OTHER)), Some((KEY, true)));
    }

    #[test]
    fn what_is_known_of_who_follows_goes_with_those_who_show_it() {
        let mut followers = Followers::new(MESH, ME);
        followers.follow(KEY, &RoomKey::of("one"));
        assert_eq!(followers.token(KEY), Some(token(ME)));
        assert_eq!(followers.token(Group::Key(KeyPrint([5; 16]))), None);
        assert!(!followers.is_rostered(OTHER) && followers.shared_with(OTHER).is_empty());
        followers.show(OTHER, &BTreeSet::from([token(OTHER)]));
        assert!(followers.is_rostered(OTHER));
        assert_eq!(followers.shared_with(OTHER), [KEY]);
        // It is not connected any more: it shows nothing itself.
        followers.peer_up(OTHER);
        followers.peer_down(OTHER);
        assert_eq!(followers.prove(OTHER, token(OTHER)), None);
        // It has no part any more; this node itself goes on.
        assert_eq!((followers.forget(OTHER), followers.forget(ME)), (vec![KEY], vec![]));
        assert!(!followers.is_rostered(OTHER));
        assert_eq!(followers.of(KEY), &BTreeSet::from([ME]));
    }

    #[test]
    fn so_many_nodes_show_what_they_follow_and_those_may_show_something_else() {
        let mut followers = Followers::new(MESH, ME);
        followers.follow(KEY, &RoomKey::of("one"));
        let node = |nth: usize| {
            let mut id = [9; 32];
            id[..8].copy_from_slice(&(nth as u64).to_be_bytes());
            NodeId(id)
        };
        for nth in 0..=NODES_MAX {
            followers.show(node(nth), &BTreeSet::new());
        }
        assert!(followers.is_rostered(node(NODES_MAX - 1)));
        assert!(!followers.is_rostered(node(NODES_MAX)), "one too many");
        assert_eq!(followers.show(node(3), &BTreeSet::from([token(node(3))])), [KEY]);
    }
}
