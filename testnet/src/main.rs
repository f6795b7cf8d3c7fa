//! The program `clawmesh-testnet`.

use std::process::ExitCode;

fn main() -> ExitCode {
    testnet::cli::run(std::env::args_os())
}
