//! `api_keys.*`: keys of the mesh, as the holder of one with the right to manages them. A key that is made here is one like all
//! others: it is valid at every node, and for every dialect.

use mesh::{
    api::agenda::{KeyView, Standing},
    limits::KEY_LABEL_BYTES_MAX,
    name::id::{KeyPrint, MessageId, RoomId},
    wire::acts::{KeyTerms, Scope, Scopes, Tier},
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    outcome::{No, Outcome},
    params::{Params, must_be},
    times,
};

/// With which the text of a key begins.
const PREFIX: &str = "goclaw_";
/// Names of kept rows begin so; the key's fingerprint follows, and the value is that of its maker.
const MADE_BY: &[u8] = b"goclaw-key/";
/// With which scopes begin, in this dialect.
const OPERATOR: &str = "operator.";

fn row_name(key: KeyPrint) -> Vec<u8> {
    [MADE_BY, &key.0].concat()
}

fn id(key: KeyPrint) -> String {
    MessageId(key.0).to_uuid()
}

/// The beginning of a key's fingerprint: nobody keeps that of its text.
fn prefix(key: KeyPrint) -> String {
    key.to_string().chars().take(8).collect()
}

fn names(scopes: Option<Scopes>) -> Vec<String> {
    let named = |scope: Scope| format!("{OPERATOR}{}", scope.name());
    scopes.into_iter().flat_map(|scopes| scopes.iter().map(named).collect::<Vec<_>>()).collect()
}

/// A key, and the one that made it here.
struct Listed {
    view: KeyView,
    by: Option<KeyPrint>,
}

impl Caller {
    /// The keys that it may see: the node's operator all, others those that they made at this node.
    async fn keys(&self) -> Result<Vec<Listed>, No> {
        let desk = &self.shared.desk;
        let made = desk.kept(MADE_BY.to_vec()).await?;
        let by = |key: KeyPrint| {
            let row = made.iter().find(|(name, _)| *name == row_name(key));
            row.and_then(|(_, by)| <[u8; 16]>::try_from(by.as_slice()).ok()).map(KeyPrint)
        };
        let keys = desk.keys().await?.into_iter();
        let mut keys: Vec<Listed> = keys.map(|view| Listed { by: by(view.key), view }).collect();
        keys.retain(|key| self.owner || key.by == Some(self.print()));
        Ok(keys)
    }

    fn key_row(&self, Listed { view, by }: &Listed) -> Value {
        let minted = times::text(view.minted_ms);
        let mut row = json!({
            "id": id(view.key),
            "tenant_id": self.tenant(),
            "name": view.terms.label.as_deref().unwrap_or_default(),
            "prefix": prefix(view.key),
            "scopes": names(view.terms.scopes),
            "expires_at": view.terms.expires_ms.map(times::text),
            "last_used_at": null,
            "revoked": view.revoked || view.successor.is_some(),
            "created_by": by.map(|by| by.to_string()).unwrap_or_default(),
            "created_at": minted,
            "updated_at": minted,
        });
        if let Some(owner) = &view.terms.owner {
            row["owner_id"] = json!(owner);
        }
        row
    }

    /// The scopes that it may give: no more than its own key has, of which `admin` is all that agents and readers may.
    async fn may_give(&self) -> Result<Vec<Scope>, No> {
        if self.owner {
            return Ok(Scope::ALL.to_vec());
        }
        let terms = self.read(bridge::seam::call::DescribeKey).await?;
        let own = terms.and_then(|terms| terms.scopes);
        let has = |scope: Scope| own.is_some_and(|own| own.has(scope));
        let with_admin = [Scope::Admin, Scope::Write, Scope::Read];
        let may = |scope: &Scope| has(*scope) || has(Scope::Admin) && with_admin.contains(scope);
        Ok(Scope::ALL.into_iter().filter(may).collect())
    }
}

