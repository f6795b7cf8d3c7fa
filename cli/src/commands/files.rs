//! `clawmesh files`: the files of a room, over HTTP.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::address::WebSocketUrl;
use client::client::Client;
use client::http::{Answer, Ask, Method, ask, encoded};
use client::limits::HTTP_WITHIN;
use client::secrets::Secrets;
use protocol::object::{File as RoomFile, ReplacedFile, Room};
use protocol::request::ListRooms;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::context::{Context, choose_room};
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::table;

/// More than any node takes for one file: it says so, and not this program's memory.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A file's content comes a moment after its name, from another node.
const CONTENT_WITHIN: Duration = Duration::from_secs(20);
const CONTENT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Files of a room: the key that made it writes them (of a direct or shared room, all its keys); all who may read the room read them
#[derive(Debug, clap::Args)]
pub struct Files {
    #[command(flatten)]
    operator: Operator,
    #[command(subcommand)]
    command: FilesCommand,
}

#[derive(Debug, clap::Subcommand)]
enum FilesCommand {
    /// List the files of a room, and, as PATH.1 and so on, the states that newer ones have replaced within a day
    List {
        /// Room id, or exact name
        room: String,
    },
    /// Read a file
    Get {
        /// Room id, or exact name
        room: String,
        /// The path in the room, such as notes/plan.md; notes/plan.md.1 is the state before the last
        path: String,
        /// Where to write it; - is standard output
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Write a file; one that is there is replaced
    Put {
        /// Room id, or exact name
        room: String,
        /// The path in the room, such as notes/plan.md
        path: String,
        /// What to write: a file, or - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// The media type
        #[arg(long = "type", value_name = "TYPE")]
        media: Option<String>,
    },
    /// Delete a file
    Rm {
        /// Room id, or exact name
        room: String,
        /// The path in the room
        path: String,
    },
}

/// The answer to `GET …/files`.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    files: Vec<RoomFile>,
    /// Those that newer ones have replaced. A node of an earlier version says nothing of them.
    #[serde(default)]
    replaced: Vec<ReplacedFile>,
}

/// A file that was read.
#[derive(Debug, Serialize)]
struct FileRead {
    path: String,
    size: usize,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    media: Option<String>,
    /// Absent if it is no text, or was written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// A file that was written or deleted.
#[derive(Debug, Serialize)]
struct Changed {
    path: String,
}

/// The errors of a node over HTTP.
#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

/// The files that are meant.
#[derive(Clone, Copy)]
enum Named<'p> {
    /// All, with states that newer ones have replaced.
    All,
    /// The one of this path.
    One(&'p str),
}

/// The files of one room at one node.
struct Place<'c> {
    cx: &'c Context,
    node: WebSocketUrl,
    client: Client,
    room: Room,
}

pub(crate) async fn run(cx: &Context, args: Files) -> Result<Outcome, Failure> {
    let node = args.operator.web(&cx.node)?.ok_or(Failure::FilesOverHttp)?;
    let here = Context::new(args.operator.clients_way(&cx.node)?);
    let cx = if cx.is_held() { cx } else { &here };
    let at = async |room: &str| {
        let client = cx.client().await?;
        let list = client.call(ListRooms { parent_id: None }).await?;
        let room = choose_room(&list.rooms, room)?.clone();
        Ok::<_, Failure>(Place { cx, node, client, room })
    };
    match args.command {
        FilesCommand::List { room } => at(&room).await?.list().await?,
        FilesCommand::Get { room, path, file } => at(&room).await?.get(path, &file).await?,
        FilesCommand::Put { room, path, file, media } => {
            at(&room).await?.put(path, &file, media.as_deref()).await?;
        }
        FilesCommand::Rm { room, path } => at(&room).await?.rm(path).await?,
    }
    Ok(Outcome::Done)
}

