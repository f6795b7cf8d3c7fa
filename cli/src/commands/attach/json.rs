//! Members put into a JSON text beside what is there, and taken out again. Pure. The text is never printed anew: comments,
//! blanks, line ends and numbers stay as their owner wrote them, byte for byte.
//!
//! An entry is put first into its object or array, on lines of its own where the text has lines: so no line of the owner's
//! changes, not even by a comma.

use serde_json::Value;

use super::spans::{self, Kind, Malformed, Node};

/// A value and its place.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Entry {
    /// Keys of the objects around it, from the outermost.
    pub(super) within: Vec<String>,
    /// Its key. `None`: it is an element of the array there.
    pub(super) key: Option<String>,
    pub(super) value: Value,
}

/// Text that was put in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Insertion {
    /// Keys of the objects around it. `None`: it is the whole document.
    within: Option<Vec<String>>,
    text: String,
}

/// All that was put into a text.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Written {
    entries: Vec<Entry>,
    /// In the order in which they were put in.
    insertions: Vec<Insertion>,
    /// Keys of containers that were not there before, from the outermost; without a key it is the document.
    made: Vec<Vec<String>>,
    /// All of it as it stands in the text, for people.
    shown: Vec<String>,
}

impl Written {
    /// As it stands in the text, for people.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.shown.iter().map(|text| text.trim_matches(['\r', '\n']))
    }
}

/// Keeps the places of what was put in up to date, in a text that grows.
fn note(places: &mut Vec<(usize, usize)>, at: usize, length: usize) {
    let mut is_within = false;
    for (start, end) in places.iter_mut() {
        if at <= *start {
            *start += length;
            *end += length;
        } else if at < *end {
            *end += length;
            is_within = true;
        }
    }
    if !is_within {
        places.push((at, at + length));
    }
}

/// An entry cannot be put into this text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is no JSON.
    Malformed(Malformed),
    /// Something else stands where the entry has its place.
    Taken(String),
    /// A container of the entry is something else.
    NoContainer(String),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Malformed(malformed) => write!(f, "it is malformed: {malformed}"),
            Unfit::Taken(at) => write!(f, "it has another {at} already: take that out first"),
            Unfit::NoContainer(at) => write!(f, "its {at} is not of the expected kind"),
        }
    }
}

impl From<Malformed> for Unfit {
    fn from(malformed: Malformed) -> Unfit {
        Unfit::Malformed(malformed)
    }
}

/// Whether a text has the entry, exactly.
pub(super) fn has(text: &str, entry: &Entry) -> bool {
    let Ok(Some(root)) = spans::read(text) else { return false };
    let wanted = node_of(&entry.value);
    let Some(around) = descend(&root, &entry.within) else { return false };
    match (&entry.key, &around.kind) {
        (Some(key), Kind::Object(_)) => {
            around.member(key).is_some_and(|found| found.value == wanted)
        }
        (None, Kind::Array(elements)) => elements.contains(&wanted),
        (_, Kind::Object(_) | Kind::Array(_) | Kind::Text(_) | Kind::Other(_)) => false,
    }
}

/// A value of a text, by its keys: a text without its quotes, a number or a word as it stands there. `None`: there is none.
pub(super) fn value_at(text: &str, keys: &[&str]) -> Option<String> {
    let root = spans::read(text).ok()??;
    let node = keys.iter().try_fold(&root, |node, key| Some(&node.member(key)?.value))?;
    match &node.kind {
        Kind::Text(text) | Kind::Other(text) => Some(text.clone()),
        Kind::Object(_) | Kind::Array(_) => None,
    }
}

