//! The tables of commands, of their outcomes and of refusals. A new variant is a row here, and nothing
//! compiles before it has one.

use super::{Attach, Caller, Command, FileAct, Outcome, Refused, Share, Speech};
use crate::{
    api::{
        account::AccountRefused,
        agenda::{NewTask, NewVote},
        approval::DecideApproval,
        once::{Once, OnceWant},
    },
    name::{
        account::Label,
        id::{AgentId, EntryRef, KeyPrint, LocalRef, MessageId, NodeId, RoomId},
    },
};

/// Whether a node that stops still answers a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileStopping {
    /// As ever.
    Answered,
    /// With [`Refused::Stopping`].
    Refused,
}

/// Whether a command has its answer in the next turn and asks for nothing to be made durable before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// It only asks, or only agents that are here change.
    Answered,
    /// It writes, or waits.
    Refused,
    /// As the engine finds: an id that nobody has claimed is claimed first, and other nodes are asked for the
    /// private rooms of a minted key.
    Depends,
}

/// Whether a node that is a relay does a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRelay {
    /// It only asks, or is about members, keys that go, or the node itself.
    Done,
    /// It is for nodes that have rooms, records or agents.
    Refused,
}

/// The thing that a command names and that other nodes may know of though this one does not: then peers are
/// asked before this node says no (`docs/decisions/barrier.md`).
#[derive(Clone, Copy, Debug)]
pub enum Names<'c> {
    /// Nothing that others know of.
    Nothing,
    /// The key of an agent that registers.
    Key(&'c Attach),
    /// An account.
    Account(KeyPrint),
    /// A room.
    Room {
        /// The key that asks.
        key: KeyPrint,
        /// The room.
        room: RoomId,
    },
    /// All members of a room: they may vote.
    Voters {
        /// The agent that opens the vote.
        caller: &'c Caller,
        /// The room.
        room: RoomId,
    },
    /// All members of a room: they can be elected.
    Candidates {
        /// The agent that wants the election.
        caller: &'c Caller,
        /// The room.
        room: RoomId,
    },
    /// An election that is under way.
    Election {
        /// The key that asks.
        key: KeyPrint,
        /// The room.
        room: RoomId,
    },
    /// The leader of a room.
    Leader {
        /// The agent that says to be the leader.
        caller: &'c Caller,
        /// The room.
        room: RoomId,
    },
    /// A vote.
    Vote {
        /// The key that asks.
        key: KeyPrint,
        /// The agent that asks, in whose rooms the vote is looked for. Without one it is not looked for.
        agent: Option<&'c AgentId>,
        /// The vote.
        vote: MessageId,
    },
    /// A task.
    Task {
        /// The agent that updates it.
        caller: &'c Caller,
        /// The task.
        task: MessageId,
    },
    /// An agent that is to be written to.
    Agent {
        /// The agent that writes.
        caller: &'c Caller,
        /// The other one.
        agent: &'c AgentId,
    },
    /// A message.
    Message {
        /// The agent that asks.
        caller: &'c Caller,
        /// The room.
        room: RoomId,
        /// The message.
        message: MessageId,
    },
}

/// A row of the table of commands.
#[derive(Clone, Copy, Debug)]
pub struct Traits<'c> {
    /// For logs and metrics.
    pub name: &'static str,
    /// Whether a node that stops still answers it.
    pub while_stopping: WhileStopping,
    /// Whether it can be answered while the disk is full.
    pub unwritten: Unwritten,
    /// Whether a relay does it, which has no rooms but the directory, no records and no agents.
    pub on_relay: OnRelay,
    /// The thing that others may know of.
    pub names: Names<'c>,
    /// Bytes that the client chose: how much memory the command takes while it waits, beyond its own size.
    pub bytes: usize,
}

impl<'c> Traits<'c> {
    const fn of(name: &'static str) -> Traits<'c> {
        Traits {
            name,
            while_stopping: WhileStopping::Refused,
            unwritten: Unwritten::Refused,
            on_relay: OnRelay::Refused,
            names: Names::Nothing,
            bytes: 0,
        }
    }

    const fn stopping(self) -> Traits<'c> {
        Traits { while_stopping: WhileStopping::Answered, ..self }
    }

