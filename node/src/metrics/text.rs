//! The text format of Prometheus, 0.0.4: as much of it as is used.

use std::{
    fmt::{self, Write as _},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A page in the making.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    /// The family that is written.
    name: &'static str,
}

/// The value of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Whole(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Whole(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Whole(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(value) => write!(f, "{value}"),
            Value::Real(value) => write!(f, "{value}"),
        }
    }
}

impl Page {
    pub(super) fn text(self) -> String {
        self.text
    }

    /// Begins a family; its samples follow with [`Page::labelled`].
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// A sample. Labels are this program's own words: none of them needs a quote.
    pub(super) fn labelled(&mut self, labels: &[(&str, &str)], value: impl Into<Value>) {
        let labels: Vec<String> =
            labels.iter().map(|(name, text)| format!("{name}=\"{text}\"")).collect();
        let name = self.name;
        self.line(format_args!("{name}{{{}}} {}", labels.join(","), value.into()));
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &str, value: impl Into<Value>) {
        self.family(name, "gauge", help);
        self.line(format_args!("{name} {}", value.into()));
    }

    pub(super) fn counter(&mut self, name: &'static str, help: &str, value: impl Into<Value>) {
        self.family(name, "counter", help);
        self.line(format_args!("{name} {}", value.into()));
    }

    pub(super) fn histogram(&mut self, name: &'static str, help: &str, histogram: &Histogram) {
        self.family(name, "histogram", help);
        let mut below = 0;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            below += count.load(Relaxed);
            self.line(format_args!("{name}_bucket{{le=\"{bound}\"}} {below}"));
        }
        // Of all that are in a bucket, so that the last one and the count are the same whatever is
        // added now.
        let all = below + histogram.counts.last().map_or(0, |histogram| histogram.load(Relaxed));
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {all}"));
        self.line(format_args!("{name}_sum {}", f64::from_bits(histogram.sum.load(Relaxed))));
        self.line(format_args!("{name}_count {all}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// How often a value was within which bound. One thread writes.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: above all of them.
    counts: Vec<AtomicU64>,
    /// The bits of a float.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0.0_f64.to_bits()) }
    }

    /// All counts at this moment.
    pub(crate) fn counted(&self) -> Counted {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        Counted { bounds: self.bounds, counts }
    }

    pub(super) fn observe(&self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Relaxed);
        let sum = f64::from_bits(self.sum.load(Relaxed)) + value;
        self.sum.store(sum.to_bits(), Relaxed);
    }
}

/// Counts of a histogram at one moment, or between two.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    bounds: &'static [f64],
    counts: Vec<u64>,
}

impl Counted {
    /// Those that came after an earlier moment.
    pub(crate) fn since(&self, before: &Counted) -> Counted {
        let both = self.counts.iter().zip(&before.counts);
        let counts = both.map(|(now, before)| now.saturating_sub(*before)).collect();
        Counted { bounds: self.bounds, counts }
    }

    /// The value that this share of all is within, as far as buckets tell: between their bounds it is taken to rise evenly. Above
    /// the last bound it is that. `None`: there are none.
    pub(crate) fn within(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of some minutes")]
        let real = |count: u64| count as f64;
        let wanted = share * real(all);
        let (mut below, mut from) = (0, 0.0);
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            if *count > 0 && real(below + count) >= wanted {
                let part = (wanted - real(below)) / real(*count);
                return Some(from + (bound - from) * part.clamp(0.0, 1.0));
            }
            below += count;
            from = *bound;
        }
        Some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_what_is_within_each_bound() {
        let histogram = Histogram::new(&[1.0, 2.5]);
        for value in [0.5, 1.0, 2.0, 9.0] {
            histogram.observe(value);
        }
        let mut page = Page::default();
        page.histogram("h", "What.", &histogram);
        let expect = "# HELP h What.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"2.5\"} 3\n\
                      h_bucket{le=\"+Inf\"} 4\nh_sum 12.5\nh_count 4\n";
        assert_eq!(page.text(), expect);
    }

    #[test]
    fn families_have_a_type_and_samples_their_labels() {
        let mut page = Page::default();
        page.family("f", "gauge", "Two.");
        page.labelled(&[("a", "x"), ("b", "y")], 3_u64);
        page.counter("g_total", "One.", 0.25);
        let expect = "# HELP f Two.\n# TYPE f gauge\nf{a=\"x\",b=\"y\"} 3\n\
                      # HELP g_total One.\n# TYPE g_total counter\ng_total 0.25\n";
        assert_eq!(page.text(), expect);
    }

    #[test]
    fn a_share_of_what_came_between_two_moments_lies_within_its_bucket() {
        let histogram = Histogram::new(&[1.0, 2.0, 4.0]);
        histogram.observe(0.5);
        let before = histogram.counted();
        assert_eq!(before.since(&before).within(0.5), None);
        for value in [1.5, 1.5, 3.0, 9.0] {
            histogram.observe(value);
        }
        let since = histogram.counted().since(&before);
        assert_eq!(since.within(0.5), Some(2.0));
        assert_eq!(since.within(0.25), Some(1.5));
        assert_eq!(since.within(0.75), Some(4.0));
        assert_eq!(since.within(0.99), Some(4.0), "no more is known");
    }
}
