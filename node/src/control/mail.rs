//! How agents of this node are told that something waits for them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bridge::delivery::hub::Way;
use mesh::{
    api::command::{AgentView, Command, Outcome},
    name::id::AgentId,
};
use protocol::operator::{AgentMail, Answer, Here, WokenBy};

use super::{Control, wrong_answer};

impl Control {
    pub(super) async fn mail(&self) -> Result<Answer> {
        let Outcome::Attendance(all) = self.engine(Command::Attendance).await? else {
            return Err(wrong_answer());
        };
        let here: BTreeMap<AgentId, AgentView> =
            all.into_iter().map(|one| (one.view.agent.clone(), one.view)).collect();
        let (bridge, agents) = (self.bridge.clone(), here.keys().cloned().collect());
        let mails = tokio::task::spawn_blocking(move || bridge.mails(agents)).await;
        let mails = mails.context("the thread has ended")?.context("the store cannot be read")?;
        let shown = mails.into_iter().map(|mail| {
            let view = here.get(&mail.agent);
            let here = match view {
                None => Here::Away,
                Some(view) if view.hosted => Here::ByRequests,
                Some(view) if view.lingers => Here::Away,
                Some(_) => Here::Connected,
            };
            let told = mail.notified.told;
            let woken = match (mail.posted, told, here) {
                (true, ..) => WokenBy::Post,
                (false, Some((_, Way::Asked | Way::Post)), _) => WokenBy::Hook,
                (false, None, Here::Connected) => WokenBy::Connection,
                (false, None, Here::ByRequests | Here::Away) => WokenBy::Not,
            };
            let at = |time: Option<u64>| time.map(clawchat::timestamp);
            AgentMail {
                agent_id: mail.agent.to_string(),
                here,
                woken,
                unread: mail.unread,
                told_at: at(told.map(|(at, _)| at)),
                fetched_at: at(mail.notified.fetched_ms),
                confirmed_at: at(mail.notified.confirmed_ms),
            }
        });
        Ok(Answer::Mail(shown.collect()))
    }
}
