//! From a request of a connected client to the method that it names.

use std::sync::Arc;

use crate::{
    agents,
    answer::Answer,
    caller::Caller,
    channels, chat, delegations, keys, logs,
    methods::Method,
    outcome::{Code, No, Outcome},
    pairing::{self, Device},
    params::Params,
    profiles, serve, sessions, skills, system, tasks, teams, usage, workspace,
};

/// A request that its client may make.
pub(crate) struct Asked {
    pub(crate) caller: Arc<Caller>,
    /// Its connection's.
    pub(crate) client: u64,
    pub(crate) method: &'static Method,
    pub(crate) params: Params,
}

impl Asked {
    /// Does it, and answers.
    pub(crate) async fn answered(self, answer: Answer) {
        if let Err(no) = self.caller.is_valid().await {
            return answer.send(Err(no));
        }
        if self.method.name == "chat.send" {
            // It goes on when its client has gone.
            let Asked { caller, params, .. } = self;
            drop(tokio::spawn(chat::send(caller, params, answer)));
            return;
        }
        if self.method.name == "agent.wait" {
            return answer.send(self.outcome().await);
        }
        let line = answer.line();
        let turn = line.turn().await;
        let outcome = self.outcome().await;
        answer.send(outcome);
        drop(turn);
    }

    pub(crate) async fn outcome(&self) -> Outcome {
        let Asked { caller, client, method, params } = self;
        match method.name {
            "health" => system::health(caller, *client).await,
            "status" => system::status(caller).await,
            "agents.list" => agents::list(caller, params).await,
            "agents.create" => profiles::create(caller, params).await,
            "agents.update" => profiles::update(caller, params).await,
            "skills.update" => profiles::update_skill(caller, params).await,
            "agent" => agents::one(caller, params).await,
            "agent.wait" => agents::wait(caller, params).await,
            "agent.identity.get" => agents::identity(caller, params).await,
            "skills.list" => skills::list(caller).await,
            "skills.get" => skills::get(caller, params).await,
            "providers.models" => skills::models(caller).await,
            "chat.history" => chat::history(caller, params).await,
            "chat.abort" => chat::abort(caller, params).await,
            "chat.inject" => chat::inject(caller, params).await,
            "chat.session.status" => chat::status(caller, params).await,
            "run.timeline.get" => chat::timeline(caller, params).await,
            "sessions.list" => sessions::list(caller, params).await,
            "sessions.preview" => sessions::preview(caller, params).await,
            "sessions.patch" => sessions::patch(caller, params).await,
            "sessions.reset" => sessions::reset(caller, params).await,
            "sessions.delete" => sessions::delete(caller, params).await,
            "device.pair.request" => self.pair(),
            "device.pair.approve" => pairing::approve(caller, params).await,
            "device.pair.deny" => pairing::deny(caller, params),
            "device.pair.list" => pairing::list(caller).await,
            "device.pair.revoke" => pairing::revoke(caller, params).await,
            "browser.pairing.status" => pairing::status(&caller.shared, params).await,
            "channels.list" => Ok(channels::list()),
            "channels.status" => channels::status(caller).await,
            "channels.instances.list" => channels::instances(caller).await,
            "channels.instances.get" => channels::instance(caller, params).await,
            "channels.instances.create" => channels::create(caller, params).await,
            "channels.instances.update" => channels::update(caller, params).await,
            "channels.instances.delete" => channels::delete(caller, params).await,
            "api_keys.list" => keys::list(caller).await,
            "api_keys.create" => keys::create(caller, params).await,
            "api_keys.revoke" => keys::revoke(caller, params).await,
            "logs.tail" => logs::tail(caller, *client, params),
            "usage.get" => usage::get(caller, params).await,
            "usage.summary" => usage::summary(caller).await,
            "delegations.list" => delegations::list(caller, params).await,
            "delegations.get" => delegations::get(caller, params).await,
            "quota.usage" => usage::quota(caller).await,
            "send" => chat::leave(caller, params).await,
            "mesh.agent.serve" => self.serve().await,
            "mesh.run.chunk" => serve::chunk(caller, *client, params).await,
            "mesh.run.reply" => serve::reply(caller, *client, params).await,
            "mesh.run.fail" => serve::fail(caller, *client, params).await,
            _ => self.of_teams().await,
        }
    }

    /// Teams, their files and their tasks; and what is not there.
    async fn of_teams(&self) -> Outcome {
        let Asked { caller, method, params, .. } = self;
        match method.name {
            "teams.create" => teams::create(caller, params).await,
            "teams.update" => teams::update(caller, params).await,
            "teams.delete" => teams::delete(caller, params).await,
            "teams.workspace.list" => workspace::list(caller, params).await,
            "teams.workspace.read" => workspace::read(caller, params).await,
            "teams.workspace.write" => workspace::write(caller, params).await,
            "teams.workspace.delete" => workspace::delete(caller, params).await,
            "teams.list" => teams::list(caller, params).await,
            "teams.get" => teams::get(caller, params).await,
            "teams.tasks.list" => tasks::list(caller, params).await,
            "teams.tasks.create" => tasks::create(caller, params).await,
            "teams.tasks.assign" => tasks::assign(caller, params).await,
            "teams.tasks.approve" => tasks::approve(caller, params).await,
            "teams.tasks.reject" => tasks::reject(caller, params).await,
            "teams.tasks.comment" => tasks::comment(caller, params).await,
            "teams.tasks.comments" => tasks::comments(caller, params).await,
            "teams.tasks.events" => tasks::events(caller, params).await,
            "teams.tasks.delete" => tasks::delete(caller, params).await,
            "teams.tasks.delete-bulk" => tasks::delete_some(caller, params).await,
            "teams.tasks.active-by-session" => tasks::active_by_session(caller, params).await,
            "teams.tasks.get" => tasks::get(caller, params).await,
            "teams.tasks.get-light" => tasks::get_light(caller, params).await,
            "teams.scopes" => tasks::scopes(caller, params).await,
            "mesh.tasks.update" => tasks::update(caller, params).await,
            name => {
                let why = method.missing.unwrap_or("this build has it not");
                Err(No::new(Code::NotImplemented, format!("{name}: {why}")))
            }
        }
    }

    /// A connected client serves an agent.
    async fn serve(&self) -> Outcome {
        let clients = self.caller.shared.clients();
        let own = clients.into_iter().find(|client| client.id == self.client);
        let own = own.ok_or_else(|| No::unavailable("the connection is gone".to_owned()))?;
        serve::serve(&self.caller, self.client, own.line, &self.params).await
    }

    /// A connected client asks for a device.
    fn pair(&self) -> Outcome {
        let clients = self.caller.shared.clients();
        let own = clients.iter().find(|client| client.id == self.client);
        let address = own.and_then(|client| client.address);
        let asked = pairing::ask(&self.caller.shared, Device::of(&self.params)?, address, None)?;
        Ok(serde_json::json!({"code": asked.code, "sender_id": asked.issued.expose()}))
    }
}
