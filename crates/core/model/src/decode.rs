//! Decoding the JSON of an API server: only the fields that rules read.
//!
//! An object that has a name is always decoded. The first field that cannot be parsed becomes its
//! [`FieldError`]; rules then do not change the object, and report the error.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::{AccessMode, AccessModes, Annotations, FieldError, Labels, Meta, Name, Quantity, finalizer};

/// The metadata of any object in JSON.
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
    pub fn meta(&self, errors: &mut FieldErrors) -> Meta {
        let text = self.resource_version.as_deref().unwrap_or_default();
        let version = errors.or_default("metadata.resourceVersion", text, || match text {
            "" => Ok(0),
            text => text.parse(),
        });
        if self.uid.as_ref().is_none_or(Name::is_empty) {
            errors.add(FieldError::new("metadata.uid", "it is missing"));
        }
        Meta {
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
            uid: self.uid.clone().unwrap_or_default(),
            version,
        }
    }

    /// The finalizers; common ones share one string.
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

    /// The remaining grace period of an object that is being deleted.
    pub fn grace_seconds(&self) -> Option<i64> {
        self.deletion_grace_period_seconds
    }

    /// The UID of its controlling owner.
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

/// Collects the errors of an object; only the first is kept.
#[derive(Default)]
pub(crate) struct FieldErrors(Option<Box<FieldError>>);

impl FieldErrors {
    pub fn add(&mut self, error: FieldError) {
        self.0.get_or_insert_with(|| Box::new(error));
    }

    /// The result of `parse`; an error is recorded, and replaced by the default.
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

    /// A quantity, if the field is present.
    pub fn quantity(&mut self, field: &str, wire: Option<WireQuantity>) -> Option<Quantity> {
        let text = wire?.0;
        self.or_default(field, &text, || Quantity::parse(&text).map(Some))
    }

    /// A list of access modes.
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

    /// A field with a fixed set of values; the default when it is absent or empty.
    pub fn enumeration<T: Default>(
        &mut self,
        field: &str,
        text: Option<Name>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let text = text.unwrap_or_default();
        if text.is_empty() {
            return T::default();
        }
        self.or_default(field, &text, || parse(&text).ok_or("an unknown value"))
    }

    pub fn into_error(self) -> Option<Box<FieldError>> {
        self.0
    }
}

/// A type of object that can be decoded.
pub(crate) trait FromWire: Sized {
    /// The JSON fields that are read.
    type Wire: DeserializeOwned + Default;
    fn wire_meta(wire: &mut Self::Wire) -> &mut WireMeta;
    fn from_wire(wire: Self::Wire, errors: FieldErrors) -> Self;
}

/// Decodes an object. Fails only when it has no name.
pub(crate) fn decode<T: FromWire>(json: &[u8]) -> Result<T, FieldError> {
    let mut errors = FieldErrors::default();
    let mut wire = match serde_json::from_slice::<T::Wire>(json) {
        Ok(wire) => wire,
        Err(_) => salvage::<T>(json, &mut errors)?,
    };
    match T::wire_meta(&mut wire).name.as_deref() {
        None | Some("") => Err(FieldError::new("metadata.name", "it is missing")),
        Some(_) => Ok(T::from_wire(wire, errors)),
    }
}

/// Keeps the identity of an object that cannot be read otherwise, and records which field failed.
fn salvage<T: FromWire>(json: &[u8], errors: &mut FieldErrors) -> Result<T::Wire, FieldError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    if let Err(error) = serde_path_to_error::deserialize::<_, T::Wire>(&mut reader) {
        errors.add(FieldError::new(error.path().to_string(), error.inner().to_string()));
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

/// A quantity in JSON: a string or a number.
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

/// The `storage` entry of a resource list.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct WireResources {
    pub storage: Option<WireQuantity>,
}

/// Labels in JSON.
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
