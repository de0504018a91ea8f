//! A driver that has taken over from an in-tree plugin.

use bindery_provisioner_sdk::Accessibility;

use super::*;

/// Has a volume made for a class of Amazon's plugin, in a zone.
async fn create(bench: &Bench, parameters: Value, zone: &str) -> Result<Value, Failure> {
    let term = vec![("topology.ebs.csi.aws.com/zone".into(), zone.into())];
    let order = ProvisionRequest {
        claim: bindery_model::ClaimKey::new("ns", "c"),
        uid: "1".into(),
        class: "k".into(),
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
async fn its_volumes_are_the_plugins_from_the_class_to_the_removal() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let parameters = json!({"fsType": "xfs", "iopsPerGB": "10", "zone": "us-east-1a"});
    let made = create(&bench, parameters, "us-east-1a").await.expect("made");
    let request = &bench.fake.calls()[0]["request"];
    assert_eq!(request["parameters"], json!({"iopsPerGB": "10", "allowautoiopspergbincrease": "true"}));
    assert_eq!(request["volume_capabilities"][0]["mount"], json!({"fs_type": "xfs"}));
    let demand = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let places = json!([demand(zone, "us-east-1a"), demand(region, "us-east-1")]);
    assert_eq!(made["spec"]["awsElasticBlockStore"], json!({"volumeID": "vol-pvc-1", "fsType": "xfs"}));
    assert_eq!(made["spec"].get("csi"), None);
    assert_eq!(
        made["spec"]["nodeAffinity"],
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": places}]}})
    );
    assert_eq!(made["metadata"]["labels"], json!({zone: "us-east-1a", region: "us-east-1"}));
    assert_eq!(made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"], "kubernetes.io/aws-ebs");
    assert_eq!(bench.csi.delete(&made).await, Ok(()));
    assert_eq!(bench.fake.calls()[1], json!({"method": "DeleteVolume", "request": {"volume_id": "vol-pvc-1"}}));
    assert!(bench.fake.volumes().is_empty());
}

#[tokio::test]
async fn what_cannot_be_the_plugins_is_removed_again() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let failure = create(&bench, json!({}), "mars").await.expect_err("no such zone");
    let why = "failed to translate topology: \"mars\" is not the name of a zone";
    let error = format!("the volume cannot be one of kubernetes.io/aws-ebs: {why}");
    assert_eq!(failure, Failure { error: error.clone(), effect: FailureEffect::Nothing });
    assert_eq!(bench.called(), ["CreateVolume", "DeleteVolume"]);
    assert!(bench.fake.volumes().is_empty());
    let failure = create(&bench, json!({"delete": "INTERNAL"}), "mars").await.expect_err("no such zone");
    assert_eq!(failure.effect, FailureEffect::Unknown);
    assert!(failure.error.starts_with(&error) && failure.error.contains("volume is orphaned"), "{}", failure.error);
}

#[tokio::test]
async fn what_is_another_plugins_is_left_alone() {
    let bench = bench_of("ebs.csi.aws.com", PLENTY).await;
    let others = json!({"metadata": {"name": "pv"}, "spec": {"cinder": {"volumeID": "v"}}});
    let failure = bench.csi.delete(&others).await.expect_err("not ours");
    assert_eq!(failure, Failure { error: "invalid CSI PV".into(), effect: FailureEffect::Nothing });
    assert!(bench.fake.calls().is_empty());
}
