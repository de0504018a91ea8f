//! For the time being: what `bindery-verdict` and `bindery-storage` will say.
#![allow(missing_docs)]

use bindery_volumes::{ClaimKey, Name};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Nothing,
    Unknown,
    Elsewhere,
    Never,
    NotOurs,
    Untried,
    InUse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub error: String,
    pub after: After,
}

pub type Term = Vec<(Name, Name)>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accessibility {
    pub requisite: Vec<Term>,
    pub preferred: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub claim: ClaimKey,
    pub uid: Name,
    pub class: Name,
    pub volume: Name,
    pub node: Option<Name>,
    pub topology: Result<Option<Accessibility>, Failure>,
    pub is_repeated: bool,
}

#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub order: &'a Order,
    pub claim: &'a Value,
    pub class: &'a Value,
}

pub trait Storage: Send + Sync + 'static {
    fn prepare<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Result<Value, Failure>>;
    fn create<'a>(&'a self, ask: Ask<'a>, prepared: &'a Value) -> BoxFuture<'a, Result<Value, Failure>>;
    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>>;
}
