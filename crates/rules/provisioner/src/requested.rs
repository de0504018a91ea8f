//! Whether a claim requests its volume from this provisioner, and where.

use bindery_model::migration::Plugin;
use bindery_model::{Annotation, Claim, Name};

use crate::Config;

/// The node that the scheduler selected for a claim.
pub(crate) fn selected_node(claim: &Claim) -> Option<&Name> {
    claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty())
}

/// Whether a claim requests its volume from this provisioner. If it does so by the name of an
/// in-tree plugin, it must be annotated as migrated; otherwise the plugin may provision it, too.
pub(crate) fn is_requested(claim: &Claim, config: &Config) -> bool {
    let annotation = |annotation| claim.annotations.get(annotation);
    let named = annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner));
    let is_migrated = || annotation(Annotation::MigratedTo) == Some(&config.name);
    named.is_some_and(|name| config.has_name(name) && (Plugin::named(name).is_none() || is_migrated()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_of_an_in_tree_plugin_is_ours_once_migrated() {
        let config = Config { aliases: vec!["kubernetes.io/aws-ebs".into()], ..Config::new("ebs.csi.aws.com") };
        let is_requested = |provisioner: &str, migrated_to: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"c","namespace":"ns","annotations":{{
                    "volume.kubernetes.io/storage-provisioner":"{provisioner}",
                    "pv.kubernetes.io/migrated-to":"{migrated_to}"}}}}}}"#
            );
            is_requested(&Claim::from_json(json.as_bytes()).expect("a claim"), &config)
        };
        assert!(is_requested("ebs.csi.aws.com", ""));
        assert!(is_requested("ebs.csi.aws.com", "ebs.csi.aws.com"));
        assert!(is_requested("kubernetes.io/aws-ebs", "ebs.csi.aws.com"));
        assert!(!is_requested("kubernetes.io/aws-ebs", ""));
        assert!(!is_requested("kubernetes.io/aws-ebs", "other"));
        assert!(!is_requested("kubernetes.io/gce-pd", "ebs.csi.aws.com"));
    }
}