    const fn unwritten(self, unwritten: Unwritten) -> Traits<'c> {
        Traits { unwritten, ..self }
    }

    /// It only asks.
    const fn asks(self) -> Traits<'c> {
        self.unwritten(Unwritten::Answered).on_relay()
    }

    const fn on_relay(self) -> Traits<'c> {
        Traits { on_relay: OnRelay::Done, ..self }
    }

    const fn names(self, names: Names<'c>) -> Traits<'c> {
        Traits { names, ..self }
    }

    const fn room(self, key: KeyPrint, room: RoomId) -> Traits<'c> {
        self.names(Names::Room { key, room })
    }

    /// A room that need not be named.
    fn room_if(self, key: KeyPrint, room: Option<RoomId>) -> Traits<'c> {
        room.map_or(self, |room| self.room(key, room))
    }

    const fn bytes(self, bytes: usize) -> Traits<'c> {
        Traits { bytes, ..self }
    }
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

impl Command {
    /// Its row of the table.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table: one row for each command")]
    pub fn traits(&self) -> Traits<'_> {
        match self {
            Command::Attach(attach) => Traits::of("attach")
                .unwritten(Unwritten::Depends)
                .names(Names::Key(attach))
                .bytes(attach.capabilities.iter().map(String::len).sum()),
            Command::Detach { seen, .. } => {
                Traits::of("detach").asks().bytes(seen.len() * size_of::<(u128, u64)>())
            }
            Command::Linger { seen, .. } => {
                Traits::of("linger").asks().bytes(seen.len() * size_of::<(u128, u64)>())
            }
            Command::CreateRoom { caller, room } => Traits::of("create_room")
                .room_if(caller.key, room.parent)
                .bytes(room.name.len() + length(room.description.as_ref())),
            Command::OpenDirect { caller, agent, .. } => {
                Traits::of("open_direct").names(Names::Agent { caller, agent }).bytes(agent.len())
            }
            Command::CreateShared { room, .. } => Traits::of("create_shared")
                .bytes(room.name.len() + length(room.description.as_ref())),
            Command::Share(share) => {
                let Share { caller, room, agent, .. } = &**share;
                Traits::of("share").room(caller.key, *room).bytes(agent.len())
            }
            Command::Join { caller, room } => Traits::of("join").room(caller.key, *room),
            Command::JoinAsGuest { caller, room } => {
                Traits::of("join_as_guest").room(caller.key, *room)
            }
            Command::Leave { caller, room } => Traits::of("leave").room(caller.key, *room),
            Command::Say { caller, say } => {
                let room = say.room;
                let names = if say.speech == Speech::Decision {
                    Names::Leader { caller, room }
                } else {
                    Names::Room { key: caller.key, room }
                };
                let bytes = say.content.len() + length(say.metadata.as_ref());
                Traits::of("say").names(names).bytes(bytes)
            }
            Command::Inbox { act, .. } => Traits::of("inbox").bytes(act.bytes()),
            Command::Handed { requests, .. } => {
                Traits::of("handed").bytes(requests.len() * size_of::<EntryRef>())
            }
            Command::SetTyping { caller, room, .. } => {
                Traits::of("set_typing").room(caller.key, *room)
            }
            Command::Stream { caller, piece } => {
                let names = piece.stream.len() + length(piece.reply_to.as_ref());
                Traits::of("stream").room(caller.key, piece.room).bytes(piece.bytes() + names)
            }
            Command::AwaitPieces { rooms } => {
                Traits::of("await_pieces").asks().bytes(rooms.len() * size_of::<RoomId>())
            }
            Command::SetPresence { presence, .. } => {
                Traits::of("set_presence").bytes(length(presence.detail.as_ref()))
            }
            Command::ListRooms { by, parent } => {
                Traits::of("list_rooms").asks().room_if(by.key, *parent)
            }
            Command::ListAgents { by, room } => {
                Traits::of("list_agents").asks().room_if(by.key, *room)
            }
            Command::RoomInfo { by, room } => Traits::of("room_info").asks().room(by.key, *room),
            Command::CreateVote { caller, vote } => of_new_vote(caller, vote),
            Command::CastVote { caller, vote, .. } => {
                let (key, agent, vote) = (caller.key, Some(&caller.agent), *vote);
                Traits::of("cast_vote").names(Names::Vote { key, agent, vote })
            }
            Command::GetVote { by, vote } => {
                let (key, agent, vote) = (by.key, by.agent.as_ref(), *vote);
                Traits::of("get_vote").asks().names(Names::Vote { key, agent, vote })
            }
            Command::Receipts { by, room, .. } => Traits::of("receipts").room(by.key, *room),
            Command::GatherReplaced(gather) => {
                Traits::of("gather_replaced").room(gather.by.key, gather.room)
            }
            Command::ListVotes { by, room, .. } => {
                Traits::of("list_votes").asks().room(by.key, *room)
            }
            Command::ElectLeader { caller, room } => {
                Traits::of("elect_leader").names(Names::Candidates { caller, room: *room })
            }
            Command::Decline { caller, room } => {
                Traits::of("decline").names(Names::Election { key: caller.key, room: *room })
            }
            Command::AssignTask { caller, task } => of_new_task(caller, task),
            Command::UpdateTask { caller, update } => Traits::of("update_task")
                .names(Names::Task { caller, task: update.task })
                .bytes(length(update.note.as_ref()) + update.fields.bytes()),
            Command::DeleteTask { caller, task } => {
                Traits::of("delete_task").names(Names::Task { caller, task: *task })
            }
            Command::ReadTask { by, room, .. } => {
                Traits::of("read_task").asks().room(by.key, *room)
            }
            Command::Once(once) => of_once(once),
            Command::RequestApproval(new) => {
                let approvers: usize = new.terms.approvers.iter().map(|it| it.len()).sum();
                Traits::of("request_approval")
                    .room(new.caller.key, new.room)
                    .bytes(new.terms.text.len() + approvers)
            }
            Command::DecideApproval(decide) => of_decision(decide),
            Command::ListApprovals { by, room: Some(room) } => {
                Traits::of("list_approvals").asks().room(by.key, *room)
            }
            Command::ListApprovals { room: None, .. } => Traits::of("list_approvals").asks(),
            Command::ListWaits { .. } => Traits::of("list_waits").asks(),
            Command::ReadApproval { by, room, .. } => {
                Traits::of("read_approval").asks().room(by.key, *room)
            }
            Command::Given { caller, room, .. } => Traits::of("given").room(caller.key, *room),
            Command::ListTasks { by, room, .. } => {
                Traits::of("list_tasks").asks().room(by.key, *room)
            }
            Command::Seek { caller, room, message } => {
                let (key, room) = (caller.key, *room);
                let names = message.map_or(Names::Room { key, room }, |message| Names::Message {
                    caller,
                    room,
                    message,
                });
                Traits::of("seek").names(names)
            }
            Command::MintKey(_) => Traits::of("mint_key"),
            Command::SignUp(_) => Traits::of("sign_up"),
            Command::RevokeKey { .. } => Traits::of("revoke_key").on_relay(),
            Command::ReplaceKey(_) => Traits::of("replace_key"),
            Command::SignAnew(_) => Traits::of("sign_anew"),
            Command::ListKeys => Traits::of("list_keys").asks(),
            Command::CheckKey { .. } => Traits::of("check_key").asks(),
            Command::SetProfile { update, .. } => Traits::of("set_profile").bytes(update.bytes()),
            Command::SetProfileOf(of) => Traits::of("set_profile_of").bytes(of.update.bytes()),
            Command::SetRoom(set) => {
                Traits::of("set_room").room(set.caller.key, set.room).bytes(set.update.bytes())
            }
            Command::SetMember(set) => {
                Traits::of("set_member").room(set.caller.key, set.room).bytes(set.agent.len())
            }
            Command::LeaveOnRecord(leave) => {
                Traits::of("leave_on_record").room(leave.caller.key, leave.room)
            }
            Command::RetireAgent(retire) => Traits::of("retire_agent").bytes(retire.agent.len()),
            Command::StopAgents(stop) => {
                let agent = stop.agent.as_ref().map_or(0, |agent| agent.len());
                Traits::of("stop_agents").bytes(agent + stop.by.as_ref().map_or(0, String::len))
            }
            Command::ListStops { .. } => Traits::of("list_stops").asks(),
            Command::MaySend { agent, .. } => Traits::of("may_send").asks().bytes(agent.len()),
            Command::ChangeAgentFile(change) => {
                let bytes = change.bytes.as_ref().map_or(0, Vec::len);
                Traits::of("change_agent_file")
                    .bytes(bytes + change.agent.len() + change.name.len())
            }
            Command::PlaceOfKey { .. } => Traits::of("place_of_key").asks(),
            Command::ChangeFile(change) => {
                let bytes = match &change.act {
                    FileAct::Put(file, _) => file.bytes.len() + file.path.len(),
                    FileAct::Remove(path) => path.len(),
                };
                Traits::of("change_file").room(change.key, change.room).bytes(bytes)
            }
            Command::ChangeSchedule(change) => Traits::of("change_schedule")
                .room(change.key, change.room)
                .bytes(change.act.bytes()),
            Command::ClaimAccount { labels, .. } => {
                Traits::of("claim_account").bytes(labels.len() * size_of::<Label>())
            }
            Command::WriteRecords(records) => {
                let parts = records.writes.iter().flat_map(|write| [&write.body, &write.apart]);
                let bytes = parts.map(|part| 32 + part.as_ref().map_or(0, Vec::len)).sum();
                Traits::of("write_records").bytes(bytes)
            }
            Command::PresentAccount(_) => Traits::of("present_account"),
            Command::FindAccount(account) => {
                Traits::of("find_account").asks().names(Names::Account(*account))
            }
            Command::ListClaims(_) => Traits::of("list_claims").asks(),
            Command::ListSeats { .. } => Traits::of("list_seats").asks(),
            Command::NameNodes { nodes } => {
                Traits::of("name_nodes").asks().bytes(nodes.len() * size_of::<NodeId>())
            }
            Command::FindAgent { .. } => Traits::of("find_agent").asks(),
            Command::StandOutside { .. } => Traits::of("stand_outside"),
            Command::ListAttached { .. } => Traits::of("list_attached").asks(),
            Command::ListDirect { .. } => Traits::of("list_direct").asks(),
            Command::KeyTerms { .. } => Traits::of("key_terms").asks(),
            Command::ListOffering { .. } => Traits::of("list_offering").asks(),
            Command::CheckAgent { .. } => Traits::of("check_agent").asks(),
            Command::Keep { name, value } => {
                let value = value.as_ref().map_or(0, |value| value.0.len());
                Traits::of("keep").on_relay().bytes(name.len() + value)
            }
            Command::Roam { entries, .. } => {
                Traits::of("roam").bytes(entries.len() * size_of::<LocalRef>())
            }
            Command::Status => Traits::of("status").asks().stopping(),
            Command::Attendance => Traits::of("attendance").asks(),
            Command::Behind => Traits::of("behind").asks().stopping(),
            Command::Members => Traits::of("members").asks(),
            Command::Part { .. } => Traits::of("part").on_relay(),
            Command::RotateSecret { .. } => Traits::of("rotate_secret").on_relay(),
            Command::LeaveMesh { .. } => Traits::of("leave_mesh").on_relay(),
            Command::Stop => Traits::of("stop").stopping().on_relay(),
        }
    }
}

