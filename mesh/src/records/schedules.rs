//! Schedules: jobs of a key, and what became of their runs. They are in a room of the key that nobody else has, as records of
//! it: where the room is, there they are. The core knows nothing of times: texts of jobs and runs are those who keep them.
//!
//! A job that was deleted stays deleted, whatever the other side of a split has written. Of each job and node the runs are a ring:
//! the next one takes the place of the oldest, so nothing has to be deleted.

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{
        JOB_FACTS_BYTES_MAX, JOB_MESSAGE_BYTES_MAX, JOB_RECORDS_PER_KEY_MAX,
        JOB_RECORDS_PER_NODE_MAX, RUN_FACTS_BYTES_MAX, RUN_RECORDS_PER_KEY_MAX,
        RUN_RECORDS_PER_NODE_MAX, RUNS_PER_JOB_AND_NODE,
    },
    name::id::{JobId, KeyPrint, MeshId, NodeId, RoomId},
    wire::{
        cbor::encode,
        cover::Cover,
        record::{CollectionNumber, Draft, Record, RecordId, Stamp},
    },
};

/// Room, job, node, and lengths, beside the texts.
const OVERHEAD_BYTES: usize = 128;

/// Jobs. A deletion is final.
pub static JOBS: Collection = Collection {
    number: CollectionNumber(54),
    name: "cron.job",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Final,
    body_bytes_max: JOB_FACTS_BYTES_MAX + JOB_MESSAGE_BYTES_MAX + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: JOB_RECORDS_PER_KEY_MAX,
    node_max: JOB_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<JobRecord>(body).ok()?.id(&Cover::Open)),
};

/// Runs of jobs. The oldest fall out: see [`Collection::forgets`].
pub static RUNS: Collection = Collection {
    number: CollectionNumber(55),
    name: "cron.run",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: RUN_FACTS_BYTES_MAX + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: RUN_RECORDS_PER_KEY_MAX,
    node_max: RUN_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<RunRecord>(body).ok()?.id(&Cover::Open)),
};

impl Collection {
    /// Whether its oldest records fall out for new ones, and nobody is refused for being at the bound of them.
    #[must_use]
    pub fn forgets(&self) -> bool {
        self.number == RUNS.number
    }

    /// Whether those who wait for times are told of a change of its records.
    #[must_use]
    pub(crate) fn is_scheduled(&self) -> bool {
        [JOBS.number, RUNS.number].contains(&self.number)
    }
}

/// The content of a job's record.
#[derive(Encode, Decode)]
struct JobRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    job: JobId,
    #[n(2)]
    facts: String,
    #[n(3)]
    message: String,
}

/// The content of a run's record.
#[derive(Encode, Decode)]
struct RunRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    job: JobId,
    #[n(2)]
    node: NodeId,
    #[n(3)]
    place: u16,
    #[n(4)]
    facts: String,
}

impl JobRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        job_id(cover, self.room, self.job)
    }
}

impl RunRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        let place = self.place.to_be_bytes();
        cover.id(RUNS.number, &subject(self.room, self.job), &[&self.node.0[..], &place].concat())
    }
}

fn job_id(cover: &Cover, room: RoomId, job: JobId) -> RecordId {
    cover.id(JOBS.number, &room.0, &job.0)
}

/// Runs of one job stand together.
fn subject(room: RoomId, job: JobId) -> Vec<u8> {
    [room.0, job.0].concat()
}

/// Texts of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobText {
    /// All but the message, in the words of those who keep it.
    pub facts: String,
    /// The message.
    pub message: String,
}

/// A run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunText {
    /// Its job.
    pub job: JobId,
    /// The node that has seen to it.
    pub node: NodeId,
    /// Its place in the ring of that job and node, below [`RUNS_PER_JOB_AND_NODE`].
    pub place: u16,
    /// In the words of those who keep it.
    pub facts: String,
}

/// A job as it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its record.
    pub record: RecordId,
    /// It.
    pub job: JobId,
    /// Its texts.
    pub text: JobText,
    /// When it was written.
    pub stamp: Stamp,
}

/// A run as it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// It.
    pub run: RunText,
    /// When it was written.
    pub stamp: Stamp,
}

