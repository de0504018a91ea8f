//! Objects of any kind, and the table of kinds.

use std::fmt;
use std::sync::Arc;

use crate::{
    Attachment, AttributesClass, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, FieldError, Meta, Name, Node,
    Pod, PodKey, Record, Volume,
};

/// The table of kinds: calls a macro with one row for each. A row is the name of the Rust type,
/// which is also the variant of [`Kind`] and [`Object`]; then the kind's name in the API, the root
/// of its API group, its plural name, and its scope.
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            Claim, "PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", Namespaced;
            Volume, "PersistentVolume", "/api/v1", "persistentvolumes", Cluster;
            Class, "StorageClass", "/apis/storage.k8s.io/v1", "storageclasses", Cluster;
            AttributesClass, "VolumeAttributesClass", "/apis/storage.k8s.io/v1", "volumeattributesclasses", Cluster;
            Pod, "Pod", "/api/v1", "pods", Namespaced;
            Node, "Node", "/api/v1", "nodes", Cluster;
            CsiNode, "CSINode", "/apis/storage.k8s.io/v1", "csinodes", Cluster;
            CsiDriver, "CSIDriver", "/apis/storage.k8s.io/v1", "csidrivers", Cluster;
            Capacity, "CSIStorageCapacity", "/apis/storage.k8s.io/v1", "csistoragecapacities", Namespaced;
            Attachment, "VolumeAttachment", "/apis/storage.k8s.io/v1", "volumeattachments", Cluster;
            Record, "ProvisioningRecord", "/apis/bindery.dev/v1", "provisioningrecords", Cluster;
        }
    };
}

/// Whether objects of a kind belong to a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
}

/// A type of object, for [`Object::get`].
pub trait ObjectType: Sized {
    /// The object, if it is of this type.
    fn from_object(object: &Object) -> Option<&Arc<Self>>;
}

macro_rules! define_kinds {
    ($($kind:ident, $name:literal, $root:literal, $plural:literal, $scope:ident;)+) => {
        /// The kinds of objects that rules read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = concat!($name, ".")] $kind,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: [Kind; { [$(Kind::$kind),+].len() }] = [$(Kind::$kind),+];

            /// The kind's name in the API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)+
                }
            }

            /// The path of its collection over all namespaces.
            pub fn path(self) -> &'static str {
                match self {
                    $(Kind::$kind => concat!($root, "/", $plural),)+
                }
            }

            fn root_and_plural(self) -> (&'static str, &'static str) {
                match self {
                    $(Kind::$kind => ($root, $plural),)+
                }
            }

            /// Whether its objects belong to a namespace.
            pub fn is_namespaced(self) -> bool {
                let scope = match self {
                    $(Kind::$kind => Scope::$scope,)+
                };
                scope == Scope::Namespaced
            }
        }

        /// An object of any kind, cheap to clone.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Object {
            $(#[doc = concat!("A ", $name, ".")] $kind(Arc<$kind>),)+
        }

        impl Object {
            /// Decodes an object of a kind. Fails only when it has no name.
            pub fn from_json(kind: Kind, json: &[u8]) -> Result<Object, FieldError> {
                Ok(match kind {
                    $(Kind::$kind => Object::$kind(Arc::new($kind::from_json(json)?)),)+
                })
            }

            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$kind(_) => Kind::$kind,)+
                }
            }

            /// Its identity and version.
            pub fn meta(&self) -> &Meta {
                match self {
                    $(Object::$kind(object) => &object.meta,)+
                }
            }

            /// The first field that could not be parsed, if there is one.
            pub fn field_error(&self) -> Option<&FieldError> {
                match self {
                    $(Object::$kind(object) => object.field_error.as_deref(),)+
                }
            }
        }

        $(impl ObjectType for $kind {
            fn from_object(object: &Object) -> Option<&Arc<$kind>> {
                if let Object::$kind(object) = object { Some(object) } else { None }
            }
        })+
    };
}
for_each_kind!(define_kinds);

impl Kind {
    /// The kind with that name in the API.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether the API server serves it. Provisioning records are stored in ConfigMaps.
    pub fn is_served(self) -> bool {
        self != Kind::Record
    }

    /// The `apiVersion` of its objects.
    pub fn api_version(self) -> &'static str {
        let (root, _) = self.root_and_plural();
        root.trim_start_matches("/apis/").trim_start_matches("/api/")
    }

    /// The path of its collection in a namespace; over all namespaces when the name is empty.
    pub fn path_in(self, namespace: &str) -> String {
        let (root, plural) = self.root_and_plural();
        match namespace {
            "" => self.path().to_owned(),
            _ => format!("{root}/namespaces/{namespace}/{plural}"),
        }
    }
}

/// The identity of an object of any kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl ObjectKey {
    /// The key of a cluster-scoped object.
    pub fn cluster(kind: Kind, name: impl Into<Name>) -> ObjectKey {
        ObjectKey { kind, namespace: Name::default(), name: name.into() }
    }

    /// The key of a volume.
    pub fn volume(name: impl Into<Name>) -> ObjectKey {
        ObjectKey::cluster(Kind::Volume, name)
    }

    /// The key of the provisioning record for the claim with this UID.
    pub fn record(claim_uid: impl Into<Name>) -> ObjectKey {
        ObjectKey::cluster(Kind::Record, claim_uid)
    }

    /// The path of the collection that the object is in.
    pub fn collection_path(&self) -> String {
        self.kind.path_in(&self.namespace)
    }

    /// The key of the claim with this namespace and name.
    pub fn claim_key(&self) -> ClaimKey {
        ClaimKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The key of the pod with this namespace and name.
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

impl Object {
    /// The object as a type, if it is of that type.
    pub fn get<T: ObjectType>(&self) -> Option<&Arc<T>> {
        T::from_object(self)
    }

    /// Its key.
    pub fn key(&self) -> ObjectKey {
        let meta = self.meta();
        ObjectKey { kind: self.kind(), namespace: meta.namespace.clone(), name: meta.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_versions_follow_from_the_table() {
        assert_eq!(Kind::Volume.path_in(""), "/api/v1/persistentvolumes");
        assert_eq!(Kind::Claim.path_in("ns"), "/api/v1/namespaces/ns/persistentvolumeclaims");
        assert_eq!(Kind::Class.path(), "/apis/storage.k8s.io/v1/storageclasses");
        assert_eq!((Kind::Pod.api_version(), Kind::Class.api_version()), ("v1", "storage.k8s.io/v1"));
        assert!(Kind::Capacity.is_namespaced() && !Kind::Attachment.is_namespaced());
        assert_eq!(Kind::parse("CSINode"), Some(Kind::CsiNode));
    }
}
