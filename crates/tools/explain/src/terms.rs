//! What a claim requests, and what a volume provides.

use bindery_model::{AccessMode, Claim, Volume};

use crate::Terms;

/// What a claim requests.
pub(crate) fn of_claim(claim: &Claim) -> Terms {
    let selector = match claim.selector.as_deref() {
        None => None,
        Some(Ok(selector)) => Some(selector.to_string()).filter(|text| !text.is_empty()),
        Some(Err(problem)) => Some(format!("(invalid: {problem})")),
    };
    Terms {
        storage: claim.request.as_ref().map(ToString::to_string),
        access_modes: claim.modes.set().iter().map(AccessMode::as_str).collect(),
        volume_mode: claim.volume_mode.as_str(),
        class: claim.has_class().then(|| claim.class().clone()),
        selector,
        attributes_class: Some(claim.attributes().clone()).filter(|name| !name.is_empty()),
        reclaim_policy: None,
    }
}

/// What a volume provides.
pub(crate) fn of_volume(volume: &Volume) -> Terms {
    Terms {
        storage: volume.capacity.as_ref().map(ToString::to_string),
        access_modes: volume.modes.set().iter().map(AccessMode::as_str).collect(),
        volume_mode: volume.volume_mode.as_str(),
        class: Some(volume.class().clone()).filter(|name| !name.is_empty()),
        selector: None,
        attributes_class: Some(volume.attributes().clone()).filter(|name| !name.is_empty()),
        reclaim_policy: Some(volume.policy.as_str().to_owned()),
    }
}

impl Terms {
    /// As text: `10Gi, ReadWriteOnce, Filesystem, class "fast"`.
    pub(crate) fn text(&self) -> String {
        let mut words = vec![self.storage.clone().unwrap_or_else(|| "any size".into())];
        words.extend(self.access_modes.iter().map(|mode| (*mode).to_owned()));
        words.push(self.volume_mode.to_owned());
        words.push(match self.class.as_deref() {
            None | Some("") => "no class".into(),
            Some(class) => format!("class {class:?}"),
        });
        words.extend(self.selector.iter().map(|selector| format!("labels {selector}")));
        words.extend(self.attributes_class.iter().map(|class| format!("attributes class {:?}", class.as_str())));
        words.extend(self.reclaim_policy.iter().map(|policy| format!("policy {policy}")));
        words.join(", ")
    }

    /// The volume that a claim with these terms needs, as text: `volume of class "fast" with 10Gi
    /// or more`.
    pub(crate) fn required_volume(&self) -> String {
        let mut words = String::from(match self.volume_mode {
            "Block" => "block volume",
            _ => "volume",
        });
        match self.class.as_deref() {
            None | Some("") => words.push_str(" without a class"),
            Some(class) => words.push_str(&format!(" of class {class:?}")),
        }
        if let Some(class) = &self.attributes_class {
            words.push_str(&format!(" and attributes class {:?}", class.as_str()));
        }
        if let Some(storage) = &self.storage {
            words.push_str(&format!(" with {storage} or more"));
        }
        if !self.access_modes.is_empty() {
            words.push_str(&format!(" for {}", self.access_modes.join(" and ")));
        }
        if let Some(selector) = &self.selector {
            words.push_str(&format!(" and labels {selector}"));
        }
        words
    }
}
