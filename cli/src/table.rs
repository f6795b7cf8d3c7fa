//! Tables that fit the terminal, and are as wide as they need where nobody looks.

use comfy_table::{ContentArrangement, Table, presets::NOTHING};

use crate::format::name;
use crate::output::Output;

/// Lines of a table without frames. Cells are of others: each is on one line, and steers nothing.
pub fn lines(output: &Output, heads: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(heads.iter().map(|head| head.to_uppercase()));
    if let Some(columns) = output.columns() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| name(cell)));
    }
    // A frame of nothing leaves a blank at either side.
    table
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_one_line_where_nobody_looks() {
        let long = "x".repeat(300);
        let rows = vec![vec!["a\nb".to_owned(), long.clone()], vec!["c".to_owned(), String::new()]];
        let lines = lines(&Output::new(false), &["one", "two"], rows);
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["ONE", "TWO"]);
        assert_eq!(lines[1], format!("a\\nb  {long}"));
        assert_eq!((lines.len(), lines[2].as_str()), (3, "c"));
    }
}
