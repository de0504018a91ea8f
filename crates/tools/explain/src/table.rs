//! The table of nodes and claims, as a person reads it.

use crate::{Matrix, Row};

/// Cells wider than this push what is to the right of them, in their own row only.
const WIDTH_MAX: usize = 48;

/// The lines of a table, its columns one below the other.
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
    ["node".to_owned()].into_iter().chain(claims).chain(["beside its claims".to_owned()]).collect()
}

fn cells(matrix: &Matrix, row: &Row) -> Vec<String> {
    let node = match row.others {
        0 => row.node.clone(),
        1 => format!("{} and 1 node like it", row.node),
        others => format!("{} and {} nodes like it", row.node, grouped(others)),
    };
    // A row of which nothing can be said has one cell.
    let unknown = matrix.claims.len().saturating_sub(row.claims.len());
    let claims = row.claims.iter().map(|cell| cell.text.clone()).chain(std::iter::repeat_n("?".to_owned(), unknown));
    let rest = if row.rest.is_empty() { "fits".to_owned() } else { row.rest.join("; ") };
    [node].into_iter().chain(claims).chain([rest]).collect()
}

/// A number with its thousands set apart.
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
