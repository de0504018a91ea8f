//! The table of nodes and claims as text.

use crate::{Matrix, Row};

/// A wider cell does not widen its column: it shifts the rest of its own row.
const WIDTH_MAX: usize = 48;

/// The lines of the table, with aligned columns.
pub(crate) fn lines(matrix: &Matrix) -> Vec<String> {
    let mut table = vec![header(matrix)];
    table.extend(matrix.rows.iter().map(|row| cells(matrix, row)));
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count().min(WIDTH_MAX)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = table.iter().map(line).collect();
    if matrix.hidden > 0 {
        let nodes = if matrix.hidden == 1 { "other node" } else { "other nodes" };
        lines.push(format!("and {} {nodes}", grouped(matrix.hidden)));
    }
    lines
}

fn header(matrix: &Matrix) -> Vec<String> {
    let claims = matrix.claims.iter().map(|claim| format!("claim {claim}"));
    ["node".to_owned()].into_iter().chain(claims).chain(["other checks".to_owned()]).collect()
}

fn cells(matrix: &Matrix, row: &Row) -> Vec<String> {
    let node = match row.similar_nodes {
        0 => row.node.clone(),
        1 => format!("{} and 1 similar node", row.node),
        others => format!("{} and {} similar nodes", row.node, grouped(others)),
    };
    // A node that could not be evaluated has no claim cells.
    let unknown = matrix.claims.len().saturating_sub(row.claims.len());
    let claims = row.claims.iter().map(|cell| cell.text.clone()).chain(std::iter::repeat_n("?".to_owned(), unknown));
    let rest = if row.other_reasons.is_empty() { "fits".to_owned() } else { row.other_reasons.join("; ") };
    [node].into_iter().chain(claims).chain([rest]).collect()
}

/// A number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