/// The text with the entries in it, and what was put in.
///
/// # Errors
/// See [`Unfit`].
pub(super) fn put(text: &str, entries: &[Entry]) -> Result<(String, Written), Unfit> {
    let mut text = text.to_owned();
    let mut written = Written::default();
    let mut places = Vec::new();
    for entry in entries {
        // Its owner may have put it there by hand.
        if has(&text, entry) {
            continue;
        }
        let (at, insertion, depth) = place(&text, entry)?;
        text.insert_str(at, &insertion.text);
        note(&mut places, at, insertion.text.len());
        let first = if insertion.within.is_none() { 0 } else { depth + 1 };
        let made = (first..=entry.within.len()).map(|depth| entry.within[..depth].to_vec());
        written.made.extend(made);
        written.insertions.push(insertion);
        written.entries.push(entry.clone());
    }
    spans::read(&text)?;
    places.sort_unstable();
    written.shown = places.into_iter().map(|(start, end)| text[start..end].to_owned()).collect();
    Ok((text, written))
}

/// The text without what was put in. The second: entries that are not as they were put in, and stay.
///
/// # Errors
/// [`Malformed`].
pub(super) fn take(text: &str, written: &Written) -> Result<(String, Vec<String>), Malformed> {
    let mut expected = spans::read(text)?;
    if let Some(root) = &mut expected {
        without(root, written);
    }
    let is_document = written.made.iter().any(Vec::is_empty);
    let is_expected = |text: &str| match (spans::read(text), &expected) {
        (Ok(Some(root)), Some(expected)) => root == *expected,
        (Ok(None), Some(expected)) => is_document && expected.is_empty(),
        (Ok(None), None) => true,
        (Ok(_) | Err(_), _) => false,
    };
    let changed = written.entries.iter().filter(|entry| is_changed(text, entry));
    let changed: Vec<String> = changed.map(name_of).collect();
    let mut newest_first = written.insertions.iter().rev();
    let exact = newest_first.try_fold(text.to_owned(), |text, insertion| cut(&text, insertion));
    if let Some(exact) = exact.filter(|exact| is_expected(exact)) {
        return Ok((exact, changed));
    }
    // Somebody has printed the text anew, or added to what was put in.
    let mut left = text.to_owned();
    for entry in written.entries.iter().rev() {
        left = cut_entry(left, entry);
    }
    for container in deepest_first(&written.made) {
        left = cut_empty(left, container);
    }
    Ok((left, changed))
}

fn deepest_first(made: &[Vec<String>]) -> Vec<&Vec<String>> {
    let mut made: Vec<&Vec<String>> = made.iter().collect();
    made.sort_by_key(|keys| std::cmp::Reverse(keys.len()));
    made
}

/// How an entry is called where people read of it.
pub(super) fn name_of(entry: &Entry) -> String {
    let keys = entry.within.iter().chain(entry.key.as_ref());
    keys.cloned().collect::<Vec<_>>().join(".")
}

/// Another value stands at the place of a member; or a list has elements, and this one is not among them.
fn is_changed(text: &str, entry: &Entry) -> bool {
    let Ok(Some(root)) = spans::read(text) else { return false };
    let Some(around) = descend(&root, &entry.within) else { return false };
    let wanted = node_of(&entry.value);
    match (&entry.key, &around.kind) {
        (Some(key), _) => around.member(key).is_some_and(|found| found.value != wanted),
        (None, Kind::Array(elements)) => !elements.is_empty() && !elements.contains(&wanted),
        (None, Kind::Object(_) | Kind::Text(_) | Kind::Other(_)) => false,
    }
}

fn descend<'n>(root: &'n Node, keys: &[String]) -> Option<&'n Node> {
    keys.iter().try_fold(root, |node, key| Some(&node.member(key)?.value))
}

fn node_of(value: &Value) -> Node {
    // Every value is a text of JSON, and that can be read.
    let read = spans::read(&value.to_string()).ok().flatten();
    read.unwrap_or_else(|| Node { start: 0, end: 0, kind: Kind::Other(String::new()) })
}

