//! The volume controllers, by upstream's names, and which of them run.

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_rules_api::RuleSet;

use crate::feature_gates;

/// The feature gate of the `Unused` condition of claims.
const UNUSED_GATE: &str = "PersistentVolumeClaimUnusedSinceTime";

/// Settings of the controllers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Settings of the binder.
    pub binder: BinderConfig,
    /// Whether bound claims get the `Unused` condition.
    pub unused_condition: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { binder: BinderConfig::default(), unused_condition: true }
    }
}

impl Settings {
    /// Applies feature gates, each as `NAME=BOOL`.
    pub fn with_gates(mut self, gates: &[String]) -> Result<Settings, String> {
        feature_gates::parse(gates, &[UNUSED_GATE], |_, value| self.unused_condition = value)?;
        Ok(self)
    }
}

/// A controller that `--controllers` can enable or disable.
struct Controller {
    name: &'static str,
    alias: Option<&'static str>,
    make: fn(&Settings) -> Box<dyn RuleSet + Send>,
}

/// All controllers, in the order in which they decide.
const ALL: [Controller; 6] = [
    Controller {
        name: "persistentvolume-binder-controller",
        alias: Some("persistentvolume-binder"),
        make: |settings| Box::new(Binder::new(settings.binder.clone())),
    },
    Controller { name: "ephemeral-volume-controller", alias: Some("ephemeral-volume"), make: |_| Box::new(Ephemeral) },
    Controller {
        name: "persistentvolumeclaim-protection-controller",
        alias: Some("pvc-protection"),
        make: |settings| Box::new(ClaimProtection { reports_unused: settings.unused_condition }),
    },
    Controller {
        name: "persistentvolume-protection-controller",
        alias: Some("pv-protection"),
        make: |_| Box::new(VolumeProtection),
    },
    Controller {
        name: "volumeattributesclass-protection-controller",
        alias: None,
        make: |_| Box::new(AttributesClassProtection),
    },
    Controller {
        name: "persistentvolume-expander-controller",
        alias: Some("persistentvolume-expander"),
        make: |_| Box::new(Expander),
    },
];

impl Controller {
    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }

    /// Whether `--controllers` enables it: the first item that names it decides, then `*`.
    fn is_enabled(&self, items: &[String]) -> bool {
        match items.iter().find(|item| self.has_name(without_sign(item))) {
            Some(item) => !item.starts_with('-'),
            None => items.iter().any(|item| item == "*"),
        }
    }
}

fn without_sign(item: &str) -> &str {
    item.strip_prefix('-').unwrap_or(item)
}

/// Every controller.
pub fn all(settings: &Settings) -> Vec<Box<dyn RuleSet + Send>> {
    ALL.iter().map(|controller| (controller.make)(settings)).collect()
}

/// The controllers that `--controllers` enables. Logs their names.
pub fn enabled(items: &[String], settings: &Settings) -> Result<Vec<Box<dyn RuleSet + Send>>, String> {
    for name in items.iter().map(|item| without_sign(item)) {
        if name != "*" && !ALL.iter().any(|controller| controller.has_name(name)) {
            return Err(format!("{name:?} is not in the list of known controllers: {}", names().join(", ")));
        }
    }
    let (on, off): (Vec<_>, Vec<_>) = ALL.iter().partition(|controller| controller.is_enabled(items));
    if on.is_empty() {
        return Err(format!("--controllers enables no controller; known controllers: {}", names().join(", ")));
    }
    let list = |controllers: &[&Controller]| {
        controllers.iter().map(|controller| controller.name).collect::<Vec<_>>().join(",")
    };
    tracing::info!(enabled = list(&on), disabled = list(&off), "controllers configured");
    Ok(on.into_iter().map(|controller| (controller.make)(settings)).collect())
}

/// The names of all controllers.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|controller| controller.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn controllers_flag_works_as_upstream() {
        let running = |list: &[&str]| -> Result<Vec<&'static str>, String> {
            let sets = enabled(&items(list), &Settings::default())?;
            Ok(sets.iter().map(|set| set.profile().name).collect())
        };
        assert_eq!(running(&["*"]).map(|sets| sets.len()), Ok(6));
        assert_eq!(running(&["persistentvolume-binder"]), Ok(vec!["persistentvolume-binder"]));
        let others = running(&["*", "-persistentvolume-binder-controller", "-pv-protection"]).expect("some run");
        assert_eq!(
            others,
            [
                "ephemeral-volume",
                "persistentvolumeclaim-protection",
                "volumeattributesclass-protection",
                "persistentvolume-expander"
            ]
        );
        let first = running(&["-pvc-protection", "persistentvolumeclaim-protection-controller", "ephemeral-volume"]);
        assert_eq!(first, Ok(vec!["ephemeral-volume"]), "the first item that names a controller decides");
        assert!(running(&["-ephemeral-volume"]).is_err_and(|error| error.contains("enables no controller")));
        let error = running(&["nonsense"]).expect_err("unknown controller");
        assert!(error.starts_with("\"nonsense\" is not in the list of known controllers"), "{error}");
    }

    #[test]
    fn feature_gates_are_parsed_as_upstream() {
        let gates =
            |list: &[&str]| Settings::default().with_gates(&items(list)).map(|settings| settings.unused_condition);
        assert_eq!(gates(&[]), Ok(true));
        assert_eq!(gates(&["PersistentVolumeClaimUnusedSinceTime=false"]), Ok(false));
        assert!(gates(&["Nonsense=true"]).is_err_and(|error| error.contains("unrecognized feature gate: Nonsense")));
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime"]).is_err());
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime=maybe"]).is_err());
    }
}
