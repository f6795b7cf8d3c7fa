//! Operators' commands to a running node: one line of JSON each way, over a Unix socket that only
//! its owner can open.

pub(crate) mod client;
mod finder;
mod inherit;
mod mail;
mod ping;
mod stops;
mod tokens;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bridge::{Bridge, config::Auth};
use clawfinder::Overseer;
use mesh::{
    api::command::{Command, Outcome},
    name::{
        id::{KeyPrint, NodeId, RoomId, parse_hex},
        number::Number,
    },
};
use net::Net;
use protocol::operator::{
    Answer, Attendee, Entry, HiddenText, Joined, Member, Request, Status, Trouble, WantedKey,
    WantedMark,
};
use store::{Progress, Reader};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, unix::OwnedWriteHalf},
    sync::{Semaphore, oneshot},
    time::timeout,
};

use crate::{
    backup, certificate, chance,
    clock::Clock,
    clocks::{self, Clocks},
    entry,
    files::{DataDir, api_key::ApiKey},
    invitations::Invitations,
    keys,
    limits::{
        CONTROL_CLIENTS_MAX, CONTROL_PROGRESS_EVERY, CONTROL_REQUEST_BYTES_MAX, CONTROL_TIMEOUT,
    },
    listen::{self, SocketFile},
    marks, members,
    metrics::meters::Meters,
    queue::{Asker, Queue},
    report::{self, Own},
    secret::{self, Keeper},
    ticket::{Ticket, addresses_of},
    tokens::Tokens,
};

/// All that requests are about.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) name: String,
    pub(crate) me: NodeId,
    pub(crate) secret: Arc<Keeper>,
    pub(crate) invitations: Arc<Invitations>,
    pub(crate) words: Words,
    /// Of tools. `None`: there are none.
    pub(crate) calls: Option<Arc<mcp::Calls>>,
    pub(crate) net: Net,
    pub(crate) queue: Arc<Queue>,
    pub(crate) reader: Reader,
    pub(crate) bridge: Bridge,
    pub(crate) meters: Arc<Meters>,
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) files: Files,
    pub(crate) lobby: RoomId,
    /// Where clients connect by HTTP.
    pub(crate) http: Option<SocketAddr>,
}

/// What the operator has said of tokens, sessions and accounts, each kept in a file of its own.
#[derive(Debug)]
pub(crate) struct Words {
    tokens: Arc<Tokens>,
    marks: Arc<marks::Keeper>,
    /// `None`: there is no index here.
    index: Option<Arc<finder::Index>>,
}

impl Words {
    pub(crate) fn open(
        dir: &DataDir,
        config: &bridge::Config,
        overseer: Option<Overseer>,
    ) -> Result<Words> {
        let index = overseer.map(|overseer| finder::Index::open(overseer, dir.clone()));
        Ok(Words {
            tokens: Tokens::open(dir.clone(), config.here, config.tokens.clone())?,
            marks: Arc::new(marks::Keeper::new(dir.clone(), config.policies.clone())),
            index: index.transpose()?.map(Arc::new),
        })
    }
}

/// The node's files.
#[derive(Debug)]
pub(crate) struct Files {
    dir: DataDir,
    /// `None`: no keys are checked.
    key_file: Option<PathBuf>,
    /// One backup at a time: each keeps the pages of its moment.
    backing_up: Semaphore,
}

impl Files {
    pub(crate) fn new(dir: DataDir, key_file: Option<PathBuf>) -> Files {
        Files { dir, key_file, backing_up: Semaphore::new(1) }
    }

    pub(crate) fn key_file(&self) -> Option<PathBuf> {
        self.key_file.clone()
    }
}

/// Binds the control socket: in the data directory, or if that is too deep for a socket in a
/// private directory of its own, to be found in `run.json`.
pub(crate) async fn bind(dir: &DataDir) -> Result<(UnixListener, SocketFile)> {
    let path = dir.control_socket();
    let path = if listen::fits(&path) { path } else { elsewhere()? };
    let bound = listen::unix("data-dir", &path, None).await;
    bound.context("the control socket")
}

fn elsewhere() -> Result<PathBuf> {
    let dir = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let name = format!("clawmesh-{:016x}", chance::number()?);
    let path = dir.join(&name).join("control.sock");
    let short = Path::new("/tmp").join(&name).join("control.sock");
    Ok(if listen::fits(&path) { path } else { short })
}

/// A request that takes long: its client is told how far it is.
enum Long {
    /// See [`Request::Backup`].
    Backup(PathBuf),
    /// See [`Request::SignAnew`].
    SignAnew { replaced: String, successor: HiddenText },
}

