//! `clawmesh completions` and `clawmesh man`: from the definition of the command line itself.

use std::path::PathBuf;

use clap_complete::Shell;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Print what a shell needs to complete the commands
///
/// For example: clawmesh completions bash > ~/.local/share/bash-completion/completions/clawmesh
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

/// Write man pages, one for each command
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The directory they go into, such as ~/.local/share/man/man1
    pub directory: PathBuf,
}

pub(crate) fn completions(
    cx: &Context,
    args: Completions,
    mut definition: clap::Command,
) -> Result<Outcome, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut definition, "clawmesh", &mut text);
    cx.output.line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Outcome::Done)
}

pub(crate) fn man(cx: &Context, args: Man, definition: clap::Command) -> Result<Outcome, Failure> {
    let failure = |source| Failure::File { path: args.directory.clone(), source };
    std::fs::create_dir_all(&args.directory).map_err(failure)?;
    clap_mangen::generate_to(definition, &args.directory).map_err(failure)?;
    cx.output.note(&format!("man pages are in {}", args.directory.display()))?;
    Ok(Outcome::Done)
}