/// Where an entry goes, and as which text; and how many of the containers around it are there.
fn place(text: &str, entry: &Entry) -> Result<(usize, Insertion, usize), Unfit> {
    let style = Style::of(text);
    let Some(root) = spans::read(text)? else {
        let end = style.line_end;
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        let printed = format!("{gap}{}{end}", style.print(&wrapped(entry, 0), ""));
        return Ok((text.len(), Insertion { within: None, text: printed }, 0));
    };
    let mut around = &root;
    let mut depth = 0;
    while let Some(key) = entry.within.get(depth) {
        let Kind::Object(_) = around.kind else {
            return Err(Unfit::NoContainer(keys(entry, depth)));
        };
        let Some(member) = around.member(key) else { break };
        (around, depth) = (&member.value, depth + 1);
    }
    let key = entry.within.get(depth).or(entry.key.as_ref());
    match (&around.kind, key) {
        (Kind::Object(_), Some(key)) if around.member(key).is_some() => {
            return Err(Unfit::Taken(name_of(entry)));
        }
        (Kind::Object(_), Some(_)) | (Kind::Array(_), None) => {}
        (Kind::Object(_) | Kind::Array(_) | Kind::Text(_) | Kind::Other(_), _) => {
            return Err(Unfit::NoContainer(keys(entry, depth)));
        }
    }
    let is_there = depth == entry.within.len();
    let value = if is_there { entry.value.clone() } else { wrapped(entry, depth + 1) };
    let (at, text) = style.insertion(text, around, key.map(String::as_str), &value);
    let within = Some(entry.within[..depth].to_vec());
    Ok((at, Insertion { within, text }, depth))
}

fn keys(entry: &Entry, depth: usize) -> String {
    let keys = entry.within[..depth].join(".");
    if keys.is_empty() { "outermost value".to_owned() } else { keys }
}

/// The entry within those of its containers that are deeper.
fn wrapped(entry: &Entry, depth: usize) -> Value {
    let object =
        |key: &String, value: Value| Value::Object([(key.clone(), value)].into_iter().collect());
    let inner = match &entry.key {
        Some(key) => object(key, entry.value.clone()),
        None => Value::Array(vec![entry.value.clone()]),
    };
    let around = entry.within.get(depth..).unwrap_or_default();
    around.iter().rev().fold(inner, |value, key| object(key, value))
}

/// Takes an insertion out where it stands as it was put in.
fn cut(text: &str, insertion: &Insertion) -> Option<String> {
    let (from, to) = match &insertion.within {
        None => (0, text.len()),
        Some(keys) => {
            let root = spans::read(text).ok()??;
            let around = descend(&root, keys)?;
            (around.start, around.end)
        }
    };
    let mut found = text[from..to].match_indices(&insertion.text);
    let (at, _) = found.next()?;
    // The first is the one: entries are put in first.
    let at = from + at;
    Some(format!("{}{}", &text[..at], &text[at + insertion.text.len()..]))
}

/// Takes an entry out wherever it stands.
fn cut_entry(text: String, entry: &Entry) -> String {
    let Ok(Some(root)) = spans::read(&text) else { return text };
    let wanted = node_of(&entry.value);
    let Some(around) = descend(&root, &entry.within) else { return text };
    let index = match (&entry.key, &around.kind) {
        (Some(key), Kind::Object(members)) => {
            members.iter().position(|member| member.key == *key && member.value == wanted)
        }
        (None, Kind::Array(elements)) => elements.iter().position(|element| *element == wanted),
        (_, Kind::Object(_) | Kind::Array(_) | Kind::Text(_) | Kind::Other(_)) => None,
    };
    index.map_or_else(|| text.clone(), |index| cut_child(&text, around, index))
}

