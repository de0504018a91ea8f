//! The API as values: requests, answers, and what answers them.

mod request;
mod watch;

pub use request::{Answer, Body, Done, Format, List, Moment, Options, PatchType, Request, Target, Verb};
pub use watch::{Watch, WatchEvent, WatchEventType};

use crate::status::Status;
use crate::store::{Change, Record, Store};
use jiff::Timestamp;
use std::sync::Arc;

/// All objects, and everything that may be done with them.
#[derive(Debug)]
pub struct Api {
    store: Store,
}

/// How an [`Api`] is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether commits are to be handed out by [`Api::take_records`]; without it none are kept.
    pub journal: bool,
    /// How many seconds of history are kept for watches and paged lists, while there is room.
    pub history_seconds: u32,
    /// How many changes of one kind are kept at most.
    pub history_changes: usize,
    /// How many bytes of replaced objects history may hold on to.
    pub history_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { journal: false, history_seconds: 300, history_changes: 100_000, history_bytes: 64 << 20 }
    }
}
