//! Distributions as a picture: one band per figure, over a logarithmic axis of time.

use std::fmt::Write;

use super::report::Report;
use crate::distribution::Distribution;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 20.0;
const BAND: f64 = 46.0;
const TOP: f64 = 40.0;
/// The ends of the axis, in milliseconds.
const FROM_MS: f64 = 0.01;
const UPTO_MS: f64 = 1_000.0;
/// Percentiles that are drawn: thin lines at the ends, a thick one where most are, a dot at the middle.
const SPAN: [f64; 5] = [0.1, 10.0, 50.0, 99.0, 99.9];

/// Draws the distributions of a run, floors first, as SVG.
#[must_use]
pub fn draw(report: &Report) -> String {
    let floors = &report.floors;
    let mut bands: Vec<(&str, &Distribution)> = vec![
        ("fsync of one page", &floors.fsync),
        ("an echoed line", &floors.echo),
        ("a gossip hop", &floors.gossip),
    ];
    for figure in &report.figures {
        // Figures of one distribution follow each other; it is drawn once.
        if let Some(distribution) = &figure.distribution
            && bands.last().is_none_or(|(_, last)| *last != distribution)
        {
            bands.push((figure.what, distribution));
        }
    }
    let height = TOP + BAND * bands.len() as f64 + 30.0;
    let mut svg = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{height}" fill="white"/>
"#
    );
    axis(&mut svg, height);
    for (n, (name, of)) in bands.iter().enumerate() {
        band(&mut svg, TOP + BAND * (n as f64 + 0.5), name, of);
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(ms: f64) -> f64 {
    let part = (ms.clamp(FROM_MS, UPTO_MS) / FROM_MS).log10() / (UPTO_MS / FROM_MS).log10();
    LEFT + part * (WIDTH - LEFT - RIGHT)
}

fn axis(svg: &mut String, height: f64) {
    let mut ms = FROM_MS;
    while ms <= UPTO_MS * 1.001 {
        let (x, foot) = (x(ms), height - 24.0);
        let label = if ms < 1_000.0 { format!("{ms} ms") } else { format!("{} s", ms / 1_000.0) };
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" y1="{}" x2="{x:.1}" y2="{foot:.1}" stroke="#ddd"/><text x="{x:.1}" y="{:.1}" text-anchor="middle" fill="#555">{label}</text>"##,
            TOP - 10.0,
            foot + 16.0,
        );
        // 0.1 + 0.2 would show.
        ms = (ms * 10.0 * 100.0).round() / 100.0;
    }
}

fn band(svg: &mut String, y: f64, name: &str, of: &Distribution) {
    let at = SPAN.map(|percent| x(of.percentile(percent)));
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        r##"<text x="{:.1}" y="{:.1}" text-anchor="end">{name}</text>
<line x1="{:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="#888"/>
<line x1="{:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="#27c" stroke-width="10" stroke-opacity="0.6"/>
<circle cx="{:.1}" cy="{y:.1}" r="5" fill="#114"/>
<text x="{:.1}" y="{:.1}" fill="#555" font-size="10">p50 {:.2}  p99 {:.2}  p99.9 {:.2} ms</text>"##,
        LEFT - 10.0,
        y + 4.0,
        at[0],
        at[4],
        at[1],
        at[3],
        at[2],
        at[0],
        y + 18.0,
        of.percentile(50.0),
        of.percentile(99.0),
        of.percentile(99.9),
    );
}