fn of_new_vote<'c>(caller: &'c Caller, vote: &NewVote) -> Traits<'c> {
    let options: usize = vote.options.iter().map(String::len).sum();
    let bytes = vote.title.len() + length(vote.description.as_ref()) + options;
    Traits::of("create_vote").names(Names::Voters { caller, room: vote.room }).bytes(bytes)
}

fn of_new_task<'c>(caller: &'c Caller, task: &NewTask) -> Traits<'c> {
    let more = task.facts.bytes() + task.fields.bytes();
    let bytes = task.title.len() + length(task.description.as_ref()) + more;
    Traits::of("assign_task").room(caller.key, task.room).bytes(bytes)
}

/// A grant that is named may be one of another node.
fn of_once(once: &Once) -> Traits<'_> {
    let (caller, room) = (&once.caller, once.room);
    let names = match once.want {
        OnceWant::Take(_) => Names::Room { key: caller.key, room },
        OnceWant::Renew(message) | OnceWant::Release(message) => {
            Names::Message { caller, room, message }
        }
    };
    Traits::of("once").names(names).bytes(once.subject.len())
}

/// It may have been asked for at another node.
fn of_decision(decide: &DecideApproval) -> Traits<'_> {
    let DecideApproval { caller, room, approval, reason, .. } = decide;
    let names = Names::Message { caller, room: *room, message: *approval };
    Traits::of("decide_approval").names(names).bytes(length(reason.as_ref()))
}

