//! The boundary of the core: inputs of a node, and effects that its driver performs.

use crate::{
    api::{
        batch::Change,
        command::{CallId, Command, Outcome, Refused},
        event::{AgentEvent, RoomEvent},
    },
    name::{
        id::{NodeId, RoomId},
        identity::LinkSecret,
    },
    order::pulse::Pulse,
    wire::{
        carry::CarriedAt,
        copies::{Copied, CopyOf},
        entry::Parted,
        message::{Head, Message, Span},
        record::{CollectionNumber, RecordKey, Space},
        replaced::WantedReplaced,
        run::Verified,
    },
};

/// Everything that can happen to a node. Closed on purpose.
#[derive(Debug)]
pub enum Input {
    /// A local client wants something.
    Command {
        /// Comes back with the reply.
        call: CallId,
        /// The command.
        command: Command,
    },
    /// A peer said something. Decoded, size-checked, signatures verified.
    Message {
        /// The peer it came from: the author, or a peer that relayed it.
        from: NodeId,
        /// The message.
        message: Message<Verified>,
    },
    /// By gossip: `from` passed it on and has not said it. Nobody knows the author of anything that
    /// is not signed.
    Gossip {
        /// The peer that passed it on.
        from: NodeId,
        /// Of a kind that [may travel so](Message::may_be_gossiped).
        message: Message<Verified>,
    },
    /// A peer is connected: messages can be sent to it.
    PeerUp(NodeId),
    /// No longer.
    PeerDown(NodeId),
    /// `deadline()` has passed.
    Timeout,
}

/// The work of the driver, in this order, after the batch is durable.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Gossip, in the topic of the room's bucket (`None`: the topic of all nodes).
    Broadcast {
        /// Decides the topic.
        room: Option<RoomId>,
        /// The message.
        message: Message,
    },
    /// To one peer, if it is connected; else dropped, anti-entropy repairs it.
    Send {
        /// The peer.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Load these from the store and send them as `Message::Spans`.
    SendSpans {
        /// The peer.
        to: NodeId,
        /// The room.
        room: RoomId,
        /// The missing ones.
        spans: Vec<Span>,
    },
    /// Load these bodies from the store and send them as `Message::Spans` without runs.
    SendBodies {
        /// The peer.
        to: NodeId,
        /// The room.
        room: RoomId,
        /// The missing ones.
        at: Vec<Head>,
    },
    /// Ask a peer for copies of these messages, with their marks as the store has them (`Message::AskCopies`). Messages
    /// that are not in the store with their whole bodies are left out.
    AskCopies {
        /// The peer.
        to: NodeId,
        /// The room.
        room: RoomId,
        /// The messages, at most [`crate::limits::COPIES_NAMED_MAX`].
        copies: Vec<CopyOf>,
    },
    /// Look into the store for these messages, and send a `Message::Copies` with those that are there: whole body, the
    /// same mark, and the number. Nothing, if none is.
    SendCopies {
        /// The peer.
        to: NodeId,
        /// The room.
        room: RoomId,
        /// The messages, at most [`crate::limits::COPIES_NAMED_MAX`].
        copies: Vec<Copied>,
    },
    /// Ask a peer what it knows of a message, with its mark as the store has it (`Message::AskReceipt`). Nothing, if the
    /// message is not in the store.
    AskReceipt {
        /// The peer.
        to: NodeId,
        /// Comes back with the answer.
        nonce: u64,
        /// The room.
        room: RoomId,
        /// The message.
        copy: CopyOf,
    },
    /// Look into the store and at clients' connections for a message, and send a `Message::Receipt`.
    SendReceipt {
        /// The peer.
        to: NodeId,
        /// From its question.
        nonce: u64,
        /// The room.
        room: RoomId,
        /// The message.
        copied: Copied,
    },
    /// Load these records from the store and send them as `Message::Records`, as many as fit into one.
    SendRecords {
        /// The peer.
        to: NodeId,
        /// Where they are.
        space: Space,
        /// Their kind.
        collection: CollectionNumber,
        /// The missing ones.
        keys: Vec<RecordKey>,
    },
    /// Load these bytes from the store and send them as `Message::Contents`, as many as fit into one, with the names of those
    /// that are not here.
    SendContents {
        /// The peer.
        to: NodeId,
        /// Where their records are.
        space: Space,
        /// Their kind.
        collection: CollectionNumber,
        /// The wanted ones.
        keys: Vec<RecordKey>,
        /// Wanted, and not here.
        lacking: Vec<RecordKey>,
    },
    /// Look into the store for states that these records have replaced, and send a `Message::Replaced`.
    SendReplaced {
        /// The peer.
        to: NodeId,
        /// Its question.
        wanted: WantedReplaced,
    },
    /// Load these from the store and hand them to a carrier, as `Message::Parcel`, as many as fit into one.
    HandOver {
        /// The carrier.
        to: NodeId,
        /// The room.
        room: RoomId,
        /// The entries.
        spans: Vec<Span>,
    },
    /// Load these records from the store and hand them to a carrier, in the same way.
    HandOverRecords {
        /// With their bytes apart: those that have none, or whose bytes are not here, are left out.
        whole: bool,
        /// The carrier.
        to: NodeId,
        /// The sealed directory of their group.
        room: RoomId,
        /// Where they are.
        space: Space,
        /// Their kind.
        collection: CollectionNumber,
        /// Which ones.
        keys: Vec<RecordKey>,
    },
    /// Load things that are carried from the store and give them to the node that they are for, in the same way.
    GiveOn {
        /// The node.
        to: NodeId,
        /// Things of one room that one node has handed over.
        at: Vec<CarriedAt>,
    },
    /// Answer a command. Each command is answered once.
    Reply {
        /// From the command.
        call: CallId,
        /// How it ended.
        result: Result<Outcome, Refused>,
    },
    /// Tell local members.
    Notify {
        /// The room.
        room: RoomId,
        /// The event.
        event: RoomEvent,
    },
    /// Tell one local connection.
    Tell(AgentEvent),
    /// This node has no part in the mesh any more: close its connections, after the messages to it that
    /// were sent before, and let it in for no more than to be told so again.
    ShutOut(NodeId),
    /// The directory names this node: with a secret of before it may come in, to be given the newest, or
    /// to be told that it has no part any more. Nobody else may.
    Known(NodeId),
    /// Connections have this secret from now on: make it durable before anything else is done.
    Secret(LinkSecret),
    /// Draw a secret, and ask for [`crate::api::command::Command::RotateSecret`] with it: this node expelled
    /// somebody who has the one there is.
    DrawSecret,
    /// The content of beacons from now on.
    Pulse(Pulse),
    /// A node writes much without effect, or (`None`) all together that the directory does not name: for a while most
    /// of their pushed messages are not to be handed to the core. See [`crate::Hearing`].
    Noisy(Option<NodeId>),
    /// Something an operator should see.
    Alarm(Alarm),
    /// The handover that `Command::Stop` began has ended: the process may exit.
    Stopped,
}

