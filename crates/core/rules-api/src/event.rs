//! Events to publish about an object.

use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, Kind, Meta, Node, ObjectKey, Pod, Volume};

/// A Kubernetes Event to publish. The engine suppresses one that repeats the last about its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The object that the event is about.
    pub about: ObjectKey,
    /// The object's UID and resourceVersion.
    pub meta: Meta,
    /// Normal or Warning.
    pub event_type: EventType,
    /// The reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
    /// The source component. The engine fills in the rule set's component.
    pub component: &'static str,
    /// The time until the next retry, if one is scheduled. The engine fills it in.
    pub retry_in: Option<Duration>,
    /// An object that the event reports as missing. The engine confirms that with a live read
    /// before it publishes the event.
    pub missing: Option<ObjectKey>,
}

impl Event {
    /// The annotation with the time of the next retry.
    pub const NEXT_TRY: &str = "bindery.dev/next-try";

    /// An event about a claim.
    pub fn claim(claim: &Claim, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(claim.key().into(), &claim.meta, event_type, reason, message)
    }

    /// An event about a volume.
    pub fn volume(volume: &Volume, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(ObjectKey::cluster(Kind::Volume, volume.name().clone()), &volume.meta, event_type, reason, message)
    }

    /// An event about a pod.
    pub fn pod(pod: &Pod, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(pod.key().into(), &pod.meta, event_type, reason, message)
    }

    /// An event about a node.
    pub fn node(node: &Node, event_type: EventType, reason: Reason, message: impl Into<String>) -> Event {
        Event::new(ObjectKey::cluster(Kind::Node, node.name().clone()), &node.meta, event_type, reason, message)
    }

    /// Marks an object as reported missing. The cache may lag behind, so the engine reads the
    /// object live before it publishes the event.
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
            retry_in: None,
            missing: None,
        }
    }
}
