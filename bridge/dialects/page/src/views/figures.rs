//! Figures of the last hour or day, as plots that the node draws, and as tables. For holders of the node's own key.

use std::{fmt::Write as _, sync::Arc};

use bridge::figures::{Sample, Span};
use maud::{Markup, html};

use super::{Problem, layout};
use crate::{limits::TABLE_ROWS_SHOWN, shared::Shared, signing::Person, times};

/// Of a plot's picture, in its own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// The span that a query asks for: `of=day`, else an hour.
pub(crate) fn span(query: Option<&str>) -> Span {
    let is_day = query.is_some_and(|query| query.split('&').any(|pair| pair == "of=day"));
    if is_day { Span::Day } else { Span::Hour }
}

fn word(span: Span) -> &'static str {
    match span {
        Span::Hour => "an hour",
        Span::Day => "a day",
    }
}

pub(crate) fn page(shared: &Shared, person: &Arc<Person>, span: Span) -> Result<Markup, Problem> {
    let content = content(shared, person, span)?;
    let samples = shared.desk.figures(&person.holder)?.all(span);
    let live = match span {
        Span::Hour => "/ui/live/figures",
        Span::Day => "/ui/live/figures-day",
    };
    Ok(layout(
        person,
        "Figures",
        // The table stays as it is while somebody reads it.
        &html! { div #live data-live=(live) aria-live="off" { (content) } (table(&samples)) },
    ))
}

/// The part that changes.
pub(crate) fn content(shared: &Shared, person: &Person, span: Span) -> Result<Markup, Problem> {
    let figures = shared.desk.figures(&person.holder)?;
    let samples = figures.all(span);
    let tabs =
        [(Span::Hour, "/ui/figures", "Last hour"), (Span::Day, "/ui/figures?of=day", "Last day")];
    Ok(html! {
        h1 { "Figures of this node" }
        p.tabs { @for (of, path, name) in tabs { a href=(path) aria-current=[(of == span).then_some("true")] { (name) } " " } }
        @if samples.is_empty() { p.quiet role="status" { "There are no samples yet: the first comes after " (span.every().as_secs()) " s." } }
        @else { div.plots { @for curve in curves() { (plot(&curve, &samples, span)) } }}
    })
}

/// The value of a line at a sample. `None`: there is none.
type Value = fn(&Sample) -> Option<f64>;

/// Something that is drawn: one line, or two.
struct Curve {
    title: &'static str,
    unit: &'static str,
    lines: Vec<(&'static str, Value)>,
}

const MIB: f64 = (1 << 20) as f64;

#[expect(clippy::cast_precision_loss, reason = "bytes of a disk, for a picture")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

fn curves() -> [Curve; 5] {
    [
        Curve {
            title: "Messages",
            unit: "/s",
            lines: vec![
                ("delivered here", |sample| Some(sample.delivered)),
                ("from agents of this node", |sample| Some(sample.accepted)),
            ],
        },
        Curve {
            title: "Wait for ok",
            unit: "ms",
            lines: vec![
                ("half of all within", |sample| sample.ok_p50_ms),
                ("99 of 100 within", |sample| sample.ok_p99_ms),
            ],
        },
        Curve {
            title: "Store on the disk",
            unit: "MiB",
            lines: vec![("file", |sample| Some(mib(sample.disk_bytes)))],
        },
        Curve {
            title: "Memory",
            unit: "MiB",
            lines: vec![("resident", |sample| sample.memory_bytes.map(mib))],
        },
        Curve {
            title: "Links to other nodes",
            unit: "",
            #[expect(clippy::cast_precision_loss, reason = "as many as there are nodes")]
            lines: vec![("links", |sample| Some(sample.links as f64))],
        },
    ]
}

fn plot(curve: &Curve, samples: &[Sample], span: Span) -> Markup {
    let values = curve.lines.iter().flat_map(|(_, of)| samples.iter().filter_map(of));
    let top = round_up(values.fold(0.0, f64::max));
    let newest = samples.last();
    let last = |of: Value| newest.and_then(of).map_or("–".to_owned(), short);
    let summary =
        curve.lines.iter().map(|(name, of)| format!("{name}: {} {}", last(*of), curve.unit));
    let summary = summary.collect::<Vec<_>>().join(", ");
    html! {
        figure.plot {
            figcaption { (curve.title) " "
                @for (nth, (name, of)) in curve.lines.iter().enumerate() {
                    span class=(format!("key line{nth}")) { (name) ": " (last(*of)) " " (curve.unit) } " "
                }
            }
            svg viewBox="0 0 660 150" role="img" aria-label=(format!("{}, now {summary}; the table below has all values", curve.title)) {
                line.axis x1="0" y1="10" x2="600" y2="10" {}
                line.axis x1="0" y1="70" x2="600" y2="70" {}
                line.axis x1="0" y1="130" x2="600" y2="130" {}
                text x="606" y="14" { (short(top)) }
                text x="606" y="74" { (short(top / 2.0)) }
                text x="606" y="134" { "0" }
                text x="0" y="148" { (word(span)) " ago" }
                text.end x="600" y="148" { "now" }
                @for (nth, (_, of)) in curve.lines.iter().enumerate() {
                    path class=(format!("curve line{nth}")) d=(path(samples, *of, top, span)) {}
                }
            }
        }
    }
}

/// The line of a curve. It is broken where there is no value, or no sample.
fn path(samples: &[Sample], of: Value, top: f64, span: Span) -> String {
    let (mut path, mut before) = (String::new(), None);
    let Some(newest) = samples.last().map(|sample| sample.at_ms) else { return path };
    let lasts = span.lasts().as_secs_f64() * 1_000.0;
    let gap_ms = 3 * u64::try_from(span.every().as_millis()).unwrap_or(u64::MAX);
    for sample in samples {
        let Some(value) = of(sample) else {
            before = None;
            continue;
        };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a day")]
        let ago = newest.saturating_sub(sample.at_ms) as f64;
        let (x, y) = (WIDTH * (1.0 - ago / lasts), 10.0 + HEIGHT * (1.0 - value / top));
        let joins = before.is_some_and(|at: u64| sample.at_ms.saturating_sub(at) <= gap_ms);
        // Writing to a String cannot fail. A point alone is seen, for the ends of lines are round.
        let _ =
            if joins { write!(path, "L{x:.1} {y:.1}") } else { write!(path, "M{x:.1} {y:.1}h0") };
        before = Some(sample.at_ms);
    }
    path
}

/// 1, 2 or 5 and zeros: at least so much.
fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|top| *top >= value * 0.999)
        .unwrap_or(value)
}

