//! The annotations that rules read or write. All others are skipped when an object is decoded, and
//! our patches leave them unchanged.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::Name;

macro_rules! annotations {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// An annotation that rules know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Annotation { $($(#[$doc])* $name,)* }

        impl Annotation {
            /// Every annotation that rules know.
            pub const ALL: &'static [Annotation] = &[$(Annotation::$name,)*];

            /// The key on the object.
            pub fn key(self) -> &'static str {
                match self { $(Annotation::$name => $key,)* }
            }

            /// The annotation of that key, if rules know it.
            pub fn parse(key: &str) -> Option<Annotation> {
                match key { $($key => Some(Annotation::$name),)* _ => None }
            }
        }
    };
}

annotations! {
    /// On a claim: it has been bound. The value is ignored.
    BindCompleted = "pv.kubernetes.io/bind-completed",
    /// On a claim or a volume: a controller, not a user, set the reference to the other.
    BoundByController = "pv.kubernetes.io/bound-by-controller",
    /// On a claim: the node that the scheduler selected; a volume is to be provisioned for it.
    SelectedNode = "volume.kubernetes.io/selected-node",
    /// On a claim: the alpha key of the former. Schedulers no longer write it.
    AlphaSelectedNode = "volume.alpha.kubernetes.io/selected-node",
    /// On a claim: the provisioner that is to provision its volume.
    StorageProvisioner = "volume.kubernetes.io/storage-provisioner",
    /// On a claim: the beta key of the former, always written with it.
    BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner",
    /// On a claim: what earlier versions of our provisioner recorded before a call. It is not used.
    Provisioning = "bindery.dev/provisioning",
    /// On a volume: the UID of the recycler pod that may scrub it. While it is present, no claim
    /// gets the volume.
    Scrubbing = "bindery.dev/scrubbing",
    /// On a volume: the provisioner that created it.
    ProvisionedBy = "pv.kubernetes.io/provisioned-by",
    /// On a claim or a volume: the CSI driver that its in-tree plugin was migrated to.
    MigratedTo = "pv.kubernetes.io/migrated-to",
    /// On a CSINode: the in-tree plugins that are migrated to CSI on that node.
    MigratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins",
    /// On a claim or a volume: its class, as a beta annotation. If present, it takes precedence
    /// over the field, even when empty.
    BetaStorageClass = "volume.beta.kubernetes.io/storage-class",
    /// On a volume: the capacity of its claim before a resize.
    PreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity",
    /// On a claim: the resizer that expands its volume.
    StorageResizer = "volume.kubernetes.io/storage-resizer",
    /// On a class: it is the default class if the value is "true".
    IsDefaultClass = "storageclass.kubernetes.io/is-default-class",
    /// On a class: the beta key of the former.
    BetaIsDefaultClass = "storageclass.beta.kubernetes.io/is-default-class",
    /// On a volume of a local disk: owner, group and mode of its root directory when it was
    /// discovered, such as `0:0:755`. They are restored after the disk was cleaned.
    RootDirectory = "bindery.dev/root-directory",
    /// On a volume: set by the host-path provisioner.
    CreatedBy = "kubernetes.io/createdby",
}

impl Annotation {
    /// The value of annotations that are tested for presence only.
    pub const YES: Name = Name::new_static("yes");
}

/// The known annotations of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations(Vec<(Annotation, Name)>);

impl Annotations {
    /// Whether the key is present, with any value.
    pub fn has(&self, annotation: Annotation) -> bool {
        self.get(annotation).is_some()
    }

    /// The value, if the key is present.
    pub fn get(&self, annotation: Annotation) -> Option<&Name> {
        self.0.iter().find(|(known, _)| *known == annotation).map(|(_, value)| value)
    }

    /// Sets the key to a value.
    pub fn set(&mut self, annotation: Annotation, value: Name) {
        self.remove(annotation);
        let at = self.0.partition_point(|(known, _)| *known < annotation);
        self.0.reserve_exact(1);
        self.0.insert(at, (annotation, value));
    }

    /// Removes the key.
    pub fn remove(&mut self, annotation: Annotation) {
        self.0.retain(|(known, _)| *known != annotation);
    }

    /// All known annotations, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Annotation, &Name)> {
        self.0.iter().map(|(annotation, value)| (*annotation, value))
    }
}

/// A key that may be a known annotation.
struct MaybeKnown(Option<Annotation>);

impl<'de> Deserialize<'de> for MaybeKnown {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Key;
        impl Visitor<'_> for Key {
            type Value = MaybeKnown;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an annotation key")
            }
            fn visit_str<E>(self, key: &str) -> Result<MaybeKnown, E> {
                Ok(MaybeKnown(Annotation::parse(key)))
            }
        }
        from.deserialize_str(Key)
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Annotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of annotations")
            }
            fn visit_unit<E>(self) -> Result<Annotations, E> {
                Ok(Annotations::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut known = Annotations::default();
                while let Some(MaybeKnown(key)) = map.next_key()? {
                    match key {
                        Some(annotation) => known.set(annotation, map.next_value()?),
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(known)
            }
        }
        from.deserialize_any(Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_parses_to_its_annotation() {
        for &annotation in Annotation::ALL {
            assert_eq!(Annotation::parse(annotation.key()), Some(annotation));
        }
    }

    #[test]
    fn unknown_keys_are_skipped_and_order_is_ignored() {
        let read = |json: &str| serde_json::from_str::<Annotations>(json).expect("annotations");
        let a = read(r#"{"x":"1","pv.kubernetes.io/migrated-to":"d","pv.kubernetes.io/bind-completed":""}"#);
        let b = read(r#"{"pv.kubernetes.io/bind-completed":"","pv.kubernetes.io/migrated-to":"d"}"#);
        assert_eq!(a, b);
        assert!(a.has(Annotation::BindCompleted));
        assert_eq!(read("null"), Annotations::default());
    }
}
