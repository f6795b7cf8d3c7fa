//! Operators' commands about tokens.

use anyhow::{Context, Result, anyhow, bail};
use bridge::{
    config::Auth,
    seam::refusal::Refusal,
    secret::Secret,
    tokens::{Scope, Terms, Token, Visibility},
};
use mesh::{
    api::{
        agenda::KeyView,
        command::{Command, Outcome},
    },
    limits::AGENT_ID_BYTES_MAX,
};
use protocol::operator::{Answer, KnownToken, TokenState, TokenTerms, WantedToken};

use super::{Control, wrong_answer};
use crate::{clock::Clock, tokens};

impl Control {
    /// Presents the key here, and makes a token for it.
    pub(super) async fn make_token(&self, wanted: WantedToken) -> Result<Answer> {
        let Auth::Key(_) = &self.bridge.config().auth else {
            bail!("the running node checks no keys (--no-auth): agents need no tokens");
        };
        let terms = core_terms(wanted.terms)?;
        let key = Secret::new(wanted.key.0);
        let name = terms.name.clone().unwrap_or_else(|| terms.agent.to_string());
        let presented = self.bridge.desk().present(key.clone(), &terms.agent, &name).await;
        presented.map_err(|refusal| because(&refusal))?;
        let tokens = self.words.tokens.clone();
        let making = tokio::task::spawn_blocking(move || tokens.make(&key, terms)).await;
        Ok(Answer::Token(making.context("the thread has ended")??))
    }

    pub(super) async fn list_tokens(&self) -> Result<Answer> {
        let Outcome::Keys(keys) = self.engine(Command::ListKeys).await? else {
            return Err(wrong_answer());
        };
        let now = Clock::start().now().wall_ms;
        let known = self.words.tokens.list().into_iter().map(|token| {
            let is_own = self.bridge.config().auth.owns(token.key);
            let is_valid = is_own || keys.iter().any(|key| key.key == token.key && opens(key, now));
            known(token, is_valid, now)
        });
        Ok(Answer::Tokens(known.collect()))
    }

    pub(super) async fn revoke_token(&self, id: String) -> Result<Answer> {
        let tokens = self.words.tokens.clone();
        let revoking = tokio::task::spawn_blocking(move || tokens.revoke(&id)).await;
        revoking.context("the thread has ended")??;
        Ok(Answer::Done)
    }
}

/// The terms that an operator wants.
fn core_terms(wanted: TokenTerms) -> Result<Terms> {
    let TokenTerms { agent, name, scopes, tools, visibility, sandboxed, expires_ms } = wanted;
    if agent.is_empty() || agent.len() > AGENT_ID_BYTES_MAX {
        bail!("--agent: an agent's id has 1 to {AGENT_ID_BYTES_MAX} bytes");
    }
    let named = |name: &String| {
        Scope::named(name).with_context(|| {
            let all: Vec<&str> = Scope::ALL.into_iter().map(Scope::name).collect();
            format!("--scopes: {name:?} is no scope; these are: {}", all.join(", "))
        })
    };
    let scopes = scopes.map(|names| names.iter().map(named).collect()).transpose()?;
    if let Some(Err(name)) = tools.as_deref().map(mcp::Groups::parse) {
        bail!("--tools: there is no group {name:?}: {}", mcp::Groups::NAMES.join(", "));
    }
    let visibility = Visibility::named(&visibility).with_context(|| {
        let all: Vec<&str> = Visibility::ALL.into_iter().map(Visibility::name).collect();
        format!("--visibility {visibility:?}: choose one of {}", all.join(", "))
    })?;
    Ok(Terms { agent: agent.into(), name, scopes, tools, visibility, sandboxed, expires_ms })
}

/// Why a key cannot be presented.
fn because(refusal: &Refusal) -> anyhow::Error {
    if let Refusal::Mesh(refused) = refusal {
        return anyhow!("the key cannot be presented here: {refused}");
    }
    if let Refusal::Field(broken) = refusal {
        return anyhow!("--name or --agent: {}", broken.rule);
    }
    anyhow!("the key cannot be presented here now: try again")
}

fn opens(key: &KeyView, now_ms: u64) -> bool {
    !key.revoked && key.successor.is_none() && !key.terms.is_over(now_ms)
}

/// A token as operators see it.
fn known(token: Token, is_key_valid: bool, now_ms: u64) -> KnownToken {
    let state = match (token.is_over(now_ms), is_key_valid) {
        (true, _) => TokenState::Expired,
        (false, false) => TokenState::KeyInvalid,
        (false, true) => TokenState::Valid,
    };
    let id = tokens::id(&token);
    let Token { key, made_ms, terms, .. } = token;
    let names = |scope: Scope| scope.name().to_owned();
    KnownToken {
        id,
        key: key.to_string(),
        made_at: clawchat::timestamp(made_ms),
        expires_at: terms.expires_ms.map(clawchat::timestamp),
        state,
        terms: TokenTerms {
            agent: terms.agent.to_string(),
            name: terms.name,
            scopes: terms.scopes.map(|scopes| scopes.iter().map(names).collect()),
            tools: terms.tools,
            visibility: terms.visibility.name().to_owned(),
            sandboxed: terms.sandboxed,
            expires_ms: terms.expires_ms,
        },
    }
}
