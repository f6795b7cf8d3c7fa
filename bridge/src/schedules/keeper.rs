//! Looks at jobs when they are due, and at what other nodes say of them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use mesh::{
    api::{
        command::{Refused, ScheduleAct},
        once::OnceWant,
    },
    name::id::{JobId, KeyPrint, MessageId, NodeId, RoomId},
    records::schedules::{JobView, WantedJobs, WantedRuns},
    wire::record::RecordId,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Book, Entry, Fired, JobState, PREFIX, Timer, book,
    book::{Turn, millis},
    firing::{self, Firing},
    job::{Job, Run, Status},
    news::Changed,
    now, now_ms,
    plan::DueSlots,
    scheduler, state_of,
};
use crate::{
    backend::{ReadError, Reads},
    limits::{
        SCHEDULE_ASKS_WITHIN, SCHEDULE_LEASE, SCHEDULE_NAP, SCHEDULE_SETTLES, SCHEDULED_KEYS_MAX,
        SCHEDULER_STAYS,
    },
    read::{Desk, Visitor},
    seam::{
        call::{
            AskOnce, Attach, ChangeJob, Identity, ListDirect, NoteRun, OpenDirect, StandOutside,
        },
        refusal::Refusal,
    },
    secret::Secret,
};

/// The thing of which there is one: who has it fires.
const SUBJECT: &str = "cron";
/// A room that was not found is looked for again after this, and twice that, and so on.
const FIND_AGAIN: Duration = Duration::from_millis(250);
const FIND_TRIES_MAX: u32 = 8;

/// Sees to all jobs. Does not end by itself.
pub(crate) async fn run(desk: Desk) {
    for (name, row) in desk.kept(PREFIX.to_vec()).await.unwrap_or_default() {
        let Ok(key) = String::from_utf8(row) else { continue };
        let opened = open(&desk, Secret::new(key), false).await;
        if let Err(Refusal::Mesh(Refused::NoKey)) = opened {
            // It was revoked.
            drop(desk.keep(name, None).await);
        }
    }
    let news = &desk.hub().scheduled;
    loop {
        for (key, changed) in news.take() {
            read(&desk, key, changed).await;
        }
        {
            let (off, mut all) = (news.is_off(), desk.schedules().lock());
            if all.off != off {
                all.switch(off, me(&desk));
            }
        }
        look(&desk);
        let next_ms = desk.schedules().lock().timers.first().map(|(at_ms, ..)| *at_ms);
        let left = next_ms.map_or(u64::MAX, |at_ms| at_ms.saturating_sub(now_ms()));
        // A clock that is set while this waits is noticed.
        let nap = Duration::from_millis(left.max(1)).min(SCHEDULE_NAP);
        tokio::select! {
            () = news.came.notified() => {}
            () = desk.schedules().stir.notified() => {}
            () = sleep(nap) => {}
        }
    }
}

fn me(desk: &Desk) -> NodeId {
    desk.config().here.node
}

// Keys.

/// Sees to the jobs of a key from now on. `make`: it is to have a room for them.
pub(super) async fn open(desk: &Desk, key: Secret, make: bool) -> Result<(), Refusal> {
    let holder = desk.holder(key.clone()).await?;
    let print = holder.key();
    if holder.signer().is_none() || !holder.standing().may_write() {
        return Ok(());
    }
    {
        let mut all = desk.schedules().lock();
        let is_full = all.books.len() >= SCHEDULED_KEYS_MAX;
        match all.books.get(&print) {
            Some(book) if book.room.is_some() || !make => return Ok(()),
            None if is_full => return Ok(()),
            Some(_) => {}
            None => {
                let own = desk.config().auth.owns(print);
                all.books.insert(print, Book::new(key.clone(), own, false));
            }
        }
    }
    desk.hub().scheduled.want(print, true);
    let found = find(desk, &holder).await?;
    let room = match found {
        None if make => Some(made(desk, key).await?),
        found => found,
    };
    if let Some(room) = room {
        load(desk, print, room).await?;
    }
    Ok(())
}

/// The key is not valid any more.
pub(super) async fn close(desk: &Desk, key: KeyPrint) {
    desk.hub().scheduled.want(key, false);
    desk.schedules().lock().remove_key(key);
    drop(desk.keep(row_of(key), None).await);
}

