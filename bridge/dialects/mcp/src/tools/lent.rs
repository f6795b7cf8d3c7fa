//! Tools that another dialect lends: offered, judged and counted as those of the table. What they do is its own.

use std::sync::Arc;

use bridge::toolbox::{LentTool, ToolCaller, Toolbox};

use super::{Kind, Row, Shown, Which, shown};
use crate::{
    arguments::Arguments,
    asking::Asking,
    groups::Group,
    outcome::{No, Outcome},
};

/// See the module. None, if nobody lends any.
pub(crate) struct Lent {
    toolbox: Option<Arc<dyn Toolbox>>,
    shown: Vec<Shown>,
}

impl Lent {
    pub(crate) fn new(toolbox: Option<Arc<dyn Toolbox>>) -> Lent {
        let tools = toolbox.as_ref().map_or(&[][..], |toolbox| toolbox.tools());
        Lent { shown: tools.iter().map(|tool| shown(&row(tool))).collect(), toolbox }
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.shown.iter()
    }
}

fn row(tool: &LentTool) -> Row {
    let LentTool { name, title, text, arguments, required, reads } = *tool;
    let kind = if reads { Kind::Reads } else { Kind::Acts };
    let (which, groups) = (Which::Lent, &[Group::Finder]);
    Row { which, name, groups, title, text, arguments, required, kind }
}

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
