//! Every in-tree plugin: class parameters, volume, and handle.

use bindery_model::migration::{BETA_ZONE, ZONE};
use serde_json::json;

use super::*;

fn parameters_of(plugin: Plugin, given: Value) -> Value {
    json!(parameters(plugin, &json!({"parameters": given})).expect("a class"))
}

#[test]
fn parameters_are_translated() {
    let all = [
        (
            Plugin::AwsEbs,
            json!({"type": "io1", "fsType": "xfs", "zone": "a"}),
            json!({"type": "io1", "csi.storage.k8s.io/fstype": "xfs"}),
        ),
        (Plugin::AwsEbs, json!({"iopsPerGB": "10"}), json!({"iopsPerGB": "10", "allowautoiopspergbincrease": "true"})),
        (
            Plugin::GcePd,
            json!({"FSTYPE": "ext4", "Zones": "a,b", "type": "pd-ssd"}),
            json!({"csi.storage.k8s.io/fstype": "ext4", "type": "pd-ssd"}),
        ),
        (
            Plugin::Cinder,
            json!({"fstype": "ext4", "availability": "nova", "zone": "z"}),
            json!({"csi.storage.k8s.io/fstype": "ext4", "availability": "nova", "zone": "z"}),
        ),
        (
            Plugin::AzureDisk,
            json!({"fsType": "xfs", "zones": "a", "kind": "Managed"}),
            json!({"fsType": "xfs", "kind": "Managed"}),
        ),
        (Plugin::AzureFile, json!({"fsType": "xfs", "zone": "a"}), json!({"fsType": "xfs", "zone": "a"})),
        (
            Plugin::Vsphere,
            json!({"fstype": "ext4", "datastore": "d", "storagePolicyName": "gold", "zone": "a", "iopslimit": "5"}),
            json!({
                "csi.storage.k8s.io/fstype": "ext4", "datastore-migrationparam": "d", "storagepolicyname": "gold",
                "iopslimit-migrationparam": "5", "csimigration": "true",
            }),
        ),
        (
            Plugin::Portworx,
            json!({"repl": "3", "openstorage.io/auth-secret-name": "s"}),
            json!({
                "repl": "3",
                "csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/controller-publish-secret-name": "s",
                "csi.storage.k8s.io/node-publish-secret-name": "s", "csi.storage.k8s.io/node-stage-secret-name": "s",
                "csi.storage.k8s.io/controller-expand-secret-name": "s", "csi.storage.k8s.io/node-expand-secret-name": "s",
            }),
        ),
    ];
    for (plugin, given, expected) in all {
        assert_eq!(parameters_of(plugin, given), expected, "{plugin:?}");
    }
}

#[test]
fn zones_and_allowed_topologies_are_mutually_exclusive() {
    for (plugin, is_rejected) in [
        (Plugin::AwsEbs, true),
        (Plugin::GcePd, true),
        (Plugin::AzureDisk, true),
        (Plugin::Cinder, false),
        (Plugin::Vsphere, false),
        (Plugin::AzureFile, false),
        (Plugin::Portworx, false),
    ] {
        let class = json!({"parameters": {"zone": "a"}, "allowedTopologies": [{"matchLabelExpressions": []}]});
        let rejected = "cannot simultaneously set allowed topologies and zone/zones parameters";
        assert_eq!(parameters(plugin, &class).err().as_deref(), is_rejected.then_some(rejected), "{plugin:?}");
    }
}