fn row_of(key: KeyPrint) -> Vec<u8> {
    [PREFIX, key.to_string().as_bytes()].concat()
}

/// Keeps the key while it has jobs, and no longer.
pub(super) async fn see_to_row(desk: &Desk, key: KeyPrint) {
    let row = {
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get_mut(&key) else { return };
        let is_wanted = !book.entries.is_empty();
        if std::mem::replace(&mut book.is_kept, is_wanted) == is_wanted {
            return;
        }
        is_wanted.then(|| book.key.expose().as_bytes().to_vec())
    };
    if let Err(refusal) = desk.keep(row_of(key), row).await {
        tracing::warn!(
            event = "schedule_key_not_kept", %key, ?refusal,
            "jobs of a key are not fired after a restart until the key is presented again"
        );
    }
}

/// The room of a key's schedule, if it is here.
async fn find(desk: &Desk, holder: &Visitor) -> Result<Option<RoomId>, Refusal> {
    let agent = scheduler(holder.key());
    let reader = holder.clone().named(Some(agent.clone()));
    let rooms = desk.ask(&reader, ListDirect).await?;
    let is_it = |sides: &mesh::name::group::Sides| {
        sides.iter().all(|(side, key)| *side == agent && key == holder.key())
    };
    let mut found =
        rooms.iter().filter(|room| !room.task && room.sides.as_ref().is_some_and(is_it));
    Ok(found.next().map(|room| room.room))
}

/// The key's scheduler, which acts.
async fn agent(desk: &Desk, key: Secret) -> Result<Visitor, Refusal> {
    let holder = desk.holder(key.clone()).await?;
    let attach = Attach {
        key,
        name: "Schedule".to_owned(),
        identity: Identity::Named(scheduler(holder.key()).to_string()),
        capabilities: Vec::new(),
        reconnect: false,
        linger: SCHEDULER_STAYS,
    };
    let hosted = desk.host(attach).await?;
    if hosted.came {
        desk.ask(&hosted.visitor, StandOutside).await?;
    }
    Ok(hosted.visitor)
}

async fn made(desk: &Desk, key: Secret) -> Result<RoomId, Refusal> {
    let agent = agent(desk, key).await?;
    let itself = scheduler(agent.key());
    Ok(desk.ask(&agent, OpenDirect::with(itself)).await?.room)
}

// Reading.

/// A job as it is kept, and its runs.
type Read = (JobView, Vec<Run>);

fn read_job(reads: &dyn Reads, room: RoomId, view: JobView) -> Result<Read, ReadError> {
    let runs = reads.runs(room, WantedRuns::Of(view.job))?;
    Ok((view, runs.iter().filter_map(Run::of).collect()))
}

fn entry_of((view, runs): &Read, me: NodeId, settles_ms: u64) -> Option<Entry> {
    let mut entry = Entry::new(Job::of(view)?, view.record, settles_ms);
    for run in runs {
        entry.note(run, me);
    }
    Some(entry)
}

/// Reads all of a key.
async fn load(desk: &Desk, key: KeyPrint, room: RoomId) -> Result<(), Refusal> {
    let me = me(desk);
    let reading = desk.schedules().reading.lock().await;
    let read = desk.reading(move |reads| {
        let jobs = reads.jobs(room, WantedJobs::All)?;
        jobs.into_iter().map(|view| read_job(reads, room, view)).collect::<Result<Vec<_>, _>>()
    });
    let read = read.await?;
    let mut resumed = Vec::new();
    {
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get_mut(&key) else { return Ok(()) };
        let is_first = book.room.replace(room).is_none();
        let settles_ms = if book.own { 0 } else { now_ms() + millis(SCHEDULE_SETTLES) };
        let mut gone: BTreeSet<JobId> = book.entries.keys().copied().collect();
        for read in &read {
            let Some(entry) = entry_of(read, me, settles_ms) else { continue };
            gone.remove(&entry.job.id);
            if let Some(known) = book.entries.get_mut(&entry.job.id) {
                known.job = entry.job;
                for run in &read.1 {
                    known.note(run, me);
                }
                continue;
            }
            // Of this node, and nobody here sees to them: the node has started anew.
            let own = read.1.iter().filter(|run| run.node == me && run.status == Status::Running);
            resumed.extend(own.map(|run| (entry.job.clone(), run.clone())));
            book.put(entry);
        }
        gone.into_iter().for_each(|job| all.remove_job(key, job));
        all.wind(key, me);
        if is_first {
            let renew_ms = now_ms() + millis(SCHEDULE_LEASE) / 2;
            all.set_timer(renew_ms, key, Timer::Renew);
        }
    }
    drop(reading);
    for (job, run) in resumed {
        firing::resume(desk, (key, room), job, run);
    }
    see_to_row(desk, key).await;
    desk.schedules().stir.notify_one();
    Ok(())
}

