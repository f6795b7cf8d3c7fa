//! Pairing: a device without a key asks, an administrator reads its code and lets it in.
//!
//! A code is no credential: it names a request. The credential is the id that the node issues with it, which the device alone
//! is told. The key of the administrator is kept sealed with that id, so the node's files alone open nothing.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv4Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bridge::{
    secret::Secret,
    session::rates::{Buckets, Rate},
    tokens::{open_key, seal_key},
};
use mesh::name::id::KeyPrint;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::{
    caller::Caller,
    limits::{
        ADDRESSES_COUNTED_MAX, PAIRED_MAX, PENDING_FOR, PENDING_MAX, PENDING_PER_ADDRESS_MAX,
        POLL_EVERY, REQUESTS_PER_HOUR_MAX, SENDER_BYTES_MAX, WRONG_CODES_MAX,
    },
    names,
    outcome::{No, Outcome},
    params::{Params, SENDER},
    shared::Shared,
    times,
};

/// Letters and digits that people do not take for each other: 32, so that a byte of chance names each as often.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_CHARS: usize = 8;
/// Names of kept rows begin so; the hash of the issued id follows.
const NAMES: &[u8] = b"goclaw-pair/";
const HOUR_SECS: u64 = 3_600;

/// The hash of an issued id.
pub(crate) type IssuedHash = [u8; 32];

/// See the module.
pub(crate) struct Pairings {
    loaded: OnceCell<()>,
    state: Mutex<State>,
}

struct State {
    pending: BTreeMap<IssuedHash, Pending>,
    paired: BTreeMap<IssuedHash, Paired>,
    /// When each address asked within the last hour.
    asked: HashMap<IpAddr, Vec<Instant>>,
    polled: BTreeMap<IssuedHash, Instant>,
    wrong: Buckets<KeyPrint>,
}

impl Default for Pairings {
    fn default() -> Pairings {
        let state = State {
            pending: BTreeMap::new(),
            paired: BTreeMap::new(),
            asked: HashMap::new(),
            polled: BTreeMap::new(),
            wrong: Buckets::new(PAIRED_MAX),
        };
        Pairings { loaded: OnceCell::new(), state: Mutex::new(state) }
    }
}

/// What a device says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Device {
    /// The name that it gives itself.
    label: String,
    channel: String,
    chat: Option<String>,
    account: Option<String>,
}

/// A device that waits.
#[derive(Clone, Debug)]
struct Pending {
    id: String,
    code: String,
    issued: Secret,
    device: Device,
    address: IpAddr,
    created_ms: u64,
    expires_ms: u64,
}

/// A device that was let in.
#[derive(Clone, Debug)]
struct Paired {
    id: String,
    device: Device,
    at_ms: u64,
    by: String,
    /// The administrator's key, sealed with the issued id.
    sealed: Vec<u8>,
}

/// The answer to a device that asks.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) code: String,
    pub(crate) issued: Secret,
}

impl Device {
    /// From a request.
    pub(crate) fn of(params: &Params) -> Result<Device, No> {
        let label = params.required(SENDER)?;
        let begins = label.starts_with(|c: char| c.is_ascii_alphanumeric());
        let may = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
        if !begins || !label.chars().all(may) || label.len() > SENDER_BYTES_MAX {
            let text = "senderId must be letters, digits and ._:@-, at most 128, and begin with a letter or digit";
            return Err(No::invalid(text));
        }
        let short = |names: &[&'static str]| -> Result<Option<String>, No> {
            match params.filled(names)? {
                Some(text) if text.len() > SENDER_BYTES_MAX => {
                    let name = names.first().copied().unwrap_or_default();
                    Err(No::invalid(format!("{name} must have at most {SENDER_BYTES_MAX} bytes")))
                }
                text => Ok(text),
            }
        };
        let channel = short(&["channel"])?;
        let channel = channel.ok_or_else(|| No::invalid("channel is required"))?;
        let (chat, account) =
            (short(&["chatId", "chat_id"])?, short(&["accountId", "account_id"])?);
        Ok(Device { label, channel, chat, account })
    }

