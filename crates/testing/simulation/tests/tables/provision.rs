//! provision_test.go: claims with a class and without a matching volume.
//!
//! Upstream's mock plugin is the host-path plugin here. A provisioned volume is Pending until it is
//! bound, because an API server ignores the status of a new object.

use bindery_engine::RequestError;
use bindery_model::Kind;
use bindery_rules_api::Task;
use bindery_simulation::notation;

use crate::case::{Case, claim, multi};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [in_tree(), plugin_errors(), no_need(), saving(), cleaning_up(), external(), until_stable()]
        .into_iter()
        .flatten()
        .collect()
}

/// A plugin provisions the volume, which is bound in the next sync.
fn in_tree() -> Vec<Case> {
    vec![
        claim("11-1 successful provision with storage class 1", "claim11-1")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-1#uid11-1 1Gi Pending class=gold",
            )
            .after(
                "pv pvc-uid11-1 1Gi Pending ->claim11-1#uid11-1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-1 fin=kubernetes.io/pv-controller
                 pvc claim11-1#uid11-1 1Gi Pending class=gold sp=kubernetes.io/host-path",
            )
            .events(&[
                "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid11-1 using \
                 kubernetes.io/host-path",
            ])
            .stable(
                "pv pvc-uid11-1 1Gi Bound ->claim11-1#uid11-1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-1 fin=kubernetes.io/pv-controller
                 pvc claim11-1#uid11-1 1Gi Bound vol=pvc-uid11-1 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        claim("11-4 provision failure", "claim11-4")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-4#uid11-4 1Gi Pending class=gold",
            )
            .script(Task::CreateStorage, &[Err("Mock provisioner error")])
            .after("pvc claim11-4#uid11-4 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Failed to provision volume with StorageClass \"gold\": Mock \
                 provisioner error",
            ])
            // The retry succeeds.
            .stable(
                "pv pvc-uid11-4 1Gi Bound ->claim11-4#uid11-4 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-4 fin=kubernetes.io/pv-controller
                 pvc claim11-4#uid11-4 1Gi Bound vol=pvc-uid11-4 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        claim("11-13 successful provision with storage class 2", "claim11-13")
            .before(
                "sc  silver kubernetes.io/host-path
                 pvc claim11-13#uid11-13 1Gi Pending class=silver",
            )
            .after(
                "pv pvc-uid11-13 1Gi Pending ->claim11-13#uid11-13 class=silver policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-13 fin=kubernetes.io/pv-controller
                 pvc claim11-13#uid11-13 1Gi Pending class=silver sp=kubernetes.io/host-path",
            )
            .events(&[
                "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid11-13 using \
                 kubernetes.io/host-path",
            ])
            .stable(
                "pv pvc-uid11-13 1Gi Bound ->claim11-13#uid11-13 class=silver policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-13 fin=kubernetes.io/pv-controller
                 pvc claim11-13#uid11-13 1Gi Bound vol=pvc-uid11-13 bbc bc class=silver sp=kubernetes.io/host-path",
            ),
        claim("11-23 skip finding PV and provision for PVC annotated with AnnSelectedNode", "claim11-23")
            .before(
                "sc   copper kubernetes.io/host-path wffc
                 node node1
                 pv   volume11-23 1Gi Available class=copper policy=Delete
                 pvc  claim11-23#uid11-23 1Gi Pending class=copper node=node1",
            )
            .after(
                "pv volume11-23 1Gi Available class=copper policy=Delete
                 pv pvc-uid11-23 1Gi Pending ->claim11-23#uid11-23 class=copper policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-23 fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Pending class=copper node=node1 sp=kubernetes.io/host-path",
            )
            .events(&[
                "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid11-23 using \
                 kubernetes.io/host-path",
            ])
            .stable(
                "pv volume11-23 1Gi Available class=copper policy=Delete
                 pv pvc-uid11-23 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-23 fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=pvc-uid11-23 bbc bc class=copper sp=kubernetes.io/host-path node=node1",
            ),
    ]
}