impl JobText {
    /// Whether it keeps to its bounds.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.facts.len() <= JOB_FACTS_BYTES_MAX && self.message.len() <= JOB_MESSAGE_BYTES_MAX
    }

    /// The record to write.
    #[must_use]
    pub fn draft(self, at: &RoomPlace, job: JobId) -> Draft {
        let JobText { facts, message } = self;
        let record = JobRecord { room: at.room, job, facts, message };
        let id = record.id(&at.cover);
        Draft { space: at.space, collection: JOBS.number, id, body: Some(encode(&record)) }
    }
}

impl RunText {
    /// Whether it keeps to its bounds.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.facts.len() <= RUN_FACTS_BYTES_MAX && self.place < RUNS_PER_JOB_AND_NODE
    }

    /// The record to write.
    #[must_use]
    pub fn draft(self, at: &RoomPlace) -> Draft {
        let RunText { job, node, place, facts } = self;
        let record = RunRecord { room: at.room, job, node, place, facts };
        let id = record.id(&at.cover);
        Draft { space: at.space, collection: RUNS.number, id, body: Some(encode(&record)) }
    }
}

/// The record that deletes a job, for ever.
#[must_use]
pub fn deletion(at: &RoomPlace, job: JobId) -> Draft {
    let id = job_id(&at.cover, at.room, job);
    Draft { space: at.space, collection: JOBS.number, id, body: None }
}

/// The name of a job's record.
#[must_use]
pub fn name_of(at: &RoomPlace, job: JobId) -> RecordId {
    job_id(&at.cover, at.room, job)
}

/// The beginning of the names of the runs of a job.
#[must_use]
pub fn runs_of(at: &RoomPlace, job: JobId) -> [u8; RecordId::SUBJECT_BYTES] {
    at.cover.subject(RUNS.number, &subject(at.room, job))
}

/// The content of a record of this place, which only its keys write.
fn content(at: &RoomPlace, record: &Record) -> Option<Vec<u8>> {
    let body = record.content().filter(|_| record.space == at.space)?;
    Some(at.cover.read(&record.spot(), body)?.into_owned())
}

/// The job that a record says. `None`: it is deleted, or says something else than its name.
#[must_use]
pub fn read_job(at: &RoomPlace, record: &Record) -> Option<JobView> {
    let said: JobRecord = minicbor::decode(&content(at, record)?).ok()?;
    // Of a sealed one nobody has looked whether its name is that of its content.
    if said.room != at.room || said.id(&at.cover) != record.id {
        return None;
    }
    let JobRecord { job, facts, message, .. } = said;
    let text = JobText { facts, message };
    Some(JobView { record: record.id, job, text, stamp: record.stamp })
}

/// The run that a record says. `None`: it says something else than its name.
#[must_use]
pub fn read_run(at: &RoomPlace, record: &Record) -> Option<RunView> {
    let said: RunRecord = minicbor::decode(&content(at, record)?).ok()?;
    if said.room != at.room || said.id(&at.cover) != record.id {
        return None;
    }
    let RunRecord { job, node, place, facts, .. } = said;
    Some(RunView { run: RunText { job, node, place, facts }, stamp: record.stamp })
}

/// A record of these kinds has changed, in a place that this node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleNews {
    /// The key that owns it.
    pub key: KeyPrint,
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its name.
    pub id: RecordId,
}

impl ScheduleNews {
    /// Whether a job was written; else a run.
    #[must_use]
    pub fn is_of_job(&self) -> bool {
        self.collection == JOBS.number
    }
}

/// Of what somebody who waits for times reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedJobs {
    /// All jobs of the room.
    All,
    /// The one of this record.
    One(RecordId),
}

/// The same, of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedRuns {
    /// All runs of a job.
    Of(JobId),
    /// The one of this record.
    One(RecordId),
}

impl WantedJobs {
    /// The beginning of the names of the records to read.
    #[must_use]
    pub fn first(&self, at: &RoomPlace) -> Vec<u8> {
        match self {
            WantedJobs::All => at.subject(JOBS.number).to_vec(),
            WantedJobs::One(id) => id.0.to_vec(),
        }
    }

