//! Provisioning records: what a provisioner writes down before it calls its storage.
//!
//! No API server serves this kind. The runtime keeps records in ConfigMaps of the provisioner's
//! namespace, many in each of them, and rules see one object per claim.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::{ClaimKey, FieldError, Meta, Name};

/// A record that storage may exist for a claim. Its name is the claim's UID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Its identity and version.
    pub meta: Meta,
    /// The claim, which may have been deleted since.
    pub claim: ClaimKey,
    /// The latest attempt to create the storage.
    pub attempt: Attempt,
    /// Whether the outcome of an earlier attempt is unknown.
    pub outcome_unknown: bool,
    /// The request to the storage. It is repeated without changes until its outcome is known.
    pub request: Arc<Value>,
    /// Whether it is being removed.
    pub deleting: bool,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

/// A fencing token: the instance that wrote the record last, and how often it was written. Every
/// instance writes an attempt of its own before it calls the storage, so that no delayed write for
/// an earlier attempt is accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// The instance of the provisioner.
    pub instance: Name,
    /// The number of the attempt, starting at 1.
    pub number: u64,
}

impl Record {
    /// Decodes a record. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Record, FieldError> {
        decode(json)
    }

    /// The record as it is stored, without its metadata.
    pub fn content(&self) -> Value {
        json!({
            "claim": {"namespace": self.claim.namespace.as_str(), "name": self.claim.name.as_str()},
            "attempt": self.attempt,
            "outcomeUnknown": self.outcome_unknown,
            "request": *self.request,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    claim: WireClaim,
    attempt: Attempt,
    outcome_unknown: bool,
    request: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireClaim {
    namespace: Name,
    name: Name,
}

impl FromWire for Record {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Record {
        Record {
            meta: wire.metadata.meta(&mut errors),
            claim: ClaimKey { namespace: wire.claim.namespace, name: wire.claim.name },
            attempt: wire.attempt,
            outcome_unknown: wire.outcome_unknown,
            request: Arc::new(wire.request),
            deleting: wire.metadata.is_deleting(),
            field_error: errors.into_error(),
        }
    }
}
