//! The index of words finds what a look at every message would find, whatever happens to its file.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use mesh::{
    api::{
        batch::{Change, Fate, RoomRecord},
        search::{Pattern, Spot, Wanted},
    },
    name::{
        group::Group,
        id::{KeyPrint, RoomId, RoomKey},
        number::Number,
    },
    wire::{
        entry::Stored,
        seal::{Seal, SealContext},
    },
};
use store::{
    Store,
    limits::{INDEX_STEP_ROWS, SEARCH_ROWS_MAX, SEGMENT_MESSAGES},
    search::{FILE_NAME, Follower, Index},
    testing::CrashingBackend,
};

use crate::{model::Random, rows::*};

/// A message as it is told to a store.
#[derive(Clone, Debug)]
struct Told {
    room: RoomId,
    agent: &'static str,
    wall_ms: u64,
    content: String,
}

fn room_id(n: u8) -> RoomId {
    RoomId([n; 16])
}

/// A store that is told messages, and what a naive look would find in it.
struct World {
    store: Store,
    told: Vec<(Spot, Told)>,
    heads: BTreeMap<RoomId, u64>,
}

impl World {
    fn in_dir(dir: &Path) -> World {
        World { store: Store::open(dir).unwrap(), told: Vec::new(), heads: BTreeMap::new() }
    }

    fn new() -> World {
        let store = Store::on(CrashingBackend::new(0)).unwrap();
        World { store, told: Vec::new(), heads: BTreeMap::new() }
    }

    fn tell(&mut self, all: Vec<Told>) {
        let mut batch = Vec::new();
        for told in all {
            let head = self.heads.entry(told.room).or_default();
            *head += 1;
            let (seq, room) = (*head, told.room);
            let said =
                mesh::wire::entry::Said { agent: Arc::from(told.agent), ..said(&told.content) };
            let mut entry_1 =
                Stored { body: minicbor::to_vec(said).unwrap().into(), ..stored(seq, "") };
            entry_1.facts.wall_ms = told.wall_ms;
            batch.push(tip(room, Number(seq)));
            batch.push(log_settled(room, 0, seq, seq));
            batch.push(entry(room, at(0, seq), entry_1));
            batch.push(number(room, Number(seq), at(0, seq), Fate::Delivered));
            let spot = Spot { wall_ms: told.wall_ms, room, number: Number(seq) };
            self.told.push((spot, told));
        }
        self.store.commit(&batch).unwrap();
    }

    /// What is there, the newest first.
    fn naive(&self, wanted: &Wanted, may: impl Fn(RoomId) -> bool) -> Vec<Spot> {
        let reader = self.store.reader();
        let mut found: Vec<Spot> = self
            .told
            .iter()
            .filter(|(spot, told)| {
                let row = reader.by_number(spot.room, spot.number).unwrap();
                row.is_some_and(|row| row.said.is_some())
                    && may(spot.room)
                    && wanted.is_within(*spot)
                    && wanted.room.is_none_or(|room| room == spot.room)
                    && wanted.from.as_ref().is_none_or(|from| from == told.agent || from == "Agent")
                    && !told.content.starts_with("clw1:")
                    && wanted.pattern.is_met_by(&told.content)
            })
            .map(|(spot, _)| *spot)
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }
}

/// Until there is nothing more to do.
fn follow(follower: &mut Follower) {
    while follower.step().unwrap().more {}
}

/// All pages, one after the other.
fn found(index: &Index, wanted: &Wanted, may: impl Fn(RoomId) -> bool) -> Vec<Spot> {
    let mut all = Vec::new();
    let mut wanted = wanted.clone();
    loop {
        let show = &mut |room, row: store::Row| {
            Some(Spot { wall_ms: row.facts.wall_ms, room, number: row.number })
        };
        let page = index.find(&wanted, &may, show).unwrap();
        assert!(page.rows.len() <= wanted.limit);
        all.extend(page.rows);
        match page.next {
            Some(next) => {
                assert!(wanted.after.is_none_or(|after| next < after), "a page goes on");
                wanted.after = Some(next);
            }
            None => return all,
        }
    }
}

fn of_words(text: &str) -> Wanted {
    Wanted { pattern: Pattern::parse(text).unwrap(), limit: 10, ..Wanted::default() }
}