/// Reads what has changed of a key.
async fn read(desk: &Desk, key: KeyPrint, changed: Changed) {
    let room = desk.schedules().lock().books.get(&key).map(|book| book.room);
    let Some(room) = room else { return };
    let Some(room) = room else {
        return desk.schedules().lock().set_timer(now_ms(), key, Timer::Find);
    };
    let outcome = match changed {
        Changed::All => load(desk, key, room).await,
        Changed::Some { jobs, runs } => {
            let (mut outcome, mut gone) = (Ok(()), Vec::new());
            for record in jobs {
                match read_changed_job(desk, (key, room), record).await {
                    Ok(job) => gone.extend(job),
                    Err(refusal) => outcome = Err(refusal),
                }
            }
            for record in runs {
                outcome = outcome.and(read_changed_run(desk, (key, room), record).await);
            }
            // Dialects are told of a run of a job that is deleted after it.
            let mut all = desk.schedules().lock();
            gone.into_iter().for_each(|job| all.remove_job(key, job));
            drop(all);
            outcome
        }
    };
    if let Err(refusal) = outcome {
        tracing::warn!(event = "schedule_not_read", %key, ?refusal, "jobs of a key could not be read");
    }
    see_to_row(desk, key).await;
}

/// The job, if it is not there any more.
pub(super) async fn read_changed_job(
    desk: &Desk,
    (key, room): (KeyPrint, RoomId),
    record: RecordId,
) -> Result<Option<JobId>, Refusal> {
    let _reading = desk.schedules().reading.lock().await;
    let read = desk.reading(move |reads| {
        let views = reads.jobs(room, WantedJobs::One(record))?;
        views.into_iter().next().map(|view| read_job(reads, room, view)).transpose()
    });
    let read = read.await?;
    let me = me(desk);
    let mut all = desk.schedules().lock();
    let Some(book) = all.books.get_mut(&key) else { return Ok(None) };
    let Some(read) = read else { return Ok(book.by_record.get(&record).copied()) };
    let Some(mut entry) = entry_of(&read, me, 0) else { return Ok(None) };
    let job = entry.job.id;
    match book.entries.get(&job) {
        Some(known) => {
            let mut known = known.clone();
            known.job = entry.job;
            entry = known;
        }
        None if entry.job.home != me && !book.own => {
            // What others have fired of it may still be on its way.
            entry.settles_ms = now_ms() + millis(SCHEDULE_SETTLES);
        }
        None => {}
    }
    book.put(entry);
    all.wind_job(key, job, me);
    Ok(None)
}

async fn read_changed_run(
    desk: &Desk,
    (key, room): (KeyPrint, RoomId),
    record: RecordId,
) -> Result<(), Refusal> {
    let views = desk.reading(move |reads| reads.runs(room, WantedRuns::One(record))).await?;
    let Some(run) = views.first().and_then(Run::of) else { return Ok(()) };
    let me = me(desk);
    let mut all = desk.schedules().lock();
    let Some(book) = all.books.get_mut(&key) else { return Ok(()) };
    let Some(entry) = book.entries.get_mut(&run.job) else { return Ok(()) };
    let begins = entry.note(&run, me);
    let job = entry.job.clone();
    all.wind_job(key, run.job, me);
    drop(all);
    tell(desk, key, job, run, begins);
    Ok(())
}

/// Tells dialects of a run. One of which they have heard nothing has begun first.
pub(super) fn tell(desk: &Desk, key: KeyPrint, job: Job, run: Run, begins: bool) {
    let told = &desk.schedules().told;
    // An error: nobody listens.
    let tell = |begins| {
        drop(told.send(Arc::new(Fired { key, job: job.clone(), run: run.clone(), begins })))
    };
    if run.status == Status::Running {
        if begins {
            tell(true);
        }
        return;
    }
    if begins && run.status.fired() {
        tell(true);
    }
    tell(false);
}

