//! The command line of `clawmesh-testnet`: one file per command.

mod attack;
mod bench;
mod demo;
mod kills;
mod large;
mod many;
mod output;
mod run;
mod simulate;
mod small;
mod up;

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use output::Output;

/// Many clawmesh nodes on one machine: real ones, or simulated ones with faults.
#[derive(Debug, Parser)]
#[command(name = "clawmesh-testnet", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
    Attack(attack::Attack),
    Bench(bench::Bench),
    Demo(demo::Demo),
    Growth(bench::Growth),
    Kills(kills::Kills),
    Large(large::Large),
    Many(many::Many),
    Sim(simulate::Simulate),
    Small(small::Small),
    Run(run::Run),
}

/// Runs the command line `arguments`, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(usage) => {
            // Help and version are no errors and go to stdout; where nobody reads, nothing is lost.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(1));
        }
    };
    let mut output = Output::new();
    match execute(arguments.command, &mut output) {
        Ok(code) => code,
        Err(error) => {
            output.note(&format!("clawmesh-testnet: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command, output: &mut Output) -> Result<ExitCode> {
    match command {
        Command::Sim(simulate) => simulate.run(output),
        Command::Run(run) => run.run(output),
        Command::Small(small) => small.run(output),
        Command::Large(large) => large.run(output),
        Command::Many(many) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("cannot start")?.block_on(many.run(output))
        }
        Command::Bench(bench) => {
            // The load shares its machine with the measured server: one thread.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("cannot start")?.block_on(bench.run(output))
        }
        Command::Growth(growth) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("cannot start")?.block_on(growth.run(output))
        }
        Command::Attack(attack) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
            runtime.block_on(attack.run(output))
        }
        Command::Demo(demo) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
            runtime.block_on(demo.run(output))
        }
        Command::Kills(kills) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
            runtime.block_on(kills.run(output))
        }
        Command::Up(up) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
            runtime.block_on(up.run(output))
        }
    }
}
