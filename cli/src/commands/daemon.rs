//! `clawmesh serve`, `clawmesh auth` and `clawmesh invite-agent`: commands that `clawmeshd` carries out.
//!
//! All that follows belongs to `clawmeshd`, which takes this program's place. So these commands are recognised before
//! the command line is parsed (`handed_over`): options such as `--socket` mean the node's then.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Failure;

/// The node's program.
const DAEMON: &str = "clawmeshd";

/// Start a node: `clawmeshd up`, with everything that follows
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Serve {
    /// As of `clawmeshd up`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub options: Vec<OsString>,
}

/// Make a key for one more agent, and print a text to paste into it: `clawmeshd invite-agent`, with everything that follows
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct InviteAgent {
    /// The public room, and options, as of `clawmeshd invite-agent`
    #[arg(value_name = "ROOM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// The key that clients of this machine's node need
#[derive(Debug, clap::Subcommand)]
pub enum Auth {
    /// Print it: `clawmeshd key show`, with everything that follows
    ShowKey(Serve),
    /// Make a new one: `clawmeshd key rotate`, with everything that follows
    RotateKey(Serve),
}

/// A command line of `clawmeshd`, without the program's name, if these arguments (the program's name first) begin one.
pub(crate) fn handed_over(args: &[OsString]) -> Option<Vec<OsString>> {
    let word = |at: usize| args.get(at).and_then(|word| word.to_str());
    let (verb, rest): (&[&str], _) = match (word(1), word(2)) {
        (Some("serve"), _) => (&["up"], 2),
        (Some("invite-agent"), _) => (&["invite-agent"], 2),
        (Some("auth"), Some("show-key")) => (&["key", "show"], 3),
        (Some("auth"), Some("rotate-key")) => (&["key", "rotate"], 3),
        _ => return None,
    };
    let verb = verb.iter().map(OsString::from);
    Some(verb.chain(args.iter().skip(rest).cloned()).collect())
}

/// Becomes `clawmeshd` with these arguments. Returns only if that fails.
pub(crate) fn become_daemon(args: &[OsString]) -> Failure {
    let program = daemon(env::current_exe().ok().as_deref());
    let source = Command::new(&program).args(args).exec();
    if source.kind() == io::ErrorKind::NotFound {
        return Failure::NoDaemon;
    }
    Failure::File { path: program, source }
}

/// The one that was installed with this program; else the one that the system finds in `PATH`.
fn daemon(this: Option<&Path>) -> PathBuf {
    let beside = this.map(|this| this.with_file_name(DAEMON));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| DAEMON.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        handed_over(&args).map(|args| args.join(" ".as_ref()).into_string().unwrap())
    }

    #[test]
    fn what_follows_is_the_nodes() {
        let check = |line, expect: Option<&str>| assert_eq!(handed(line).as_deref(), expect);
        check("clawmesh serve", Some("up"));
        // Options that `clawmesh` has, too, and its help.
        check("clawmesh serve --socket s --help", Some("up --socket s --help"));
        check("clawmesh invite-agent lobby --label x", Some("invite-agent lobby --label x"));
        check("clawmesh auth show-key --key-file f", Some("key show --key-file f"));
        check("clawmesh auth rotate-key --yes", Some("key rotate --yes"));
        for other in ["clawmesh", "clawmesh auth", "clawmesh auth x", "clawmesh send serve x"] {
            check(other, None);
        }
    }

    #[test]
    fn the_daemon_beside_the_program_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let this = dir.path().join("clawmesh");
        assert_eq!(daemon(Some(&this)), Path::new(DAEMON));
        std::fs::write(dir.path().join(DAEMON), "").unwrap();
        assert_eq!(daemon(Some(&this)), dir.path().join(DAEMON));
    }
}
