//! `connect`: who a client is, by what it shows.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Instant,
};

use bridge::{
    config::Auth,
    read::Visitor,
    seam::{
        call::{DescribeKey, NameNodes},
        refusal::Refusal,
    },
    secret::Secret,
    session::rates::Bucket,
};
use mesh::{
    api::{agenda::Standing, command::Refused},
    name::id::AgentId,
    wire::acts::{KeyTerms, Scope},
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    limits::USER_BYTES_MAX,
    methods::Role,
    names,
    outcome::{No, Outcome},
    pairing::{self, Asked, Device},
    params::Params,
    shared::Shared,
    times,
};

/// The version of the protocol.
const PROTOCOL: u64 = 3;
const DENIED: &str = "permission denied: valid token or active pairing required";

/// A client that was let in, or that waits to be.
pub(crate) enum Connected {
    Yes { caller: Arc<Caller>, result: Value },
    Pending { issued: Secret, result: Value },
}

/// What a client shows and says of itself.
pub(crate) struct Shown {
    token: Option<String>,
    sender: Option<String>,
    user: String,
    locale: String,
    modern: bool,
}

impl Shown {
    /// Of a request over HTTP, which names a protocol by its path.
    pub(crate) fn bearer(token: String, params: &Params) -> Result<Shown, No> {
        let shown = Shown::of(params)?;
        Ok(Shown { token: Some(token), sender: None, modern: true, ..shown })
    }

    fn of(params: &Params) -> Result<Shown, No> {
        let protocol = params.get(&["protocol", "protocolVersion"]);
        if let Some(version) = protocol.filter(|version| version.as_u64() != Some(PROTOCOL)) {
            return Err(No::invalid(format!("unsupported protocol: {version}")));
        }
        let user = params.filled(&["user_id"])?.unwrap_or_else(|| "default".to_owned());
        if user.len() > USER_BYTES_MAX || user.chars().any(char::is_control) {
            let text = format!(
                "user_id must have at most {USER_BYTES_MAX} bytes and no control characters"
            );
            return Err(No::invalid(text));
        }
        Ok(Shown {
            modern: protocol.is_some(),
            token: params.filled(&["token"])?,
            sender: params.filled(&["sender_id"])?,
            user,
            locale: params.filled(&["locale"])?.unwrap_or_else(|| "en".to_owned()),
        })
    }
}

/// What a key allows.
struct Allowed {
    role: Role,
    owner: bool,
    approves: bool,
    /// The user that the key is for.
    user: Option<String>,
    device: Option<String>,
}

/// The role of a minted key: a key without scopes was minted for other dialects, whose agents write.
fn role_of(terms: &KeyTerms) -> Role {
    match terms.scopes {
        None => Role::Operator,
        Some(scopes) if scopes.has(Scope::Admin) => Role::Admin,
        Some(scopes) if scopes.has(Scope::Write) => Role::Operator,
        Some(_) => Role::Viewer,
    }
}

async fn allowed(shared: &Shared, holder: &Visitor) -> Result<Allowed, No> {
    let none =
        Allowed { role: Role::Operator, owner: false, approves: true, user: None, device: None };
    match (&shared.desk.config().auth, holder.standing()) {
        (Auth::Open, _) => Ok(none),
        (Auth::Key(_), Standing::Own) => Ok(Allowed { role: Role::Admin, owner: true, ..none }),
        (Auth::Key(_), Standing::Minted { .. }) => {
            let terms = shared.desk.ask(holder, DescribeKey).await?;
            let terms = terms.ok_or_else(|| No::unauthorized(DENIED))?;
            let role = role_of(&terms);
            let scope = terms.scopes.is_some_and(|scopes| scopes.has(Scope::Approvals));
            let approves = scope || role >= Role::Operator;
            Ok(Allowed { role, approves, user: terms.owner, ..none })
        }
    }
}

