//! The tokens of a node: in `tokens.json`, and valid from the moment at which they are there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use bridge::{
    secret::Secret,
    tokens::{self, Terms, Token},
};
use mesh::wire::signatures::SignedLog;
use protocol::operator::{HiddenText, NewToken};

use crate::{
    clock::Clock,
    files::{DataDir, private::hex},
    limits::TOKENS_MAX,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Tokens {
    dir: DataDir,
    here: SignedLog,
    /// Where requests are judged by them.
    valid: Arc<tokens::Tokens>,
    kept: Mutex<Vec<Token>>,
}

impl Tokens {
    /// Those of earlier starts.
    pub(crate) fn open(
        dir: DataDir,
        here: SignedLog,
        valid: Arc<tokens::Tokens>,
    ) -> Result<Arc<Tokens>> {
        let kept = dir.tokens(here.node)?;
        valid.replace(kept.iter().cloned());
        Ok(Arc::new(Tokens { dir, here, valid, kept: Mutex::new(kept) }))
    }

    /// A new one for a key. One whose time is over makes room.
    pub(crate) fn make(&self, key: &Secret, terms: Terms) -> Result<NewToken> {
        let now = Clock::start().now().wall_ms;
        let agent = terms.agent.clone();
        let made = Token::make(&self.here, key, terms, now);
        let (text, token) = made.context("no token can be made; try again")?;
        let (id, print) = (id(&token), token.key);
        self.change(|kept| {
            if kept.len() >= TOKENS_MAX {
                kept.retain(|token| !token.is_over(now));
            }
            if kept.len() >= TOKENS_MAX {
                bail!("this node has {TOKENS_MAX} tokens: revoke one, with `clawmeshd tokens revoke ID`");
            }
            kept.push(token);
            Ok(())
        })?;
        tracing::info!(id, key = %print, agent = &*agent, "a token was made");
        Ok(NewToken { id, token: HiddenText(text.expose().to_owned()) })
    }

    /// It opens nothing any more.
    pub(crate) fn revoke(&self, wanted: &str) -> Result<()> {
        self.change(|kept| {
            let before = kept.len();
            kept.retain(|token| id(token) != wanted);
            if kept.len() == before {
                bail!("no token {wanted}: `clawmeshd tokens list` shows those of this node");
            }
            Ok(())
        })?;
        tracing::info!(id = wanted, "a token was revoked");
        Ok(())
    }

    /// All of them, the oldest first.
    pub(crate) fn list(&self) -> Vec<Token> {
        self.locked().clone()
    }

    /// Durable before it counts.
    fn change(&self, change: impl FnOnce(&mut Vec<Token>) -> Result<()>) -> Result<()> {
        let mut kept = self.locked();
        let mut next = kept.clone();
        change(&mut next)?;
        self.dir.write_tokens(self.here.node, &next)?;
        self.valid.replace(next.iter().cloned());
        *kept = next;
        Ok(())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Token>> {
        // It is replaced as a whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By which operators name a token: the first digits of its hash, which tell nothing of it.
pub(crate) fn id(token: &Token) -> String {
    hex(&token.hash[..8]).to_string()
}

#[cfg(test)]
mod tests {
    use bridge::tokens::Visibility;
    use mesh::name::id::{MeshId, NodeId};

    use super::*;

    #[test]
    fn a_node_has_so_many_tokens_and_those_that_are_over_make_room() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let here = SignedLog { mesh: MeshId([1; 16]), node: NodeId([2; 32]) };
        let terms = |expires_ms| Terms {
            agent: "ada".into(),
            name: None,
            scopes: None,
            tools: None,
            visibility: Visibility::Joined,
            sandboxed: false,
            expires_ms,
        };
        let token = |nth: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&nth.to_be_bytes());
            let key = mesh::name::id::KeyPrint([0; 16]);
            Token {
                hash,
                key,
                sealed: Vec::new(),
                made_ms: 0,
                terms: terms((nth == 0).then_some(1)),
            }
        };
        let all: Vec<Token> = (0..TOKENS_MAX).map(token).collect();
        dir.write_tokens(here.node, &all).unwrap();
        let tokens = Tokens::open(dir, here, Arc::default()).unwrap();
        let key = Secret::new("k".repeat(64));
        let new = tokens.make(&key, terms(None)).unwrap();
        let error = tokens.make(&key, terms(None)).unwrap_err().to_string();
        assert!(error.contains("1000 tokens: revoke one"), "{error}");
        tokens.revoke(&new.id).unwrap();
        assert!(tokens.revoke(&new.id).is_err());
        tokens.make(&key, terms(None)).unwrap();
    }
}