    /// A page or program that connects without a token.
    pub(crate) fn unnamed() -> Device {
        Device { label: "browser".to_owned(), channel: "ws".to_owned(), ..Device::default() }
    }

    fn kept(&self) -> Value {
        json!({"label": self.label, "channel": self.channel, "chat": self.chat, "account": self.account})
    }

    fn of_kept(kept: &Value) -> Device {
        let text = |name: &str| kept[name].as_str().map(str::to_owned);
        Device {
            label: text("label").unwrap_or_default(),
            channel: text("channel").unwrap_or_default(),
            chat: text("chat"),
            account: text("account"),
        }
    }
}

impl Paired {
    fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "sender_id": self.device.label,
            "channel": self.device.channel,
            "chat_id": self.device.chat.clone().unwrap_or_default(),
            "paired_at": self.at_ms,
            "paired_by": self.by,
        })
    }

    fn kept(&self) -> Vec<u8> {
        let sealed: String = self.sealed.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = json!({
            "id": self.id, "device": self.device.kept(), "at": self.at_ms, "by": self.by, "key": sealed,
        });
        row.to_string().into_bytes()
    }

    fn of_kept(value: &[u8]) -> Option<Paired> {
        let row: Value = serde_json::from_slice(value).ok()?;
        let hex = row["key"].as_str()?;
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let sealed = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok());
        Some(Paired {
            id: row["id"].as_str()?.to_owned(),
            device: Device::of_kept(&row["device"]),
            at_ms: row["at"].as_u64()?,
            by: row["by"].as_str()?.to_owned(),
            sealed: sealed.collect::<Option<_>>()?,
        })
    }
}

impl Pending {
    fn shown(&self) -> Value {
        let Device { label, channel, chat, account } = &self.device;
        json!({
            "id": self.id,
            "code": self.code,
            "sender_id": label,
            "channel": channel,
            "chat_id": chat.clone().unwrap_or_default(),
            "account_id": account.clone().unwrap_or_default(),
            "created_at": self.created_ms,
            "expires_at": self.expires_ms,
        })
    }
}

fn hash_of(issued: &str) -> IssuedHash {
    Sha256::digest(issued.as_bytes()).into()
}

fn row_name(hash: &IssuedHash) -> Vec<u8> {
    [NAMES, hash].concat()
}

/// Bytes of chance.
pub(crate) fn drawn<const N: usize>() -> Result<[u8; N], No> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| No::internal(&error.to_string()))?;
    Ok(bytes)
}

fn draw_code() -> Result<String, No> {
    let bytes: [u8; CODE_CHARS] = drawn()?;
    let letter = |byte: u8| LETTERS.get(usize::from(byte % 32)).copied().map_or('A', char::from);
    Ok(bytes.into_iter().map(letter).collect())
}

impl State {
    /// Requests that nobody answered in time are gone.
    fn sweep(&mut self, now_ms: u64) {
        self.pending.retain(|_, pending| pending.expires_ms > now_ms);
        let now = Instant::now();
        self.polled.retain(|_, at| now.duration_since(*at) < POLL_EVERY);
    }

    /// Counts a request of an address.
    fn count(&mut self, address: IpAddr) -> Result<(), No> {
        let now = Instant::now();
        let is_young = |at: &Instant| now.duration_since(*at).as_secs() < HOUR_SECS;
        self.asked.retain(|_, asked| {
            asked.retain(is_young);
            !asked.is_empty()
        });
        let of_address = self.pending.values().filter(|pending| pending.address == address);
        let wait_ms = HOUR_SECS * 1_000;
        if of_address.count() >= PENDING_PER_ADDRESS_MAX {
            let text = "too many pairings of this address wait for an administrator";
            return Err(No::exhausted(text, wait_ms));
        }
        let is_new = !self.asked.contains_key(&address);
        if self.pending.len() >= PENDING_MAX
            || (is_new && self.asked.len() >= ADDRESSES_COUNTED_MAX)
        {
            return Err(No::exhausted("too many pairings wait at this node", wait_ms));
        }
        let asked = self.asked.entry(address).or_default();
        if asked.len() >= REQUESTS_PER_HOUR_MAX {
            return Err(No::exhausted(
                "too many pairings were asked for from this address",
                wait_ms,
            ));
        }
        asked.push(now);
        Ok(())
    }
}

