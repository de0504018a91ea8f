//! Notices: events to publish about an object.

use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, Kind, Meta, ObjectKey, Pod, Volume};

/// An event to publish. The engine keeps back one that says nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
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
    /// Who says so. The engine fills it in: the component of the rule set.
    pub component: &'static str,
    /// In how long it is tried again, where that is certain. The engine fills it in.
    pub again_in: Option<Duration>,
    /// What it says is missing. The engine reads that live before it tells anybody.
    pub missing: Option<ObjectKey>,
}

impl Event {
    /// The annotation of an event that says when what failed is tried again.
    pub const NEXT_TRY: &str = "bindery.dev/next-try";

    /// A notice about a claim.
    pub fn claim(claim: &Claim, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(claim.key().into(), &claim.meta, event_type, reason, message)
    }

    /// A notice about a volume.
    pub fn volume(volume: &Volume, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(ObjectKey::cluster(Kind::Volume, volume.name().clone()), &volume.meta, event_type, reason, message)
    }

    /// A notice about a pod.
    pub fn pod(pod: &Pod, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(pod.key().into(), &pod.meta, event_type, reason, message)
    }

    /// The same, which says that an object is missing. Word of that object may only be late, so it is looked for once more before
    /// this is told.
    #[must_use]
    pub fn missing(mut self, object: ObjectKey) -> Event {
        self.missing = Some(object);
        self
    }

    fn new(about: ObjectKey, meta: &Meta, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event {
            about,
            meta: meta.clone(),
            event_type,
            reason,
            message: message.into(),
            component: "",
            again_in: None,
            missing: None,
        }
    }
}