/// The plugin does not exist, or does not support the claim.
fn plugin_errors() -> Vec<Case> {
    vec![
        claim("11-2 plugin not found", "claim11-2")
            .before(
                "sc  gold kubernetes.io/mock-volume
                 pvc claim11-2#uid11-2 1Gi Pending class=gold",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/mock-volume"]),
        claim("11-3 newProvisioner failure", "claim11-3")
            .config(|config| config.host_path_provisioner = false)
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-3#uid11-3 1Gi Pending class=gold",
            )
            .after("pvc claim11-3#uid11-3 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&["Warning ProvisioningFailed Failed to create provisioner: provisioning in volume plugin \
                 \"kubernetes.io/host-path\" is disabled"]),
        claim("11-14 fail due to non-existing class", "claim11-14")
            .before("pvc claim11-14#uid11-14 1Gi Pending class=non-existing")
            .unchanged()
            .events(&["Warning ProvisioningFailed storageclass.storage.k8s.io \"non-existing\" not found"]),
        claim("11-18 unknown internal provisioner", "claim11-18")
            .before(
                "sc  unknown-internal kubernetes.io/unknown
                 pvc claim11-18#uid11-18 1Gi Pending class=unknown-internal",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/unknown"]),
        claim("11-20 unsupported storageClass.mountOptions", "claim11-20")
            .before(
                "sc  unsupported-mountoptions kubernetes.io/host-path mount=foo
                 pvc claim11-20#uid11-20 1Gi Pending class=unsupported-mountoptions",
            )
            .after("pvc claim11-20#uid11-20 1Gi Pending class=unsupported-mountoptions sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Mount options are not supported by the provisioner but StorageClass \
                 \"unsupported-mountoptions\" has mount options [foo]",
            ]),
        claim("11-25 failed in-tree provision with data source", "claim11-25")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-25#uid11-25 1Gi Pending class=gold source=VolumeSnapshot",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed plugin \"kubernetes.io/host-path\" is not a CSI plugin. Only CSI \
                 plugin can provision a claim with a datasource"]),
    ]
}

/// A volume exists, or there is no class or provisioner.
fn no_need() -> Vec<Case> {
    vec![
        claim("11-6 provisioning when there is a volume available", "claim11-6")
            .before(
                "sc  gold kubernetes.io/host-path
                 pv  volume11-6 1Gi Available class=gold
                 pvc claim11-6#uid11-6 1Gi Pending class=gold",
            )
            .after(
                "pv  volume11-6 1Gi Bound ->claim11-6#uid11-6 bbc class=gold
                 pvc claim11-6#uid11-6 1Gi Bound vol=volume11-6 bbc bc class=gold",
            )
            .events(&[]),
        claim("11-7 claim is bound before provisioning", "claim11-7")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-7#uid11-7 1Gi Pending class=gold",
            )
            .unseen_change(|cluster| {
                notation::add(
                    cluster,
                    "pv pvc-uid11-7 1Gi Bound ->claim11-7#uid11-7 class=gold policy=Delete \
                        source=hostPath:/tmp/hostpath_pv/uid11-7 bbc by=kubernetes.io/host-path",
                );
            })
            // Upstream binds it in the next sync; here the live read is enough.
            .after(
                "pv  pvc-uid11-7 1Gi Bound ->claim11-7#uid11-7 class=gold policy=Delete \
                    source=hostPath:/tmp/hostpath_pv/uid11-7 bbc by=kubernetes.io/host-path
                 pvc claim11-7#uid11-7 1Gi Bound vol=pvc-uid11-7 bbc bc class=gold sp=kubernetes.io/host-path",
            )
            .events(&[])
            // Nothing is provisioned if the volume is in the cache; it gets its finalizer.
            .stable(
                "pv  pvc-uid11-7 1Gi Bound ->claim11-7#uid11-7 class=gold policy=Delete \
                    source=hostPath:/tmp/hostpath_pv/uid11-7 bbc by=kubernetes.io/host-path fin=kubernetes.io/pv-controller
                 pvc claim11-7#uid11-7 1Gi Bound vol=pvc-uid11-7 bbc bc class=gold",
            ),
        claim("11-15 no provisioning with class=''", "claim11-15")
            .before("pvc claim11-15#uid11-15 1Gi Pending class=")
            .unchanged()
            .events(&[
                "Normal FailedBinding no persistent volumes available for this claim and no storage class is set",
            ]),
        claim("11-16 no provisioning with class=nil", "claim11-15")
            .before("pvc claim11-15#uid11-15 1Gi Pending")
            .unchanged()
            .events(&[
                "Normal FailedBinding no persistent volumes available for this claim and no storage class is set",
            ]),
        claim("TestDisablingDynamicProvisioner", "claim1")
            .config(|config| config.dynamic_provisioning = false)
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim1#uid1 1Gi Pending class=gold",
            )
            .unchanged()
            .events(&[]),
    ]
}