/// Whether an outcome says that something is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It shows something, and promises nothing that is not written yet.
    None,
    /// The change that the command asked for is durable.
    Durable,
}

impl Outcome {
    /// Whether it says that something is durable.
    #[must_use]
    pub fn promise(&self) -> Promise {
        match self {
            Outcome::Done => Promise::Durable,
            Outcome::Attached(_) => Promise::Durable,
            Outcome::Room(_) => Promise::Durable,
            Outcome::Joined(_) => Promise::Durable,
            Outcome::Said(_) => Promise::Durable,
            Outcome::Inbox(_) => Promise::Durable,
            Outcome::Rooms(_) => Promise::None,
            Outcome::Agents(_) | Outcome::Attendance(_) => Promise::None,
            Outcome::Seats(_) | Outcome::NodeNames(_) => Promise::None,
            Outcome::RoomInfo(_) => Promise::None,
            Outcome::Vote(_) => Promise::Durable,
            Outcome::Votes(_) => Promise::None,
            Outcome::Cast { .. } => Promise::Durable,
            Outcome::Candidates(_) => Promise::Durable,
            Outcome::Task(_) => Promise::Durable,
            Outcome::Tasks(_) | Outcome::TaskRecord(_) => Promise::None,
            Outcome::Once(_) => Promise::Durable,
            Outcome::Approval(_) | Outcome::Decided(_) => Promise::Durable,
            Outcome::Stops(_) | Outcome::Approvals(_) | Outcome::Waits(_) => Promise::None,
            Outcome::Receipts(_) => Promise::None,
            Outcome::SignedAnew { .. } => Promise::Durable,
            Outcome::Stamps(_) => Promise::Durable,
            Outcome::Account(_) | Outcome::Claims(_) => Promise::None,
            Outcome::Keys(_) => Promise::None,
            Outcome::Key(_) | Outcome::Terms(_) | Outcome::Place(_) => Promise::None,
            Outcome::Roamed(_) => Promise::Durable,
            Outcome::Status(_) => Promise::None,
            Outcome::Behind(_) => Promise::None,
            Outcome::Members(_) => Promise::None,
            Outcome::LeftMesh { .. } => Promise::Durable,
        }
    }
}

