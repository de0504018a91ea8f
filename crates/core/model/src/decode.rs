//! Decoding what an API server sends: only the fields that rules read, and never a failure because of one of them.
//!
//! An object that has a name is always decoded. A field that cannot be understood becomes its [`FieldError`], and the rules leave the
//! object alone and say why.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::{AccessMode, AccessModes, Annotations, FieldError, Labels, Meta, Name, Quantity, finalizer};

/// The metadata of any object, as it is on the wire.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireMeta {
    name: Option<Name>,
    namespace: Option<Name>,
    uid: Option<Name>,
    resource_version: Option<Name>,
    pub annotations: Annotations,
    pub labels: WireLabels,
    finalizers: Option<Vec<Name>>,
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    owner_references: Option<Vec<WireOwner>>,
    pub creation_timestamp: Option<Name>,
}

impl WireMeta {
    pub fn meta(&self, flaws: &mut FieldErrors) -> Meta {
        let text = self.resource_version.as_deref().unwrap_or_default();
        let version = flaws.or_default("metadata.resourceVersion", text, || match text {
            "" => Ok(0),
            text => text.parse(),
        });
        if self.uid.as_ref().is_none_or(Name::is_empty) {
            flaws.add(FieldError::new("metadata.uid", "it is missing"));
        }
        Meta {
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
            uid: self.uid.clone().unwrap_or_default(),
            version,
        }
    }

    /// The finalizers; those that are on nearly every object share one string.
    pub fn finalizers(&mut self) -> Box<[Name]> {
        const COMMON: [&str; 5] = [
            finalizer::PV_PROTECTION,
            finalizer::PVC_PROTECTION,
            finalizer::PV_CONTROLLER,
            finalizer::EXTERNAL_PROVISIONER,
            finalizer::VAC_PROTECTION,
        ];
        let share = |name: Name| COMMON.into_iter().find(|c| *c == name).map_or(name, Name::new_static);
        self.finalizers.take().unwrap_or_default().into_iter().map(share).collect()
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// How long whoever is being deleted still has, in seconds.
    pub fn grace_seconds(&self) -> Option<i64> {
        self.deletion_grace_period_seconds
    }

    /// The UID of whoever controls it: the first owner that says so.
    pub fn controller(&mut self) -> Option<Name> {
        let owners = self.owner_references.take().unwrap_or_default();
        owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct WireOwner {
    uid: Name,
    controller: Option<bool>,
}

/// Collects what is wrong with an object; the first flaw is the one that is told.
#[derive(Default)]
pub(crate) struct FieldErrors(Option<Box<FieldError>>);

impl FieldErrors {
    pub fn add(&mut self, flaw: FieldError) {
        self.0.get_or_insert_with(|| Box::new(flaw));
    }

    /// What `parse` makes of a text; a flaw and the default when it fails.
    pub fn or_default<T: Default, E: fmt::Display>(
        &mut self,
        field: &str,
        text: &str,
        parse: impl FnOnce() -> Result<T, E>,
    ) -> T {
        parse().unwrap_or_else(|error| {
            self.add(FieldError::quoting(field, text, error));
            T::default()
        })
    }

    /// An amount, if there is one.
    pub fn quantity(&mut self, field: &str, wire: Option<WireQuantity>) -> Option<Quantity> {
        let text = wire?.0;
        self.or_default(field, &text, || text.parse().map(Some))
    }

    /// Access modes in their order.
    pub fn access_modes(&mut self, field: &str, names: &[Name]) -> AccessModes {
        let mut modes = AccessModes::default();
        for name in names {
            match AccessMode::parse(name) {
                Some(mode) if modes.push(mode) => {}
                Some(_) => self.add(FieldError::new(field, "it lists more than 16 access modes")),
                None => self.add(FieldError::quoting(field, name, "an unknown access mode")),
            }
        }
        modes
    }

    /// One of a few words, or the default when there is none.
    pub fn word<T: Default>(&mut self, field: &str, text: Option<Name>, parse: impl FnOnce(&str) -> Option<T>) -> T {
        let text = text.unwrap_or_default();
        if text.is_empty() {
            return T::default();
        }
        self.or_default(field, &text, || parse(&text).ok_or("an unknown value"))
    }

    pub fn into_flaw(self) -> Option<Box<FieldError>> {
        self.0
    }
}

/// A kind of object that can be decoded.
pub(crate) trait Lean: Sized {
    /// The fields that are read of it.
    type Wire: DeserializeOwned + Default;
    fn wire_meta(wire: &mut Self::Wire) -> &mut WireMeta;
    fn from_wire(wire: Self::Wire, flaws: FieldErrors) -> Self;
}

/// Decodes an object. Fails only when it has no name by which it could be told apart.
pub(crate) fn decode<T: Lean>(json: &[u8]) -> Result<T, FieldError> {
    let mut flaws = FieldErrors::default();
    let mut wire = match serde_json::from_slice::<T::Wire>(json) {
        Ok(wire) => wire,
        Err(_) => salvage::<T>(json, &mut flaws)?,
    };
    match T::wire_meta(&mut wire).name.as_deref() {
        None | Some("") => Err(FieldError::new("metadata.name", "it is missing")),
        Some(_) => Ok(T::from_wire(wire, flaws)),
    }
}

/// Keeps who an object is when the rest of it cannot be read, and notes where reading it failed.
fn salvage<T: Lean>(json: &[u8], flaws: &mut FieldErrors) -> Result<T::Wire, FieldError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    if let Err(error) = serde_path_to_error::deserialize::<_, T::Wire>(&mut reader) {
        flaws.add(FieldError::new(error.path().to_string(), error.inner().to_string()));
    }
    let object: serde_json::Value =
        serde_json::from_slice(json).map_err(|error| FieldError::new("", format!("it is not JSON: {error}")))?;
    let text = |field: &str| object.get("metadata")?.get(field)?.as_str().map(Name::from);
    let mut wire = T::Wire::default();
    *T::wire_meta(&mut wire) = WireMeta {
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..WireMeta::default()
    };
    Ok(wire)
}

/// A quantity on the wire: a string, or a bare number.
#[derive(Default)]
pub(crate) struct WireQuantity(Name);

impl<'de> Deserialize<'de> for WireQuantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = WireQuantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E>(self, text: &str) -> Result<WireQuantity, E> {
                Ok(WireQuantity(text.into()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<WireQuantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<WireQuantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<WireQuantity, E> {
                self.visit_str(&number.to_string())
            }
        }
        from.deserialize_any(Text)
    }
}

/// The storage entry of a resource list.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct WireResources {
    pub storage: Option<WireQuantity>,
}

/// Labels on the wire.
#[derive(Default)]
pub(crate) struct WireLabels(pub Labels);

impl<'de> Deserialize<'de> for WireLabels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = WireLabels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of labels")
            }
            fn visit_unit<E>(self) -> Result<WireLabels, E> {
                Ok(WireLabels::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireLabels, A::Error> {
                let mut labels = Vec::new();
                while let Some(label) = map.next_entry::<Name, Name>()? {
                    labels.push(label);
                }
                Ok(WireLabels(labels.into_iter().collect()))
            }
        }
        from.deserialize_any(Map)
    }
}