/// Creating the PersistentVolume fails at first.
fn saving() -> Vec<Case> {
    vec![
        claim("11-8 cannot save provisioned volume", "claim11-8")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-8#uid11-8 1Gi Pending class=gold",
            )
            .error("create", Kind::Volume, RequestError::Error(500, "Mock creation error".into()))
            .after(
                "pv pvc-uid11-8 1Gi Pending ->claim11-8#uid11-8 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-8 fin=kubernetes.io/pv-controller
                 pvc claim11-8#uid11-8 1Gi Pending class=gold sp=kubernetes.io/host-path",
            )
            .events(&[
                "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid11-8 using \
                 kubernetes.io/host-path",
            ])
            .stable(
                "pv pvc-uid11-8 1Gi Bound ->claim11-8#uid11-8 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-8 fin=kubernetes.io/pv-controller
                 pvc claim11-8#uid11-8 1Gi Bound vol=pvc-uid11-8 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        // Upstream saves the volume in neither attempt; here the answer to the first attempt is
        // lost.
        claim("11-19 provisioned volume saved but API server crashed", "claim11-19")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-19#uid11-19 1Gi Pending class=gold",
            )
            .lost_answer("create", Kind::Volume)
            .after(
                "pv pvc-uid11-19 1Gi Pending ->claim11-19#uid11-19 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-19 fin=kubernetes.io/pv-controller
                 pvc claim11-19#uid11-19 1Gi Pending class=gold sp=kubernetes.io/host-path",
            )
            .events(&[
                "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid11-19 using \
                 kubernetes.io/host-path",
            ])
            .stable(
                "pv pvc-uid11-19 1Gi Bound ->claim11-19#uid11-19 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-19 fin=kubernetes.io/pv-controller
                 pvc claim11-19#uid11-19 1Gi Bound vol=pvc-uid11-19 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
    ]
}

