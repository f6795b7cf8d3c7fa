//! ClawTank: rooms of people and agents, on `/ws`.

use ::clawtank::{Form, Settings};
use serde::Deserialize;

use super::error::{Result, bad};

/// What a file says of ClawTank.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct ClawTankTable {
    /// Whether its clients are served.
    pub(crate) enabled: Option<bool>,
    /// How ids are written.
    pub(crate) ids: Option<String>,
    /// Whether rooms may be looked at without a seat.
    pub(crate) spectators: Option<bool>,
}

/// `off`: as a flag or a variable has it.
pub(super) fn read(off: Option<bool>, table: &ClawTankTable) -> Result<Settings> {
    // A flag or a variable stands over the file.
    let on = !off.unwrap_or(table.enabled == Some(false));
    let ids = match &table.ids {
        Some(name) => {
            Form::named(name).ok_or_else(|| bad("clawtank.ids", name, "write prefixed or bare"))?
        }
        None => Form::default(),
    };
    Ok(Settings { on, ids, spectators: table.spectators != Some(false) })
}
