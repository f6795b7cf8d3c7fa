//! `clawmesh-judge`: says of each promise whether a history keeps it.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write, stdin, stdout},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Parser;
use judge::{Judge, line::Line};

/// Judge the history of a room: what clients of real nodes saw, a JSON object in each line
///
/// Ends with 1 where a promise was broken. The lines are in docs/testing.md.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Files of one history, read one after the other; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let mut judge = Judge::default();
    for file in Cli::parse().files {
        let name = file.display().to_string();
        let source: Box<dyn BufRead> = if name == "-" {
            Box::new(stdin().lock())
        } else {
            let opened = File::open(&file).with_context(|| format!("cannot read {name}"))?;
            Box::new(BufReader::new(opened))
        };
        read(&mut judge, source).with_context(|| format!("{name} is no history"))?;
    }
    let report = judge.end();
    // A reader that has gone has seen enough.
    let _ = write!(stdout(), "{report}");
    Ok(ExitCode::from(u8::from(report.all_broken().next().is_some())))
}

fn read(judge: &mut Judge, source: impl BufRead) -> Result<()> {
    for (n, line) in source.lines().enumerate() {
        let line = line.with_context(|| format!("line {}", n + 1))?;
        if !line.trim().is_empty() {
            let line: Line =
                serde_json::from_str(&line).with_context(|| format!("line {}", n + 1))?;
            judge.note(line);
        }
    }
    Ok(())
}
