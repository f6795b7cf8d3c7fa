//! `usage.*` and `quota.usage`: what agents have reported in their replies, and how much users have asked. All of it is read
//! from the conversations that the caller may see, so each node says the same; nothing is estimated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    caller::Caller,
    limits::{SESSION_ROOMS_MAX, USAGE_ROWS_MAX},
    outcome::{No, Outcome},
    params::{AGENT, Params},
    threads::{Thread, Used},
    times,
};

/// A thread with its agent.
struct Of {
    agent: String,
    thread: Thread,
}

impl Caller {
    /// The threads of all conversations that it may see, the liveliest rooms first.
    async fn all_threads(&self) -> Result<Vec<Of>, No> {
        let mut all = Vec::new();
        for direct in self.direct_rooms().await?.into_iter().take(SESSION_ROOMS_MAX) {
            let threads = self.threads(&direct).await?;
            let agent = direct.agent.to_string();
            all.extend(threads.iter().map(|it| Of { agent: agent.clone(), thread: it.clone() }));
        }
        Ok(all)
    }
}

fn row(agent: &str, session: &str, used: &Used) -> Value {
    json!({
        "agentId": agent,
        "sessionKey": session,
        "model": used.model.as_deref().unwrap_or_default(),
        "provider": used.provider.as_deref().unwrap_or_default(),
        "inputTokens": used.input,
        "outputTokens": used.output,
        "totalTokens": used.input.saturating_add(used.output),
        "timestamp": times::text(used.at_ms),
    })
}

/// Replies that reported their usage, the newest first.
pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let agent = match params.filled(AGENT)? {
        Some(named) => Some(caller.agent(&named).await?.agent.to_string()),
        None => None,
    };
    let (limit, offset) = (params.limit(20, USAGE_ROWS_MAX)?, params.offset()?);
    let all = caller.all_threads().await?;
    let of_agent = all.iter().filter(|of| agent.as_ref().is_none_or(|agent| of.agent == *agent));
    let mut rows: Vec<(u64, Value)> = of_agent
        .flat_map(|Of { agent, thread }| {
            thread.used.iter().map(move |used| (used.at_ms, row(agent, &thread.key, used)))
        })
        .collect();
    rows.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let total = rows.len();
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let page: Vec<Value> = rows.into_iter().skip(from).take(most).map(|(_, row)| row).collect();
    Ok(json!({"records": page, "total": total, "limit": limit, "offset": offset}))
}

/// The same, added up by agent.
pub(crate) async fn summary(caller: &Caller) -> Outcome {
    let (mut by_agent, mut records) = (BTreeMap::<String, (u64, u64, u64)>::new(), 0_usize);
    for Of { agent, thread } in caller.all_threads().await? {
        if thread.used.is_empty() {
            continue;
        }
        let (input, output, sessions) = by_agent.entry(agent).or_default();
        for used in &thread.used {
            *input = input.saturating_add(used.input);
            *output = output.saturating_add(used.output);
        }
        *sessions += 1;
        records += thread.used.len();
    }
    let rows: BTreeMap<String, Value> = by_agent
        .into_iter()
        .map(|(agent, (input, output, sessions))| {
            let total = input.saturating_add(output);
            let row = json!({
                "inputTokens": input, "outputTokens": output, "totalTokens": total,
                "sessions": sessions,
            });
            (agent, row)
        })
        .collect();
    Ok(json!({"byAgent": rows, "totalRecords": records}))
}

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// How much the users of the key have asked.
pub(crate) async fn quota(caller: &Caller) -> Outcome {
    let now_ms = times::now_ms();
    let today_ms = now_ms - now_ms % DAY_MS;
    let mut by_user: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let (mut users, mut today) = (BTreeSet::new(), [0_u64; 3]);
    for Of { thread, .. } in caller.all_threads().await? {
        let Some(user) = thread.user.clone() else { continue };
        let since = |ms: u64| thread.asked.iter().filter(|at| **at >= ms).count() as u64;
        let counts = [HOUR_MS, DAY_MS, 7 * DAY_MS].map(|span| since(now_ms.saturating_sub(span)));
        let of_user = by_user.entry(user.clone()).or_default();
        of_user.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        let asked = since(today_ms);
        if asked > 0 {
            users.insert(user);
        }
        let used = thread.used.iter().filter(|used| used.at_ms >= today_ms);
        let (input, output) = used.fold((0_u64, 0_u64), |(input, output), used| {
            (input.saturating_add(used.input), output.saturating_add(used.output))
        });
        for (sum, more) in today.iter_mut().zip([asked, input, output]) {
            *sum = sum.saturating_add(more);
        }
    }
    // A holder of the node's own key has no limit.
    let per_minute = if caller.owner { 0 } else { caller.shared.settings().requests_per_minute };
    let per_hour = u64::from(per_minute) * 60;
    let entries: Vec<Value> = by_user
        .into_iter()
        .map(|(user, [hour, day, week])| {
            json!({
                "userId": user,
                "hour": {"used": hour, "limit": per_hour},
                "day": {"used": day, "limit": 0},
                "week": {"used": week, "limit": 0},
            })
        })
        .collect();
    let [requests, input, output] = today;
    Ok(json!({
        "enabled": per_minute > 0,
        "requestsToday": requests,
        "inputTokensToday": input,
        "outputTokensToday": output,
        "costToday": 0,
        "uniqueUsersToday": users.len(),
        "entries": entries,
    }))
}
