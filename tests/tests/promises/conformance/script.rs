//! A transcript as it is written, and as steps.
//!
//! One step a line; a line that begins with a blank goes on with the one before; `#` begins a comment.
//!
//! ```text
//! agents a b              a and b connect and register, with the key that all nodes have
//! agents c key $other     with another one
//! connect d               connects, no more; `connect d at a`: to the node of a
//! disconnect d
//! room $room a b          a makes a public room, and these join, one after the other; all see it
//! patience 45             from here on a line may take so many seconds
//! hurry                   it holds something against a clock of the node's that cannot be set. On a machine
//!                         that stands still for so long it is played again, with rooms of its own
//! repeat 3                the lines up to `end`, three times; `%n` in them is 1, 2, 3
//! end
//!
//! a > TYPE {...}          a asks
//! a >~ TYPE {...}         the same, again and again until the reply that follows comes: the news
//!                         of other nodes may not have come here yet
//! a >> ...                sends this line as it is, variables replaced; `pad N`: made N bytes long
//! a >> bytes ff fe 0a     sends these bytes
//! a = TYPE {...}          the reply to the oldest request without one; `as $name` binds all of it
//! a ! CODE "words"        it is an error, whose message has these words
//! a < TYPE {...}          the next event
//! a <? TYPE {...}         adjacent ones: the next events, in any order
//! a -                     nothing else has come, up to the reply to a ping
//! a closed                nothing else comes, and the node closes the connection: sooner or later, or
//! a closed now            before it answers a ping
//! ```
//!
//! At its end nothing may have come that was not expected, anywhere. Blanks in JSON: see
//! [`super::pattern`].

use anyhow::{Context as _, Result, bail, ensure};

use super::pattern::Pattern;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) name: String,
    /// It may be late for a clock of the node's.
    pub(super) hurry: bool,
    pub(super) steps: Vec<Step>,
    /// As it is written.
    text: String,
}

#[derive(Debug)]
pub(super) struct Step {
    /// Of its first line.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) action: Action,
    /// The transcript says so itself, no shorthand of it does.
    pub(super) written: bool,
}

#[derive(Debug)]
pub(super) enum Action {
    Agents { names: Vec<String>, key: String },
    Connect { who: String, at: Option<String> },
    Disconnect { who: String },
    Patience { seconds: u64 },
    Ask { who: String, ask: Ask },
    AskUntil { who: String, ask: Ask, answer: Expected },
    Raw { who: String, bytes: Raw },
    Reply { who: String, answer: Expected },
    Events { who: String, expected: Vec<Expected> },
    Silence { who: String },
    Closed { who: String, when: When },
}

/// When a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Now,
    Sometime,
}

#[derive(Debug)]
pub(super) struct Ask {
    pub(super) kind: String,
    pub(super) payload: Pattern,
}

#[derive(Debug)]
pub(super) struct Expected {
    pub(super) kind: String,
    pub(super) payload: Pattern,
    /// The name of the whole payload from now on.
    pub(super) bind: Option<String>,
    /// Of an error: its message.
    pub(super) words: String,
}

#[derive(Debug)]
pub(super) enum Raw {
    Bytes(Vec<u8>),
    Line { text: String, pad: usize },
}

impl Script {
    pub(super) fn parse(name: &str, text: &str) -> Result<Script> {
        let mut script = Script {
            name: name.to_owned(),
            hurry: false,
            steps: Vec::new(),
            text: text.to_owned(),
        };
        let mut agents = Vec::new();
        for (line, text) in repeated(whole_lines(text))? {
            let at = || format!("{name}:{line}: {text}");
            script.line(line, &text, &mut agents).with_context(at)?;
        }
        ensure!(!script.steps.is_empty(), "{name} is empty");
        Ok(script)
    }

    /// The same under another name, so that its earlier objects are not in its way.
    pub(super) fn again(&self) -> Result<Script> {
        Script::parse(&format!("{} again", self.name), &self.text)
    }

    /// How many connections it makes.
    pub(super) fn connections(&self) -> usize {
        let made = self.steps.iter().map(|step| match &step.action {
            Action::Agents { names, .. } => names.len(),
            Action::Connect { .. } => 1,
            Action::Disconnect { .. }
            | Action::Patience { .. }
            | Action::Ask { .. }
            | Action::AskUntil { .. }
            | Action::Raw { .. }
            | Action::Reply { .. }
            | Action::Events { .. }
            | Action::Silence { .. }
            | Action::Closed { .. } => 0,
        });
        made.sum()
    }

