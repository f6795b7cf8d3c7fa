//! `clawmesh lantern validate`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::context::Context;
use crate::limits::ENVELOPE_BYTES_MAX;
use crate::outcome::{Failure, Outcome};
use ::lantern::check::check_text;

/// Check an envelope before it is sent: prints `valid`, or `invalid:` and all that is wrong, and exits 1.
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// A file with the envelope as JSON; - is stdin
    pub file: PathBuf,
}

/// As JSON.
#[derive(Serialize)]
struct Verdict {
    valid: bool,
    problems: Vec<String>,
}

pub(crate) fn run(cx: &Context, args: &Validate) -> Result<Outcome, Failure> {
    let problems = check_text(&read(&args.file)?);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let verdict = Verdict { valid: problems.is_empty(), problems };
    cx.output.show(&verdict, || {
        if verdict.valid {
            return vec!["valid".to_owned()];
        }
        let problems = verdict.problems.iter().map(|problem| format!("  {problem}"));
        std::iter::once("invalid:".to_owned()).chain(problems).collect()
    })?;
    Ok(if verdict.valid { Outcome::Done } else { Outcome::Invalid })
}

/// The text of a file; - is stdin.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let read = if path == Path::new("-") {
        text(io::stdin().lock())
    } else {
        File::open(path).and_then(text)
    };
    read.map_err(|source| Failure::File { path: path.to_owned(), source })
}

fn text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(ENVELOPE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > ENVELOPE_BYTES_MAX {
        return Err(io::Error::other("it is longer than a message can be"));
    }
    Ok(text)
}
