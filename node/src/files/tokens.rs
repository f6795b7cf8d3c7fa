//! `tokens.json`: the tokens of a node. Neither a token nor a key can be read from it: see [`bridge::tokens`].

use anyhow::{Context, Error, Result};
use bridge::tokens::{Scope, Terms, Token, Visibility};
use mesh::name::id::{KeyPrint, NodeId, parse_hex};
use serde::{Deserialize, Serialize};

use super::{
    DataDir,
    private::{hex, read_json, write_json},
};

const FILE: &str = "tokens.json";

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The node whose tokens they are: a node that was restored from its backup is another one.
    node: String,
    tokens: Vec<KeptToken>,
}

#[derive(Serialize, Deserialize)]
struct KeptToken {
    hash: String,
    key: String,
    sealed: String,
    made_ms: u64,
    agent: String,
    name: Option<String>,
    scopes: Option<Vec<String>>,
    tools: Option<String>,
    visibility: String,
    sandboxed: bool,
    expires_ms: Option<u64>,
}

impl KeptToken {
    fn of(token: &Token) -> KeptToken {
        let Token { hash, key, sealed, made_ms, terms } = token;
        let names = |scope: Scope| scope.name().to_owned();
        KeptToken {
            hash: hex(hash).to_string(),
            key: key.to_string(),
            sealed: hex(sealed).to_string(),
            made_ms: *made_ms,
            agent: terms.agent.to_string(),
            name: terms.name.clone(),
            scopes: terms.scopes.map(|scopes| scopes.iter().map(names).collect()),
            tools: terms.tools.clone(),
            visibility: terms.visibility.name().to_owned(),
            sandboxed: terms.sandboxed,
            expires_ms: terms.expires_ms,
        }
    }

    fn token(self) -> Result<Token> {
        let named = |name: &String| Scope::named(name).with_context(|| format!("scope {name:?}"));
        let scopes = self.scopes.map(|names| names.iter().map(named).collect());
        Ok(Token {
            hash: parse_hex(&self.hash).context("a hash")?,
            key: KeyPrint(parse_hex(&self.key).context("a fingerprint")?),
            sealed: bytes(&self.sealed).context("sealed bytes")?,
            made_ms: self.made_ms,
            terms: Terms {
                agent: self.agent.into(),
                name: self.name,
                scopes: scopes.transpose()?,
                tools: self.tools,
                visibility: Visibility::named(&self.visibility).context("a visibility")?,
                sandboxed: self.sandboxed,
                expires_ms: self.expires_ms,
            },
        })
    }
}

impl DataDir {
    /// The tokens that this node made.
    pub(crate) fn tokens(&self, node: NodeId) -> Result<Vec<Token>> {
        let read = || -> Result<Vec<Token>> {
            let kept: Option<Kept> = read_json(&self.file(FILE))?;
            let own = kept.filter(|kept| kept.node == node.to_string());
            own.into_iter().flat_map(|kept| kept.tokens).map(KeptToken::token).collect()
        };
        read().map_err(|error: Error| error.context(self.damaged(FILE, "tokens")))
    }

    pub(crate) fn write_tokens(&self, node: NodeId, tokens: &[Token]) -> Result<()> {
        let tokens = tokens.iter().map(KeptToken::of).collect();
        write_json(&self.file(FILE), &Kept { node: node.to_string(), tokens })
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    hex.len().is_multiple_of(2).then(|| digits.map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn tokens_come_back_as_they_were_to_their_own_node_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let token = |scopes: Option<&[Scope]>, sandboxed| Token {
            hash: [7; 32],
            key: KeyPrint([8; 16]),
            sealed: vec![1, 2, 3],
            made_ms: 5,
            terms: Terms {
                agent: "Ünï x".into(),
                name: Some("x".to_owned()),
                scopes: scopes.map(|scopes| scopes.iter().copied().collect()),
                tools: Some("rooms".to_owned()),
                visibility: Visibility::Spawned,
                sandboxed,
                expires_ms: Some(9),
            },
        };
        let tokens =
            [token(None, true), token(Some(&[]), false), token(Some(&[Scope::Send]), false)];
        let node = NodeId([1; 32]);
        dir.write_tokens(node, &tokens).unwrap();
        assert_eq!(dir.tokens(node).unwrap(), tokens);
        assert_eq!(dir.tokens(NodeId([2; 32])).unwrap(), [], "restored from a backup");
        let mode = fs::metadata(dir.file(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(dir.file(FILE), "{}").unwrap();
        let error = format!("{:#}", dir.tokens(node).unwrap_err());
        assert!(error.contains("tokens.json does not hold tokens"), "{error}");
    }
}
