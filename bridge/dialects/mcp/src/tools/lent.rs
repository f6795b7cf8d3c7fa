//! Tools that another dialect lends: offered, judged and counted as those of the table. What they do is its own.

use bridge::toolbox::ToolCaller;

use crate::{
    arguments::Arguments,
    asking::Asking,
    outcome::{No, Outcome},
    rows::{Kind, Row},
};

/// Calls one. Begun is finished, also if the host hangs up.
pub(super) async fn call(asking: &Asking, tool: Row, arguments: &Arguments) -> Outcome {
    let lent = &asking.shared.lent;
    let shown = lent.shown.iter().find(|shown| shown.row.name == tool.name);
    let Some((toolbox, shown)) = lent.toolbox.clone().zip(shown) else {
        return Err(No::error("nobody lends this tool any more"));
    };
    let given = arguments.known(&shown.properties);
    if let Some(missing) = tool.required.iter().find(|name| !given.contains_key(**name)) {
        return Err(No::argument(missing, "is required"));
    }
    if tool.kind == Kind::Acts {
        asking.attached().await?;
    }
    let signer = asking.reader.signer().cloned();
    let by = ToolCaller { agent: asking.agent.clone(), signer };
    let called = tokio::spawn(async move { toolbox.call(by, tool.name, given).await });
    called.await.map_err(|_| No::error("the node is stopping; look before you do it again"))
}