/// The key of a client, and what it allows.
async fn identified(
    shared: &Shared,
    shown: &Shown,
) -> Result<Option<(Secret, Visitor, Allowed)>, No> {
    let is_open = matches!(shared.desk.config().auth, Auth::Open);
    let (key, device) = match (&shown.token, &shown.sender) {
        (Some(token), _) => (Secret::new(token), None),
        (None, _) if is_open => (Secret::new(""), None),
        (None, Some(sender)) => match pairing::key_of(shared, sender).await? {
            Some((key, device)) => (key, Some(device)),
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    let holder = match shared.desk.holder(key.clone()).await {
        Ok(holder) => holder,
        Err(Refusal::Mesh(Refused::NoKey)) => return Err(No::unauthorized(DENIED)),
        Err(refusal) => return Err(refusal.into()),
    };
    let mut allowed = allowed(shared, &holder).await?;
    if device.is_some() {
        // A device writes for its user, whatever the key that let it in may do beyond that.
        let role = allowed.role.min(Role::Operator);
        allowed = Allowed { role, owner: false, device, ..allowed };
    }
    Ok(Some((key, holder, allowed)))
}

/// `own`: the pairing that the same connection has asked for.
pub(crate) async fn connect(
    shared: Arc<Shared>,
    params: Params,
    address: Option<IpAddr>,
    own: Option<Secret>,
) -> Result<Connected, No> {
    let shown = Shown::of(&params)?;
    let locale = shown.locale.clone();
    let Some(caller) = caller_of(shared.clone(), shown).await? else {
        if !shared.settings().pairing {
            return Err(No::unauthorized(DENIED));
        }
        let Asked { code, issued } =
            pairing::ask(&shared, Device::unnamed(), address, own.as_ref())?;
        let result = json!({
            "protocol": PROTOCOL,
            "status": "pending_pairing",
            "pairing_code": code,
            "sender_id": issued.expose(),
            "server": server(&shared).await?,
        });
        return Ok(Connected::Pending { issued, result });
    };
    let result = welcome(&caller, &locale).await?;
    Ok(Connected::Yes { caller, result })
}

/// The user of a job, for whom its run is followed: it holds the key, and asks for nothing.
pub(crate) async fn caller_of_job(
    shared: Arc<Shared>,
    key: Secret,
    (user, principal): (String, AgentId),
) -> Result<Arc<Caller>, No> {
    let holder = shared.desk.holder(key.clone()).await?;
    Ok(Arc::new(Caller {
        shared,
        key,
        holder,
        role: Role::Viewer,
        owner: false,
        approves: false,
        user,
        principal,
        modern: true,
        device: None,
        reads: Mutex::new(Bucket::new(Instant::now())),
        valid: Mutex::default(),
    }))
}

/// The client that shows this. `None`: it shows nothing that opens anything.
pub(crate) async fn caller_of(
    shared: Arc<Shared>,
    shown: Shown,
) -> Result<Option<Arc<Caller>>, No> {
    let Some((key, holder, allowed)) = identified(&shared, &shown).await? else {
        return Ok(None);
    };
    let Allowed { role, owner, approves, user, device } = allowed;
    let user = user.unwrap_or(shown.user);
    let principal = names::principal(holder.key(), &user);
    let caller = Arc::new(Caller {
        shared,
        key,
        holder,
        role,
        owner,
        approves,
        user,
        principal,
        modern: shown.modern,
        device,
        reads: Mutex::new(Bucket::new(Instant::now())),
        valid: Mutex::default(),
    });
    if matches!(caller.holder.standing(), Standing::Minted { writes: true, .. }) {
        caller.shared.present(caller.key.clone(), caller.print());
    }
    if caller.holder.standing().may_write() {
        caller.shared.desk.schedule_for(caller.key.clone());
    }
    Ok(Some(caller))
}

async fn welcome(caller: &Caller, locale: &str) -> Outcome {
    Ok(json!({
        "protocol": PROTOCOL,
        "role": caller.role.name(),
        "user_id": caller.user,
        "tenant_id": caller.tenant(),
        "is_owner": caller.owner,
        "is_master_scope": caller.owner,
        "edition": "standard",
        "tenant_name": "mesh",
        "tenant_slug": "mesh",
        "locale": locale,
        "server": server(&caller.shared).await?,
    }))
}

async fn server(shared: &Shared) -> Outcome {
    let here = shared.desk.config().here.node;
    let names = shared.desk.ask(&Visitor::stranger(), NameNodes(vec![here])).await?;
    let name = names.into_iter().next().flatten().unwrap_or_else(|| here.to_string());
    Ok(json!({
        "name": "goclaw",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": times::span(shared.started.elapsed()),
        "product": "clawmesh",
        "node": name,
    }))
}
