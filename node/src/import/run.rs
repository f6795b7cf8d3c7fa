//! Writing what was planned: in an order that is always the same, so that an import that was killed
//! goes on where its last commit ends.

use std::ops::ControlFlow;

use anyhow::{Context, Result, bail};
use import::{Kind, Message, ReadError, ServerFile};
use mesh::{
    Engine, Input,
    api::{
        batch::Change,
        command::{CallId, Command, Opaque, Speech},
        import::{Import, ImportedMessage, ImportedMessages, ImportedRoom},
    },
    name::id::RoomId,
    wire::signatures::SignedLog,
};
use store::{Reader, Store};

use super::{
    journal::Journal,
    plan::{
        Place, Plan,
        ids::id_of,
        ledger::{Counts, Thing},
        sieve::{Sieve, Sifted},
    },
    target::Target,
};
use crate::clock::Clock;

/// Things in one commit: some tenth of a second of work, and of work that may be lost.
pub(crate) const THINGS_PER_COMMIT: u64 = 4_096;
/// Bytes of their texts: these are held in memory.
const BYTES_PER_COMMIT: usize = 8 * 1024 * 1024;

/// The end of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// All of it is there.
    All,
    /// It was stopped after a commit: the next run goes on.
    Stopped,
}

/// The caller's part in an import.
pub(crate) struct Watch<'w> {
    /// Told after each commit: how many things are written. It says whether to go on.
    pub(crate) progress: &'w mut dyn FnMut(u64) -> ControlFlow<()>,
    /// Asked when all is written, before that is kept as done: whether the file has stayed the
    /// same.
    pub(crate) sound: &'w dyn Fn() -> Result<()>,
}

/// Writes the plan of a file, from where `journal` says that it got to.
///
/// # Errors
/// The store or the file fails, or is not sound; or the engine refuses something, which is a bug: all was looked at
/// before. The import is one that is not finished then.
pub(crate) fn bring<'w>(
    file: &ServerFile,
    plan: &Plan,
    target: &'w mut Target,
    journal: Journal,
    watch: Watch<'w>,
) -> Result<Brought> {
    let clock = Clock::start();
    let (engine, log) = target.enter(clock)?;
    let lobby = target.lobby()?;
    let reader = target.store.reader();
    let (skip, store) = (journal.written, &mut target.store);
    let mut writer = Writer {
        engine,
        log,
        store,
        reader,
        clock,
        lobby,
        journal,
        skip,
        things: 0,
        bytes: 0,
        room: Vec::new(),
        kept: Vec::new(),
        counts: Counts::default(),
        watch,
    };
    match writer.write(file, plan).and_then(|()| writer.finish(plan)) {
        Ok(()) => Ok(Brought::All),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Asked) => Ok(Brought::Stopped),
    }
}

/// Why nothing more is written.
enum Stop {
    Failed(anyhow::Error),
    Asked,
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Stop {
        Stop::Failed(error.into())
    }
}

struct Writer<'w> {
    engine: Engine,
    /// The log that it writes: keys sign for it.
    log: SignedLog,
    store: &'w mut Store,
    reader: Reader,
    clock: Clock,
    lobby: RoomId,
    journal: Journal,
    /// Things that an earlier run has written.
    skip: u64,
    /// Things since the last commit, and their bytes.
    things: u64,
    bytes: usize,
    /// Messages of one room that the engine has not got yet.
    room: Vec<(RoomId, ImportedMessage)>,
    /// Rows for the node to keep besides.
    kept: Vec<Change>,
    /// Things that are there, those of an earlier run included.
    counts: Counts,
    watch: Watch<'w>,
}