/// A CSI volume in these zones.
fn volume(plugin: Plugin, source: Value, zones: &[&str]) -> Value {
    let mut volume = json!({"metadata": {"name": "pv", "annotations": {}}, "spec": {"csi": source}});
    let term = |zone| json!({"matchExpressions": [{"key": plugin.zone_key(), "operator": "In", "values": [zone]}]});
    if !zones.is_empty() {
        let terms: Vec<Value> = zones.iter().map(term).collect();
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    volume
}

#[test]
fn volumes_are_translated_and_their_handles_found_again() {
    let disk = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d";
    let all = [
        (
            Plugin::AwsEbs,
            json!({"volumeHandle": "vol-1", "fsType": "xfs", "readOnly": true, "volumeAttributes": {"partition": "2"}}),
            json!({"volumeID": "vol-1", "fsType": "xfs", "readOnly": true, "partition": 2}),
            "vol-1",
        ),
        (
            Plugin::GcePd,
            json!({"volumeHandle": "projects/p/zones/z/disks/d", "fsType": "ext4", "volumeAttributes": {"partition": ""}}),
            json!({"pdName": "d", "fsType": "ext4"}),
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            Plugin::Cinder,
            json!({"volumeHandle": "v", "fsType": "ext4", "volumeAttributes": {"partition": "2"}}),
            json!({"volumeID": "v", "fsType": "ext4"}),
            "v",
        ),
        (Plugin::Portworx, json!({"volumeHandle": "v"}), json!({"volumeID": "v"}), "v"),
        (
            Plugin::AzureDisk,
            json!({"volumeHandle": disk, "volumeAttributes": {"cachingMode": "None", "fstype": "xfs"}}),
            json!({"diskName": "d", "diskURI": disk, "fsType": "xfs", "readOnly": false, "kind": "Managed", "cachingMode": "None"}),
            disk,
        ),
        (
            Plugin::AzureFile,
            json!({"volumeHandle": "g#account#share#", "readOnly": true}),
            json!({
                "shareName": "share", "secretName": "azure-storage-account-account-secret", "secretNamespace": "default",
                "readOnly": true,
            }),
            "g#account#share#pv#default",
        ),
        (
            Plugin::AzureFile,
            json!({
                "volumeHandle": "h", "nodeStageSecretRef": {"name": "s", "namespace": "ns"},
                "volumeAttributes": {"shareName": "share", "secretName": "other"},
            }),
            json!({"shareName": "share", "secretName": "s", "secretNamespace": "ns"}),
            "#s#share#pv#ns",
        ),
        (
            Plugin::Vsphere,
            json!({"volumeHandle": "id", "fsType": "ext4", "volumeAttributes": {"initialvolumefilepath": "[ds] a/b.vmdk"}}),
            json!({"volumePath": "[ds] a/b.vmdk", "fsType": "ext4"}),
            "[ds] a/b.vmdk",
        ),
    ];
    for (plugin, source, expected, found) in all {
        let translated = to_in_tree(plugin, volume(plugin, source, &[])).expect("the plugin's");
        assert_eq!(translated["spec"], json!({field(plugin): expected}), "{plugin:?}");
        assert_eq!(handle(plugin, &translated), Ok(Some(found.to_owned())), "{plugin:?}");
    }
}

#[test]
fn untranslatable_volumes_are_rejected() {
    let all = [
        (
            Plugin::AwsEbs,
            json!({"volumeHandle": "v", "volumeAttributes": {"partition": ""}}),
            "partition \"\" is not a number",
        ),
        (Plugin::GcePd, json!({"volumeHandle": "d"}), "volume handle \"d\" contains no disk name"),
        (Plugin::AzureDisk, json!({"volumeHandle": "/disks/d"}), "volume handle \"/disks/d\" contains no disk name"),
        (Plugin::AzureFile, json!({"volumeHandle": "a#b"}), "volume handle \"a#b\" contains no share name"),
    ];
    for (plugin, source, error) in all {
        assert_eq!(to_in_tree(plugin, volume(plugin, source, &[])), Err(error.into()), "{plugin:?}");
    }
    let nowhere = to_in_tree(Plugin::AwsEbs, volume(Plugin::AwsEbs, json!({"volumeHandle": "vol-1"}), &["mars"]));
    assert_eq!(nowhere, Err("failed to translate topology: \"mars\" is not the name of a zone".into()));
}

#[test]
fn only_volumes_of_the_plugin_have_a_handle() {
    let aws = |id: &str| json!({"metadata": {"name": "pv"}, "spec": {"awsElasticBlockStore": {"volumeID": id}}});
    assert_eq!(handle(Plugin::AwsEbs, &aws("aws://us-east-1a/vol-1")), Ok(Some("vol-1".into())));
    assert!(handle(Plugin::AwsEbs, &aws("aws://us-east-1a/disk")).is_err());
    assert!(handle(Plugin::AwsEbs, &aws("")).is_err());
    assert_eq!(handle(Plugin::GcePd, &aws("vol-1")), Ok(None));
    let disk = json!({"diskName": "d", "diskURI": "https://a/vhds/d", "kind": "Dedicated"});
    assert!(handle(Plugin::AzureDisk, &json!({"metadata": {"name": "pv"}, "spec": {"azureDisk": disk}})).is_err());
    let share = json!({"metadata": {"name": "pv"}, "spec": {"azureFile": {"shareName": "s", "secretName": "x"}}});
    assert!(handle(Plugin::AzureFile, &share).is_err(), "the namespace is unknown");
    for (label, location) in [("us-east1-b", "zones/us-east1-b"), ("us-east1-b__us-east1-c", "regions/us-east1")] {
        for key in [ZONE, BETA_ZONE] {
            let spec = json!({"gcePersistentDisk": {"pdName": "d"}});
            let disk = json!({"metadata": {"name": "pv", "labels": {key: label}}, "spec": spec});
            assert_eq!(handle(Plugin::GcePd, &disk), Ok(Some(format!("projects/UNSPECIFIED/{location}/disks/d"))));
        }
    }
}

#[test]
fn topology_is_translated() {
    let expression = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let region = "topology.kubernetes.io/region";
    let handle = json!({"volumeHandle": "projects/p/zones/z/disks/d"});
    let translated = to_in_tree(Plugin::GcePd, volume(Plugin::GcePd, handle.clone(), &["us-east1-c", "us-east1-b"]));
    let translated = translated.expect("the plugin's");
    let terms = &translated["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    let term = |zone| json!({"matchExpressions": [expression(ZONE, zone), expression(region, "us-east1")]});
    assert_eq!(*terms, json!([term("us-east1-c"), term("us-east1-b")]));
    assert_eq!(translated["metadata"]["labels"], json!({ZONE: "us-east1-b__us-east1-c", region: "us-east1"}));

    let translated =
        to_in_tree(Plugin::Cinder, volume(Plugin::Cinder, handle.clone(), &["nova"])).expect("the plugin's");
    assert_eq!(translated["metadata"]["labels"], json!({ZONE: "nova"}));
    assert_eq!(
        translated["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"],
        json!([{"matchExpressions": [expression(ZONE, "nova")]}])
    );

    let mut there = volume(Plugin::Vsphere, handle, &["b", "a"]);
    let first = &mut there["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"];
    first.as_array_mut().expect("a list").push(expression("topology.csi.vmware.com/region", "r"));
    let translated = to_in_tree(Plugin::Vsphere, there).expect("the plugin's");
    assert_eq!(translated["metadata"]["labels"], json!({ZONE: "a", region: "r"}));
    let terms = &translated["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0], json!({"matchExpressions": [expression(ZONE, "b"), expression(region, "r")]}));
}

#[test]
fn only_the_plugin_that_the_driver_replaces_is_matched() {
    let setup = Setup { driver: "ebs.csi.aws.com".into(), ..Setup::default() };
    let of = |provisioner: &str| plugin_of(&setup, &json!({"provisioner": provisioner}));
    assert_eq!(of("kubernetes.io/aws-ebs"), Some(Plugin::AwsEbs));
    assert_eq!(of("ebs.csi.aws.com"), None);
    assert_eq!(of("kubernetes.io/gce-pd"), None);
}