    /// The jobs that these records say.
    #[must_use]
    pub fn read<'r>(
        at: &RoomPlace,
        records: impl IntoIterator<Item = &'r Record>,
        keys: &std::collections::BTreeSet<KeyPrint>,
        mesh: MeshId,
    ) -> Vec<JobView> {
        let showing = super::place::showing(records, keys, mesh);
        showing.into_iter().filter_map(|record| read_job(at, record)).collect()
    }
}

impl WantedRuns {
    /// The beginning of the names of the records to read.
    #[must_use]
    pub fn first(&self, at: &RoomPlace) -> Vec<u8> {
        match self {
            WantedRuns::Of(job) => runs_of(at, *job).to_vec(),
            WantedRuns::One(id) => id.0.to_vec(),
        }
    }

    /// The runs that these records say.
    #[must_use]
    pub fn read<'r>(
        at: &RoomPlace,
        records: impl IntoIterator<Item = &'r Record>,
        keys: &std::collections::BTreeSet<KeyPrint>,
        mesh: MeshId,
    ) -> Vec<RunView> {
        let showing = super::place::showing(records, keys, mesh);
        showing.into_iter().filter_map(|record| read_run(at, record)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{
            group::Group,
            id::{MeshId, RoomKey},
            identity::Strict,
            key::KeySecret,
        },
        records::collection::is_sound,
        wire::{record::Space, seal::Seal},
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);
    const JOB: JobId = JobId([3; 16]);

    fn key() -> KeySecret {
        KeySecret::of(&"k".repeat(32))
    }

    fn sealed() -> RoomPlace {
        let group = Group::Key(key().print());
        let seal = Seal::of_room(group, &RoomKey::of("a key of some length"), ROOM);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        RoomPlace { room: ROOM, space: Space::Followers(group), cover }
    }

    fn sign(at: &RoomPlace, draft: Draft) -> Record {
        let draft = at.cover.write(draft, key().print(), Stamp(5));
        draft.sign(&key(), MESH, Stamp(5)).expect("it is long enough")
    }

    fn run(place: u16) -> RunText {
        let facts = "f".repeat(RUN_FACTS_BYTES_MAX);
        RunText { job: JOB, node: NodeId([4; 32]), place, facts }
    }

    #[test]
    fn the_largest_job_and_run_have_the_form_of_their_collections_and_are_read_again() {
        let open = RoomPlace { room: ROOM, space: Space::Mesh, cover: Cover::Open };
        for at in [open, sealed()] {
            let text = JobText {
                facts: "f".repeat(JOB_FACTS_BYTES_MAX),
                message: "m".repeat(JOB_MESSAGE_BYTES_MAX),
            };
            assert!(text.fits());
            let job = sign(&at, text.clone().draft(&at, JOB));
            assert!(is_sound(&job, &Strict, MESH));
            let read = read_job(&at, &job).expect("it is one");
            assert_eq!((read.job, read.record, read.text), (JOB, job.id, text));
            assert_eq!(name_of(&at, JOB), job.id);
            assert_eq!(deletion(&at, JOB).id, job.id);
            assert!(run(RUNS_PER_JOB_AND_NODE - 1).fits());
            let record = sign(&at, run(199).draft(&at));
            assert!(is_sound(&record, &Strict, MESH));
            assert_eq!(read_run(&at, &record).expect("it is one").run, run(199));
            assert!(record.id.0.starts_with(&runs_of(&at, JOB)));
            assert_ne!(record.id, run(198).draft(&at).id, "each place is a record");
        }
        assert!(!run(RUNS_PER_JOB_AND_NODE).fits());
    }

    #[test]
    fn a_record_that_says_something_else_than_its_name_is_none() {
        let at = sealed();
        let text = JobText { facts: "{}".to_owned(), message: String::new() };
        let job = text.draft(&at, JOB);
        let elsewhere = Draft { id: RecordId([9; 16]), ..job };
        assert_eq!(read_job(&at, &sign(&at, elsewhere)), None);
        let elsewhere = Draft { id: RecordId([9; 16]), ..run(1).draft(&at) };
        assert_eq!(read_run(&at, &sign(&at, elsewhere)), None);
    }
}
