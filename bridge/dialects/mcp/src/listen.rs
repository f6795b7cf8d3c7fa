//! News of resources: a host says which it wants to hear of, and is told that they have changed. It reads them then.
//!
//! Nothing is queued: each resource is a watch, and what comes while a host is told is one more notification.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bridge::{read::Watch, tokens::Scope};
use mesh::api::command::RoomView;
use rmcp::{ErrorData, model::ErrorCode};
use serde_json::{Value, json};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use crate::{
    asking::{Asking, Stream},
    limits::{BUSY, LISTENED_MAX, LOOK_EVERY, UPDATED_EVERY, URI_BYTES_MAX},
    outcome::{No, error_of},
    resources::Named,
};

/// The method whose answer is a stream of news.
pub(crate) const METHOD: &str = "subscriptions/listen";

/// A resource of which a host hears.
pub(crate) struct Topic {
    uri: String,
    what: What,
}

enum What {
    /// It does not change while it is listened to.
    Still,
    Inbox(Watch),
    Room(Box<RoomView>, Watch),
}

impl Topic {
    /// From now on nothing is missed. A session without a room has no news: its first message comes to the inbox.
    pub(crate) async fn open(asking: &Asking, uri: &str) -> Result<Topic, No> {
        let missing = || No::error(format!("no such resource: {:.100}", uri));
        let what = match Named::of(uri).ok_or_else(missing)? {
            Named::Me => What::Still,
            Named::Inbox => {
                asking.may(Scope::History)?;
                let agent = asking.attached().await?;
                What::Inbox(asking.shared.desk.watch_inbox(&agent)?)
            }
            Named::Session(key) => {
                asking.may(Scope::History)?;
                let session = asking.resolve(&key).await?;
                let room = asking.room_of(&session).await?.ok_or_else(missing)?;
                asking.inside(&room, &key).await?;
                let watch = asking.shared.desk.watch(&asking.reader, room.room)?;
                What::Room(Box::new(room), watch)
            }
        };
        Ok(Topic { uri: uri.to_owned(), what })
    }

    /// Tells of news, until nobody is told any more or the agent may not read it.
    async fn tell<F, T>(mut self, asking: Asking, tell: F)
    where
        F: Fn(String) -> T,
        T: Future<Output = bool>,
    {
        loop {
            match &mut self.what {
                // So that it counts as told of.
                What::Still => std::future::pending().await,
                What::Inbox(watch) => watch.news().await,
                What::Room(room, watch) => {
                    watch.news().await;
                    let may = asking.shared.desk.watch(&asking.reader, room.room).is_ok();
                    if !may || !asking.may_read(room).await.unwrap_or(false) {
                        return;
                    }
                }
            }
            // The key, or the token, may have been revoked since.
            let is_valid = asking.shared.desk.credential(&asking.shown).await.is_ok();
            if !is_valid || !tell(self.uri.clone()).await {
                return;
            }
            sleep(UPDATED_EVERY).await;
        }
    }
}

/// A stream that is about to begin.
pub(crate) struct Listening {
    /// Tasks of whose end it is to be told.
    pub(crate) tasks: Vec<String>,
    topics: Mutex<Vec<Topic>>,
    _stream: Stream,
}

impl Listening {
    /// Reads what a request wants to hear of, and leaves in it what it is going to: so that it is told.
    pub(crate) async fn begin(
        asking: &Asking,
        request: &mut Value,
    ) -> Result<Option<Arc<Listening>>, No> {
        let wanted = &mut request["params"]["notifications"];
        // What is something else is refused by whoever reads the method.
        if !wanted.is_object() {
            return Ok(None);
        }
        let stream = asking.stream()?;
        let uris = wanted["resourceSubscriptions"].as_array().into_iter().flatten();
        let uris: BTreeSet<String> = uris.filter_map(Value::as_str).map(str::to_owned).collect();
        let tasks = wanted["taskIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let tasks = tasks.take(LISTENED_MAX).map(str::to_owned).collect();
        let mut topics = Vec::new();
        for uri in uris.into_iter().filter(|uri| uri.len() <= URI_BYTES_MAX).take(LISTENED_MAX) {
            match Topic::open(asking, &uri).await {
                Ok(topic) => topics.push(topic),
                // Without an agent there is nothing to hear of.
                Err(no @ No::Agent { .. }) => return Err(no),
                Err(No::Argument { .. } | No::Forbidden { .. } | No::Error { .. }) => {}
            }
        }
        let heard: Vec<&str> = topics.iter().map(|topic| &*topic.uri).collect();
        wanted["resourceSubscriptions"] = json!(heard);
        Ok(Some(Arc::new(Listening { tasks, topics: Mutex::new(topics), _stream: stream })))
    }

    /// Once.
    pub(crate) fn topics(&self) -> Vec<Topic> {
        std::mem::take(&mut self.topics.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Tells of news as long as the agent's key is valid; why it is not.
pub(crate) async fn tell<F, T>(asking: &Asking, topics: Vec<Topic>, tell: F) -> No
where
    F: Fn(String) -> T + Clone + Send + 'static,
    T: Future<Output = bool> + Send + 'static,
{
    // They end with this future.
    let mut telling = JoinSet::new();
    for topic in topics {
        telling.spawn(topic.tell(asking.clone(), tell.clone()));
    }
    let look = (asking.shared.settings.idle_detach / 2).min(LOOK_EVERY);
    loop {
        sleep(look).await;
        if let Err(no) = asking.goes_on().await {
            return no;
        }
    }
}

/// What the host of a connection hears of, one resource after the other. All of it ends with the connection.
#[derive(Default)]
pub(crate) struct Subscribed(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    telling: JoinSet<()>,
    by_uri: BTreeMap<String, AbortHandle>,
    /// Together they are one stream.
    stream: Option<Stream>,
}

impl Subscribed {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It hears of one more. Of one that it hears of already it hears once.
    pub(crate) async fn begin<F, T>(
        &self,
        asking: &Asking,
        uri: &str,
        tell: F,
    ) -> Result<(), ErrorData>
    where
        F: Fn(String) -> T + Send + Sync + 'static,
        T: Future<Output = bool> + Send + 'static,
    {
        let topic = match Topic::open(asking, uri).await {
            Ok(topic) => topic,
            Err(No::Agent { text, why }) => return Err(error_of(text, why)),
            Err(no) => return Err(ErrorData::resource_not_found(no.text(), None)),
        };
        let full = |text: String| ErrorData::new(ErrorCode(BUSY), text, None);
        let mut heard = self.heard();
        while heard.telling.try_join_next().is_some() {}
        heard.by_uri.retain(|_, telling| !telling.is_finished());
        if heard.by_uri.contains_key(uri) {
            return Ok(());
        }
        if heard.by_uri.len() >= LISTENED_MAX {
            return Err(full(format!("at most {LISTENED_MAX} resources are told of")));
        }
        if heard.stream.is_none() {
            heard.stream = Some(asking.stream().map_err(|no| full(no.text()))?);
        }
        let telling = heard.telling.spawn(topic.tell(asking.clone(), tell));
        heard.by_uri.insert(uri.to_owned(), telling);
        Ok(())
    }

    /// It hears of one no longer.
    pub(crate) fn end(&self, uri: &str) {
        let mut heard = self.heard();
        if let Some(telling) = heard.by_uri.remove(uri) {
            telling.abort();
        }
        if heard.by_uri.is_empty() {
            heard.stream = None;
        }
    }
}
