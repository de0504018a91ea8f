//! A class's parameters in the driver's words.

use std::collections::BTreeMap;

use bindery_model::migration::{Plugin, ZONE_PARAMETER, ZONES_PARAMETER};
use serde_json::Value;

use crate::fields::texts;

const FS_TYPE: &str = "csi.storage.k8s.io/fstype";

/// What vSphere's driver has of its own for the plugin's parameters; nothing else is known to it.
const VSPHERE: [(&str, &str); 10] = [
    ("fstype", FS_TYPE),
    ("storagepolicyname", "storagepolicyname"),
    ("datastore", "datastore-migrationparam"),
    ("diskformat", "diskformat-migrationparam"),
    ("hostfailurestotolerate", "hostfailurestotolerate-migrationparam"),
    ("forceprovisioning", "forceprovisioning-migrationparam"),
    ("cachereservation", "cachereservation-migrationparam"),
    ("diskstripes", "diskstripes-migrationparam"),
    ("objectspacereservation", "objectspacereservation-migrationparam"),
    ("iopslimit", "iopslimit-migrationparam"),
];

/// The secrets that Portworx has one parameter for.
const PORTWORX_SECRETS: [&str; 6] =
    ["provisioner", "controller-publish", "node-publish", "node-stage", "controller-expand", "node-expand"];

/// The parameters of a plugin's class, in the words of its driver. Names are the same in whatever case.
pub(crate) fn parameters(plugin: Plugin, class: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut theirs = BTreeMap::new();
    let mut has_zones = false;
    for (key, value) in texts(class, "/parameters") {
        let name = key.to_lowercase();
        if plugin.takes_zones() && (name == ZONE_PARAMETER || name == ZONES_PARAMETER) {
            has_zones = true;
        } else {
            theirs.extend(parameter(plugin, &name, key).into_iter().map(|key| (key, value.clone())));
        }
        if plugin == Plugin::AwsEbs && name == "iopspergb" {
            // The plugin asks for no less than what Amazon has at the least.
            theirs.insert("allowautoiopspergbincrease".into(), "true".into());
        }
    }
    if has_zones && class["allowedTopologies"].as_array().is_some_and(|terms| !terms.is_empty()) {
        return Err("cannot simultaneously set allowed topologies and zone/zones parameters".into());
    }
    if plugin == Plugin::Vsphere {
        // So that the driver tells the path by which the plugin knows a volume.
        theirs.insert("csimigration".into(), "true".into());
    }
    Ok(theirs)
}

/// What one parameter, by its name in lower case and as it is written, is called by the driver.
fn parameter(plugin: Plugin, name: &str, written: String) -> Vec<String> {
    match plugin {
        Plugin::AwsEbs | Plugin::GcePd | Plugin::Cinder if name == "fstype" => vec![FS_TYPE.into()],
        Plugin::Vsphere => {
            VSPHERE.iter().filter(|(known, _)| *known == name).map(|(_, theirs)| (*theirs).into()).collect()
        }
        Plugin::Portworx => match name.strip_prefix("openstorage.io/auth-secret-") {
            Some(end @ ("name" | "namespace")) => {
                PORTWORX_SECRETS.iter().map(|kind| format!("csi.storage.k8s.io/{kind}-secret-{end}")).collect()
            }
            Some(_) | None => vec![written],
        },
        Plugin::AwsEbs | Plugin::GcePd | Plugin::Cinder | Plugin::AzureDisk | Plugin::AzureFile => vec![written],
    }
}