/// Creating the PersistentVolume fails five times: its storage is deleted. A later retry succeeds.
fn cleaning_up() -> Vec<Case> {
    vec![
        unsaved("11-9 cannot save provisioned volume, delete succeeds", "claim11-9")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-9#uid11-9 1Gi Pending class=gold",
            )
            .after("pvc claim11-9#uid11-9 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Error creating provisioned PV object for claim default/claim11-9: \
                 Mock creation error5. Deleting the volume.",
            ])
            .stable(
                "pv pvc-uid11-9 1Gi Bound ->claim11-9#uid11-9 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-9 fin=kubernetes.io/pv-controller
                 pvc claim11-9#uid11-9 1Gi Bound vol=pvc-uid11-9 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        unsaved("11-10 cannot save provisioned volume, no delete plugin found", "claim11-10")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-10#uid11-10 1Gi Pending class=gold",
            )
            .script(Task::DiscardStorage, &[Err("no deletable volume plugin matched"); 5])
            .after("pvc claim11-10#uid11-10 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Error creating provisioned PV object for claim default/claim11-10: \
                 Mock creation error5. Deleting the volume.",
                "Warning ProvisioningCleanupFailed Error cleaning provisioned volume for claim \
                 default/claim11-10: no deletable volume plugin matched. Please delete manually.",
            ])
            .stable(
                "pv pvc-uid11-10 1Gi Bound ->claim11-10#uid11-10 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-10 fin=kubernetes.io/pv-controller
                 pvc claim11-10#uid11-10 1Gi Bound vol=pvc-uid11-10 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        unsaved("11-11 cannot save provisioned volume, deleter fails", "claim11-11")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-11#uid11-11 1Gi Pending class=gold",
            )
            .script(
                Task::DiscardStorage,
                &[
                    Err("Mock deletion error1"),
                    Err("Mock deletion error2"),
                    Err("Mock deletion error3"),
                    Err("Mock deletion error4"),
                    Err("Mock deletion error5"),
                ],
            )
            .after("pvc claim11-11#uid11-11 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Error creating provisioned PV object for claim default/claim11-11: \
                 Mock creation error5. Deleting the volume.",
                "Warning ProvisioningCleanupFailed Error cleaning provisioned volume for claim \
                 default/claim11-11: Mock deletion error5. Please delete manually.",
            ])
            .stable(
                "pv pvc-uid11-11 1Gi Bound ->claim11-11#uid11-11 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-11 fin=kubernetes.io/pv-controller
                 pvc claim11-11#uid11-11 1Gi Bound vol=pvc-uid11-11 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
        unsaved("11-12 cannot save provisioned volume, delete succeeds 2nd time", "claim11-12")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim11-12#uid11-12 1Gi Pending class=gold",
            )
            .script(Task::DiscardStorage, &[Err("Mock deletion error1"), Ok(())])
            .after("pvc claim11-12#uid11-12 1Gi Pending class=gold sp=kubernetes.io/host-path")
            .events(&[
                "Warning ProvisioningFailed Error creating provisioned PV object for claim default/claim11-12: \
                 Mock creation error5. Deleting the volume.",
            ])
            .stable(
                "pv pvc-uid11-12 1Gi Bound ->claim11-12#uid11-12 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid11-12 fin=kubernetes.io/pv-controller
                 pvc claim11-12#uid11-12 1Gi Bound vol=pvc-uid11-12 bbc bc class=gold sp=kubernetes.io/host-path",
            ),
    ]
}

/// A case in which five attempts to create the PersistentVolume fail.
fn unsaved(name: &'static str, key: &str) -> Case {
    let error = |case: Case, number| {
        case.error("create", Kind::Volume, RequestError::Error(500, format!("Mock creation error{number}")))
    };
    (1..=5).fold(claim(name, key), error)
}

