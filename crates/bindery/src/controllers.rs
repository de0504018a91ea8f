//! The controllers there are, by upstream's names, and which of them are to run.

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_rules_api::RuleSet;

/// The feature gate of the `Unused` condition of claims.
const UNUSED_GATE: &str = "PersistentVolumeClaimUnusedSinceTime";

/// How controllers are set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The binder.
    pub binder: BinderConfig,
    /// Whether bound claims get the `Unused` condition.
    pub says_unused: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { binder: BinderConfig::default(), says_unused: true }
    }
}

impl Settings {
    /// Takes feature gates into account, each as `NAME=true` or `NAME=false`.
    pub fn with_gates(mut self, gates: &[String]) -> Result<Settings, String> {
        for gate in gates {
            let (name, value) =
                gate.split_once('=').ok_or_else(|| format!("missing bool value for feature gate {gate:?}"))?;
            let value = value.trim().parse::<bool>();
            let value = value.map_err(|_| format!("invalid value of {name}: use true or false, not {gate:?}"))?;
            match name.trim() {
                UNUSED_GATE => self.says_unused = value,
                other => return Err(format!("unrecognized feature gate: {other} (known: {UNUSED_GATE})")),
            }
        }
        Ok(self)
    }
}

/// A controller that can be switched on and off.
struct Controller {
    name: &'static str,
    alias: Option<&'static str>,
    make: fn(&Settings) -> Box<dyn RuleSet + Send>,
}

/// All of them, in the order in which they decide.
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
        make: |settings| Box::new(ClaimProtection { reports_unused: settings.says_unused }),
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
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }

    /// Whether it is to run: the first word that speaks of it decides, then whether all are meant.
    fn is_enabled(&self, words: &[String]) -> bool {
        match words.iter().find(|word| self.is_called(without_sign(word))) {
            Some(word) => !word.starts_with('-'),
            None => words.iter().any(|word| word == "*"),
        }
    }
}

fn without_sign(word: &str) -> &str {
    word.strip_prefix('-').unwrap_or(word)
}

/// Every controller there is.
pub fn every(settings: &Settings) -> Vec<Box<dyn RuleSet + Send>> {
    ALL.iter().map(|controller| (controller.make)(settings)).collect()
}

/// The controllers that `--controllers` asks for. Logs which they are.
pub fn chosen(words: &[String], settings: &Settings) -> Result<Vec<Box<dyn RuleSet + Send>>, String> {
    for name in words.iter().map(|word| without_sign(word)) {
        if name != "*" && !ALL.iter().any(|controller| controller.is_called(name)) {
            return Err(format!("{name:?} is not in the list of known controllers: {}", names().join(", ")));
        }
    }
    let (on, off): (Vec<_>, Vec<_>) = ALL.iter().partition(|controller| controller.is_enabled(words));
    if on.is_empty() {
        return Err(format!("--controllers leaves nothing to run; there are: {}", names().join(", ")));
    }
    for controller in off {
        tracing::warn!(controller = controller.name, "controller is disabled");
    }
    Ok(on.into_iter().map(|controller| (controller.make)(settings)).collect())
}

/// What they are called.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|controller| controller.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn controllers_are_switched_as_upstream_does() {
        let running = |list: &[&str]| -> Result<Vec<&'static str>, String> {
            let sets = chosen(&words(list), &Settings::default())?;
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
        assert_eq!(first, Ok(vec!["ephemeral-volume"]), "the first word decides");
        assert!(running(&["-ephemeral-volume"]).is_err_and(|error| error.contains("leaves nothing to run")));
        let error = running(&["nonsense"]).expect_err("unknown");
        assert!(error.starts_with("\"nonsense\" is not in the list of known controllers"), "{error}");
    }

    #[test]
    fn feature_gates_are_read_as_upstream_does() {
        let gates = |list: &[&str]| Settings::default().with_gates(&words(list)).map(|settings| settings.says_unused);
        assert_eq!(gates(&[]), Ok(true));
        assert_eq!(gates(&["PersistentVolumeClaimUnusedSinceTime=false"]), Ok(false));
        assert!(gates(&["Nonsense=true"]).is_err_and(|error| error.contains("unrecognized feature gate: Nonsense")));
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime"]).is_err());
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime=maybe"]).is_err());
    }
}
