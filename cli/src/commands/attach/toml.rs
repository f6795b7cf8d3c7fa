//! Tables put at the end of a TOML text, and taken out again. Pure. At the end, since a table takes all keys that follow it:
//! those of the text's owner stay where they were. The text is parsed to see whether it is sound, and never printed anew.

use ::toml::{Table, Value};

/// Tables that cannot be put into a text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    /// It is no TOML.
    #[error("it is malformed: {0}")]
    Malformed(String),
    /// Something else stands there.
    #[error("it has another {0} already: take that out first")]
    Taken(String),
    /// It has a form that nothing can be put beside, such as a table in one line.
    #[error("tables cannot be put at its end: enter by hand what --print shows")]
    Closed,
    /// Something follows that would become a part of something else.
    #[error("the lines of clawmesh cannot be taken out by themselves: take them out by hand")]
    Grown,
}

/// Whether a text has all of the tables.
pub(super) fn has(text: &str, tables: &str) -> bool {
    let (Ok(text), Ok(tables)) = (text.parse::<Table>(), tables.parse::<Table>()) else {
        return false;
    };
    let mut rest = text.clone();
    remove(&mut rest, &tables);
    let mut whole = rest;
    merge(&mut whole, &tables).is_ok() && same(&whole, &text)
}

/// The text with the tables at its end, and that which was put there.
///
/// # Errors
/// See [`Unfit`].
pub(super) fn put(text: &str, tables: &str) -> Result<(String, String), Unfit> {
    let mut expected = parsed(text)?;
    merge(&mut expected, &parsed(tables)?)?;
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = match text {
        "" => String::new(),
        text if text.ends_with('\n') => end.to_owned(),
        _ => end.repeat(2),
    };
    let insertion = format!("{gap}{}", tables.replace('\n', end));
    let new = format!("{text}{insertion}");
    match new.parse::<Table>() {
        Ok(found) if found == expected => Ok((new, insertion)),
        Ok(_) | Err(_) => Err(Unfit::Closed),
    }
}

/// The text without that which was put in. `None`: it is not there any more.
///
/// # Errors
/// See [`Unfit`].
pub(super) fn take(text: &str, insertion: &str) -> Result<Option<String>, Unfit> {
    let mut expected = parsed(text)?;
    let lines = insertion.trim_start_matches(['\r', '\n']);
    remove(&mut expected, &parsed(lines)?);
    let gap = &insertion[..insertion.len() - lines.len()];
    let one_gap = &insertion[gap.len() / 2..];
    // As a whole; or where something follows that was put behind a text without a last line end.
    for wanted in [insertion, one_gap, lines, lines.trim_end()] {
        let Some(at) = text.rfind(wanted) else { continue };
        let left = format!("{}{}", &text[..at], &text[at + wanted.len()..]);
        if left.parse::<Table>().is_ok_and(|found| same(&found, &expected)) {
            return Ok(Some(left));
        }
    }
    // Its owner has taken it out, or changed it.
    let marks = lines.lines().filter(|line| line.starts_with('['));
    let is_there = marks.clone().any(|mark| text.lines().any(|line| line.trim_end() == mark));
    if is_there { Err(Unfit::Grown) } else { Ok(None) }
}

fn parsed(text: &str) -> Result<Table, Unfit> {
    let malformed = |error: ::toml::de::Error| {
        let line =
            error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let at = line.map(|line| format!(" in line {line}")).unwrap_or_default();
        Unfit::Malformed(format!("{}{at}", error.message()))
    };
    text.parse::<Table>().map_err(malformed)
}

/// Adds tables, and elements to arrays of tables.
fn merge(into: &mut Table, from: &Table) -> Result<(), Unfit> {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (None, value) => {
                into.insert(key.clone(), value.clone());
            }
            (Some(Value::Table(old)), Value::Table(new)) if new.values().all(is_container) => {
                merge(old, new).map_err(|unfit| within(key, unfit))?;
            }
            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new.iter().cloned()),
            (Some(_), _) => return Err(Unfit::Taken(key.clone())),
        }
    }
    Ok(())
}

fn within(key: &str, unfit: Unfit) -> Unfit {
    match unfit {
        Unfit::Taken(below) => Unfit::Taken(format!("{key}.{below}")),
        unfit @ (Unfit::Malformed(_) | Unfit::Closed | Unfit::Grown) => unfit,
    }
}

