//! Limits of agents, by their key: `--limit KEY.WHAT=VALUE`.

use bridge::config::Quotas;
use mesh::api::agenda::{Retention, Tiers};

use super::{
    error::{Result, bad},
    parse,
};

/// Limits of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Agents and rooms.
    pub tiers: Tiers,
    /// Rate and size of messages.
    pub quotas: Quotas,
    /// How long history is kept.
    pub retention: Retention,
}

impl Default for Limits {
    /// Spec §8.
    fn default() -> Limits {
        Limits {
            tiers: Tiers::default(),
            quotas: Quotas::default(),
            retention: Retention::default(),
        }
    }
}

const FORM: &str = "write KEY.WHAT=VALUE, KEY one of own, free, pro, WHAT one of agents, rooms, \
                    messages-per-minute, content-bytes, retention; such as free.agents=5";

impl Limits {
    /// Sets what `--limit` says.
    pub(super) fn set(&mut self, text: &str) -> Result<()> {
        let refused = |why: &str| bad("limit", text, why);
        let (name, value) = text.split_once('=').ok_or_else(|| refused(FORM))?;
        let (key, what) = name.trim().split_once('.').ok_or_else(|| refused(FORM))?;
        let (tiers, quotas, retention) = (&mut self.tiers, &mut self.quotas, &mut self.retention);
        let (tier, quota, retention) = match key {
            "own" => (&mut tiers.own, &mut quotas.own, &mut retention.own),
            "free" => (&mut tiers.low, &mut quotas.free, &mut retention.low),
            "pro" => (&mut tiers.high, &mut quotas.pro, &mut retention.high),
            _ => return Err(refused(FORM)),
        };
        let value = value.trim();
        let count = || count(value).ok_or_else(|| refused("write a number, or none"));
        match what {
            "agents" => tier.agents = count()?.map(|count| count as usize),
            "rooms" => tier.rooms = count()?.map(|count| count as usize),
            "messages-per-minute" => quota.messages_per_minute = count()?,
            "content-bytes" => {
                let max = mesh::limits::CONTENT_BYTES_MAX;
                let bytes = value.parse().ok().filter(|bytes| (1..=max).contains(bytes));
                let bytes = bytes.ok_or_else(|| refused(&format!("write a number, 1 to {max}")))?;
                quota.content_bytes_max = bytes;
            }
            "retention" => *retention = parse::retention("limit", text, value)?,
            _ => return Err(refused(FORM)),
        }
        Ok(())
    }
}

/// `Some(None)`: none.
fn count(value: &str) -> Option<Option<u32>> {
    if value == "none" { Some(None) } else { value.parse().ok().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_can_be_set_for_each_key() {
        let mut limits = Limits::default();
        for text in [
            "own.agents=7",
            "free.rooms = none",
            "pro.messages-per-minute=9",
            "own.messages-per-minute=3",
            "free.content-bytes=100",
            "own.retention=30d",
            "pro.retention=forever",
        ] {
            limits.set(text).unwrap();
        }
        let mut expect = Limits::default();
        expect.tiers.own.agents = Some(7);
        expect.tiers.low.rooms = None;
        expect.quotas.pro.messages_per_minute = Some(9);
        expect.quotas.own.messages_per_minute = Some(3);
        expect.quotas.free.content_bytes_max = 100;
        expect.retention.own = Some(std::time::Duration::from_secs(30 * 24 * 3_600));
        expect.retention.high = None;
        assert_eq!(limits, expect);
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_to_write() {
        for (text, expect) in [
            ("agents=5", "write KEY.WHAT=VALUE"),
            ("free.agents", "write KEY.WHAT=VALUE"),
            ("gold.agents=5", "one of own, free, pro"),
            ("free.friends=5", "one of agents"),
            ("free.agents=many", "a number, or none"),
            ("free.agents=-1", "a number, or none"),
            ("free.content-bytes=none", "1 to 262144"),
            ("free.content-bytes=0", "1 to 262144"),
            ("free.content-bytes=262145", "1 to 262144"),
            ("free.retention=soon", "write a time such as"),
        ] {
            let mut limits = Limits::default();
            let error = limits.set(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--limit {text}: ")), "{error}");
            assert!(error.contains(expect), "{error}");
            assert_eq!(limits, Limits::default());
        }
    }
}
