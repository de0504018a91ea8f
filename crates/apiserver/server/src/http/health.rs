//! Health endpoints: a server that responds is healthy.

use std::fmt::Write as _;

use super::query::Query;
use super::reply::{Reply, page_not_found, text};

const CHECKS: [&str; 2] = ["ping", "store"];

/// Responds to `/healthz`, `/livez` and `/readyz`, or to one of their checks.
pub fn answer(endpoint: &str, check: Option<&str>, query: &Query<'_>) -> Reply {
    match check {
        Some(check) if CHECKS.contains(&check) => text(200, "ok"),
        Some(_) => page_not_found(),
        None if query.get("verbose").is_some() => text(200, verbose(endpoint)),
        None => text(200, "ok"),
    }
}

fn verbose(endpoint: &str) -> String {
    let mut page = String::new();
    for check in CHECKS {
        let _ = writeln!(page, "[+]{check} ok");
    }
    let _ = writeln!(page, "{endpoint} check passed");
    page
}