impl Writer<'_> {
    fn write(&mut self, file: &ServerFile, plan: &Plan) -> Result<(), Stop> {
        for key in &plan.keys {
            self.thing(Some(Thing::Key), |writer| key.signed(&writer.log))?;
        }
        for id in &plan.agents {
            self.thing(Some(Thing::AgentId), |writer| id.signed(writer.log.mesh))?;
        }
        if let Some((description, created_ms)) = &plan.lobby {
            let created_ms = created_ms.unwrap_or(self.clock.now().wall_ms);
            self.thing(Some(Thing::Room), |_| Import::Lobby(description.clone(), created_ms))?;
        }
        for (room, parent) in &plan.rooms {
            self.thing(Some(Thing::Room), |writer| {
                let parent = parent.map(|place| writer.id(place));
                Import::Room(ImportedRoom { parent, ..room.clone() })
            })?;
        }
        // Names are certain, and rooms there, once they are committed.
        self.commit()?;
        let mut sieve = Sieve::default();
        file.messages::<Stop>(|row| match sieve.sift(plan, row) {
            Sifted::Brought(place, message) => self.message(plan, place, *message),
            Sifted::Left(_) | Sifted::Bad(_) => Ok(()),
        })?;
        self.end_room()?;
        for (place, next) in &plan.next {
            let (place, next) = (*place, *next);
            self.thing(None, |writer| {
                let room = writer.id(place);
                Import::Messages(ImportedMessages { room, messages: Vec::new(), next })
            })?;
        }
        for (place, wall_ms, vote) in &plan.votes {
            self.thing(Some(Thing::Vote), |writer| {
                Import::Vote(writer.id(*place), *wall_ms, vote.clone())
            })?;
        }
        for (place, task) in &plan.tasks {
            self.thing(Some(Thing::Task), |writer| {
                let room = writer.id(*place);
                Import::Task(mesh::api::import::ImportedTask { room, ..task.clone() })
            })?;
        }
        for (place, webhook) in &plan.webhooks {
            if self.counts(Some(Thing::Webhook)) {
                let (name, value) = webhook.clone().into_kept(self.id(*place));
                self.bytes += value.len();
                self.kept.push(Change::Keep { name, value: Some(Opaque(value)) });
                self.commit_if_full()?;
            }
        }
        Ok(())
    }

    fn id(&self, place: Place) -> RoomId {
        match place {
            Place::Lobby => self.lobby,
            Place::Room(room) => room,
        }
    }

    /// Whether it is still to be written.
    fn counts(&mut self, what: Option<Thing>) -> bool {
        if let Some(what) = what {
            self.counts.add(what, 1);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.things += 1;
        true
    }

    fn thing(
        &mut self,
        what: Option<Thing>,
        import: impl FnOnce(&Self) -> Import,
    ) -> Result<(), Stop> {
        if !self.counts(what) {
            return Ok(());
        }
        let import = import(self);
        let written = self.engine.import(self.clock.now(), import);
        let which = self.journal.written + self.things;
        written.map_err(|refused| anyhow::anyhow!("{refused}: thing {which} of the file"))?;
        // The bytes of an act are bounded; so many of them are a commit's worth.
        self.bytes += 4_096;
        self.commit_if_full()
    }

    fn message(&mut self, plan: &Plan, place: Place, message: Message) -> Result<(), Stop> {
        if !self.counts(Some(Thing::Message)) {
            return Ok(());
        }
        let room = self.id(place);
        if self.room.last().is_some_and(|(last, _)| *last != room) {
            self.end_room()?;
        }
        self.bytes +=
            message.content.len() + message.metadata.as_ref().map_or(0, String::len) + 512;
        let message = ImportedMessage {
            id: Some(id_of(Thing::Message, &message.id)),
            number: message.seq,
            wall_ms: message.wall_ms,
            speech: match message.kind {
                Kind::Chat => Speech::Chat,
                Kind::Thinking => Speech::Thinking,
                Kind::Decision => Speech::Decision,
            },
            agent: message.agent.into(),
            name: message.name,
            content: message.content,
            reply_to: message.reply_to.map(|id| plan.answered(id)),
            // Mentions are in no column.
            mentions: Vec::new(),
            metadata: message.metadata,
        };
        self.room.push((room, message));
        self.commit_if_full()
    }

    /// The engine gets what was gathered of a room.
    fn end_room(&mut self) -> Result<(), Stop> {
        let messages = std::mem::take(&mut self.room);
        let (Some((room, _)), Some((_, last))) = (messages.first(), messages.last()) else {
            return Ok(());
        };
        let (room, next) = (*room, last.number + 1);
        let messages = messages.into_iter().map(|(_, message)| message).collect();
        let all = ImportedMessages { room, messages, next };
        let written = self.engine.import(self.clock.now(), Import::Messages(all));
        written.map_err(|refused| anyhow::anyhow!("{refused}: messages of the room {room}"))?;
        Ok(())
    }

    fn commit_if_full(&mut self) -> Result<(), Stop> {
        if self.things >= THINGS_PER_COMMIT || self.bytes >= BYTES_PER_COMMIT {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes durable what was written, and how far that is.
    fn commit(&mut self) -> Result<(), Stop> {
        self.end_room()?;
        if self.things == 0 {
            return Ok(());
        }
        self.journal.written += std::mem::take(&mut self.things);
        self.bytes = 0;
        let mut batch = self.engine.take_turn().batch;
        batch.append(&mut self.kept);
        self.store_with_journal(batch)?;
        match (self.watch.progress)(self.journal.written) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Asked),
        }
    }

    /// A commit is small enough that its effects for others can be forgotten: there are none.
    fn store_with_journal(&mut self, mut batch: Vec<Change>) -> Result<()> {
        batch.push(self.journal.row()?);
        self.store.set_wall_ms(self.clock.now().wall_ms);
        self.store.commit(&batch).context("write the store")
    }

    /// Stops the node in good order, and says that all is there when that was looked at.
    fn finish(&mut self, plan: &Plan) -> Result<(), Stop> {
        self.commit()?;
        // Nobody is there to hand anything to: it has stopped when that is durable.
        let stop = Input::Command { call: CallId(1), command: Command::Stop };
        self.engine.handle(self.clock.now(), stop);
        let batch = self.engine.take_turn().batch;
        self.store_with_journal(batch)?;
        self.check(plan)?;
        (self.watch.sound)()?;
        self.journal.done = true;
        self.store_with_journal(Vec::new())?;
        Ok(())
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        for (place, next) in &plan.next {
            let room = self.id(*place);
            let tip = self.reader.tip(room)?;
            if tip.0 + 1 != *next {
                bail!(
                    "the room {room} goes on with {} instead of {next}: this is a bug",
                    tip.0 + 1
                );
            }
        }
        if self.counts != plan.ledger.brought {
            bail!("{:?} of {:?} came: this is a bug", self.counts, plan.ledger.brought);
        }
        Ok(())
    }
}
