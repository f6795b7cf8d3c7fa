//! The results of runs: a table with a column for each size, a document for programs.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::tally::{Alarms, ByKind, Count, Tally, of_histogram, sum};
use crate::{distribution::Distribution, table};

const MIB: f64 = (1 << 20) as f64;
const KIB: f64 = 1024.0;
/// The name of beacons in the table of messages.
pub(super) const BEACON: &str = "beacon";

/// When something was known everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// After so long; `None`: not in time.
    pub after: Option<Duration>,
    /// The share of all that was known in the end.
    pub share: f64,
    /// How long it was waited for.
    pub within: Duration,
}

/// Messages, and when others heard them.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Messages that were said.
    pub said: usize,
    /// Of these, delivered once at each node.
    pub everywhere_once: usize,
    /// From saying it to its number, at the author's node.
    pub(super) acknowledged: Distribution,
    /// From saying it to its delivery at each other node.
    pub(super) delivered: Distribution,
    pub(super) tally: Tally,
}

/// Nodes that lose power: their links stay, and say nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// Nodes that have seen the agent of one leave, of so many.
    pub seen: (u64, u64),
    /// How long after it the last of them did.
    pub gone: Duration,
    /// How long a message waited for its number that was said when the sequencer was lost. `None`: it had none.
    pub numbered: Option<Duration>,
}

/// The results of a mesh of one size.
#[derive(Clone, Debug)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Of a node, on average.
    pub links: f64,
    /// All nodes, at all nodes.
    pub known: Known,
    /// The members of the lobby, at all nodes.
    pub seated: Known,
    /// The talk.
    pub talk: Talk,
    /// Nodes that are lost.
    pub lost: Lost,
    /// Resident memory of this process for each node, once they know each other. Bytes.
    pub memory: f64,
    /// How long it took to play, by the clock on the wall.
    pub took: Duration,
    /// How long it was idle, and how long there was talk. Seconds.
    pub seconds: f64,
    /// New gossip that came to a node by one link while it was idle: the most.
    pub busiest_link: u64,
    pub(super) settling: Tally,
    pub(super) idle: Tally,
    pub(super) alarms: Alarms,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Report(pub Vec<Size>);

/// A row: its title, the name under which programs find it, and how it is shown.
type Row = (&'static str, &'static str, Shown);

#[derive(Debug)]
enum Shown {
    Number(f64, usize, &'static str),
    Known(Known),
    Share(usize, usize),
}

impl Size {
    /// Copies that all nodes together sent of each chat message.
    #[must_use]
    pub fn copies(&self) -> f64 {
        self.a_message(self.talk.tally.chat.times)
    }

    /// Links over which chat messages came first: the `percent`th of a hundred.
    #[must_use]
    pub fn hops(&self, percent: u64) -> usize {
        of_histogram(&self.talk.tally.hops, percent)
    }

    /// Everything that does not depend on the machine: the same for the same setting.
    #[must_use]
    pub fn counts(&self) -> String {
        let tallies = [&self.settling, &self.idle, &self.talk.tally]
            .map(|of| (&of.fresh, &of.again, &of.frames, of.unpublished, &of.hops));
        format!("{tallies:?} {:?} {:?}", self.talk.delivered, self.talk.acknowledged)
    }

    fn a_message(&self, count: u64) -> f64 {
        count as f64 / self.talk.said.max(1) as f64
    }

    /// Per node and second of the idle mesh.
    fn idle(&self, count: u64) -> f64 {
        count as f64 / self.nodes as f64 / self.seconds
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = self.rows_at_first();
        rows.extend(self.rows_when_idle());
        rows.extend(self.rows_of_talk());
        rows.extend(self.rows_of_losses());
        rows.extend([
            ("memory of a node's engine", "memory_mib", mib(self.memory)),
            ("this run took", "took_s", Shown::Number(self.took.as_secs_f64(), 1, " s")),
        ]);
        rows
    }

    fn rows_at_first(&self) -> Vec<Row> {
        let all = sum(&self.settling.fresh).bytes
            + sum(&self.settling.again).bytes
            + sum(&self.settling.frames).bytes;
        vec![
            ("links of a node", "links", Shown::Number(self.links, 1, "")),
            ("all know all nodes after", "known", Shown::Known(self.known)),
            (
                "… received by a node until then",
                "settling_mib",
                mib(all as f64 / self.nodes as f64),
            ),
            ("all see the lobby's members after", "seated", Shown::Known(self.seated)),
        ]
    }

    fn rows_when_idle(&self) -> Vec<Row> {
        let (fresh, again) = (sum(&self.idle.fresh), sum(&self.idle.again));
        let frames = sum(&self.idle.frames);
        let beacons = self.idle.frames.get(BEACON).copied().unwrap_or_default();
        let besides =
            Count { times: frames.times - beacons.times, bytes: frames.bytes - beacons.bytes };
        let second = |count| Shown::Number(self.idle(count), 0, "");
        let kib = |bytes| Shown::Number(self.idle(bytes) / KIB, 1, " KiB");
        let busy = self.idle.nanoseconds as f64 / 1e9 / self.nodes as f64 / self.seconds * 100.0;
        let link = self.busiest_link as f64 / self.seconds;
        vec![
            ("idle, a node and second: gossip, new", "idle_new", second(fresh.times)),
            ("… gossip, there already", "idle_again", second(again.times)),
            ("… gossip", "idle_gossip_kib", kib(fresh.bytes + again.bytes)),
            ("… frames", "idle_frames", second(frames.times)),
            ("… of these no beacons", "idle_other_frames", second(besides.times)),
            ("… frames", "idle_frames_kib", kib(frames.bytes)),
            (
                "… not published, the same came by",
                "idle_unpublished",
                second(self.idle.unpublished),
            ),
            ("… new gossip by one link, the most", "idle_link", Shown::Number(link, 0, "")),
            ("… processor, engine alone", "idle_processor_percent", Shown::Number(busy, 2, " %")),
        ]
    }

