//! Reading all of a file into a plan.

use anyhow::Result;
use import::ServerFile;

use super::{
    Plan, agents,
    findings::{Findings, Refusals},
    ledger::Thing,
    owners::Owners,
    rooms, talk, webhooks,
};
use crate::import::choices::{Choices, OwnKeys};

/// Reads all of a file. `each`: how many messages were looked at, of how many, every so often.
///
/// # Errors
/// The file cannot be read. A row that can be read and not be brought is a refusal.
pub(crate) fn plan_of(
    file: &ServerFile,
    choices: Choices,
    keys: OwnKeys<'_>,
    each: &mut dyn FnMut(u64, u64),
) -> Result<(Plan, Refusals)> {
    let (mut plan, mut findings) = (Plan::default(), Findings::new(choices.skip_refused));
    let messages = file.message_count()?;
    each(0, messages);
    let mut owners = Owners::new(choices, keys);
    let minted = findings.readable(Thing::Key, file.keys()?);
    plan.keys = owners.mint(minted, &mut findings);
    rooms::take(&mut plan, file, &owners, &mut findings)?;
    agents::take(&mut plan, file, &owners, &mut findings)?;
    talk::take_votes(&mut plan, file, choices, &mut findings)?;
    talk::take_tasks(&mut plan, file, &mut findings)?;
    talk::look_at_messages(&mut plan, file, &mut findings, &mut |seen| each(seen, messages))?;
    // They go on in rooms whose ends are known.
    webhooks::take(&mut plan, file, &owners, &mut findings)?;
    let Findings { refusals, mut ledger, .. } = findings;
    ledger.brought = plan.counts(ledger.brought.of(Thing::Message));
    plan.ledger = ledger;
    Ok((plan, refusals))
}