pub(crate) async fn list(caller: &Caller) -> Outcome {
    let keys = caller.keys().await?;
    Ok(keys.iter().map(|key| caller.key_row(key)).collect())
}

/// The scopes that a client wants.
fn scopes(params: &Params, allowed: &[Scope]) -> Result<Scopes, No> {
    let what = "an array of at least one scope";
    let given = params.list(&["scopes"])?.filter(|given| !given.is_empty());
    let given = given.ok_or_else(|| must_be(&["scopes"], what))?;
    let scope = |given: &Value| {
        let text = given.as_str().ok_or_else(|| must_be(&["scopes"], what))?;
        let scope = Scope::named(text.strip_prefix(OPERATOR).unwrap_or(text));
        let scope = scope.ok_or_else(|| No::invalid(format!("invalid scope: {text}")))?;
        if allowed.contains(&scope) {
            return Ok(scope);
        }
        Err(No::unauthorized(format!("permission denied: your own key has no scope {text}")))
    };
    given.iter().map(scope).collect()
}

fn tier(caller: &Caller, params: &Params) -> Result<Tier, No> {
    match params.filled(&["tier"])?.as_deref() {
        None | Some("free") => Ok(Tier::Low),
        Some("pro") => match caller.holder.standing() {
            Standing::Own | Standing::Minted { tier: Tier::High, .. } => Ok(Tier::High),
            Standing::Minted { tier: Tier::Low, .. } => {
                Err(No::unauthorized("permission denied: your own key is of the tier free"))
            }
        },
        Some(_) => Err(must_be(&["tier"], "free or pro")),
    }
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let name = params.required(&["name"])?;
    if name.len() > KEY_LABEL_BYTES_MAX || name.chars().any(char::is_control) {
        let what = format!("a text of at most {KEY_LABEL_BYTES_MAX} bytes");
        return Err(must_be(&["name"], &what));
    }
    let scopes = scopes(params, &caller.may_give().await?)?;
    let lasts = params.whole(&["expires_in"], u64::MAX / 1_000)?;
    if lasts == Some(0) {
        return Err(must_be(&["expires_in"], "a number of seconds above 0"));
    }
    let expires_ms = lasts.map(|secs| times::now_ms().saturating_add(secs * 1_000));
    let owner = params.filled(&["owner_id"])?;
    let terms = KeyTerms {
        tier: tier(caller, params)?,
        label: Some(name.clone()),
        scopes: Some(scopes),
        expires_ms,
        owner: owner.clone(),
    };
    terms.check().map_err(No::invalid)?;
    let desk = &caller.shared.desk;
    let (key, print) = desk.mint_key(PREFIX, terms).await?;
    desk.keep(row_name(print), Some(caller.print().0.to_vec())).await?;
    tracing::info!(key = %print, by = %caller.print(), "a key was made over GoClaw");
    let mut made = json!({
        "id": id(print),
        "name": name,
        "prefix": prefix(print),
        "key": key.expose(),
        "scopes": names(Some(scopes)),
        "expires_at": expires_ms.map(times::text),
        "created_at": times::text(times::now_ms()),
    });
    if let Some(owner) = owner {
        made["owner_id"] = json!(owner);
    }
    Ok(made)
}

pub(crate) async fn revoke(caller: &Caller, params: &Params) -> Outcome {
    let wanted = params.required(&["id"])?;
    let missing = || No::not_found(format!("api key not found: {wanted}"));
    let print = RoomId::from_uuid(&wanted).map(|id| KeyPrint(id.0)).ok_or_else(missing)?;
    let own = print == caller.print() && !caller.owner;
    if !own && !caller.keys().await?.iter().any(|key| key.view.key == print) {
        return Err(missing());
    }
    caller.shared.desk.revoke_key(print).await?;
    tracing::info!(key = %print, by = %caller.print(), "a key was revoked over GoClaw");
    Ok(json!({"status": "revoked"}))
}
