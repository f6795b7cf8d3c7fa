//! Tables that fit the terminal, and are as wide as they need where nobody looks.

use comfy_table::{ContentArrangement, Table, presets::NOTHING};

use crate::format::name;
use crate::output::Output;

/// Lines of a table without frames. Cells are of others: each is on one line, and steers nothing.
pub fn lines(output: &Output, heads: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let (heads, rows) = match output.columns() {
        Some(columns) => fit(heads, rows, usize::from(columns)),
        None => (heads.to_vec(), rows),
    };
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

/// Blanks between two columns.
const GAP: usize = 2;

/// Without the last columns, as long as those that are left need more width than there is although their texts are broken at
/// blanks: a word that goes on in the next line, such as half an id, is of use to nobody. The first column stays.
fn fit<'a>(
    heads: &[&'a str],
    mut rows: Vec<Vec<String>>,
    columns: usize,
) -> (Vec<&'a str>, Vec<Vec<String>>) {
    let longest = |text: &str| text.split_whitespace().map(|word| word.chars().count()).max();
    let need = |at: usize| {
        let cells =
            rows.iter().filter_map(|row| row.get(at)).filter_map(|cell| longest(&name(cell)));
        cells.max().unwrap_or_default().max(heads[at].chars().count())
    };
    let mut left = columns;
    let kept = (0..heads.len()).take_while(|at| {
        let need = need(*at) + if *at == 0 { 0 } else { GAP };
        let fits = need <= left;
        left = left.saturating_sub(need);
        fits || *at == 0
    });
    let kept = kept.count();
    rows.iter_mut().for_each(|row| row.truncate(kept));
    (heads[..kept.min(heads.len())].to_vec(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_as_whole_columns() {
        let id = "a3bb189e-8bf9-4c4a-9b3e-0f2f3c1d4e5f";
        let row =
            ["war-room", id, "public", "3", "where we talk of it, at length"].map(String::from);
        let heads = ["name", "id", "access", "members", "description"];
        let kept = |columns| fit(&heads, vec![row.to_vec()], columns);
        assert_eq!(kept(200).0, heads);
        assert_eq!(kept(60).0, heads[..3]);
        let (heads_kept, rows) = kept(50);
        assert_eq!((heads_kept, &rows[0][..]), (heads[..2].to_vec(), &row[..2]));
        assert_eq!(kept(10).0, ["name"]);
        assert_eq!(kept(1).0, ["name"], "something stays");
    }

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
