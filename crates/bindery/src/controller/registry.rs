//! The volume controllers, by upstream's names, and which of them run.

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::ObjectKey;
use bindery_rules_api::{LiveReads, Profile, RuleSet, Verdict};

use crate::feature_gates::{self, Gate, KubernetesVersion};

/// The feature gate of the `Unused` condition of claims, and the version in which it became on by
/// default.
const UNUSED_GATE: (&str, KubernetesVersion) =
    ("PersistentVolumeClaimUnusedSinceTime", KubernetesVersion { major: 1, minor: 37 });

/// Settings of the controllers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Settings of the binder.
    pub binder: BinderConfig,
    /// Whether bound claims get the `Unused` condition.
    pub unused_condition: Gate,
}

/// The feature gate of the `Unused` condition, as the flags set it. Otherwise it follows the
/// version of the API server.
pub fn unused_gate(gates: &[String], emulated: Option<KubernetesVersion>) -> Result<Gate, String> {
    let (name, since) = UNUSED_GATE;
    let gate = Gate::new(name, since);
    let mut is_on = None;
    feature_gates::parse(gates, &[name], |_, value| is_on = Some(value))?;
    match (is_on, emulated) {
        (Some(is_on), _) => gate.set(is_on, "--feature-gates"),
        (None, Some(version)) => gate.follow(version, "--emulated-version"),
        (None, None) => {}
    }
    Ok(gate)
}

/// Claim protection with the `Unused` condition if its feature gate is on. The gate is known before
/// the first decision, and does not change.
struct GatedClaimProtection(Gate);

impl GatedClaimProtection {
    fn rules(&self) -> ClaimProtection {
        ClaimProtection { reports_unused: self.0.is_on() }
    }
}

impl RuleSet for GatedClaimProtection {
    fn index_policy(&self) -> Option<IndexPolicy> {
        self.rules().index_policy()
    }

    fn profile(&self) -> Profile {
        self.rules().profile()
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        self.rules().decide(known, key, live_reads)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        self.rules().wake(known, change, wake);
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
        make: |settings| Box::new(GatedClaimProtection(settings.unused_condition.clone())),
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
            let settings = Settings { binder: BinderConfig::default(), unused_condition: unused_gate(&[], None)? };
            let sets = enabled(&items(list), &settings)?;
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
        let gates = |list: &[&str]| unused_gate(&items(list), None).map(|gate| gate.is_on());
        assert_eq!(gates(&["PersistentVolumeClaimUnusedSinceTime=true"]), Ok(true));
        assert_eq!(gates(&["PersistentVolumeClaimUnusedSinceTime=false"]), Ok(false));
        assert!(gates(&["Nonsense=true"]).is_err_and(|error| error.contains("unrecognized feature gate: Nonsense")));
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime"]).is_err());
        assert!(gates(&["PersistentVolumeClaimUnusedSinceTime=maybe"]).is_err());
    }

    #[test]
    fn feature_gates_follow_the_servers_version_unless_a_flag_says_otherwise() {
        let is_on = |gates: &[&str], emulated: Option<&str>, server: Option<&str>| {
            let emulated = emulated.map(|version| feature_gates::parse_emulated_version(version).expect("a version"));
            let gate = unused_gate(&items(gates), emulated).expect("known gates");
            gate.follow_server(server);
            gate.is_on()
        };
        assert!(!is_on(&[], None, Some("v1.36.4")));
        assert!(is_on(&[], None, Some("v1.37.0-rc.1+k3s1")));
        assert!(is_on(&[], None, Some("v1.40.2")));
        assert!(!is_on(&[], None, Some("unreadable")));
        assert!(!is_on(&[], None, None));
        assert!(is_on(&[], Some("1.37"), Some("v1.36.4")));
        assert!(!is_on(&[], Some("kube=1.36"), Some("v1.37.0")));
        let on = "PersistentVolumeClaimUnusedSinceTime=true";
        assert!(is_on(&[on], Some("1.36"), Some("v1.36.4")));
    }
}
