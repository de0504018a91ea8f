//! In-tree class parameters, translated for the CSI driver.

use std::collections::BTreeMap;

use bindery_model::migration::{Plugin, ZONE_PARAMETER, ZONES_PARAMETER};
use serde_json::Value;

use crate::fields::texts;

const FS_TYPE: &str = "csi.storage.k8s.io/fstype";

/// The vSphere parameters that have a CSI equivalent. Others are dropped.
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

/// The secrets that one Portworx parameter stands for.
const PORTWORX_SECRETS: [&str; 6] =
    ["provisioner", "controller-publish", "node-publish", "node-stage", "controller-expand", "node-expand"];

/// Translates the parameters of an in-tree class. Parameter names are case-insensitive.
pub(crate) fn parameters(plugin: Plugin, class: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut translated = BTreeMap::new();
    let mut has_zones = false;
    for (key, value) in texts(class, "/parameters") {
        let name = key.to_lowercase();
        if plugin.takes_zones() && (name == ZONE_PARAMETER || name == ZONES_PARAMETER) {
            has_zones = true;
        } else {
            translated.extend(parameter(plugin, &name, key).into_iter().map(|key| (key, value.clone())));
        }
        if plugin == Plugin::AwsEbs && name == "iopspergb" {
            // The in-tree plugin raises IOPS to Amazon's minimum.
            translated.insert("allowautoiopspergbincrease".into(), "true".into());
        }
    }
    if has_zones && class["allowedTopologies"].as_array().is_some_and(|terms| !terms.is_empty()) {
        return Err("cannot simultaneously set allowed topologies and zone/zones parameters".into());
    }
    if plugin == Plugin::Vsphere {
        // Makes the driver return the volume path, by which the in-tree plugin identifies a volume.
        translated.insert("csimigration".into(), "true".into());
    }
    Ok(translated)
}

/// The CSI names of one parameter, given in lower case and as written.
fn parameter(plugin: Plugin, name: &str, written: String) -> Vec<String> {
    match plugin {
        Plugin::AwsEbs | Plugin::GcePd | Plugin::Cinder if name == "fstype" => vec![FS_TYPE.into()],
        Plugin::Vsphere => {
            VSPHERE.iter().filter(|(known, _)| *known == name).map(|(_, translated)| (*translated).into()).collect()
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