/// A client has written a job: it is seen to from now on.
pub(super) async fn has_put(
    desk: &Desk,
    key: KeyPrint,
    room: RoomId,
    job: JobId,
) -> Result<Option<JobState>, Refusal> {
    let jobs = desk.reading(move |reads| reads.jobs(room, WantedJobs::All)).await?;
    let Some(view) = jobs.into_iter().find(|view| view.job == job) else { return Ok(None) };
    read_changed_job(desk, (key, room), view.record).await?;
    desk.schedules().stir.notify_one();
    let all = desk.schedules().lock();
    Ok(all.books.get(&key).and_then(|book| book.entries.get(&job)).map(state_of))
}

// Times.

/// Sees to all that is due.
fn look(desk: &Desk) {
    loop {
        let due = {
            let mut all = desk.schedules().lock();
            let first = all.timers.first().copied().filter(|(at_ms, ..)| *at_ms <= now_ms());
            let Some((at_ms, key, timer)) = first else { return };
            all.timers.remove(&(at_ms, key, timer));
            (key, timer)
        };
        match due {
            (key, Timer::Find) => find_again(desk, key),
            (key, Timer::Renew) => renew(desk, key),
            (key, Timer::Job(job)) => look_at(desk, key, job),
        }
    }
}

/// There are records of a key, and its room was not here.
fn find_again(desk: &Desk, key: KeyPrint) {
    let secret = {
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get_mut(&key).filter(|book| book.room.is_none()) else { return };
        book.tries += 1;
        book.key.clone()
    };
    let desk = desk.clone();
    drop(tokio::spawn(async move {
        let found = async {
            let holder = desk.holder(secret).await?;
            match find(&desk, &holder).await? {
                Some(room) => load(&desk, key, room).await.map(|()| true),
                None => Ok(false),
            }
        };
        let found: Result<bool, Refusal> = found.await;
        let mut all = desk.schedules().lock();
        let tries = all.books.get(&key).map_or(FIND_TRIES_MAX, |book| book.tries);
        if !found.unwrap_or(false) && tries < FIND_TRIES_MAX {
            all.set_timer(now_ms() + (millis(FIND_AGAIN) << tries), key, Timer::Find);
        }
    }));
}

fn renew(desk: &Desk, key: KeyPrint) {
    let renews = {
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get(&key) else { return };
        let renews = !all.off && book.renews(now());
        let again_ms = now_ms() + millis(SCHEDULE_LEASE) / 2;
        all.set_timer(again_ms, key, Timer::Renew);
        renews
    };
    if renews {
        ask_lease(desk, key);
    }
}

fn look_at(desk: &Desk, key: KeyPrint, job: JobId) {
    let me = me(desk);
    let turn = {
        let all = desk.schedules().lock();
        let Some(book) = all.books.get(&key).filter(|_| !all.off) else { return };
        let Some(entry) = book.entries.get(&job) else { return };
        book.turn(entry, (me, book::rank_of(me, key)), now())
    };
    match turn {
        Turn::Later(wake_ms) => desk.schedules().lock().set_wake(key, job, wake_ms),
        Turn::AskLease => {
            // The answer has all jobs of the key looked at again.
            let wake_ms = now_ms() + millis(SCHEDULE_ASKS_WITHIN) + 1_000;
            desk.schedules().lock().set_wake(key, job, Some(wake_ms));
            ask_lease(desk, key);
        }
        Turn::Fire => fire_due(desk, key, job),
    }
}

/// Fires what is due of a job, and notes what was missed.
fn fire_due(desk: &Desk, key: KeyPrint, job: JobId) {
    let due = {
        let all = desk.schedules().lock();
        let entry = all.books.get(&key).and_then(|book| book.entries.get(&job));
        entry.map(|entry| entry.due(now_ms())).unwrap_or_default()
    };
    if let Some(missed) = due.missed {
        firing::note_missed(desk, (key, job), missed.to_string());
    }
    if let Some(slot) = due.fires {
        fire(desk, (key, job), slot.to_string(), false);
    }
    let mut all = desk.schedules().lock();
    all.wind_job(key, job, me(desk));
    if due == DueSlots::default() {
        // It cannot be, and nobody is to look at it without an end.
        all.set_wake(key, job, Some(now_ms() + millis(SCHEDULE_NAP)));
    }
}

