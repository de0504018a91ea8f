//! x
use crate::case::Case;
pub fn cases() -> Vec<Case> {
    vec![]
}