/// An external provisioner provisions the volume.
fn external() -> Vec<Case> {
    vec![
        claim("11-17 external provisioner", "claim11-17")
            .before(
                "sc  external vendor.com/my-volume
                 pvc claim11-17#uid11-17 1Gi Pending class=external",
            )
            .after("pvc claim11-17#uid11-17 1Gi Pending class=external sp=vendor.com/my-volume")
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'vendor.com/my-volume'"]),
        // Upstream's fake treats every name as migrated; in the real table the driver itself is
        // not.
        claim("11-21 external provisioner for CSI migration", "claim11-21")
            .before(
                "sc  gold kubernetes.io/gce-pd
                 pvc claim11-21#uid11-21 1Gi Pending class=gold",
            )
            .after("pvc claim11-21#uid11-21 1Gi Pending class=gold sp=pd.csi.storage.gke.io")
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'pd.csi.storage.gke.io'"]),
        claim("11-22 external provisioner with volume available", "claim11-22")
            .before(
                "sc  external vendor.com/my-volume
                 pv  volume11-22 1Gi Available class=external
                 pvc claim11-22#uid11-22 1Gi Pending class=external",
            )
            .after(
                "pv  volume11-22 1Gi Bound ->claim11-22#uid11-22 bbc class=external
                 pvc claim11-22#uid11-22 1Gi Bound vol=volume11-22 bbc bc class=external",
            )
            .events(&[]),
        claim(
            "11-24 skip finding PV and wait external provisioner for PVC annotated with AnnSelectedNode",
            "claim11-24",
        )
        .before(
            "sc  external-wait vendor.com/my-volume-wait wffc
                 pv  volume11-24 1Gi Available class=external-wait policy=Delete
                 pvc claim11-24#uid11-24 1Gi Pending class=external-wait node=node1",
        )
        .after(
            "pv  volume11-24 1Gi Available class=external-wait policy=Delete
                 pvc claim11-24#uid11-24 1Gi Pending class=external-wait node=node1 sp=vendor.com/my-volume-wait",
        )
        .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'vendor.com/my-volume-wait'"]),
        claim("11-26 csi with data source", "claim11-26")
            .before(
                "sc  csi mydriver.csi.k8s.io
                 pvc claim11-26#uid11-26 1Gi Pending class=csi source=VolumeSnapshot sp-ga=mydriver.csi.k8s.io",
            )
            .unchanged()
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'mydriver.csi.k8s.io'"]),
    ]
}

/// Until stable.
fn until_stable() -> Vec<Case> {
    vec![
        multi("12-1 successful provision")
            .before(
                "sc  gold kubernetes.io/host-path default
                 pvc claim12-1#uid12-1 1Gi Pending class=gold",
            )
            .after(
                "pv pvc-uid12-1 1Gi Bound ->claim12-1#uid12-1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                    source=hostPath:/tmp/hostpath_pv/uid12-1 fin=kubernetes.io/pv-controller
                 pvc claim12-1#uid12-1 1Gi Bound vol=pvc-uid12-1 bbc bc class=gold sp=kubernetes.io/host-path",
            )
            .events(&["Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid12-1 using \
                 kubernetes.io/host-path"]),
        multi("12-2 external provisioner with volume provisioned success")
            .before(
                "sc  external vendor.com/my-volume
                 pvc claim12-2#uid12-2 1Gi Pending class=external",
            )
            .then(|cluster| notation::add(cluster, "pv pvc-uid12-2 1Gi Available class=external"))
            .after(
                "pv  pvc-uid12-2 1Gi Bound ->claim12-2#uid12-2 bbc class=external
                 pvc claim12-2#uid12-2 1Gi Bound vol=pvc-uid12-2 bbc bc class=external sp=vendor.com/my-volume",
            )
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'vendor.com/my-volume'"]),
        multi("12-3 external provisioner with volume to be provisioned")
            .before(
                "sc  external vendor.com/my-volume
                 pvc claim12-3#uid12-3 1Gi Pending class=external",
            )
            .after("pvc claim12-3#uid12-3 1Gi Pending class=external sp=vendor.com/my-volume")
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'vendor.com/my-volume'"]),
        multi("12-4 external provisioner with volume provisioned/bound success")
            .before(
                "sc  external vendor.com/my-volume
                 pvc claim12-4#uid12-4 1Gi Pending class=external",
            )
            .then(|cluster| notation::add(cluster, "pv pvc-uid12-4 1Gi Bound ->claim12-4#uid12-4 bbc class=external"))
            .after(
                "pv  pvc-uid12-4 1Gi Bound ->claim12-4#uid12-4 bbc class=external
                 pvc claim12-4#uid12-4 1Gi Bound vol=pvc-uid12-4 bbc bc class=external sp=vendor.com/my-volume",
            )
            .events(&["Normal ExternalProvisioning Waiting for a volume to be created either by the external \
                 provisioner 'vendor.com/my-volume'"]),
    ]
}