    fn rows_of_talk(&self) -> Vec<Row> {
        let Talk { tally, said, everywhere_once, acknowledged, delivered } = &self.talk;
        let hops = |percent| Shown::Number(self.hops(percent) as f64, 0, "");
        let ms = |of: &Distribution, p| Shown::Number(of.percentile(p), 1, " ms");
        let bytes = (tally.chat.bytes + tally.numbers.bytes) as f64 / (*said).max(1) as f64;
        let frames: u64 = besides(&tally.frames).map(|count| count.bytes).sum();
        vec![
            ("messages, once at each node", "everywhere", Shown::Share(*everywhere_once, *said)),
            ("a message: copies", "copies", Shown::Number(self.copies(), 0, "")),
            (
                "… of its number",
                "copies_of_number",
                Shown::Number(self.a_message(tally.numbers.times), 0, ""),
            ),
            ("… both, all nodes together", "message_kib", Shown::Number(bytes / KIB, 0, " KiB")),
            (
                "… frames meanwhile that are no beacons",
                "talk_frames_kib",
                Shown::Number(self.a_message(frames) / KIB, 0, " KiB"),
            ),
            ("… hops p50", "hops_p50", hops(50)),
            ("… hops p99", "hops_p99", hops(99)),
            ("… hops, the most", "hops_max", hops(100)),
            ("… delivered p50", "delivered_p50_ms", ms(delivered, 50.0)),
            ("… delivered p99", "delivered_p99_ms", ms(delivered, 99.0)),
            ("… `ok` p50, author not sequencer", "ok_p50_ms", ms(acknowledged, 50.0)),
            ("… `ok` p99", "ok_p99_ms", ms(acknowledged, 99.0)),
            ("eras opened", "eras", Shown::Number(self.alarms.eras as f64, 0, "")),
            ("numbers left as holes", "holes", Shown::Number(self.alarms.holes as f64, 0, "")),
            ("other alarms", "alarms", Shown::Number(self.alarms.others as f64, 0, "")),
        ]
    }

    fn rows_of_losses(&self) -> Vec<Row> {
        let left = (self.idle.left + self.talk.tally.left) as f64;
        let seconds = |time: Duration| Shown::Number(time.as_secs_f64(), 1, " s");
        let (seen, all) = self.lost.seen;
        let share = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let numbered = self.lost.numbered.map_or(Shown::Share(0, 1), seconds);
        vec![
            ("members taken for gone before", "left_before", Shown::Number(left, 0, "")),
            ("a node loses power: seen by", "lost_seen", Shown::Share(share(seen), share(all))),
            ("… after", "lost_after_s", seconds(self.lost.gone)),
            ("the sequencer does: the next `ok` after", "lost_numbered_s", numbered),
        ]
    }

    fn document(&self) -> Value {
        let mut map = Map::new();
        map.insert("nodes".to_owned(), json!(self.nodes));
        for (_, name, shown) in self.rows() {
            map.insert(name.to_owned(), shown.value());
        }
        for (name, tally) in
            [("settling", &self.settling), ("idle", &self.idle), ("talk", &self.talk.tally)]
        {
            let by_kind = json!({
                "new": named(&tally.fresh),
                "again": named(&tally.again),
                "frames": named(&tally.frames),
            });
            map.insert(format!("{name}_by_kind"), by_kind);
        }
        Value::Object(map)
    }
}

impl Report {
    /// As a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows = vec![vec!["NODES".to_owned()]];
        for size in &self.0 {
            rows[0].push(size.nodes.to_string());
            for (nth, (what, _, shown)) in size.rows().into_iter().enumerate() {
                if rows.len() <= nth + 1 {
                    rows.push(vec![what.to_owned()]);
                }
                rows[nth + 1].push(shown.text());
            }
        }
        table::columns(&rows)
    }

    /// As one line of JSON, with counts by kind of message.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn json(&self) -> Result<String> {
        let sizes: Vec<Value> = self.0.iter().map(Size::document).collect();
        Ok(serde_json::to_string(&json!({ "sizes": sizes }))?)
    }
}

impl Shown {
    fn text(&self) -> String {
        match self {
            Shown::Number(value, digits, unit) => format!("{value:.digits$}{unit}"),
            Shown::Known(Known { after: Some(after), .. }) => {
                format!("{:.2} s", after.as_secs_f64())
            }
            Shown::Known(Known { share, within, .. }) => {
                format!("{:.1} % in {} s", share * 100.0, within.as_secs())
            }
            Shown::Share(some, all) => format!("{some} of {all}"),
        }
    }

    fn value(&self) -> Value {
        match self {
            Shown::Number(value, _, _) => json!(value),
            Shown::Known(known) => {
                let after_s = known.after.map(|after| after.as_secs_f64());
                json!({ "after_s": after_s, "share": known.share })
            }
            Shown::Share(some, all) => json!([some, all]),
        }
    }
}

fn mib(bytes: f64) -> Shown {
    Shown::Number(bytes / MIB, 2, " MiB")
}

fn besides(of: &ByKind) -> impl Iterator<Item = &Count> {
    of.iter().filter(|(kind, _)| **kind != BEACON).map(|(_, count)| count)
}

fn named(of: &ByKind) -> Value {
    of.iter()
        .map(|(name, count)| {
            let counts = json!({ "times": count.times, "bytes": count.bytes });
            (name.replace('_', " "), counts)
        })
        .collect::<Map<_, _>>()
        .into()
}
