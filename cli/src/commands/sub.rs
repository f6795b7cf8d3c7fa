//! `clawmesh sub`.

use protocol::object::{Subscription, SubscriptionStatus};
use protocol::request::{EnableSubscription, ListSubscriptions, RoomTip, Subscribe, Unsubscribe};
use protocol::value::Secret;

use crate::args::Since;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// Webhooks that are told of a room's messages.
#[derive(Debug, clap::Subcommand)]
pub enum Sub {
    /// Have the messages of a room sent to a URL (Standard Webhooks v1)
    Create(Create),
    /// List the subscriptions of the key at this node
    List {
        /// Only those of this room (id, or exact name)
        #[arg(long, value_name = "ROOM")]
        room: Option<String>,
    },
    /// Delete a subscription
    Delete {
        /// Its id
        subscription: String,
    },
    /// Go on with a subscription that has failed, from where it stopped
    Enable {
        /// Its id
        subscription: String,
    },
}

/// Have the messages of a room sent to a URL.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Room id, or exact name
    pub room: String,
    /// Where they are sent
    #[arg(long = "url", id = "webhook_url", value_name = "URL")]
    pub webhook_url: String,
    /// The secret that signs deliveries
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    pub secret: Secret,
    /// Only messages of these kinds, separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kinds: Vec<String>,
    /// Only messages of agents of this name
    #[arg(long, value_name = "NAME")]
    pub only_from: Option<String>,
    /// No messages of agents of this name
    #[arg(long, value_name = "NAME")]
    pub not_from: Option<String>,
    /// No thinking pulses
    #[arg(long)]
    pub exclude_thinking: bool,
    /// Only messages above this number; 0 = all, tip (auto) = only new ones
    #[arg(long, value_name = "SEQ|tip|auto", default_value = "tip")]
    pub since_seq: Since,
}

#[allow(clippy::unnecessary_wraps, reason = "clap wants a parser that can fail")]
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

pub(crate) async fn run(cx: &Context, args: Sub) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    match args {
        Sub::Create(args) => {
            let room_id = cx.room(&client, &args.room).await?;
            let since_seq = match args.since_seq {
                Since::Number(seq) => seq,
                Since::Tip => client.call(RoomTip { room_id: room_id.clone() }).await?.seq,
            };
            let subscribe = Subscribe {
                room_id,
                webhook_url: args.webhook_url,
                secret: args.secret,
                kinds: Some(args.kinds).filter(|kinds| !kinds.is_empty()),
                only_from: args.only_from,
                not_from: args.not_from,
                exclude_thinking: args.exclude_thinking,
                since_seq: Some(since_seq),
            };
            let made = client.call(subscribe).await?;
            let line = || format!("Subscribed: {}", made.subscription_id);
            cx.output.show(&made, || vec![line()])?;
        }
        Sub::List { room } => {
            let room_id = cx.some_room(&client, room.as_deref()).await?;
            let list = client.call(ListSubscriptions { room_id }).await?;
            cx.output.list(&list, "no subscriptions", || lines(&cx.output, &list.subscriptions))?;
        }
        Sub::Delete { subscription } => {
            let ask = Unsubscribe { subscription_id: subscription.clone() };
            let deleted = client.call(ask).await?;
            let line = || format!("Deleted: {}", format::name(&subscription));
            cx.output.show(&deleted, || vec![line()])?;
        }
        Sub::Enable { subscription } => {
            let enabled = client.call(EnableSubscription { subscription_id: subscription }).await?;
            let line = || format!("Enabled: {}", enabled.subscription_id);
            cx.output.show(&enabled, || vec![line()])?;
        }
    }
    Ok(Outcome::Done)
}

fn lines(output: &Output, subscriptions: &[Subscription]) -> Vec<String> {
    let row = |subscription: &Subscription| {
        let status = match subscription.status {
            SubscriptionStatus::Active => "active",
            SubscriptionStatus::Failed => "failed",
            SubscriptionStatus::Disabled => "disabled",
        };
        let mut filters = Vec::new();
        filters
            .extend(subscription.kinds.as_ref().map(|kinds| format!("kinds {}", kinds.join(","))));
        filters.extend(subscription.only_from.as_ref().map(|name| format!("from {name}")));
        filters.extend(subscription.not_from.as_ref().map(|name| format!("not from {name}")));
        filters.extend(subscription.exclude_thinking.then(|| "no thinking".to_owned()));
        vec![
            subscription.subscription_id.clone(),
            subscription.room_id.clone(),
            subscription.webhook_url.clone(),
            status.to_owned(),
            format::seq(output, subscription.last_delivered_seq),
            subscription.failure_count.to_string(),
            filters.join("; "),
        ]
    };
    let heads = ["id", "room", "url", "status", "delivered", "failures", "only"];
    table::lines(output, &heads, subscriptions.iter().map(row).collect())
}
