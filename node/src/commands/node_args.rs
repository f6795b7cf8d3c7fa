//! The node that a command is about.

use std::path::PathBuf;

use anyhow::Result;

use crate::settings::{Layer, Layered};

/// See the module.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct NodeArgs {
    /// The node's directory [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A TOML file of settings, named as the flags of `clawmeshd up`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl NodeArgs {
    pub(super) fn layered(self, key_file: Option<PathBuf>) -> Result<Layered> {
        let flags = Layer { data_dir: self.data_dir, key_file, ..Layer::default() };
        layered(flags, self.config)
    }
}

pub(super) fn layered(flags: Layer, config: Option<PathBuf>) -> Result<Layered> {
    Ok(Layered::new(flags, config, |name| std::env::var(name).ok())?)
}