/// Takes a container out if nothing is in it.
fn cut_empty(text: String, keys: &[String]) -> String {
    let Ok(Some(root)) = spans::read(&text) else { return text };
    let Some((key, around)) = keys.split_last() else {
        // The document itself. Comments in it are its owner's.
        let is_bare = root.is_empty() && !text[root.start..root.end].contains('/');
        let rest = text[root.end..].trim_start_matches(['\r', '\n']);
        return if is_bare { format!("{}{rest}", &text[..root.start]) } else { text };
    };
    let Some(around) = descend(&root, around) else { return text };
    let Kind::Object(members) = &around.kind else { return text };
    let empty = members.iter().position(|member| member.key == *key && member.value.is_empty());
    empty.map_or_else(|| text.clone(), |index| cut_child(&text, around, index))
}

/// Takes a child out, with the comma that it needs no more, and its lines if nothing else stands there.
fn cut_child(text: &str, around: &Node, index: usize) -> String {
    let spans = around.children();
    let Some(&(start, end)) = spans.get(index) else { return text.to_owned() };
    let comma = spans::comma_after(text, end, around.end);
    let mut cuts = Vec::new();
    let mut from = start;
    let mut to = comma.map_or(end, |comma| comma + 1);
    if comma.is_none() && index > 0 {
        // The last one: the comma before it goes.
        let (_, end_before) = spans[index - 1];
        cuts.extend(spans::comma_after(text, end_before, start).map(|comma| (comma, comma + 1)));
    }
    let line_start = text[..from].rfind('\n').map_or(0, |at| at + 1);
    let blank = |text: &str| text.chars().all(|c| matches!(c, ' ' | '\t' | '\r'));
    let line_end = text[to..].find('\n').map(|at| to + at + 1);
    match line_end {
        Some(line_end)
            if blank(&text[line_start..from])
                && blank(text[to..line_end].trim_end_matches('\n')) =>
        {
            (from, to) = (line_start, line_end);
        }
        Some(_) | None if comma.is_some() => {
            to += text[to..].len() - text[to..].trim_start_matches([' ', '\t']).len();
        }
        Some(_) | None => {}
    }
    cuts.push((from, to));
    cuts.sort_unstable_by(|a, b| b.cmp(a));
    let mut left = text.to_owned();
    cuts.into_iter().for_each(|(from, to)| left.replace_range(from..to, ""));
    left
}

/// The value without what was put in.
fn without(root: &mut Node, written: &Written) {
    for entry in &written.entries {
        let wanted = node_of(&entry.value);
        let Some(around) = descend_mut(root, &entry.within) else { continue };
        match (&entry.key, &mut around.kind) {
            (Some(key), Kind::Object(members)) => {
                members.retain(|member| member.key != *key || member.value != wanted);
            }
            (None, Kind::Array(elements)) => {
                if let Some(at) = elements.iter().position(|element| *element == wanted) {
                    elements.remove(at);
                }
            }
            (_, Kind::Object(_) | Kind::Array(_) | Kind::Text(_) | Kind::Other(_)) => {}
        }
    }
    for container in deepest_first(&written.made) {
        let Some((key, around)) = container.split_last() else { continue };
        let Some(around) = descend_mut(root, around) else { continue };
        if let Kind::Object(members) = &mut around.kind {
            members.retain(|member| member.key != *key || !member.value.is_empty());
        }
    }
}

fn descend_mut<'n>(root: &'n mut Node, keys: &[String]) -> Option<&'n mut Node> {
    keys.iter().try_fold(root, |node, key| match &mut node.kind {
        Kind::Object(members) => members
            .iter_mut()
            .rev()
            .find(|member| member.key == *key)
            .map(|member| &mut member.value),
        Kind::Array(_) | Kind::Text(_) | Kind::Other(_) => None,
    })
}

/// How a text is laid out.
struct Style {
    line_end: &'static str,
    indent: &'static str,
}

impl Style {
    fn of(text: &str) -> Style {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = if text.contains("\n\t") { "\t" } else { "  " };
        Style { line_end, indent }
    }

