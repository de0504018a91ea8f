//! Go's structs for pods. Fields that have little to do with volumes are printed with their JSON
//! names.

use super::{FLAG, NIL, Part, Shape, TEXT};
use crate::value::{set, take};
use serde_json::Value;

const RESOURCES: Shape = &[("Limits", "limits", NIL), ("Requests", "requests", NIL), ("Claims", "claims", NIL)];

const PORT: Shape = &[
    ("Name", "name", TEXT),
    ("HostPort", "hostPort", ZERO),
    ("ContainerPort", "containerPort", ZERO),
    ("Protocol", "protocol", TEXT),
    ("HostIP", "hostIP", TEXT),
];

const ZERO: Part = Part::Leaf("0");

const MOUNT: Shape = &[
    ("Name", "name", TEXT),
    ("ReadOnly", "readOnly", FLAG),
    ("RecursiveReadOnly", "recursiveReadOnly", NIL),
    ("MountPath", "mountPath", TEXT),
    ("SubPath", "subPath", TEXT),
    ("MountPropagation", "mountPropagation", NIL),
    ("SubPathExpr", "subPathExpr", TEXT),
];

const CONTAINER: Shape = &[
    ("Name", "name", TEXT),
    ("Image", "image", TEXT),
    ("Command", "command", NIL),
    ("Args", "args", NIL),
    ("WorkingDir", "workingDir", TEXT),
    ("Ports", "ports", Part::List(PORT)),
    ("EnvFrom", "envFrom", NIL),
    ("Env", "env", NIL),
    ("Resources", "resources", Part::Inline(RESOURCES)),
    ("ResizePolicy", "resizePolicy", NIL),
    ("RestartPolicy", "restartPolicy", NIL),
    ("RestartPolicyRules", "restartPolicyRules", NIL),
    ("VolumeMounts", "volumeMounts", Part::List(MOUNT)),
    ("VolumeDevices", "volumeDevices", Part::List(&[("Name", "name", TEXT), ("DevicePath", "devicePath", TEXT)])),
    ("LivenessProbe", "livenessProbe", NIL),
    ("ReadinessProbe", "readinessProbe", NIL),
    ("StartupProbe", "startupProbe", NIL),
    ("Lifecycle", "lifecycle", NIL),
    ("TerminationMessagePath", "terminationMessagePath", TEXT),
    ("TerminationMessagePolicy", "terminationMessagePolicy", TEXT),
    ("ImagePullPolicy", "imagePullPolicy", TEXT),
    ("SecurityContext", "securityContext", NIL),
    ("Stdin", "stdin", FLAG),
    ("StdinOnce", "stdinOnce", FLAG),
    ("TTY", "tty", FLAG),
];

const CLAIM_OF_POD: Part = Part::Struct(&[("ClaimName", "claimName", TEXT), ("ReadOnly", "readOnly", FLAG)]);
const EMPTY_DIRECTORY: Part = Part::Struct(&[("Medium", "medium", TEXT), ("SizeLimit", "sizeLimit", NIL)]);

const VOLUME: Shape = &[
    ("Name", "name", TEXT),
    ("HostPath", "hostPath", Part::Struct(&[("Path", "path", TEXT), ("Type", "type", NIL)])),
    ("EmptyDir", "emptyDir", EMPTY_DIRECTORY),
    ("GCEPersistentDisk", "gcePersistentDisk", NIL),
    ("AWSElasticBlockStore", "awsElasticBlockStore", NIL),
    ("GitRepo", "gitRepo", NIL),
    ("Secret", "secret", NIL),
    ("NFS", "nfs", NIL),
    ("ISCSI", "iscsi", NIL),
    ("Glusterfs", "glusterfs", NIL),
    ("PersistentVolumeClaim", "persistentVolumeClaim", CLAIM_OF_POD),
    ("RBD", "rbd", NIL),
    ("Quobyte", "quobyte", NIL),
    ("FlexVolume", "flexVolume", NIL),
    ("Cinder", "cinder", NIL),
    ("CephFS", "cephfs", NIL),
    ("Flocker", "flocker", NIL),
    ("DownwardAPI", "downwardAPI", NIL),
    ("FC", "fc", NIL),
    ("AzureFile", "azureFile", NIL),
    ("ConfigMap", "configMap", NIL),
    ("VsphereVolume", "vsphereVolume", NIL),
    ("AzureDisk", "azureDisk", NIL),
    ("PhotonPersistentDisk", "photonPersistentDisk", NIL),
    ("Projected", "projected", NIL),
    ("PortworxVolume", "portworxVolume", NIL),
    ("ScaleIO", "scaleIO", NIL),
    ("StorageOS", "storageos", NIL),
    ("CSI", "csi", NIL),
    ("Ephemeral", "ephemeral", NIL),
    ("Image", "image", NIL),
];