/// The reason behind a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The caller, its room or its node was right when it asked, as far as it could know, and is not any more.
    Overtaken,
    /// It names something that is not there.
    Unknown,
    /// Rules that hold for everybody.
    Rules,
    /// A bound of the node, or of the key.
    Limit,
}

impl Refused {
    /// The reason behind it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Refused::NoRoom => Reason::Overtaken,
            Refused::NotYours => Reason::Rules,
            Refused::NotMember => Reason::Overtaken,
            Refused::NameTaken(_) => Reason::Rules,
            Refused::AgentTaken(_) | Refused::AgentRetired(_) => Reason::Rules,
            Refused::Stopped { .. } => Reason::Rules,
            Refused::Plaintext => Reason::Rules,
            Refused::TooLarge { .. } => Reason::Limit,
            Refused::Field(_) => Reason::Rules,
            Refused::TooManyIds { .. } => Reason::Limit,
            Refused::Impossible(_) => Reason::Rules,
            Refused::Closed => Reason::Overtaken,
            Refused::SessionClosed => Reason::Overtaken,
            Refused::Full(_) => Reason::Limit,
            Refused::TakesNone(_) => Reason::Rules,
            Refused::Budget(_) => Reason::Limit,
            Refused::TooManyCopies { .. } => Reason::Rules,
            Refused::NotDurable => Reason::Rules,
            Refused::Superseded => Reason::Overtaken,
            Refused::NoVote => Reason::Unknown,
            Refused::VoteClosed => Reason::Rules,
            Refused::AlreadyVoted => Reason::Rules,
            Refused::NotEligible | Refused::GuestsAlone => Reason::Rules,
            Refused::NoOption { .. } => Reason::Unknown,
            Refused::NotLeader => Reason::Rules,
            Refused::ElectionRuns => Reason::Rules,
            Refused::NoElection => Reason::Unknown,
            Refused::NoTask => Reason::Unknown,
            Refused::NoFile => Reason::Unknown,
            Refused::NoApproval => Reason::Unknown,
            Refused::NotApprover => Reason::Rules,
            Refused::Account(refused) => of_account(refused),
            Refused::Held { .. } | Refused::Stands { .. } => Reason::Rules,
            Refused::NoKey => Reason::Rules,
            Refused::NoAgent(_) => Reason::Unknown,
            Refused::NoMailbox(_) => Reason::Rules,
            Refused::TooManyAgents { .. } => Reason::Limit,
            Refused::TooManyRooms { .. } => Reason::Limit,
            Refused::Apart(_) => Reason::Overtaken,
            Refused::DiskFull => Reason::Limit,
            Refused::Stopping => Reason::Overtaken,
        }
    }
}

fn of_account(refused: &AccountRefused) -> Reason {
    match refused {
        AccountRefused::Full(_) | AccountRefused::TooMuch | AccountRefused::TooManyBytes(_) => {
            Reason::Limit
        }
        AccountRefused::Unknown => Reason::Unknown,
        AccountRefused::Ended | AccountRefused::Deleted => Reason::Overtaken,
        AccountRefused::Form | AccountRefused::Behind => Reason::Rules,
    }
}
