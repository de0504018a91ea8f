//! Notices: events to publish about an object.

use bindery_volumes::event::{EventType, Reason};
use bindery_volumes::{Claim, Kind, Meta, ObjectKey, Volume};

/// An event to publish. The engine keeps back one that says nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The object that it is about.
    pub about: ObjectKey,
    /// Which object of that name, in which state.
    pub meta: Meta,
    /// How grave it is.
    pub event_type: EventType,
    /// Why.
    pub reason: Reason,
    /// In words.
    pub message: String,
}

impl Notice {
    /// A notice about a claim.
    pub fn claim(claim: &Claim, event_type: EventType, reason: Reason, message: impl Into<String>) -> Notice {
        Notice { about: claim.key().into(), meta: claim.meta.clone(), event_type, reason, message: message.into() }
    }

    /// A notice about a volume.
    pub fn volume(volume: &Volume, event_type: EventType, reason: Reason, message: impl Into<String>) -> Notice {
        let about = ObjectKey { kind: Kind::Volume, namespace: Default::default(), name: volume.name().clone() };
        Notice { about, meta: volume.meta.clone(), event_type, reason, message: message.into() }
    }
}