fn is_container(value: &Value) -> bool {
    value.is_table() || value.is_array()
}

/// Takes tables and elements out, and containers that are empty then.
fn remove(from: &mut Table, what: &Table) {
    for (key, value) in what {
        let is_done = match (from.get_mut(key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if new.values().all(is_container) => {
                remove(old, new);
                old.is_empty()
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                for element in new {
                    if let Some(at) = old.iter().rposition(|other| other == element) {
                        old.remove(at);
                    }
                }
                old.is_empty()
            }
            (Some(old), new) => old == new,
            (None, _) => false,
        };
        if is_done {
            from.remove(key);
        }
    }
}

/// Whether two tables say the same, but for tables without anything in them: whether such a one was there before is not known.
fn same(a: &Table, b: &Table) -> bool {
    fn bare(table: &Table) -> Table {
        let is_empty = |value: &Value| match value.as_table() {
            Some(table) => bare(table).is_empty(),
            None => value.as_array().is_some_and(Vec::is_empty),
        };
        let kept = table.iter().filter(|(_, value)| !is_empty(value)).map(|(key, value)| {
            let value = value.as_table().map_or_else(|| value.clone(), |it| bare(it).into());
            (key.clone(), value)
        });
        kept.collect()
    }
    bare(a) == bare(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "[mcp_servers.mesh]\ncommand = \"clawmesh\"\nargs = [\"mcp\"]\n\n[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"clawmesh inbox --hook\" }]\n";

    /// Texts as people and programs write them.
    const SHAPES: [&str; 11] = [
        "",
        "\n",
        "# mine",
        "a = 1",
        "a = 1\n# end\n\n\n",
        "a = 1\r\n[b]\r\nc = 2\r\n",
        "[mcp_servers]\n",
        "[mcp_servers.x]\ncommand = \"y\" # z",
        "[[hooks.Stop]]\nhooks = []\n[hooks.state]\n",
        "text = \"\"\"\n[mcp_servers.mesh]\n\"\"\"\n",
        "\tb.c = 'x'\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n",
    ];

    #[test]
    fn what_is_put_in_is_taken_out_to_the_byte() {
        for shape in SHAPES {
            let (text, insertion) = put(shape, TABLES).unwrap();
            assert!(text.starts_with(shape) && has(&text, TABLES), "{text}");
            assert!(
                matches!(put(&text, TABLES), Err(Unfit::Taken(at)) if at == "mcp_servers.mesh")
            );
            assert_eq!(take(&text, &insertion).unwrap().as_deref(), Some(shape), "{text}");
            // Its owner and the host write before it and behind it.
            let more = format!("first = 1\n{text}\n[projects.\"/q\"]\ntrust_level = \"trusted\"\n");
            let left = take(&more, &insertion).unwrap().unwrap();
            let table: Table = left.parse().unwrap();
            assert!(!left.contains("clawmesh") && table.contains_key("first"), "{left}");
            assert!(table["projects"].get("/q").is_some(), "{left}");
            assert!(left.starts_with(&format!("first = 1\n{}", shape.trim_end())), "{left}");
        }
    }

    #[test]
    fn nothing_is_put_over_anything_or_into_a_broken_text() {
        for (text, part) in [
            ("a = ", "malformed: "),
            ("a = 1\nb = \"x\n", "in line 2"),
            ("[mcp_servers.mesh]\ncommand = \"other\"\n", "another mcp_servers.mesh"),
            ("mcp_servers.mesh.command = \"other\"\n", "another mcp_servers.mesh"),
            ("mcp_servers = {}\n", "cannot be put at its end"),
            ("mcp_servers = 3\n", "another mcp_servers"),
        ] {
            let unfit = put(text, TABLES).unwrap_err().to_string();
            assert!(unfit.contains(part), "{text}: {unfit}");
        }
        let (text, insertion) = put("a = 1\n", TABLES).unwrap();
        assert_eq!(take("a = 1\n", &insertion).unwrap(), None);
        let edited = text.replace("[\"mcp\"]", "[\"mcp\", \"--name\"]");
        assert!(matches!(take(&edited, &insertion), Err(Unfit::Grown)));
        let grown = format!("{text}mine = 2\n");
        assert!(matches!(take(&grown, &insertion), Err(Unfit::Grown)));
    }
}