impl Place<'_> {
    async fn list(&self) -> Result<(), Failure> {
        let answer = self.ask(Method::GET, Named::All, &[], Vec::new()).await?;
        let listed: Listed = serde_json::from_slice(&answer.body)?;
        let output = &self.cx.output;
        let row = |file: &RoomFile| {
            let file = file.clone();
            let (media, by) = (file.media_type.unwrap_or_default(), file.by.unwrap_or_default());
            vec![file.path, file.size.to_string(), media, by, file.updated_at]
        };
        let heads = ["path", "bytes", "type", "by", "written"];
        let mut rows: Vec<_> = listed.files.iter().map(row).collect();
        for state in listed.replaced.iter().cloned() {
            let (media, by) = (state.media_type.unwrap_or_default(), state.by.unwrap_or_default());
            rows.push(vec![state.path, state.size.to_string(), media, by, state.updated_at]);
        }
        output.show(&listed, || table::lines(output, &heads, rows))
    }

    async fn get(&self, path: String, file: &Path) -> Result<(), Failure> {
        let answer = self.ask(Method::GET, Named::One(&path), &[], Vec::new()).await?;
        let bytes = self.opened(answer.body)?;
        let (size, media) = (bytes.len(), answer.media);
        if file != Path::new("-") {
            written(file, &bytes)?;
            let read = FileRead { path, size, media, text: None };
            let line = || format!("{} bytes: {}", read.size, file.display());
            return self.cx.output.show(&read, || vec![line()]);
        }
        if self.cx.output.is_json() {
            let text = String::from_utf8(bytes).ok();
            return self.cx.output.object(&FileRead { path, size, media, text });
        }
        // What others have written steers no terminal.
        if io::stdout().is_terminal() {
            let text = String::from_utf8(bytes).map_err(|_| Failure::NoText { path })?;
            for line in text.lines() {
                self.cx.output.line(line)?;
            }
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        Ok(out.flush()?)
    }

    async fn put(&self, path: String, file: &Path, media: Option<&str>) -> Result<(), Failure> {
        let bytes = self.sealed(read(file)?)?;
        let media: Vec<_> = media.map(|media| ("content-type", media)).into_iter().collect();
        self.ask(Method::PUT, Named::One(&path), &media, bytes).await?;
        let line = format!("Written: {}", format::name(&path));
        self.cx.output.show(&Changed { path }, || vec![line])
    }

    async fn rm(&self, path: String) -> Result<(), Failure> {
        self.ask(Method::DELETE, Named::One(&path), &[], Vec::new()).await?;
        let line = format!("Deleted: {}", format::name(&path));
        self.cx.output.show(&Changed { path }, || vec![line])
    }

    /// Asks again while the content is on its way to this node.
    async fn ask(
        &self,
        method: Method,
        named: Named<'_>,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let all = format!("/api/rooms/{}/files", encoded(&self.room.room_id));
        let at = match named {
            Named::All => format!("{all}?replaced=true"),
            Named::One(path) => format!("{all}/{}", encoded(path)),
        };
        let (key, authorities) = (self.cx.key()?, self.cx.authorities());
        // Headers are ASCII. Without the name, rooms of two agents stay closed.
        let by =
            Some(self.client.agent_id()).filter(|id| id.bytes().all(|it| it.is_ascii_graphic()));
        let by: Vec<_> = by.map(|id| ("x-clawmesh-agent", id)).into_iter().collect();
        let headers = [&by, headers].concat();
        let until = Instant::now() + CONTENT_WITHIN;
        loop {
            let method = method.clone();
            let (key, authorities, path, headers) = (&key, &authorities, at.as_str(), &*headers);
            let (body, within) = (body.clone(), HTTP_WITHIN);
            let asked = Ask { method, path, key, authorities, headers, body, within };
            let answer = ask(&self.node, asked).await?;
            let pause = answer.retry_after.filter(|_| answer.status == 503);
            match pause.map(|pause| pause.min(CONTENT_PAUSE_MAX)) {
                Some(pause) if Instant::now() + pause < until => sleep(pause).await,
                Some(_) | None if (200..300).contains(&answer.status) => return Ok(answer),
                Some(_) | None => return Err(refused(&answer)),
            }
        }
    }

    /// The content as it is kept: encrypted, if the room takes nothing else.
    fn sealed(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Some(secrets) = self.secrets() else { return Ok(bytes) };
        let text = String::from_utf8(bytes).map_err(|_| Failure::EncryptedText)?;
        let Some(key) = secrets.key(&self.room.room_id) else { return Ok(text.into_bytes()) };
        let mut nonce = [0; 12];
        getrandom::fill(&mut nonce).map_err(|_| Failure::NoRandomness)?;
        let sealed = key.seal(nonce, &text).map_err(|_| Failure::EncryptedText)?;
        Ok(sealed.into_bytes())
    }

    fn opened(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Some(secrets) = self.secrets() else { return Ok(bytes) };
        let Ok(text) = String::from_utf8(bytes) else { return Err(Failure::EncryptedText) };
        let opened = secrets.open(&self.room.room_id, &text);
        let opened = opened.map_err(|_| Failure::NotOpened)?;
        Ok(opened.unwrap_or(text).into_bytes())
    }

    fn secrets(&self) -> Option<Secrets> {
        let secret = self.cx.node.room_key.clone().filter(|_| self.room.encrypted);
        secret.map(Secrets::for_all_rooms)
    }
}

fn refused(answer: &Answer) -> Failure {
    let refusal: Result<Refusal, _> = serde_json::from_slice(&answer.body);
    let why = match refusal {
        Ok(refusal) => refusal.message,
        Err(_) => format!("the node answered with HTTP status {}", answer.status),
    };
    Failure::Refused { why: format::printable(&why, " ") }
}

/// At most as much as a node may take, and a little more.
fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::File { path: file.to_owned(), source };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        File::open(file).map_err(failure)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)
    };
    read.map_err(failure)?;
    Ok(bytes)
}

fn written(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || File::create(file)?.write_all(bytes);
    write().map_err(|source| Failure::File { path: file.to_owned(), source })
}