/// Something an operator should see: worth a line in the log at WARN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// A node signed two histories of one log. Nothing more is taken from it.
    Forked {
        /// The author.
        author: NodeId,
        /// Where.
        room: RoomId,
        /// At which log seq.
        seq: u64,
    },
    /// A node has no part in the mesh any more; it may be this one.
    Parted {
        /// Which.
        node: NodeId,
        /// Why.
        removal: Parted,
    },
    /// This node opened an era: its number space in the room is another from now on.
    EraOpened {
        /// Where.
        room: RoomId,
        /// Which.
        era: crate::name::number::Era,
        /// The sequencer of the one before.
        before: NodeId,
    },
    /// A number's content is with nobody that can be reached.
    Hole {
        /// Where.
        room: RoomId,
        /// Which number.
        number: crate::name::number::Number,
    },
    /// Two nodes drew one lane and both used it.
    LaneClash {
        /// The node that gives way.
        node: NodeId,
        /// The lane.
        lane: u32,
    },
    /// A node said of another that it did not open its nonce in time, in an election, though it did as
    /// far as could be seen here. Slow networks do that; or it would not have the other's candidates.
    DroppedThoughOpen {
        /// Where.
        room: RoomId,
        /// The node that says so.
        by: NodeId,
        /// Of whom.
        node: NodeId,
    },
    /// The wall clock moved by more than [`crate::limits::CLOCK_JUMP_MAX`] since the start: nothing old
    /// is dropped until it moves back, or the node is restarted.
    ClockJumped {
        /// Into the future.
        ahead: bool,
        /// How far.
        by: std::time::Duration,
    },
    /// The secret of the connections leaves out a member that nobody has expelled. It is given the secret
    /// all the same. The node that drew it lied; a node that passed it on need not have known.
    SecretWithout {
        /// Whom. One of them, if there are several.
        node: NodeId,
        /// The node that gave it.
        by: NodeId,
    },
    /// A room's numbers are used up: it takes no more messages.
    Exhausted {
        /// Where.
        room: RoomId,
    },
}

/// The result of one turn. Commit the batch, then perform the effects.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// To be made durable in one transaction. May be empty: then nothing need be committed.
    pub batch: Vec<Change>,
    /// To be performed in order, after that.
    pub effects: Vec<Effect>,
}

impl Turn {
    /// Goes on with the turn that came after.
    pub(crate) fn append(&mut self, mut next: Turn) {
        self.batch.append(&mut next.batch);
        self.effects.append(&mut next.effects);
    }
}