fn telling(n: u64, content: &str) -> Told {
    Told { room: ROOM, agent: "ada", wall_ms: n * 1_000, content: content.to_owned() }
}

fn one_of<T: Copy>(dice: &mut Random, all: &[T]) -> T {
    all[usize::try_from(dice.below(all.len() as u64)).unwrap()]
}

fn any_message(dice: &mut Random) -> Told {
    const WORDS: &[&str] = &[
        "build",
        "build",
        "the",
        "the",
        "Build-42",
        "ÄRGER",
        "builder",
        "clw1:AAAA",
        "東京",
        "failed",
    ];
    let words: Vec<&str> = (0..1 + dice.below(5)).map(|_| one_of(dice, WORDS)).collect();
    Told {
        room: room_id(one_of(dice, &[1, 2, 3])),
        agent: one_of(dice, &["ada", "bob"]),
        wall_ms: dice.below(50) * 100,
        content: words.join(" "),
    }
}

fn any_wish(dice: &mut Random) -> Wanted {
    const TEXTS: &[&str] = &[
        "",
        "build",
        "buil*",
        "the build",
        "\"the build\"",
        "ärger",
        "東京",
        "\"build 42\" the",
        "nothing",
        "fai* buil*",
    ];
    let time = |dice: &mut Random| (dice.below(5) > 2).then(|| dice.below(50) * 100);
    Wanted {
        room: one_of(dice, &[None, None, Some(1), Some(2)]).map(room_id),
        from: one_of(dice, &[None, None, Some("ada"), Some("Agent")]).map(str::to_owned),
        since_ms: time(dice),
        before_ms: time(dice),
        limit: usize::try_from(1 + dice.below(8)).unwrap(),
        ..of_words(one_of(dice, TEXTS))
    }
}

#[test]
fn a_search_finds_what_a_look_at_everything_finds() {
    for seed in 0..48 {
        let dice = &mut Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut world = World::in_dir(dir.path());
        // Many small segments, whose times overlap.
        let most = usize::try_from(1 + dice.below(40)).unwrap();
        let index = Index::beside(dir.path(), world.store.reader()).in_segments_of(most);
        let mut follower = index.follow().unwrap();
        for _ in 0..1 + dice.below(4) {
            world.tell((0..dice.below(80)).map(|_| any_message(dice)).collect());
            follow(&mut follower);
            if dice.below(3) == 0 {
                // As after a crash: what was gathered is gone.
                follower = index.follow().unwrap();
                follow(&mut follower);
            }
        }
        let before_ms = dice.below(50) * 100;
        let prunes: Vec<Change> =
            world.heads.keys().map(|room| Change::Prune { room: *room, before_ms }).collect();
        world.store.commit(&prunes).unwrap();
        follow(&mut follower);
        while dice.below(2) == 0 && follower.sweep().unwrap() {}
        let blind = room_id(one_of(dice, &[0, 1, 2, 3]));
        let may = |room: RoomId| room != blind;
        for _ in 0..12 {
            let wanted = any_wish(dice);
            let naive = world.naive(&wanted, may);
            assert_eq!(found(&index, &wanted, may), naive, "seed {seed}: {wanted:?}");
        }
    }
}

/// So many messages that there are several segments, one of which is not full.
const MANY: u64 = 2 * SEGMENT_MESSAGES as u64 + 100;

/// Messages that all say `all`, and each its number; one in a hundred says `rare`.
fn many(dir: &Path) -> World {
    let mut world = World::in_dir(dir);
    let text =
        |n: u64| if n.is_multiple_of(100) { format!("all rare n{n}") } else { format!("all n{n}") };
    world.tell((1..=MANY).map(|n| telling(n, &text(n))).collect());
    world
}

fn numbers(spots: &[Spot]) -> Vec<u64> {
    spots.iter().map(|spot| spot.number.0).collect()
}