    /// Whether a line of it may take long.
    pub(super) fn is_slow(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Patience { .. }))
    }

    fn line(&mut self, line: usize, text: &str, agents: &mut Vec<String>) -> Result<()> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let action = match words.as_slice() {
            ["agents", names @ .., "key", key] => new_agents(agents, names, key),
            ["agents", names @ ..] => new_agents(agents, names, "$key"),
            ["connect", who, "at", at] => {
                Action::Connect { who: (*who).to_owned(), at: Some((*at).to_owned()) }
            }
            ["connect", who] => Action::Connect { who: (*who).to_owned(), at: None },
            ["disconnect", who] => {
                agents.retain(|agent| agent != who);
                Action::Disconnect { who: (*who).to_owned() }
            }
            ["hurry"] => {
                self.hurry = true;
                return Ok(());
            }
            ["patience", seconds] => Action::Patience { seconds: seconds.parse()? },
            ["room", room, members @ ..] => {
                for text in company(&self.name, room, members, agents)? {
                    let action = act(&text)?;
                    self.push(Step { line, text, action, written: false })?;
                }
                return Ok(());
            }
            _ => act(text)?,
        };
        self.push(Step { line, text: text.to_owned(), action, written: true })
    }

    /// Adds a step, or a line that belongs to the last one.
    fn push(&mut self, step: Step) -> Result<()> {
        match (self.steps.last_mut(), step) {
            (
                Some(Step { text: asked, action: Action::AskUntil { who, answer, .. }, .. }),
                Step { text, action: Action::Reply { who: by, answer: to }, .. },
            ) if *who == by && answer.kind.is_empty() => {
                *answer = to;
                *asked += &format!(" / {text}");
            }
            (Some(Step { text, action: Action::AskUntil { answer, .. }, .. }), _)
                if answer.kind.is_empty() =>
            {
                bail!("`{text}` needs a reply that it is asked for")
            }
            (
                Some(Step { text: before, action: Action::Events { who, expected }, .. }),
                Step { text, action: Action::Events { who: by, expected: more }, .. },
            ) if *who == by && before.contains(" <? ") && text.contains(" <? ") => {
                expected.extend(more);
                *before += &format!(" / {text}");
            }
            (_, step) => self.steps.push(step),
        }
        Ok(())
    }
}

/// Lines without comments, with their continuations and their numbers.
fn whole_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        match lines.last_mut() {
            Some((_, before)) if line.starts_with(' ') => {
                before.push(' ');
                before.push_str(line.trim());
            }
            _ => lines.push((number, line.trim_end().to_owned())),
        }
    }
    lines
}

/// The lines, each as often as it is to be played.
fn repeated(lines: Vec<(usize, String)>) -> Result<Vec<(usize, String)>> {
    let mut all = Vec::new();
    let mut lines = lines.into_iter();
    while let Some((line, text)) = lines.next() {
        let Some(times) = text.strip_prefix("repeat ") else {
            all.push((line, text));
            continue;
        };
        let times: usize = times.parse().with_context(|| format!("line {line}: how often?"))?;
        let block: Vec<_> = lines.by_ref().take_while(|(_, text)| text != "end").collect();
        for n in 1..=times {
            let numbered = |text: &String| text.replace("%n", &n.to_string());
            all.extend(block.iter().map(|(line, text)| (*line, numbered(text))));
        }
    }
    Ok(all)
}

fn new_agents(agents: &mut Vec<String>, names: &[&str], key: &str) -> Action {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    agents.extend(names.iter().cloned());
    Action::Agents { names, key: key.trim_start_matches('$').to_owned() }
}