impl Control {
    /// Serves until it is dropped.
    pub(crate) async fn serve(self: Arc<Control>, listener: UnixListener) {
        let clients = Arc::new(Semaphore::new(CONTROL_CLIENTS_MAX));
        while let Ok(permit) = clients.clone().acquire_owned().await {
            let Ok((socket, _)) = listener.accept().await else {
                // No file descriptors left: others need the time, too.
                tokio::time::sleep(bridge::limits::ACCEPT_RETRY).await;
                continue;
            };
            let control = self.clone();
            tokio::spawn(async move {
                // A client that does not ask or read in time has gone.
                let long = timeout(CONTROL_TIMEOUT, control.answer(socket)).await;
                if let Ok(Ok(Some((long, mut write)))) = long {
                    let answer = match long {
                        Long::Backup(to) => {
                            control.back_up(&to, &mut write).await.map(|()| Answer::Done)
                        }
                        Long::SignAnew { replaced, successor } => {
                            control.sign_anew(&replaced, successor, &mut write).await
                        }
                    };
                    let answer = answer.unwrap_or_else(failure);
                    // It may have gone meanwhile.
                    drop(timeout(CONTROL_TIMEOUT, tell(&mut write, &answer)).await);
                }
                drop(permit);
            });
        }
    }

    /// Answers, but for a request that takes long: it, and the client that waits for it.
    async fn answer(
        &self,
        socket: tokio::net::UnixStream,
    ) -> std::io::Result<Option<(Long, OwnedWriteHalf)>> {
        let (read, mut write) = socket.into_split();
        let mut line = String::new();
        let mut read = tokio::io::BufReader::new(read.take(CONTROL_REQUEST_BYTES_MAX));
        read.read_line(&mut line).await?;
        let answer = match serde_json::from_str(&line) {
            Ok(Request::Backup { to }) => return Ok(Some((Long::Backup(to), write))),
            Ok(Request::SignAnew { replaced, successor }) => {
                return Ok(Some((Long::SignAnew { replaced, successor }, write)));
            }
            Ok(request) => self.perform(request).await,
            Err(_) => Err(anyhow::anyhow!("the running node does not know this command")),
        };
        tell(&mut write, &answer.unwrap_or_else(failure)).await?;
        write.shutdown().await?;
        Ok(None)
    }

