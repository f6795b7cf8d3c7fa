//! See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    node::run(std::env::args_os())
}
