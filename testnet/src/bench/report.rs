//! The results of a run: a table for people, a document for programs.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use super::{
    figure::{Figure, Target, Unit},
    floors::Floors,
};
use crate::distribution::Distribution;

/// The figures of a run.
#[derive(Debug)]
pub struct Report {
    pub(super) figures: Vec<Figure>,
    pub(super) floors: Floors,
    pub(super) scale: f64,
}

#[derive(Serialize)]
struct Document<'a> {
    scale: f64,
    floors: Vec<Floor>,
    figures: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Floor {
    name: &'static str,
    p50_ms: f64,
    p99_ms: f64,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    what: &'a str,
    value: f64,
    unit: Unit,
    target: Target,
    met: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<(&'a str, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<f64>,
    /// Percentiles in milliseconds: 50, 90, 99, 99.9, 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    percentiles_ms: Option<[f64; 5]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<usize>,
}

impl Report {
    /// As a table.
    #[must_use]
    pub fn table(&self) -> String {
        let head = ["FIGURE", "MEASURED", "TARGET", "", "FLOOR", "BESIDE", "RATIO"];
        let alone = self.figures.iter().all(|figure| figure.beside.is_none());
        let head = head.map(|title| match title {
            "BESIDE" | "RATIO" if alone => String::new(),
            title => title.to_owned(),
        });
        let rows: Vec<[String; 7]> =
            std::iter::once(head).chain(self.figures.iter().map(row)).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let widths = [0, 1, 2, 3, 4, 5, 6].map(width);
        let mut text = String::new();
        for row in &rows {
            for (cell, width) in row.iter().zip(widths) {
                // Writing to a String cannot fail, here and below.
                let _ = write!(text, "{cell:width$}  ");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        let Floors { fsync, echo, gossip } = &self.floors;
        let _ = write!(
            text,
            "\nfsync of one page: p50 {:.2} ms, p99 {:.2} ms; an echoed line: p50 {:.3} ms, p99 {:.3} ms; a gossip hop: p50 {:.2} ms, p99 {:.2} ms\n",
            fsync.percentile(50.0),
            fsync.percentile(99.0),
            echo.percentile(50.0),
            echo.percentile(99.0),
            gossip.percentile(50.0),
            gossip.percentile(99.0),
        );
        if self.scale != 1.0 {
            let _ =
                writeln!(text, "durations and messages: {} times what is said above", self.scale);
        }
        text
    }

    /// As one line of JSON.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn json(&self) -> Result<String> {
        let floor = |name, of: &Distribution| Floor {
            name,
            p50_ms: of.percentile(50.0),
            p99_ms: of.percentile(99.0),
        };
        let Floors { fsync, echo, gossip } = &self.floors;
        let document = Document {
            scale: self.scale,
            floors: vec![floor("fsync", fsync), floor("echo", echo), floor("gossip", gossip)],
            figures: self.figures.iter().map(line).collect(),
        };
        Ok(serde_json::to_string(&document)?)
    }
}

fn row(figure: &Figure) -> [String; 7] {
    let met = if figure.target.is_met(figure.value) { "met" } else { "MISSED" };
    let floor = figure.floor.map(|(what, floor)| format!("{what} {}", figure.unit.show(floor)));
    [
        figure.what.to_owned(),
        figure.unit.show(figure.value),
        figure.target.show(figure.unit),
        met.to_owned(),
        floor.unwrap_or_default(),
        figure.beside.map(|other| figure.unit.show(other)).unwrap_or_default(),
        figure.beside.map(|other| format!("{:.2}", figure.value / other)).unwrap_or_default(),
    ]
}

fn line(figure: &Figure) -> Line<'_> {
    let percentiles =
        |of: &Distribution| [50.0, 90.0, 99.0, 99.9, 100.0].map(|percent| of.percentile(percent));
    Line {
        name: figure.name,
        what: figure.what,
        value: figure.value,
        unit: figure.unit,
        target: figure.target,
        met: figure.target.is_met(figure.value),
        floor: figure.floor,
        beside: figure.beside,
        percentiles_ms: figure.distribution.as_ref().map(percentiles),
        samples: figure.distribution.as_ref().map(Distribution::len),
    }
}