impl Pairings {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what was kept, once.
    async fn load(&self, shared: &Shared) -> Result<(), No> {
        let read = async || {
            let rows = shared.desk.kept(NAMES.to_vec()).await?;
            let paired = rows.into_iter().filter_map(|(name, value)| {
                let hash: IssuedHash = name.strip_prefix(NAMES)?.try_into().ok()?;
                Some((hash, Paired::of_kept(&value)?))
            });
            self.locked().paired.extend(paired);
            Ok::<(), No>(())
        };
        self.loaded.get_or_try_init(read).await.map(|_| ())
    }
}

/// A device asks to be paired. `own`: the request of the same connection, which is given once more.
pub(crate) fn ask(
    shared: &Shared,
    device: Device,
    address: Option<IpAddr>,
    own: Option<&Secret>,
) -> Result<Asked, No> {
    if !shared.settings().pairing {
        return Err(No::unauthorized("permission denied: this node pairs no devices"));
    }
    let now_ms = times::now_ms();
    let mut state = shared.pairings.locked();
    state.sweep(now_ms);
    if let Some(pending) = own.and_then(|own| state.pending.get(&hash_of(own.expose()))) {
        return Ok(Asked { code: pending.code.clone(), issued: pending.issued.clone() });
    }
    // Those whose address is not known are one.
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    state.count(address)?;
    let issued = Secret::new(names::uuid(drawn()?, 4));
    let mut code = draw_code()?;
    while state.pending.values().any(|pending| pending.code == code) {
        code = draw_code()?;
    }
    let pending = Pending {
        id: names::uuid(drawn()?, 4),
        code: code.clone(),
        issued: issued.clone(),
        device,
        address,
        created_ms: now_ms,
        expires_ms: now_ms.saturating_add(times::ms(PENDING_FOR)),
    };
    let told =
        json!({"code": code, "sender_id": pending.device.label, "channel": pending.device.channel});
    state.pending.insert(hash_of(issued.expose()), pending);
    drop(state);
    shared.tell("device.pair.requested", &told, Caller::is_admin);
    Ok(Asked { code, issued })
}

/// How a pairing is, for the device that was issued this id.
pub(crate) async fn status(shared: &Shared, params: &Params) -> Outcome {
    shared.pairings.load(shared).await?;
    let issued = params.required(&["sender_id", "senderId"])?;
    let hash = hash_of(&issued);
    let mut state = shared.pairings.locked();
    state.sweep(times::now_ms());
    let is_known = state.pending.contains_key(&hash) || state.paired.contains_key(&hash);
    // Only of ids that were issued anything is remembered.
    if is_known && state.polled.insert(hash, Instant::now()).is_some() {
        return Err(No::exhausted("ask once a second", times::ms(POLL_EVERY)));
    }
    let approved = state.paired.contains_key(&hash);
    let status = match (approved, state.pending.contains_key(&hash)) {
        (true, _) => "approved",
        (false, true) => "pending",
        (false, false) => "expired",
    };
    Ok(json!({"status": status, "approved": approved}))
}

/// The key for a device, and the public id of it. `None`: no such device is paired.
pub(crate) async fn key_of(shared: &Shared, issued: &str) -> Result<Option<(Secret, String)>, No> {
    shared.pairings.load(shared).await?;
    let paired = shared.pairings.locked().paired.get(&hash_of(issued)).cloned();
    let Some(paired) = paired else { return Ok(None) };
    let key = open_key(&shared.desk.config().here, &Secret::new(issued), &paired.sealed);
    Ok(key.map(|key| (key, paired.id)))
}

/// The request of this code. Wrong ones are counted: nobody tries codes.
fn pending_of(caller: &Caller, params: &Params) -> Result<(IssuedHash, Pending), No> {
    let code = params.required(&["code"])?.trim().to_uppercase();
    let mut state = caller.shared.pairings.locked();
    state.sweep(times::now_ms());
    let found = state.pending.iter().find(|(_, pending)| pending.code == code);
    if let Some((hash, pending)) = found {
        return Ok((*hash, pending.clone()));
    }
    let rate = Rate { burst: WRONG_CODES_MAX, per_minute: 1 };
    let waits = state.wrong.take(&caller.print(), rate, Instant::now());
    waits.map_err(|wait| No::exhausted("too many codes that are no pairing's", times::ms(wait)))?;
    Err(No::not_found("pairing not found or expired"))
}