/// With some three digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        0.0 => "0".to_owned(),
        v => format!("{v:.2}"),
    }
}

/// The same for readers of tables: the newest first, each minute or two of an hour, each half hour of a day.
fn table(samples: &[Sample]) -> Markup {
    let every = samples.len().div_ceil(TABLE_ROWS_SHOWN).max(1);
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), short);
    html! {
        details { summary { "As a table" }
            div.wide { table {
                caption { "Figures, the newest first" }
                thead { tr {
                    th scope="col" { "Time" } th scope="col" { "Delivered /s" } th scope="col" { "From here /s" }
                    th scope="col" { "ok, half, ms" } th scope="col" { "ok, 99 of 100, ms" } th scope="col" { "Disk MiB" }
                    th scope="col" { "Memory MiB" } th scope="col" { "Links" }
                } }
                tbody { @for sample in samples.iter().rev().step_by(every) { tr {
                    th scope="row" { (times::moment(sample.at_ms)) }
                    td { (short(sample.delivered)) } td { (short(sample.accepted)) }
                    td { (cell(sample.ok_p50_ms)) } td { (cell(sample.ok_p99_ms)) }
                    td { (short(mib(sample.disk_bytes))) } td { (cell(sample.memory_bytes.map(mib))) } td { (sample.links) }
                } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64, ok_p50_ms: Option<f64>) -> Sample {
        Sample { at_ms, ok_p50_ms, ..Sample::default() }
    }

    #[test]
    fn a_line_goes_from_left_to_right_and_is_broken_where_there_is_nothing() {
        let hour = 3_600_000;
        let samples = [
            at(hour, Some(2.0)),
            at(hour + 10_000, Some(1.0)),
            at(hour + 20_000, None),
            at(2 * hour, Some(0.0)),
        ];
        let path = path(&samples, |sample| sample.ok_p50_ms, 2.0, Span::Hour);
        assert_eq!(path, "M0.0 10.0h0L1.7 70.0M600.0 130.0h0");
        assert_eq!(super::path(&[], |sample| sample.ok_p50_ms, 1.0, Span::Day), "");
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, top) in
            [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (17.0, 20.0), (501.0, 1_000.0), (f64::NAN, 1.0)]
        {
            assert!((round_up(value) - top).abs() < 1e-9, "{value}: {}", round_up(value));
        }
        assert_eq!([0.0, 0.123, 12.34, 1_234.5].map(short), ["0", "0.12", "12.3", "1234"]);
    }
}
