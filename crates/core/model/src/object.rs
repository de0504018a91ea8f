//! Any object: what watches deliver, answers carry and queues name.

use std::fmt;
use std::sync::Arc;

use crate::{
    Attachment, AttributesClass, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, FieldError, Meta, Name, Node,
    Pod, PodKey, Volume,
};

/// The kinds of objects that rules know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// PersistentVolumeClaim.
    Claim,
    /// PersistentVolume.
    Volume,
    /// StorageClass.
    Class,
    /// VolumeAttributesClass.
    AttributesClass,
    /// Pod.
    Pod,
    /// Node.
    Node,
    /// CSINode.
    CsiNode,
    /// CSIDriver.
    CsiDriver,
    /// CSIStorageCapacity.
    Capacity,
    /// VolumeAttachment.
    Attachment,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Claim,
        Kind::Volume,
        Kind::Class,
        Kind::AttributesClass,
        Kind::Pod,
        Kind::Node,
        Kind::CsiNode,
        Kind::CsiDriver,
        Kind::Capacity,
        Kind::Attachment,
    ];

    /// The kind's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Claim => "PersistentVolumeClaim",
            Kind::Volume => "PersistentVolume",
            Kind::Class => "StorageClass",
            Kind::AttributesClass => "VolumeAttributesClass",
            Kind::Pod => "Pod",
            Kind::Node => "Node",
            Kind::CsiNode => "CSINode",
            Kind::CsiDriver => "CSIDriver",
            Kind::Capacity => "CSIStorageCapacity",
            Kind::Attachment => "VolumeAttachment",
        }
    }

    /// The kind of that name in the API.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Which object: its kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for objects that have none.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl ObjectKey {
    /// The key of an object that has no namespace.
    pub fn cluster(kind: Kind, name: impl Into<Name>) -> ObjectKey {
        ObjectKey { kind, namespace: Name::default(), name: name.into() }
    }

    /// The key of a volume.
    pub fn volume(name: impl Into<Name>) -> ObjectKey {
        ObjectKey::cluster(Kind::Volume, name)
    }

    /// The claim's key, if it is a claim's.
    pub fn claim_key(&self) -> ClaimKey {
        ClaimKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The pod's key, if it is a pod's.
    pub fn pod_key(&self) -> PodKey {
        PodKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl From<ClaimKey> for ObjectKey {
    fn from(key: ClaimKey) -> ObjectKey {
        ObjectKey { kind: Kind::Claim, namespace: key.namespace, name: key.name }
    }
}

impl From<PodKey> for ObjectKey {
    fn from(key: PodKey) -> ObjectKey {
        ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_str();
        if self.namespace.is_empty() {
            write!(f, "{kind} {}", self.name)
        } else {
            write!(f, "{kind} {}/{}", self.namespace, self.name)
        }
    }
}

/// An object of any kind, cheap to hand on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A claim.
    Claim(Arc<Claim>),
    /// A volume.
    Volume(Arc<Volume>),
    /// A class.
    Class(Arc<Class>),
    /// An attributes class.
    AttributesClass(Arc<AttributesClass>),
    /// A pod.
    Pod(Arc<Pod>),
    /// A node.
    Node(Arc<Node>),
    /// What CSI drivers can do on a node.
    CsiNode(Arc<CsiNode>),
    /// A CSI driver.
    CsiDriver(Arc<CsiDriver>),
    /// Room for new volumes.
    Capacity(Arc<Capacity>),
    /// An attachment.
    Attachment(Arc<Attachment>),
}

impl Object {
    /// Decodes an object of a kind. Fails only when it has no name.
    pub fn from_json(kind: Kind, json: &[u8]) -> Result<Object, FieldError> {
        Ok(match kind {
            Kind::Claim => Object::Claim(Arc::new(Claim::from_json(json)?)),
            Kind::Volume => Object::Volume(Arc::new(Volume::from_json(json)?)),
            Kind::Class => Object::Class(Arc::new(Class::from_json(json)?)),
            Kind::AttributesClass => Object::AttributesClass(Arc::new(AttributesClass::from_json(json)?)),
            Kind::Pod => Object::Pod(Arc::new(Pod::from_json(json)?)),
            Kind::Node => Object::Node(Arc::new(Node::from_json(json)?)),
            Kind::CsiNode => Object::CsiNode(Arc::new(CsiNode::from_json(json)?)),
            Kind::CsiDriver => Object::CsiDriver(Arc::new(CsiDriver::from_json(json)?)),
            Kind::Capacity => Object::Capacity(Arc::new(Capacity::from_json(json)?)),
            Kind::Attachment => Object::Attachment(Arc::new(Attachment::from_json(json)?)),
        })
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Claim(_) => Kind::Claim,
            Object::Volume(_) => Kind::Volume,
            Object::Class(_) => Kind::Class,
            Object::AttributesClass(_) => Kind::AttributesClass,
            Object::Pod(_) => Kind::Pod,
            Object::Node(_) => Kind::Node,
            Object::CsiNode(_) => Kind::CsiNode,
            Object::CsiDriver(_) => Kind::CsiDriver,
            Object::Capacity(_) => Kind::Capacity,
            Object::Attachment(_) => Kind::Attachment,
        }
    }

    /// Who it is.
    pub fn meta(&self) -> &Meta {
        match self {
            Object::Claim(object) => &object.meta,
            Object::Volume(object) => &object.meta,
            Object::Class(object) => &object.meta,
            Object::AttributesClass(object) => &object.meta,
            Object::Pod(object) => &object.meta,
            Object::Node(object) => &object.meta,
            Object::CsiNode(object) => &object.meta,
            Object::CsiDriver(object) => &object.meta,
            Object::Capacity(object) => &object.meta,
            Object::Attachment(object) => &object.meta,
        }
    }

    /// What could not be understood of it.
    pub fn flaw(&self) -> Option<&FieldError> {
        match self {
            Object::Claim(object) => object.flaw.as_deref(),
            Object::Volume(object) => object.flaw.as_deref(),
            Object::Class(object) => object.flaw.as_deref(),
            Object::AttributesClass(object) => object.flaw.as_deref(),
            Object::Pod(object) => object.flaw.as_deref(),
            Object::Node(object) => object.flaw.as_deref(),
            Object::CsiNode(object) => object.flaw.as_deref(),
            Object::CsiDriver(object) => object.flaw.as_deref(),
            Object::Capacity(object) => object.flaw.as_deref(),
            Object::Attachment(object) => object.flaw.as_deref(),
        }
    }

    /// Which object it is.
    pub fn key(&self) -> ObjectKey {
        let meta = self.meta();
        ObjectKey { kind: self.kind(), namespace: meta.namespace.clone(), name: meta.name.clone() }
    }
}
