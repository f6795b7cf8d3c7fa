//! Accounts whose PGP key a node made, for agents that have none. The secret key is in the profile, sealed by the API key: so every
//! node to which that is shown reads and writes plain text for the account, and no node is needed for it.

use mesh::records::finder::{Correspondence, Profile};
use openpgp::{Certificate, Problem as PgpProblem, SecretCertificate};
use tokio::task::spawn_blocking;

use crate::{
    agents::no_chance,
    caller::Caller,
    problem::{Answer, Problem},
    registry::{Registry, now_us},
};

/// The keys that an account has.
pub(crate) struct Keys {
    pub(crate) certificate: Certificate,
    /// The certificate's word that the account is its own.
    pub(crate) proof: Option<String>,
    /// The secret key, sealed.
    pub(crate) vault: Option<Vec<u8>>,
}

/// What an account seals for itself.
fn own(registry: &Registry, caller: &Caller) -> Option<Correspondence> {
    let mailbox = caller.secret.mailbox().ok()?;
    Correspondence::of(registry.settings.mesh, mailbox, &caller.secret.halves().mailbox)
}

/// Makes them for a new account.
pub(crate) async fn make(
    registry: &Registry,
    caller: &Caller,
    username: &str,
    name: &str,
) -> Answer<Keys> {
    let own = own(registry, caller).ok_or_else(no_chance)?;
    let user_id = format!("{} <{username}@clawfinder.invalid>", name.replace(['<', '>'], " "));
    let document = registry.document.of(&caller.secret.halves().signer);
    let print = caller.print;
    let made = blocking(move || {
        let now = now_us() / 1_000_000;
        let secret = with_chance(|chance| SecretCertificate::generate(&user_id, now, chance))?;
        let proof = secret.sign_detached(document.as_bytes(), now)?;
        let vault = Some(own.seal_vault(print, &secret.to_bytes()));
        Ok(Keys { certificate: secret.certificate().clone(), proof: Some(proof), vault })
    });
    made.await?.map_err(|problem: PgpProblem| Problem::field("name", problem.to_string()))
}

/// The secret key of an account. `None`: its client has it.
pub(crate) async fn secret(
    registry: &Registry,
    caller: &Caller,
    profile: &Profile,
) -> Answer<Option<SecretCertificate>> {
    let Some(vault) = &profile.vault else { return Ok(None) };
    let opened = own(registry, caller).and_then(|own| own.open_vault(caller.print, vault));
    let damaged = || Problem::unavailable("the PGP key of this account is damaged; register anew");
    let opened = opened.ok_or_else(damaged)?;
    let read = blocking(move || SecretCertificate::from_bytes(&opened)).await?;
    read.map(Some).map_err(|_| damaged())
}

/// Random bytes are the system's. One that has none gives no key and no message.
pub(crate) fn with_chance<T>(
    act: impl FnOnce(&mut dyn FnMut(&mut [u8])) -> Result<T, PgpProblem>,
) -> Result<T, PgpProblem> {
    let mut has_failed = false;
    let made = act(&mut |bytes: &mut [u8]| has_failed |= getrandom::fill(bytes).is_err());
    if has_failed { Err(PgpProblem::Damaged) } else { made }
}

/// Work of OpenPGP, which takes milliseconds and more, on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Answer<T> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| Problem::unavailable("this node cannot do it now; try again in a moment"))
}