pub(crate) async fn approve(caller: &Caller, params: &Params) -> Outcome {
    let shared = &caller.shared;
    shared.pairings.load(shared).await?;
    let (hash, pending) = pending_of(caller, params)?;
    if shared.pairings.locked().paired.len() >= PAIRED_MAX {
        return Err(No::exhausted(
            format!("{PAIRED_MAX} devices are paired, which is the most"),
            0,
        ));
    }
    let sealed = seal_key(&shared.desk.config().here, &pending.issued, &caller.key);
    let sealed = sealed.ok_or_else(|| No::internal("an issued id is too short"))?;
    let (at_ms, by) = (times::now_ms(), caller.user.clone());
    let paired = Paired { id: pending.id, device: pending.device, at_ms, by, sealed };
    shared.desk.keep(row_name(&hash), Some(paired.kept())).await?;
    let mut state = shared.pairings.locked();
    // The device asks again at once, and is told.
    state.polled.remove(&hash);
    state.pending.remove(&hash);
    state.paired.insert(hash, paired.clone());
    drop(state);
    tracing::info!(id = %paired.id, "a device was paired");
    let told = json!({"action": "approved", "sender_id": paired.device.label});
    shared.tell("device.pair.resolved", &told, Caller::is_admin);
    Ok(json!({"paired": paired.shown(), "approved": true}))
}

pub(crate) fn deny(caller: &Caller, params: &Params) -> Outcome {
    let (hash, pending) = pending_of(caller, params)?;
    caller.shared.pairings.locked().pending.remove(&hash);
    let told = json!({"action": "denied", "sender_id": pending.device.label});
    caller.shared.tell("device.pair.resolved", &told, Caller::is_admin);
    Ok(json!({"denied": true}))
}

pub(crate) async fn list(caller: &Caller) -> Outcome {
    let shared = &caller.shared;
    shared.pairings.load(shared).await?;
    let mut state = shared.pairings.locked();
    state.sweep(times::now_ms());
    let pending: Vec<Value> = state.pending.values().map(Pending::shown).collect();
    let paired: Vec<Value> = state.paired.values().map(Paired::shown).collect();
    Ok(json!({"pending": pending, "paired": paired}))
}

/// A device is let in no longer: by its id, or by the names that it gave itself.
pub(crate) async fn revoke(caller: &Caller, params: &Params) -> Outcome {
    let shared = &caller.shared;
    shared.pairings.load(shared).await?;
    let (sender, id) = (params.filled(SENDER)?, params.filled(&["id"])?);
    let channel = params.filled(&["channel"])?;
    let is_meant = |paired: &Paired| match (&sender, &id) {
        (Some(sender), _) => {
            paired.device.label == *sender
                && channel.as_ref().is_none_or(|channel| paired.device.channel == *channel)
        }
        (None, Some(id)) => paired.id == *id,
        (None, None) => false,
    };
    if sender.is_none() && id.is_none() {
        return Err(No::invalid("senderId is required"));
    }
    let meant: Vec<(IssuedHash, String)> = {
        let state = shared.pairings.locked();
        let meant = state.paired.iter().filter(|(_, paired)| is_meant(paired));
        meant.map(|(hash, paired)| (*hash, paired.id.clone())).collect()
    };
    if meant.is_empty() {
        return Err(No::not_found("paired device not found"));
    }
    for (hash, id) in meant {
        shared.desk.keep(row_name(&hash), None).await?;
        shared.pairings.locked().paired.remove(&hash);
        shared.end_device(&id);
        tracing::info!(%id, "a device is paired no longer");
    }
    let told = json!({"action": "revoked"});
    shared.tell("device.pair.resolved", &told, Caller::is_admin);
    Ok(json!({"revoked": true}))
}