    /// Where a child goes into an object or array, and its text with commas and lines.
    fn insertion(
        &self,
        text: &str,
        around: &Node,
        key: Option<&str>,
        value: &Value,
    ) -> (usize, String) {
        let children = around.children();
        let comma = if children.is_empty() { "" } else { "," };
        let after = around.start + 1;
        let line = text[..around.start].rfind('\n').map_or(0, |at| at + 1);
        let margin = &text[line..];
        let margin = &margin[..margin.len() - margin.trim_start_matches([' ', '\t']).len()];
        let margin = &margin[..margin.len().min(around.start - line)];
        // The indent of the first child, if it stands on a line of its own.
        let first = children.first().and_then(|(start, _)| {
            let line = text[after..*start].rfind('\n')? + after + 1;
            let blanks = &text[line..*start];
            blanks.chars().all(|c| matches!(c, ' ' | '\t')).then_some(blanks)
        });
        let indent = first.map_or_else(|| format!("{margin}{}", self.indent), str::to_owned);
        let child = |indent: &str| match key {
            Some(key) => format!("{}: {}", Value::from(key), self.print(value, indent)),
            None => self.print(value, indent),
        };
        if let Some(at) = spans::next_line(text, after, around.end) {
            return (at, format!("{indent}{}{comma}{}", child(&indent), self.line_end));
        }
        if children.is_empty() {
            let end = self.line_end;
            return (after, format!("{end}{indent}{}{end}{margin}", child(&indent)));
        }
        let blank = if text[after..].starts_with([' ', '\t', '\r', '\n']) { "" } else { " " };
        let inline = match key {
            Some(key) => format!("{}: {value},{blank}", Value::from(key)),
            None => format!("{value},{blank}"),
        };
        (after, inline)
    }

