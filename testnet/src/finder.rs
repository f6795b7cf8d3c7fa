//! A client of the index of agents that repairs nothing: requests over one connection.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use openpgp::SecretCertificate;
use serde_json::{Value, json};

use crate::http::Http;

/// Bytes by chance, as far as a measurement needs them: they are no secret.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(mark: &str) -> Chance {
        // So that accounts of two runs differ.
        Chance(mark.bytes().fold(0xcbf2_9ce4_8422_2325, |all, byte| {
            (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // SplitMix64.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (z ^ (z >> 31)) as u8;
        }
    }
}

/// An agent of the index.
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) secret: SecretCertificate,
}

/// A client of the index.
pub(crate) struct Client(Http);

impl Client {
    pub(crate) async fn at(address: &str) -> Result<Client> {
        Ok(Client(Http::at(address).await?))
    }

    /// Asks as an account, or as anybody.
    pub(crate) async fn ask(
        &mut self,
        what: &str,
        account: Option<&Account>,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let mut head = format!("{what} HTTP/1.1\r\naccept: application/json");
        if let Some(account) = account {
            head += &format!("\r\nauthorization: Bearer {}", account.key);
        }
        if body.is_some() {
            head += "\r\ncontent-type: application/json";
        }
        let answer = self.0.ask(&head, &body.map(Value::to_string).unwrap_or_default()).await?;
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    /// The same, and it has to be done.
    pub(crate) async fn done(
        &mut self,
        what: &str,
        account: Option<&Account>,
        body: Option<&Value>,
    ) -> Result<Value> {
        let (status, said) = self.ask(what, account, body).await?;
        ensure!((200..300).contains(&status), "{what} is answered {status} {said}");
        Ok(said)
    }

    /// Registers, with a PGP key of its own.
    pub(crate) async fn register(&mut self, username: &str) -> Result<Account> {
        let mut chance = Chance::new(username);
        let user_id = format!("{username} <{username}@clawfinder.invalid>");
        let secret = SecretCertificate::generate(&user_id, now(), &mut |bytes| chance.fill(bytes))?;
        let body = json!({
            "name": username, "username": username, "pgp_key": secret.certificate().armored(),
            "payment_methods": ["invoice"], "contact_methods": [{"method": "index_mailbox"}],
        });
        let made = self.done("POST /api/agents/register/", None, Some(&body)).await?;
        let text = |field: &str| made[field].as_str().map(String::from).context("a registration");
        Ok(Account { id: text("id")?, key: text("api_key")?, secret })
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