/// `a OP REST`
fn act(text: &str) -> Result<Action> {
    let (who, rest) = text.split_once(' ').context("no step is so short")?;
    let (op, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
    let (who, rest) = (who.to_owned(), rest.trim());
    Ok(match op {
        ">" => Action::Ask { who, ask: Ask::parse(rest)? },
        ">~" => Action::AskUntil { who, ask: Ask::parse(rest)?, answer: Expected::nothing() },
        ">>" => Action::Raw { who, bytes: Raw::parse(rest)? },
        "=" => Action::Reply { who, answer: Expected::parse(rest)? },
        "!" => Action::Reply { who, answer: Expected::refusal(rest)? },
        "<" | "<?" => Action::Events { who, expected: vec![Expected::parse(rest)?] },
        "-" => Action::Silence { who },
        "closed" if rest == "now" => Action::Closed { who, when: When::Now },
        "closed" => Action::Closed { who, when: When::Sometime },
        other => bail!("`{other}` is no step"),
    })
}

impl Ask {
    fn parse(text: &str) -> Result<Ask> {
        let (kind, payload) = text.split_once(' ').unwrap_or((text, "{}"));
        Ok(Ask { kind: kind.to_owned(), payload: Pattern::parse(payload)? })
    }
}

impl Expected {
    fn parse(text: &str) -> Result<Expected> {
        let (text, bind) = match text.rsplit_once(" as $") {
            Some((text, name)) => (text, Some(name.to_owned())),
            None => (text, None),
        };
        let (kind, payload) = text.split_once(' ').context("what is its payload?")?;
        let payload = Pattern::parse(payload)?;
        Ok(Expected { kind: kind.to_owned(), payload, bind, words: String::new() })
    }

    /// `CODE "words"`
    fn refusal(text: &str) -> Result<Expected> {
        let (code, words) = text.split_once(' ').unwrap_or((text, ""));
        let text = format!(r#"error {{"code": "{code}", "message": *text}}"#);
        Ok(Expected { words: words.trim_matches('"').to_owned(), ..Expected::parse(&text)? })
    }

    /// Whether it is this error.
    pub(super) fn is_error(&self, code: &str) -> bool {
        self.kind == "error" && self.payload.has("code", code)
    }

    fn nothing() -> Expected {
        let payload = Pattern::Exactly(serde_json::Value::Null);
        Expected { kind: String::new(), payload, bind: None, words: String::new() }
    }
}

impl Raw {
    fn parse(text: &str) -> Result<Raw> {
        if let Some(digits) = text.strip_prefix("bytes ") {
            let bytes = digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16));
            return Ok(Raw::Bytes(bytes.collect::<Result<_, _>>()?));
        }
        let (text, pad) = match text.rsplit_once(" pad ") {
            Some((text, pad)) => (text, pad.parse()?),
            None => (text, 0),
        };
        Ok(Raw::Line { text: text.to_owned(), pad })
    }
}

/// The steps by which members come together in a public room that the first of them makes.
fn company(script: &str, room: &str, members: &[&str], agents: &[String]) -> Result<Vec<String>> {
    let [first, ..] = members else { bail!("a room needs members") };
    let made = format!(r#"{{"room_id": {room}, ...: *}}"#);
    let mut steps = vec![
        format!(r#"{first} > create_room {{"name": "{script} {room}", "public": true}}"#),
        format!("{first} = ok {made}"),
    ];
    steps.extend(agents.iter().map(|agent| format!("{agent} < room_created {made}")));
    let there = format!(r#"{{"room_id": {room}}}"#);
    for (i, who) in members.iter().enumerate() {
        if i > 0 {
            steps.extend(lists(who, &there, &members[..i]));
        }
        steps.extend([format!("{who} > join_room {there}"), format!("{who} = ok {there}")]);
        let joined = format!(r#""agent": {{"agent_id": ${who}, "name": "{who}"}}"#);
        for other in &members[..i] {
            steps.push(format!(r#"{other} < agent_joined {{"room_id": {room}, {joined}}}"#));
        }
        if i == 0 {
            let turn = format!(r#""current_turn_holder": ${who}, "turn_order": [${who}]"#);
            let turn = format!(r#"{{"room_id": {room}, {turn}, "reason": "joined"}}"#);
            steps.push(format!("{who} < turn_changed {turn}"));
        }
    }
    steps.extend(members.iter().flat_map(|who| lists(who, &there, members)));
    Ok(steps)
}

/// Waits until these are listed, in this order.
fn lists(who: &str, room: &str, members: &[&str]) -> [String; 2] {
    let agent = |agent: &&str| format!(r#"{{"agent_id": ${agent}, ...: *}}"#);
    let members: Vec<String> = members.iter().map(agent).collect();
    let list = format!(r#"{who} = agent_list {{"agents": [{}]}}"#, members.join(", "));
    [format!("{who} >~ list_agents {room}"), list]
}