#[test]
fn segments_and_their_end_are_searched_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let world = many(dir.path());
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    follow(&mut follower);
    let rare: Vec<u64> = (1..=MANY).rev().filter(|n| n.is_multiple_of(100)).collect();
    assert_eq!(numbers(&found(&index, &of_words("rare"), |_| true)), rare);
    assert_eq!(numbers(&found(&index, &of_words("n4097"), |_| true)), [4_097]);
    let every = Wanted { limit: 100, ..of_words("all") };
    assert_eq!(found(&index, &every, |_| true).len() as u64, MANY);
    // A phrase that no text has, of words that all have: pages end, and the search comes to its end.
    let phrase = of_words("\"all all\"");
    let show = &mut |_, row: store::Row| Some(row);
    let first = index.find(&phrase, &|_| true, show).unwrap();
    assert!(first.rows.is_empty() && first.next.is_some(), "{SEARCH_ROWS_MAX} rows and no more");
    assert_eq!(found(&index, &phrase, |_| true), []);
    assert_eq!(found(&index, &of_words("rare"), |_| false), []);
}

#[test]
fn a_cursor_names_no_message_that_the_searcher_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let world = many(dir.path());
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    follow(&mut follower);
    // Pages end after so many rows, whatever is shown of them.
    let pages = |hides: &dyn Fn(u64) -> bool| {
        let (mut wanted, mut cursors) = (of_words("\"all all\""), Vec::new());
        loop {
            let show =
                &mut |_, row: store::Row| Some(row.number.0).filter(|number| !hides(*number));
            let page = index.find(&wanted, &|_| true, show).unwrap();
            assert!(page.rows.is_empty());
            let Some(next) = page.next else { return cursors };
            assert!(wanted.after.is_none_or(|after| next < after), "a page goes on");
            cursors.push(next.number.0);
            wanted.after = Some(next);
        }
    };
    let cursors = pages(&|number| number % 7 != 0);
    assert!(cursors.len() > 1 && cursors.iter().all(|number| number % 7 == 0), "{cursors:?}");
    let read = SEARCH_ROWS_MAX as u64;
    let cursors = pages(&|_| true);
    assert_eq!(cursors[0], MANY - read + 1, "it comes to its end all the same");
}

#[test]
fn nothing_is_missing_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = many(dir.path());
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    follow(&mut follower);
    drop((follower, index));
    // The file has two segments; the rest is read again, with what came meanwhile, and nothing twice.
    world.tell(vec![telling(MANY + 1, "all rare last")]);
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    let mut rows = 0;
    loop {
        let step = follower.step().unwrap();
        rows += step.rows;
        if !step.more {
            break;
        }
    }
    assert_eq!(rows, 101, "what is in segments is not read again");
    let every = Wanted { limit: 100, ..of_words("all") };
    assert_eq!(found(&index, &every, |_| true).len() as u64, MANY + 1);
    assert_eq!(numbers(&found(&index, &of_words("last"), |_| true)), [MANY + 1]);
}

#[test]
fn an_index_that_is_damaged_or_of_another_store_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let world = many(dir.path());
    let follow_all = |world: &World| {
        let index = Index::beside(dir.path(), world.store.reader());
        let mut follower = index.follow().unwrap();
        follow(&mut follower);
        index
    };
    drop(follow_all(&world));
    let file = dir.path().join(FILE_NAME);
    let whole = std::fs::read(&file).unwrap();
    for damage in [b"no database".to_vec(), Vec::new(), whole[..whole.len() / 2].to_vec()] {
        std::fs::write(&file, damage).unwrap();
        let index = follow_all(&world);
        assert_eq!(numbers(&found(&index, &of_words("n4097"), |_| true)), [4_097]);
    }
    drop(world);
    // A store that is older: it was brought back from a copy.
    std::fs::remove_file(dir.path().join(store::FILE_NAME)).unwrap();
    let mut world = World::in_dir(dir.path());
    world.tell(vec![telling(1, "another n1")]);
    let index = follow_all(&world);
    assert_eq!(numbers(&found(&index, &of_words("another"), |_| true)), [1]);
    assert_eq!(found(&index, &of_words("n4097"), |_| true), []);
}

