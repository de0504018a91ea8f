//! Upstream's controllers as clients; only their content type is configured.

use std::process::{Child, Command, Stdio};

use bindery_test_cluster::{KUBECTL_TIMEOUT, assets};

use crate::server::Server;

/// A running program, killed on drop.
struct Running(Child);

impl Running {
    fn start(server: &Server, program: &str, flags: &[&str]) -> Running {
        let programs = assets::find().expect("programs are found").expect("programs exist");
        let log = std::fs::File::create(server.folder().join(program)).expect("a log can be written");
        let child = Command::new(programs.join(program))
            .arg(format!("--kubeconfig={}", server.kubeconfig().display()))
            .args(["--kube-api-content-type=application/json", "--leader-elect=false", "--secure-port=0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Running(child.expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const CLUSTER: &str = r"
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubernetes.io/hostname: node-1}}
status:
  allocatable: {cpu: '4', memory: 8Gi, pods: '110'}
  conditions: [{type: Ready, status: 'True'}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /mnt/disk}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers: [{name: app, image: none}]
  tolerations: [{operator: Exists}]
  volumes:
  - name: data
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Gi}}}
";

#[test]
fn upstream_controllers_and_scheduler_place_a_pod_with_its_volume() {
    let Some(server) = Server::for_kubectl() else { return };
    let controllers = "--controllers=persistentvolume-binder-controller,persistentvolume-expander-controller,\
                       persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
                       ephemeral-volume-controller,garbage-collector-controller";
    let _controllers =
        Running::start(&server, "kube-controller-manager", &[controllers, "--pvclaimbinder-sync-period=1s"]);
    let _scheduler = Running::start(&server, "kube-scheduler", &[]);
    server.create(CLUSTER);
    let wait = |what: &str, how: &str| server.ok(&["wait", what, &format!("--for={how}"), KUBECTL_TIMEOUT]);
    wait("pod/app", "jsonpath={.spec.nodeName}=node-1");
    wait("pvc/app-data", "jsonpath={.status.phase}=Bound");
    wait("pv/disk", "jsonpath={.status.phase}=Bound");
    // The claim is deleted with the pod; the volume is retained.
    server.ok(&["delete", "pod", "app", "--grace-period=0", "--force"]);
    wait("pvc/app-data", "delete");
    wait("pv/disk", "jsonpath={.status.phase}=Released");
}
