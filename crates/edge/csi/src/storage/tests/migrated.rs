//! A driver that replaces an in-tree plugin.

use bindery_provisioner_sdk::Accessibility;

use super::*;

/// Provisions a volume for a class of the AWS EBS plugin, in a zone.
async fn create(bench: &Bench, parameters: Value, zone: &str) -> Result<Value, Failure> {
    let term = vec![("topology.ebs.csi.aws.com/zone".into(), zone.into())];
    let order = ProvisionRequest {
        claim: bindery_model::ClaimKey::new("ns", "c"),
        uid: "1".into(),
        class: "k".into(),
        class_version: 0,
        version: 1,
        provisioner: "kubernetes.io/aws-ebs".into(),
        has_finalizer: true,
        volume: "pvc-1".into(),
        node: None,
        topology: Ok(Some(Accessibility { requisite: vec![term.clone()], preferred: vec![term] })),
        attempt: None,
    };
    let claim = json!({
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let class = json!({"metadata": {"name": "k"}, "provisioner": "kubernetes.io/aws-ebs", "parameters": parameters});
    let ask = ProvisionContext { request: &order, claim: &claim, class: &class };
    let prepared = bench.csi.prepare(ask).await?;
    Ok(order.complete(bench.csi.create(ask, &prepared).await?))
}

#[tokio::test]
async fn volumes_are_in_tree_volumes_from_provisioning_to_deletion() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let parameters = json!({"fsType": "xfs", "iopsPerGB": "10", "zone": "us-east-1a"});
    let volume = create(&bench, parameters, "us-east-1a").await.expect("made");
    let request = &bench.fake.calls()[0]["request"];
    assert_eq!(request["parameters"], json!({"iopsPerGB": "10", "allowautoiopspergbincrease": "true"}));
    assert_eq!(request["volume_capabilities"][0]["mount"], json!({"fs_type": "xfs"}));
    let expression = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let expressions = json!([expression(zone, "us-east-1a"), expression(region, "us-east-1")]);
    assert_eq!(volume["spec"]["awsElasticBlockStore"], json!({"volumeID": "vol-pvc-1", "fsType": "xfs"}));
    assert_eq!(volume["spec"].get("csi"), None);
    assert_eq!(
        volume["spec"]["nodeAffinity"],
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}})
    );
    assert_eq!(volume["metadata"]["labels"], json!({zone: "us-east-1a", region: "us-east-1"}));
    assert_eq!(volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"], "kubernetes.io/aws-ebs");
    assert_eq!(bench.csi.delete(&volume).await, Ok(()));
    assert_eq!(bench.fake.calls()[1], json!({"method": "DeleteVolume", "request": {"volume_id": "vol-pvc-1"}}));
    assert!(bench.fake.volumes().is_empty());
}

#[tokio::test]
async fn untranslatable_volume_is_deleted() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let failure = create(&bench, json!({}), "mars").await.expect_err("no such zone");
    let why = "failed to translate topology: \"mars\" is not the name of a zone";
    let error = format!("cannot translate the volume to kubernetes.io/aws-ebs: {why}");
    assert_eq!(failure, Failure { error: error.clone(), effect: FailureEffect::Absent });
    assert_eq!(bench.called(), ["CreateVolume", "DeleteVolume"]);
    assert!(bench.fake.volumes().is_empty());
    let failure = create(&bench, json!({"delete": "INTERNAL"}), "mars").await.expect_err("no such zone");
    assert_eq!(failure.effect, FailureEffect::Unknown);
    assert!(failure.error.starts_with(&error) && failure.error.contains("volume is orphaned"), "{}", failure.error);
}

#[tokio::test]
async fn volumes_of_other_plugins_are_rejected() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let others = json!({"metadata": {"name": "pv"}, "spec": {"cinder": {"volumeID": "v"}}});
    let failure = bench.csi.delete(&others).await.expect_err("not ours");
    assert_eq!(failure, Failure { error: "invalid CSI PV".into(), effect: FailureEffect::Nothing });
    assert!(bench.fake.calls().is_empty());
}