/// Fields of the spec that Go has in the security context.
const OF_HOST: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

/// A spec with its fields where Go has them.
pub(super) fn as_upstream(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for name in OF_HOST {
        if let Some(found) = take(&mut spec, &[name]) {
            set(&mut spec, &["securityContext", name], found);
        }
    }
    spec
}

const SECURITY: Part = Part::Struct(&[
    ("HostNetwork", "hostNetwork", FLAG),
    ("HostPID", "hostPID", FLAG),
    ("HostIPC", "hostIPC", FLAG),
    ("ShareProcessNamespace", "shareProcessNamespace", NIL),
    ("HostUsers", "hostUsers", NIL),
    ("SELinuxOptions", "seLinuxOptions", NIL),
    ("WindowsOptions", "windowsOptions", NIL),
    ("RunAsUser", "runAsUser", NIL),
    ("RunAsGroup", "runAsGroup", NIL),
    ("RunAsNonRoot", "runAsNonRoot", NIL),
    ("SupplementalGroups", "supplementalGroups", NIL),
    ("SupplementalGroupsPolicy", "supplementalGroupsPolicy", NIL),
    ("FSGroup", "fsGroup", NIL),
    ("Sysctls", "sysctls", NIL),
    ("FSGroupChangePolicy", "fsGroupChangePolicy", NIL),
    ("SeccompProfile", "seccompProfile", NIL),
    ("AppArmorProfile", "appArmorProfile", NIL),
    ("SELinuxChangePolicy", "seLinuxChangePolicy", NIL),
]);

const TOLERATION: Shape = &[
    ("Key", "key", TEXT),
    ("Operator", "operator", TEXT),
    ("Value", "value", TEXT),
    ("Effect", "effect", TEXT),
    ("TolerationSeconds", "tolerationSeconds", NIL),
];

/// A pod's spec.
pub(super) const SPEC: Shape = &[
    ("Volumes", "volumes", Part::List(VOLUME)),
    ("InitContainers", "initContainers", Part::List(CONTAINER)),
    ("Containers", "containers", Part::List(CONTAINER)),
    ("EphemeralContainers", "ephemeralContainers", NIL),
    ("RestartPolicy", "restartPolicy", TEXT),
    ("TerminationGracePeriodSeconds", "terminationGracePeriodSeconds", NIL),
    ("ActiveDeadlineSeconds", "activeDeadlineSeconds", NIL),
    ("DNSPolicy", "dnsPolicy", TEXT),
    ("NodeSelector", "nodeSelector", NIL),
    ("ServiceAccountName", "serviceAccountName", TEXT),
    ("AutomountServiceAccountToken", "automountServiceAccountToken", NIL),
    ("NodeName", "nodeName", TEXT),
    ("SecurityContext", "securityContext", SECURITY),
    ("ImagePullSecrets", "imagePullSecrets", NIL),
    ("Hostname", "hostname", TEXT),
    ("Subdomain", "subdomain", TEXT),
    ("SetHostnameAsFQDN", "setHostnameAsFQDN", NIL),
    ("Affinity", "affinity", NIL),
    ("SchedulerName", "schedulerName", TEXT),
    ("Tolerations", "tolerations", Part::List(TOLERATION)),
    ("HostAliases", "hostAliases", NIL),
    ("PriorityClassName", "priorityClassName", TEXT),
    ("Priority", "priority", NIL),
    ("PreemptionPolicy", "preemptionPolicy", NIL),
    ("DNSConfig", "dnsConfig", NIL),
    ("ReadinessGates", "readinessGates", NIL),
    ("RuntimeClassName", "runtimeClassName", NIL),
    ("Overhead", "overhead", NIL),
    ("EnableServiceLinks", "enableServiceLinks", NIL),
    ("TopologySpreadConstraints", "topologySpreadConstraints", NIL),
    ("OS", "os", Part::Struct(&[("Name", "name", TEXT)])),
    ("SchedulingGates", "schedulingGates", NIL),
    ("ResourceClaims", "resourceClaims", NIL),
    ("Resources", "resources", NIL),
    ("HostnameOverride", "hostnameOverride", NIL),
    ("SchedulingGroup", "schedulingGroup", NIL),
];
