//! `POST /api/keys`: a key of the free tier, shown once.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Json,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mesh::{
    api::{
        agenda::NewKey,
        command::{Command, Outcome},
    },
    name::id::KeyPrint,
    wire::acts::Tier,
};
use protocol::code::Code;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{Problem, Web, guard, listener::Peer, not_now};
use crate::{config::Signup, ids, limits, refusal::Refusal};

/// The header that the operator's secret is shown in.
const ADMIN_HEADER: &str = "x-clawchat-admin";
/// What the allowance of an address is counted over.
const HOUR: Duration = Duration::from_secs(3_600);
/// And that of all together.
const DAY: Duration = Duration::from_secs(24 * 3_600);

#[derive(Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    label: Option<String>,
}

#[derive(Serialize)]
struct Made {
    api_key: String,
    tier: &'static str,
}

pub(super) async fn make(
    State(web): State<Web>,
    ConnectInfo(Peer(peer)): ConnectInfo<Peer>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers();
    let client = guard::client(peer, headers, &web.shared.config.trusted_proxies);
    let allowance = match &web.shared.config.signup {
        Signup::Off => {
            let text = "this node makes no keys over HTTP; ask its operator for one";
            return Err(Problem::new(StatusCode::FORBIDDEN, Code::AccessDenied, text));
        }
        Signup::Admin(secret) => {
            let shown = admin(headers);
            if !shown.is_some_and(|shown| secret.is(shown)) {
                let text = "show the operator's secret in the header X-ClawChat-Admin";
                return Err(Problem::unauthorized(text));
            }
            None
        }
        Signup::Open => Some(guard::neighbourhood(client)),
    };
    let within = web.shared.config.timeouts.register;
    let wanted = timeout(within, wanted(request)).await.unwrap_or_else(|_| {
        let text = "the body did not come in time";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, Code::InvalidPayload, text))
    })?;
    let invited = allowance.is_none();
    if let Some(address) = allowance {
        web.shared.signups.take(address, Instant::now()).map_err(|wait| Problem {
            retry_after_secs: Some(wait.as_secs() + 1),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, Code::RateLimitAgents, TOO_MANY)
        })?;
    }
    let api_key = ids::key();
    let key = KeyPrint::of(&api_key);
    let new = NewKey { key, tier: Tier::Low, label: wanted.label, local: false };
    let Outcome::Done =
        web.ask(if invited { Command::MintKey(new) } else { Command::SignUp(new) }).await?
    else {
        return Err(not_now().into());
    };
    tracing::info!(%key, "a key was made over HTTP");
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let made = Json(Made { api_key, tier: "free" });
    Ok((StatusCode::CREATED, no_store, made).into_response())
}

const TOO_MANY: &str = "this address has had its keys for the hour, or all together theirs for the day; try again later";

fn admin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ADMIN_HEADER).and_then(|secret| secret.to_str().ok())
}

async fn wanted(request: Request) -> Result<Wanted, Problem> {
    let body = to_bytes(request.into_body(), limits::HTTP_BODY_BYTES_MAX).await;
    let body = body.map_err(|_| {
        let text = "the body is too large or incomplete";
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidPayload, text)
    })?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Wanted::default());
    }
    let wanted: Option<Wanted> = serde_json::from_slice(&body).ok();
    // An array would do for the reader, too.
    let wanted = wanted.filter(|_| body.trim_ascii_start().starts_with(b"{")).ok_or_else(|| {
        Refusal::invalid("the body must be a JSON object; `label`, if any, must be a string")
    })?;
    let max = mesh::limits::KEY_LABEL_BYTES_MAX;
    let label = wanted.label.as_deref().unwrap_or_default();
    if label.len() > max || label.chars().any(char::is_control) {
        let text = format!("`label` must have at most {max} bytes and no control characters");
        return Err(Refusal::invalid(text).into());
    }
    Ok(wanted)
}

/// Keys made for strangers, and for whom, within a day: checked and counted in one step.
#[derive(Debug, Default)]
pub(crate) struct Signups(Mutex<VecDeque<(Instant, IpAddr)>>);

impl Signups {
    /// Takes one, or says how long to wait.
    fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: Instant| now.saturating_duration_since(at);
        while made.front().is_some_and(|(at, _)| age(*at) >= DAY) {
            made.pop_front();
        }
        if let Some((first, _)) = made.front().filter(|_| made.len() >= limits::SIGNUPS_PER_DAY_MAX)
        {
            return Err(DAY.saturating_sub(age(*first)));
        }
        let recent = || made.iter().filter(|(at, of)| *of == address && age(*at) < HOUR);
        if let Some((first, _)) =
            recent().next().filter(|_| recent().count() >= limits::SIGNUPS_PER_HOUR_MAX)
        {
            return Err(HOUR.saturating_sub(age(*first)));
        }
        made.push_back((now, address));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(nth: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(nth).unwrap()))
    }

    #[test]
    fn an_address_has_ten_keys_in_any_hour() {
        let signups = Signups::default();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_secs(60 * minutes);
        for minute in 0..10 {
            assert_eq!(signups.take(address(1), at(minute)), Ok(()));
        }
        assert_eq!(signups.take(address(1), at(59)), Err(Duration::from_secs(60)));
        assert_eq!(signups.take(address(2), at(59)), Ok(()));
        assert_eq!(signups.take(address(1), at(60)), Ok(()));
        assert!(signups.take(address(1), at(60)).is_err());
    }

    #[test]
    fn all_addresses_together_have_so_many_in_any_day_and_no_more_are_remembered() {
        let signups = Signups::default();
        let start = Instant::now();
        let max = limits::SIGNUPS_PER_DAY_MAX;
        for nth in 0..max {
            assert_eq!(signups.take(address(nth), start), Ok(()));
        }
        assert_eq!(signups.take(address(max), start + HOUR), Err(DAY - HOUR));
        assert_eq!(signups.take(address(max), start + DAY), Ok(()));
        assert_eq!(signups.0.lock().unwrap().len(), 1);
    }
}