#[test]
fn words_of_dropped_messages_leave_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::in_dir(dir.path());
    let secret = "unmistakable";
    let text = |n: u64| if n == 3 { secret.to_owned() } else { format!("all n{n}") };
    world.tell((1..=MANY).map(|n| telling(n, &text(n))).collect());
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    follow(&mut follower);
    while follower.sweep().unwrap() {}
    assert_eq!(numbers(&found(&index, &of_words(secret), |_| true)), [3]);
    world.store.commit(&[Change::Prune { room: ROOM, before_ms: 10_000 }]).unwrap();
    // At once, for whoever searches; and out of the file with the next sweep.
    assert_eq!(found(&index, &of_words(secret), |_| true), []);
    assert!(index.has_word(secret).unwrap());
    follow(&mut follower);
    assert!(!follower.sweep().unwrap());
    assert!(!index.has_word(secret).unwrap());
    let every = Wanted { limit: 100, ..of_words("all") };
    assert_eq!(found(&index, &every, |_| true).len() as u64, MANY - 9);
}

#[test]
fn ephemeral_rooms_are_searched_and_not_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::in_dir(dir.path());
    let secret = "unmistakable";
    let mut batch = vec![ephemeral(ROOM), log_settled(ROOM, 0, MANY, MANY)];
    for n in 1..=MANY {
        batch.push(entry(ROOM, at(0, n), stored(n, secret)));
        batch.push(number(ROOM, Number(n), at(0, n), Fate::Delivered));
    }
    let record = RoomRecord { tip: Number(MANY), ephemeral: true, ..room_record() };
    batch.push(Change::Room { room: ROOM, record });
    let index = Index::beside(dir.path(), world.store.reader());
    let mut follower = index.follow().unwrap();
    world.store.commit(&batch).unwrap();
    follow(&mut follower);
    let every = Wanted { limit: 100, ..of_words(secret) };
    assert_eq!(found(&index, &every, |_| true).len() as u64, MANY);
    let file = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
    assert!(!file.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
    world.store.commit(&[Change::Drop { room: ROOM }]).unwrap();
    follow(&mut follower);
    while follower.sweep().unwrap() {}
    assert_eq!(found(&index, &every, |_| true), []);
    assert!(!index.has_word(secret).unwrap());
}

#[test]
fn sealed_rooms_are_searched_where_they_can_be_read() {
    const OWNER: KeyPrint = KeyPrint([5; 16]);
    let mut world = World::new();
    let seal = || Seal::of_room(Group::Key(OWNER), &RoomKey::of("the key"), ROOM);
    let open = stored(1, "a word");
    let spot = SealContext { room: ROOM, log: log_id(3), seq: 1, kind: open.facts.kind };
    let body = seal().seal(&spot, &open.body).into();
    let record = RoomRecord { seal: Some(seal()), tip: Number(1), ..room_record() };
    world
        .store
        .commit(&[
            Change::Room { room: ROOM, record },
            log_settled(ROOM, 0, 1, 1),
            entry(ROOM, at(0, 1), Stored { body, ..open }),
            number(ROOM, Number(1), at(0, 1), Fate::Delivered),
        ])
        .unwrap();
    let index = Index::in_memory(world.store.reader());
    let mut follower = index.follow().unwrap();
    follow(&mut follower);
    assert_eq!(numbers(&found(&index, &of_words("word"), |_| true)), [1]);
    assert_eq!(found(&index, &of_words("word"), |room| room != ROOM), []);
}

#[test]
fn numbers_that_were_not_delivered_hold_nothing_up() {
    for fate in [Fate::Hole, Fate::Assigned] {
        let mut world = World::new();
        let room = room_id(1);
        let says = |content: &str| Told {
            room,
            agent: "ann",
            wall_ms: 1_000,
            content: content.to_owned(),
        };
        world.tell(vec![says("before")]);
        let head = world.heads.get_mut(&room).unwrap();
        let mut batch = Vec::new();
        for _ in 0..2 * INDEX_STEP_ROWS {
            *head += 1;
            batch.push(number(room, Number(*head), at(1, *head), fate));
        }
        world.store.commit(&batch).unwrap();
        world.tell(vec![says("after")]);
        let index = Index::in_memory(world.store.reader());
        let mut follower = index.follow().unwrap();
        let mut steps = 0;
        while follower.step().unwrap().more {
            steps += 1;
            assert!(steps < 10, "it looks at the same rows again and again");
        }
        let wanted = Wanted { room: Some(room), limit: 10, ..Wanted::default() };
        assert_eq!(found(&index, &wanted, |_| true).len(), 2);
    }
}
