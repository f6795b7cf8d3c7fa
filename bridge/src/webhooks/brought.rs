//! Subscriptions of a ClawChat server, in the form in which this node keeps its own.

use mesh::name::{
    id::{KeyPrint, RoomId},
    number::Number,
};
use url::Host;

use super::{
    address::is_public,
    record::{New, Record},
    target::Target,
};
use crate::{
    limits::{
        WEBHOOK_KIND_BYTES_MAX, WEBHOOK_KINDS_MAX, WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_URL_BYTES_MAX,
    },
    seam::answer::{Filter, SubscriptionStatus},
    secret::Secret,
};

/// A subscription of a ClawChat server.
#[derive(Clone, PartialEq, Eq)]
pub struct BroughtWebhook {
    /// Its id: clients name it.
    pub id: String,
    /// The key whose it is.
    pub owner: KeyPrint,
    /// Where messages are posted.
    pub url: String,
    /// The secret that signs them.
    pub secret: String,
    /// Only messages of these kinds.
    pub kinds: Option<Vec<String>>,
    /// Only those of agents of this name.
    pub only_from: Option<String>,
    /// None of agents of this name.
    pub not_from: Option<String>,
    /// No thinking pulses.
    pub exclude_thinking: bool,
    /// From which number on it was asked for.
    pub since: u64,
    /// All up to here was delivered.
    pub delivered: u64,
    /// How it is.
    pub status: SubscriptionStatus,
    /// Failures in a row.
    pub failures: u64,
    /// Unix milliseconds.
    pub created_ms: u64,
}

impl std::fmt::Debug for BroughtWebhook {
    /// URLs of webhooks often are secrets, as the secret is one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BroughtWebhook").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BroughtWebhook {
    /// Whether this node would have taken it from a client, but for the addresses of its host's name.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn check(&self) -> Result<(), String> {
        Target::parse(&self.url).map_err(|bad| format!("its URL must {bad}"))?;
        let kinds = self.kinds.as_deref().unwrap_or_default();
        let names = [&self.only_from, &self.not_from];
        let longest_name = names.into_iter().flatten().map(String::len).max().unwrap_or(0);
        let name_max = mesh::limits::NAME_BYTES_MAX;
        if !(1..=WEBHOOK_SECRET_BYTES_MAX).contains(&self.secret.len()) {
            return Err(format!("its secret must have 1 to {WEBHOOK_SECRET_BYTES_MAX} bytes"));
        }
        if kinds.len() > WEBHOOK_KINDS_MAX
            || kinds.iter().any(|kind| kind.len() > WEBHOOK_KIND_BYTES_MAX)
        {
            return Err(format!(
                "it may have {WEBHOOK_KINDS_MAX} kinds, each of {WEBHOOK_KIND_BYTES_MAX} bytes"
            ));
        }
        if longest_name > name_max {
            return Err(format!("names of agents have at most {name_max} bytes"));
        }
        // As long as any URL: it is part of a name in the store.
        if !(1..=WEBHOOK_URL_BYTES_MAX).contains(&self.id.len()) {
            return Err(format!("its id must have 1 to {WEBHOOK_URL_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Whether its URL itself says that it goes to where not everybody can reach.
    #[must_use]
    pub fn stays_private(&self) -> bool {
        Target::parse(&self.url).is_ok_and(|target| match target.host() {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => !is_public(address.into()),
            Host::Ipv6(address) => !is_public(address.into()),
        })
    }

    /// The name under which a node keeps it, and the value.
    #[must_use]
    pub fn into_kept(self, room: RoomId) -> (Vec<u8>, Vec<u8>) {
        let filter = Filter {
            kinds: self.kinds.filter(|kinds| !kinds.is_empty()),
            only_from: self.only_from,
            not_from: self.not_from,
            exclude_thinking: self.exclude_thinking,
        };
        let record = Record::new(New {
            id: self.id,
            owner: self.owner,
            room,
            url: self.url,
            secret: Secret::new(self.secret),
            filter,
            since: Number(self.since),
            now_ms: self.created_ms,
        });
        let record = record.after(Number(self.delivered), self.status, self.failures);
        (record.name(), record.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought() -> BroughtWebhook {
        BroughtWebhook {
            id: "s".to_owned(),
            owner: KeyPrint([1; 16]),
            url: "https://example.org/hook".to_owned(),
            secret: "hush".to_owned(),
            kinds: Some(vec!["verdict".to_owned()]),
            only_from: None,
            not_from: Some("bob".to_owned()),
            exclude_thinking: true,
            since: 3,
            delivered: 7,
            status: SubscriptionStatus::Failed,
            failures: 5,
            created_ms: 1_600_000_000_000,
        }
    }

    #[test]
    fn it_is_kept_as_it_was() {
        let it = brought();
        it.check().unwrap();
        assert!(!format!("{it:?}").contains("hush"));
        let (name, value) = it.into_kept(RoomId([2; 16]));
        let record = Record::decode(&value).unwrap();
        assert_eq!((record.name(), record.owner()), (name, KeyPrint([1; 16])));
        assert_eq!((record.cursor(), record.is_active()), (Number(7), false));
        let view = record.view();
        assert_eq!((view.since, view.failures), (Number(3), 5));
        assert_eq!(view.filter.not_from.as_deref(), Some("bob"));
        assert!(view.filter.exclude_thinking);
        assert_eq!(view.created_ms, 1_600_000_000_000);
        // Whoever failed that often and is to go on is tried once more.
        let active = BroughtWebhook { status: SubscriptionStatus::Active, ..brought() };
        let (_, value) = active.into_kept(RoomId([2; 16]));
        assert!(Record::decode(&value).unwrap().is_active());
    }

    #[test]
    fn what_no_client_could_ask_for_is_refused() {
        let wrong = [
            BroughtWebhook { url: "ftp://example.org".to_owned(), ..brought() },
            BroughtWebhook { secret: String::new(), ..brought() },
            BroughtWebhook { kinds: Some(vec!["x".to_owned(); 65]), ..brought() },
            BroughtWebhook { kinds: Some(vec!["x".repeat(129)]), ..brought() },
            BroughtWebhook { only_from: Some("x".repeat(257)), ..brought() },
            BroughtWebhook { id: String::new(), ..brought() },
        ];
        for it in wrong {
            it.check().unwrap_err();
        }
        for (url, private) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("https://1.1.1.1/x", false),
            ("https://example.org/x", false),
        ] {
            let it = BroughtWebhook { url: url.to_owned(), ..brought() };
            assert_eq!(it.stays_private(), private, "{url}");
        }
    }
}
