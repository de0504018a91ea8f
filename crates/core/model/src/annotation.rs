//! The annotations that rules read or write. All others are skipped when an object is decoded, and survive our patches.

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
    /// On a claim: it has been bound. The value is never looked at.
    BindCompleted = "pv.kubernetes.io/bind-completed",
    /// On a claim or a volume: the pointer to the other was put there by a controller, not by a user.
    BoundByController = "pv.kubernetes.io/bound-by-controller",
    /// On a claim: the scheduler has chosen this node, and asks for a volume there.
    SelectedNode = "volume.kubernetes.io/selected-node",
    /// On a claim: the older twin of the former. Schedulers do not write it any more.
    AlphaSelectedNode = "volume.alpha.kubernetes.io/selected-node",
    /// On a claim: who is asked to provision a volume for it.
    StorageProvisioner = "volume.kubernetes.io/storage-provisioner",
    /// On a claim: the older twin of the former, always written with it.
    BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner",
    /// On a claim: a provisioner of ours is about to ask for storage for it, or has asked. It says what for, so that it asks for
    /// the same again, and is taken off once it is certain what became of it.
    Provisioning = "bindery.dev/provisioning",
    /// On a volume: who provisioned it.
    ProvisionedBy = "pv.kubernetes.io/provisioned-by",
    /// On a claim or a volume: the CSI driver that has taken over from an in-tree plugin.
    MigratedTo = "pv.kubernetes.io/migrated-to",
    /// On what CSI drivers can do on a node: the in-tree plugins whose work they have taken over there.
    MigratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins",
    /// On a claim or a volume: its class, in the older form. Where the key is present it wins, even when empty.
    BetaStorageClass = "volume.beta.kubernetes.io/storage-class",
    /// On a volume: the capacity that its claim was promised before a resize.
    PreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity",
    /// On a claim: who makes its volume grow.
    StorageResizer = "volume.kubernetes.io/storage-resizer",
    /// On a class: it is the default one, when "true".
    IsDefaultClass = "storageclass.kubernetes.io/is-default-class",
    /// On a class: the older twin of the former.
    BetaIsDefaultClass = "storageclass.beta.kubernetes.io/is-default-class",
    /// On a volume: set by the host-path provisioner on what it makes.
    CreatedBy = "kubernetes.io/createdby",
}

impl Annotation {
    /// The value of annotations whose presence alone counts.
    pub const YES: Name = Name::new_static("yes");
}

/// The known annotations of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations(Vec<(Annotation, Name)>);

impl Annotations {
    /// Whether the key is present, with whatever value.
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
        let place = self.0.partition_point(|(known, _)| *known < annotation);
        self.0.reserve_exact(1);
        self.0.insert(place, (annotation, value));
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

/// A key that may be a known one; what it is called otherwise is not kept.
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
    fn keys_and_annotations_name_each_other() {
        for &annotation in Annotation::ALL {
            assert_eq!(Annotation::parse(annotation.key()), Some(annotation));
        }
    }

    #[test]
    fn unknown_keys_are_skipped_and_order_does_not_count() {
        let read = |json: &str| serde_json::from_str::<Annotations>(json).expect("annotations");
        let a = read(r#"{"x":"1","pv.kubernetes.io/migrated-to":"d","pv.kubernetes.io/bind-completed":""}"#);
        let b = read(r#"{"pv.kubernetes.io/bind-completed":"","pv.kubernetes.io/migrated-to":"d"}"#);
        assert_eq!(a, b);
        assert!(a.has(Annotation::BindCompleted));
        assert_eq!(read("null"), Annotations::default());
    }
}