    /// Writes a backup on a thread of its own, and tells every second how far it is. Ends when
    /// nobody listens any more.
    async fn back_up(&self, to: &Path, write: &mut OwnedWriteHalf) -> Result<()> {
        let Ok(_alone) = self.files.backing_up.try_acquire() else {
            bail!("a backup is being written already: wait for its end");
        };
        ensure!(to.is_absolute(), "{} is no absolute path", to.display());
        tracing::info!(to = %to.display(), "a backup is being written");
        let progress = Arc::new(Mutex::new(Some(Progress::default())));
        let (dir, reader, key_file) =
            (self.files.dir.clone(), self.reader.clone(), self.files.key_file.clone());
        let (to, at) = (to.to_owned(), progress.clone());
        let writing = tokio::task::spawn_blocking(move || {
            backup::write(&dir, &reader, &to, key_file.as_deref(), &mut |now| {
                let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
                // `None`: nobody listens any more.
                at.as_mut().map(|progress| *progress = now).is_some()
            })
        });
        tokio::pin!(writing);
        let done = loop {
            tokio::select! {
                done = &mut writing => break done,
                () = tokio::time::sleep(CONTROL_PROGRESS_EVERY) => {}
            }
            let now = *progress.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(Progress { rows, of }) = now else { continue };
            let told = timeout(CONTROL_TIMEOUT, tell(write, &Answer::Progress { rows, of })).await;
            if !matches!(told, Ok(Ok(()))) {
                *progress.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        };
        let done = done.context("the backup's thread has ended")?;
        match &done {
            Ok(()) => tracing::info!("the backup is written"),
            Err(error) => {
                tracing::warn!(event = "backup_failed", "no backup was written: {error:#}")
            }
        }
        done
    }

    async fn perform(&self, request: Request) -> Result<Answer> {
        Ok(match request {
            Request::Status => Answer::Status(Box::new(self.report().await?)),
            Request::Invite => self.invite(None).await?,
            Request::InviteFor { uses, lasts_ms } => self.invite(Some((uses, lasts_ms))).await?,
            Request::ListInvitations => Answer::Invitations(self.invitations.list()),
            Request::RevokeInvitation { id } => {
                self.on_disk(move |invitations| invitations.revoke(&id)).await?;
                Answer::Done
            }
            Request::ReloadKey => {
                self.reload_key()?;
                self.bridge.check_webhooks().await;
                Answer::Done
            }
            Request::MintKey(wanted) => self.mint_key(wanted).await?,
            Request::ListKeys => {
                let Outcome::Keys(keys) = self.engine(Command::ListKeys).await? else {
                    return Err(wrong_answer());
                };
                let now = Clock::start().now().wall_ms;
                Answer::Keys(keys.into_iter().map(|view| keys::minted(view, now)).collect())
            }
            Request::RevokeKey { fingerprint } => self.revoke_key(&fingerprint).await?,
            Request::ReplaceKey(wanted) => {
                let new = keys::wanted_successor(*wanted)?;
                let (key, successor) = (new.replaced.key(), new.replaced.successor.key());
                self.engine(Command::ReplaceKey(Box::new(new))).await?;
                tracing::info!(%key, %successor, "a key was replaced");
                Answer::Done
            }
            Request::MintToken(wanted) => self.make_token(*wanted).await?,
            Request::ListTokens => self.list_tokens().await?,
            Request::RevokeToken { id } => self.revoke_token(id).await?,
            Request::Members => Answer::Members(self.members().await?),
            Request::Mail => self.mail().await?,
            Request::Agents => Answer::Agents(self.agents().await?),
            Request::Part { node_id, how, force } => {
                let (node, why) = (members::node_id(&node_id)?, members::core_parting(how));
                self.engine(Command::Part { node, why, force }).await?;
                Answer::Done
            }
            Request::RotateSecret { force } => {
                let drawn = secret::draw()?;
                self.engine(Command::RotateSecret { drawn, force }).await?;
                Answer::Done
            }
            Request::Leave { force } => {
                let Outcome::LeftMesh { heard } = self.engine(Command::LeaveMesh { force }).await?
                else {
                    return Err(wrong_answer());
                };
                Answer::Left { heard }
            }
            Request::Entry { room_id, seq } => {
                Answer::Entry(Box::new(self.entry(&room_id, seq).await?))
            }
            Request::MarkSession(wanted) => self.mark_session(wanted).await?,
            Request::Finder => self.finder().await?,
            Request::StopAgents { agent_id, stop } => self.stop_agents(agent_id, stop).await?,
            Request::ListStops => self.list_stops().await?,
            Request::HideAccount { id, hidden } => self.hide_account(&id, hidden).await?,
            Request::Ping { node } => self.ping(&node).await?,
            Request::Backup { .. } | Request::SignAnew { .. } => {
                bail!("this takes long, and is not answered at once; this is a bug")
            }
        })
    }

    /// Sets a mark on a session.
    async fn mark_session(&self, wanted: WantedMark) -> Result<Answer> {
        let of = marks::marked(&wanted, &self.status().await?.rooms, self.lobby)?;
        let (marks, mark, key) = (self.words.marks.clone(), wanted.mark, of.key.clone());
        let set = tokio::task::spawn_blocking(move || marks.set(of, mark)).await;
        set.context("the thread has ended")??;
        tracing::info!(session = key, ?mark, "a session was marked");
        Ok(Answer::Session(key))
    }

    async fn mint_key(&self, wanted: WantedKey) -> Result<Answer> {
        let new = keys::wanted(wanted)?;
        let (key, local) = (new.minted.key(), new.local);
        self.engine(Command::MintKey(new)).await?;
        tracing::info!(%key, local, "a key was minted");
        Ok(Answer::Done)
    }

    async fn revoke_key(&self, text: &str) -> Result<Answer> {
        let key = fingerprint(text)?;
        self.engine(Command::RevokeKey { key }).await?;
        tracing::info!(%key, "a key was revoked");
        Ok(Answer::Done)
    }

    /// `limits`: how many nodes, and for how many milliseconds.
    async fn invite(&self, limits: Option<(u32, u64)>) -> Result<Answer> {
        if self.status().await?.parted.is_some() {
            bail!("this node has no part in a mesh any more: invite at another one");
        }
        let Some((uses, lasts_ms)) = limits else {
            return Ok(Answer::Ticket(self.ticket().to_text()));
        };
        let lasts = Duration::from_millis(lasts_ms);
        Ok(Answer::Ticket(
            self.on_disk(move |invitations| invitations.make(uses, lasts)).await?.to_text(),
        ))
    }

    pub(crate) async fn members(&self) -> Result<Vec<Member>> {
        let Outcome::Members(members) = self.engine(Command::Members).await? else {
            return Err(wrong_answer());
        };
        let mut members: Vec<Member> = members.into_iter().map(members::member).collect();
        for member in members.iter_mut().filter(|member| member.joined.is_none()) {
            member.joined = self.invitations.of(&member.node_id).map(Joined::Invited);
        }
        Ok(members)
    }

    /// Waits for the disk on a thread where that holds up nobody.
    async fn on_disk<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Invitations) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let invitations = self.invitations.clone();
        tokio::task::spawn_blocking(move || act(&invitations))
            .await
            .context("the thread has ended")?
    }

    /// An invitation by this node, with the addresses that it listens at now.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket::new(self.secret.current(), self.me, addresses_of(&self.net))
    }

    async fn engine(&self, command: Command) -> Result<Outcome> {
        let (asker, answer) = oneshot::channel();
        self.queue.push_command(command, Asker::Operator(asker));
        let answer = answer.await.context("the node is too busy to answer; try again")?;
        Ok(answer?)
    }

    /// Entries that connected nodes have and this one has not, over all rooms.
    pub(crate) async fn behind(&self) -> Result<u64> {
        let Outcome::Behind(behind) = self.engine(Command::Behind).await? else {
            return Err(wrong_answer());
        };
        Ok(behind)
    }

    /// Where all its files are.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.files.dir.path().to_owned()
    }

    async fn status(&self) -> Result<mesh::api::status::Status> {
        let Outcome::Status(status) = self.engine(Command::Status).await? else {
            return Err(wrong_answer());
        };
        Ok(status)
    }

    /// All agents of this node: its operator sees those of every key.
    async fn agents(&self) -> Result<Vec<Attendee>> {
        let Outcome::Attendance(all) = self.engine(Command::Attendance).await? else {
            return Err(wrong_answer());
        };
        let shown = all.into_iter().map(|one| Attendee {
            per_minute: self.bridge.said_by(one.view.key),
            agent: clawchat::agent(&one.view),
            rooms: one.rooms,
        });
        Ok(shown.collect())
    }

    pub(crate) async fn report(&self) -> Result<Status> {
        let status = self.status().await?;
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let own = Own {
            name: self.name.clone(),
            store_bytes: self.reader.size_bytes(),
            disk_full: self.meters.disk_full.load(Relaxed),
            refused: count(&self.meters.kept_back.refused),
            dropped: count(&self.meters.kept_back.dropped),
            noise: count(&self.meters.kept_back.noise),
            peers: self.net.peers(),
            listening: self.net.listening(),
            runs_twice: self.net.runs_twice(),
            hosted: self.bridge.desk().hosts_here(),
            waits: self.calls.as_ref().map_or(0, |calls| calls.waits()),
            read_by_all_at: self.read_by_all_at(),
            http: self.web(),
            certificate: self.bridge.config().http_tls.as_ref().and_then(certificate::trouble),
            woken: self.bridge.woken(),
        };
        let mut report = report::status(status, own);
        for peer in &mut report.peers {
            let node = peer.node_id.as_deref().and_then(parse_hex).map(NodeId);
            peer.clock_ahead_ms = node.and_then(|node| self.clocks.ahead_ms(node, Instant::now()));
            if peer.connected && peer.clock_ahead_ms.is_some_and(clocks::differs) {
                peer.trouble = Some(Trouble::Clock);
            }
        }
        Ok(report)
    }

    /// Whether HTTP and WebSocket are over TLS.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.bridge.config().http_tls.is_some()
    }

    /// The URL of HTTP.
    pub(crate) fn web(&self) -> Option<String> {
        let scheme = if self.is_over_tls() { "https" } else { "http" };
        self.http.map(|at| format!("{scheme}://{at}"))
    }

    /// Where everybody who can reach it reads public rooms by HTTP, if that is not this machine alone.
    fn read_by_all_at(&self) -> Option<SocketAddr> {
        let open = self.bridge.config().strangers_read;
        self.http.filter(|at| open && !at.ip().is_loopback())
    }

    /// The message that a number names here, and the nodes that are known to have it.
    async fn entry(&self, room_id: &str, seq: u64) -> Result<Entry> {
        let lobby = RoomId::lobby(self.secret.current().mesh_id());
        let room = if room_id == "lobby" { Some(lobby) } else { RoomId::from_uuid(room_id) };
        let room = room.with_context(|| format!("`{room_id}` is no id of a room"))?;
        let status = self.status().await?;
        entry::describe(&self.reader, &status, room, Number(seq))
    }

    fn reload_key(&self) -> Result<()> {
        let (Some(file), Auth::Key(key)) = (&self.files.key_file, &self.bridge.config().auth)
        else {
            bail!("the running node checks no keys (--no-auth)");
        };
        let new = ApiKey::read(file)?;
        key.rotate(new.context("the key file is gone")?.text());
        tracing::info!("the key was rotated");
        Ok(())
    }
}

/// Each command has one kind of outcome.
fn wrong_answer() -> anyhow::Error {
    anyhow::anyhow!("the engine answers something else; this is a bug")
}

fn failure(error: anyhow::Error) -> Answer {
    Answer::Error(format!("{error:#}"))
}

async fn tell(write: &mut OwnedWriteHalf, answer: &Answer) -> std::io::Result<()> {
    let mut text = serde_json::to_string(answer).map_err(std::io::Error::other)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await
}

fn fingerprint(text: &str) -> Result<KeyPrint> {
    parse_hex(text).map(KeyPrint).context("a fingerprint has 32 hex digits")
}