/// Begins a run of a job. `forced`: somebody has asked for it. Whether there is such a job.
pub(super) fn fire(desk: &Desk, at: (KeyPrint, JobId), slot: String, forced: bool) -> bool {
    let Some((firing, run)) = begin(desk, at, slot, forced) else { return false };
    let mut all = desk.schedules().lock();
    let entry = all.books.get_mut(&firing.print).and_then(|book| book.entries.get_mut(&run.job));
    if let Some(entry) = entry {
        entry.begins(&run);
    }
    drop(all);
    firing::begin(desk, firing, run);
    true
}

/// A new run of a job, which counts as seen to from now on.
pub(super) fn begin(
    desk: &Desk,
    (key, job): (KeyPrint, JobId),
    slot: String,
    forced: bool,
) -> Option<(Firing, Run)> {
    let (me, now_ms) = (me(desk), now_ms());
    let mut all = desk.schedules().lock();
    let book = all.books.get_mut(&key)?;
    let (room, secret) = (book.room?, book.key.clone());
    let entry = book.entries.get_mut(&job)?;
    let open = if forced { Vec::new() } else { entry.open.clone().into_iter().collect() };
    let run = Run {
        job,
        node: me,
        place: entry.take_place(now_ms),
        slot,
        at_ms: now_ms,
        status: Status::Running,
        error: None,
        summary: None,
        took_ms: None,
        tokens: None,
    };
    entry.seen_ms = entry.seen_ms.max(run.slot_ms().unwrap_or(0));
    Some((Firing { key: secret, print: key, room, job: entry.job.clone(), open }, run))
}

// The lease.

fn ask_lease(desk: &Desk, key: KeyPrint) {
    let asked = {
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get_mut(&key).filter(|book| !book.asking) else { return };
        let Some(room) = book.room else { return };
        book.asking = true;
        (book.key.clone(), room, book.grant)
    };
    let desk = desk.clone();
    drop(tokio::spawn(async move {
        let (secret, room, grant) = asked;
        let begun = Instant::now();
        let answer = timeout(SCHEDULE_ASKS_WITHIN, granted(&desk, secret, room, grant)).await;
        if let Ok(Err(Refusal::Mesh(Refused::NoKey))) = answer {
            return close(&desk, key).await;
        }
        let mut all = desk.schedules().lock();
        let Some(book) = all.books.get_mut(&key) else { return };
        match answer {
            Ok(Ok(granted)) => book.answered(granted, begun, now()),
            Ok(Err(refusal)) => {
                tracing::debug!(%key, ?refusal, "the lease of a schedule was not asked for");
                book.unanswered(now());
            }
            Err(_) => book.unanswered(now()),
        }
        all.wind(key, me(&desk));
        drop(all);
        desk.schedules().stir.notify_one();
    }));
}

/// The grant of the lease, if this node has it.
async fn granted(
    desk: &Desk,
    key: Secret,
    room: RoomId,
    grant: Option<MessageId>,
) -> Result<Option<MessageId>, Refusal> {
    let agent = agent(desk, key).await?;
    let ask = |want| AskOnce { room, subject: SUBJECT.to_owned(), want };
    if let Some(grant) = grant {
        let answer = desk.ask(&agent, ask(OnceWant::Renew(grant))).await?;
        if answer.granted {
            return Ok(Some(grant));
        }
    }
    let answer = desk.ask(&agent, ask(OnceWant::Take(Some(SCHEDULE_LEASE)))).await?;
    Ok(answer.holder.filter(|_| answer.granted).map(|holder| holder.grant))
}

/// Notes a run, and deletes its job if that is over.
pub(super) async fn note(
    desk: &Desk,
    key: &Secret,
    room: RoomId,
    act: ScheduleAct,
) -> Result<(), Refusal> {
    let holder = desk.holder(key.clone()).await?;
    desk.ask(&holder, NoteRun(ChangeJob { room, act })).await
}