    /// A value on lines, but for arrays of texts.
    fn print(&self, value: &Value, indent: &str) -> String {
        let (end, inner) = (self.line_end, format!("{indent}{}", self.indent));
        let joined = |parts: Vec<String>| parts.join(&format!(",{end}"));
        match value {
            Value::Object(members) if !members.is_empty() => {
                let each = members.iter().map(|(key, value)| {
                    format!("{inner}{}: {}", Value::from(key.as_str()), self.print(value, &inner))
                });
                format!("{{{end}{}{end}{indent}}}", joined(each.collect()))
            }
            Value::Array(elements) if elements.iter().any(|it| it.is_object() || it.is_array()) => {
                let each = elements.iter().map(|it| format!("{inner}{}", self.print(it, &inner)));
                format!("[{end}{}{end}{indent}]", joined(each.collect()))
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::String(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Null => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Vec<Entry> {
        let keys = |keys: &[&str]| keys.iter().map(|key| String::from(*key)).collect();
        let hook = |event: &str| Entry {
            within: keys(&["hooks", event]),
            key: None,
            value: json!({"hooks": [{"type": "command", "command": "clawmesh inbox --hook"}]}),
        };
        let server = Entry {
            within: keys(&["mcpServers"]),
            key: Some("mesh".to_owned()),
            value: json!({"command": "clawmesh", "args": ["mcp"], "env": {}}),
        };
        vec![server, hook("SessionStart"), hook("Stop")]
    }

    /// Texts as people and programs write them.
    const SHAPES: [&str; 24] = [
        "",
        "\n",
        "// mine\n",
        "// mine, without an end",
        "{}",
        "{ }",
        "{}\n",
        "{\n}\n",
        "{\r\n}\r\n",
        "{ // mine\n  // more\n}",
        "{\"a\": 1}",
        "{ \"a\": 1, /* x */ \"b\": 2 }\n",
        "{\n  \"a\": 1.50,\n  \"b\": [1, 2]\n}\n",
        "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}",
        "\u{feff}{\n\t\"mcpServers\": {\n\t\t\"x\": {}\n\t}\n}",
        "{\"mcpServers\":{\"x\":{\"command\":\"y\"}},\"hooks\":{\"Stop\":[]}}",
        "{\n  \"mcpServers\": {},\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ],\n  },\n}\n",
        "{ // c\n  mcpServers: { 'x': 1, }, // d\n  hooks: { Stop: [ /* e */ ] },\n}",
        "{ /* over\n lines */ \"hooks\": {\"SessionStart\": [{\"hooks\": []}]}}",
        "{\n  \"mcpServers\": { // first\n    // second\n    \"x\": 1 // third\n  }\n}",
        "{\"url\": \"http://x/*\", \"q\": \"\\\"{\"}",
        "{\n\n\n  \"a\": 1\n\n}\n\n\n",
        "{\n    \"hooks\": {\n        \"Stop\": [{\"hooks\": []}, {\"matcher\": \"\"}]\n    }\n}",
        "{\"a\":\n1,\"mcpServers\":\n{\"b\"\n:2}\n}",
    ];

    #[test]
    fn what_is_put_in_is_taken_out_to_the_byte() {
        for shape in SHAPES {
            let (text, written) = put(shape, &wanted()).unwrap();
            assert!(wanted().iter().all(|entry| has(&text, entry)), "{text}");
            let (again, more) = put(&text, &wanted()).unwrap();
            assert_eq!((again.as_str(), more), (text.as_str(), Written::default()));
            let (left, changed) = take(&text, &written).unwrap();
            assert_eq!(left, shape, "{text}");
            assert!(changed.is_empty());
        }
    }

    #[test]
    fn lines_of_the_owner_stay_as_they_are() {
        for shape in SHAPES.iter().filter(|shape| shape.starts_with("{\n")) {
            let (text, _) = put(shape, &wanted()).unwrap();
            let mut lines = text.lines();
            // A container in one line is opened, and its line with it.
            let whole = |line: &&str| !line.contains("{}") && !line.contains(": [{");
            let all = shape.lines().filter(whole).all(|line| lines.any(|other| other == line));
            assert!(all, "{shape}\n---\n{text}");
        }
    }

    #[test]
    fn strict_texts_stay_strict() {
        for shape in SHAPES.iter().filter(|shape| spans::is_strict(shape)) {
            let (text, written) = put(shape, &wanted()).unwrap();
            assert!(spans::is_strict(&text), "{text}");
            // A program that prints it anew.
            let bare = text.trim_start_matches('\u{feff}');
            let value: Value = serde_json::from_str(bare).unwrap();
            for printed in [value.to_string(), format!("{value:#}"), format!("{value:#}\n")] {
                let (left, _) = take(&printed, &written).unwrap();
                let left: Value = serde_json::from_str(&left).unwrap();
                let original: Value =
                    serde_json::from_str(shape.trim_start_matches('\u{feff}')).unwrap();
                assert_eq!(left, original, "{printed}");
            }
        }
    }

    #[test]
    fn what_the_owner_adds_between_stays() {
        for shape in SHAPES {
            let (text, written) = put(shape, &wanted()).unwrap();
            // Beside ours, behind it.
            let at = text.find("\"args\": [\"mcp\"]").or(text.find("\"args\":[\"mcp\"]")).unwrap();
            let end = text[at..].find("{}").map(|end| at + end + 2).unwrap();
            let end = text[end..].find('}').map(|close| end + close + 1).unwrap();
            let more = format!("{},\n\"theirs\": {{}}{}", &text[..end], &text[end..]);
            let Ok(Some(_)) = spans::read(&more) else { panic!("{more}") };
            let (left, _) = take(&more, &written).unwrap();
            let root = spans::read(&left).unwrap().unwrap();
            assert!(root.member("mcpServers").unwrap().value.member("theirs").is_some(), "{left}");
            assert!(!left.contains("clawmesh"), "{left}");
            if spans::is_strict(&more) {
                assert!(spans::is_strict(&left), "{left}");
            }
        }
    }

    #[test]
    fn nothing_is_put_over_anything() {
        let one = &wanted()[..1];
        for (text, part) in [
            ("{\"mcpServers\": {\"mesh\": {\"command\": \"other\"}}}", "another mcpServers.mesh"),
            ("{\"mcpServers\": []}", "mcpServers is not of"),
            ("[]", "outermost value"),
            ("{\"a\": 1", "malformed: a comma"),
            ("{\"a\": \"x\n\"}", "in line 1"),
            ("{} x", "the end"),
            ("{\"a\" 1}", "a colon"),
        ] {
            let unfit = put(text, one).unwrap_err().to_string();
            assert!(unfit.contains(part), "{text}: {unfit}");
        }
        let deep = "[".repeat(1_000);
        assert!(matches!(put(&deep, one), Err(Unfit::Malformed(_))));
        let (text, written) = put("{\"a\": 1}", one).unwrap();
        let edited = text.replace("[\"mcp\"]", "[\"mcp\", \"--name\"]");
        let (left, changed) = take(&edited, &written).unwrap();
        assert_eq!((left, changed), (edited, vec!["mcpServers.mesh".to_owned()]));
        let (text, written) = put("{\"a\": 1}", &wanted()[2..]).unwrap();
        let edited = text.replace("--hook", "--hook --name x");
        let (left, changed) = take(&edited, &written).unwrap();
        assert_eq!((left, changed), (edited, vec!["hooks.Stop".to_owned()]));
    }
    /// Numbers that look like chance, and are the same in each run.
    fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
        move |below| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        }
    }

    /// A text of JSON with members, comments and blanks of all kinds.
    fn made(next: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
        let blanks = ["", " ", "\n", "\n  ", "\r\n\t", " // x\n", " /* y */ "];
        let keys = ["\"a\"", "\"mcp\"", "'q'", "servers", "\"mcpServers\"", "\"ü\\\"\""];
        let mut text = String::from("{");
        let count = next(4);
        let start = next(keys.len());
        for at in 0..count {
            text += blanks[next(blanks.len())];
            // The containers of entries are objects: else nothing can be put into them.
            let key = keys[(start + at) % keys.len()];
            let is_container = key.contains("mcp") || key == "servers";
            let value = match (is_container || next(3) == 0, depth) {
                (true, 0) => "{}".to_owned(),
                (true, _) => made(next, depth - 1),
                (false, _) => ["1.0", "\"{//\"", "[1, {}]", "null", "'}'"][next(5)].to_owned(),
            };
            text += &format!(
                "{key}{}:{}{value}",
                blanks[next(blanks.len())],
                blanks[next(blanks.len())]
            );
            text += if at + 1 < count || next(2) == 0 { "," } else { "" };
        }
        text += blanks[next(blanks.len())];
        text + "}"
    }

    #[test]
    fn whatever_the_text_is_both_together_change_nothing() {
        let mut next = numbers(0x9e37_79b9_7f4a_7c15);
        let mut fit = 0;
        for _ in 0..1_000 {
            let text = made(&mut next, 3);
            // Two containers of one key, the last of which is none, say.
            let Ok((with, written)) = put(&text, &wanted()) else { continue };
            fit += 1;
            assert!(wanted().iter().all(|entry| has(&with, entry)), "{with}");
            assert_eq!(take(&with, &written).unwrap(), (text.clone(), Vec::new()), "{with}");
            // Its owner writes before it and behind it.
            let edited = format!("// before\n{with}\n/* behind */");
            let expected = format!("// before\n{text}\n/* behind */");
            assert_eq!(take(&edited, &written).unwrap().0, expected, "{with}");
            // And within it, before everything.
            let edited = with.replacen('{', "{ \"before\": [],", 1);
            let (left, _) = take(&edited, &written).unwrap();
            let root = spans::read(&left).unwrap().unwrap();
            let old = spans::read(&text).unwrap().unwrap();
            assert_eq!(root.children().len(), old.children().len() + 1, "{edited}\n---\n{left}");
            assert!(!left.contains("clawmesh"), "{left}");
        }
        assert!(fit > 700, "{fit}");
    }
}
