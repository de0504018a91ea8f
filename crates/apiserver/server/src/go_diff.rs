//! Diffs in upstream's error messages: Go structs printed as JSON with Go's field names.

mod pod;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A Go struct: for each field Go's name, the JSON name, and its type.
type Shape = &'static [(&'static str, &'static str, Part)];

#[derive(Clone, Copy)]
enum Part {
    /// A scalar, list or map, and how its zero value is printed.
    Leaf(&'static str),
    Struct(Shape),
    /// A struct that is always printed.
    Inline(Shape),
    /// A list of structs.
    List(Shape),
    /// A scalar, list or map that is omitted if it is not set.
    MaybeLeaf,
    /// A list of structs that is omitted if it is not set.
    MaybeList(Shape),
}

const NIL: Part = Part::Leaf("null");
const TEXT: Part = Part::Leaf("\"\"");
const FLAG: Part = Part::Leaf("false");
const SECRET: Part = Part::Struct(&[("Name", "name", TEXT), ("Namespace", "namespace", TEXT)]);
const TYPED: Shape = &[("APIGroup", "apiGroup", NIL), ("Kind", "kind", TEXT), ("Name", "name", TEXT)];
const TYPED_ANYWHERE: Shape =
    &[("APIGroup", "apiGroup", NIL), ("Kind", "kind", TEXT), ("Name", "name", TEXT), ("Namespace", "namespace", NIL)];
const REQUIREMENT: Shape =
    &[("key", "key", TEXT), ("operator", "operator", TEXT), ("values", "values", Part::MaybeLeaf)];
const NODE_REQUIREMENT: Shape = &[("Key", "key", TEXT), ("Operator", "operator", TEXT), ("Values", "values", NIL)];

const CLAIM_SPEC: Shape = &[
    ("AccessModes", "accessModes", NIL),
    (
        "Selector",
        "selector",
        Part::Struct(&[
            ("matchLabels", "matchLabels", Part::MaybeLeaf),
            ("matchExpressions", "matchExpressions", Part::MaybeList(REQUIREMENT)),
        ]),
    ),
    ("Resources", "resources", Part::Inline(&[("Limits", "limits", NIL), ("Requests", "requests", NIL)])),
    ("VolumeName", "volumeName", TEXT),
    ("StorageClassName", "storageClassName", NIL),
    ("VolumeMode", "volumeMode", NIL),
    ("DataSource", "dataSource", Part::Struct(TYPED)),
    ("DataSourceRef", "dataSourceRef", Part::Struct(TYPED_ANYWHERE)),
    ("VolumeAttributesClassName", "volumeAttributesClassName", NIL),
];

const VOLUME_SOURCE: Shape = &[
    ("GCEPersistentDisk", "gcePersistentDisk", NIL),
    ("AWSElasticBlockStore", "awsElasticBlockStore", NIL),
    ("HostPath", "hostPath", Part::Struct(&[("Path", "path", TEXT), ("Type", "type", NIL)])),
    ("Glusterfs", "glusterfs", NIL),
    ("NFS", "nfs", Part::Struct(&[("Server", "server", TEXT), ("Path", "path", TEXT), ("ReadOnly", "readOnly", FLAG)])),
    ("RBD", "rbd", NIL),
    ("Quobyte", "quobyte", NIL),
    ("ISCSI", "iscsi", NIL),
    ("FlexVolume", "flexVolume", NIL),
    ("Cinder", "cinder", NIL),
    ("CephFS", "cephfs", NIL),
    ("FC", "fc", NIL),
    ("Flocker", "flocker", NIL),
    ("AzureFile", "azureFile", NIL),
    ("VsphereVolume", "vsphereVolume", NIL),
    ("AzureDisk", "azureDisk", NIL),
    ("PhotonPersistentDisk", "photonPersistentDisk", NIL),
    ("PortworxVolume", "portworxVolume", NIL),
    ("ScaleIO", "scaleIO", NIL),
    ("Local", "local", Part::Struct(&[("Path", "path", TEXT), ("FSType", "fsType", NIL)])),
    ("StorageOS", "storageos", NIL),
    (
        "CSI",
        "csi",
        Part::Struct(&[
            ("Driver", "driver", TEXT),
            ("VolumeHandle", "volumeHandle", TEXT),
            ("ReadOnly", "readOnly", FLAG),
            ("FSType", "fsType", TEXT),
            ("VolumeAttributes", "volumeAttributes", NIL),
            ("ControllerPublishSecretRef", "controllerPublishSecretRef", SECRET),
            ("NodeStageSecretRef", "nodeStageSecretRef", SECRET),
            ("NodePublishSecretRef", "nodePublishSecretRef", SECRET),
            ("ControllerExpandSecretRef", "controllerExpandSecretRef", SECRET),
            ("NodeExpandSecretRef", "nodeExpandSecretRef", SECRET),
        ]),
    ),
];

const OWNER: Shape = &[
    ("apiVersion", "apiVersion", TEXT),
    ("kind", "kind", TEXT),
    ("name", "name", TEXT),
    ("uid", "uid", TEXT),
    ("controller", "controller", Part::MaybeLeaf),
    ("blockOwnerDeletion", "blockOwnerDeletion", Part::MaybeLeaf),
];
const CSI_DRIVER: Shape = &[
    ("Name", "name", TEXT),
    ("NodeID", "nodeID", TEXT),
    ("TopologyKeys", "topologyKeys", NIL),
    ("Allocatable", "allocatable", NIL),
];
const ATTACHMENT: Shape = &[
    ("Attacher", "attacher", TEXT),
    (
        "Source",
        "source",
        Part::Inline(&[
            ("PersistentVolumeName", "persistentVolumeName", NIL),
            ("InlineVolumeSpec", "inlineVolumeSpec", NIL),
        ]),
    ),
    ("NodeName", "nodeName", TEXT),
];

const AFFINITY: Shape = &[(
    "Required",
    "required",
    Part::Struct(&[(
        "NodeSelectorTerms",
        "nodeSelectorTerms",
        Part::List(&[
            ("MatchExpressions", "matchExpressions", Part::List(NODE_REQUIREMENT)),
            ("MatchFields", "matchFields", Part::List(NODE_REQUIREMENT)),
        ]),
    )]),
)];

/// A pod's spec, line by line.
pub fn pod_spec(spec: &Value) -> Vec<String> {
    lines(&pod::as_upstream(spec), pod::SPEC)
}

/// A claim's spec, line by line.
pub fn claim_spec(spec: &Value) -> Vec<String> {
    lines(spec, CLAIM_SPEC)
}

/// A volume's source, line by line.
pub fn volume_source(source: &Value) -> Vec<String> {
    lines(source, VOLUME_SOURCE)
}

/// A node affinity, on one line.
pub fn node_affinity(affinity: Option<&Value>) -> String {
    affinity.map_or("null".to_owned(), |affinity| one_line(affinity, AFFINITY))
}

/// A driver of a node, on one line.
pub fn csi_driver(driver: &Value) -> String {
    one_line(driver, CSI_DRIVER)
}

/// The spec of a VolumeAttachment, on one line.
pub fn attachment_spec(spec: &Value) -> String {
    one_line(spec, ATTACHMENT)
}

/// An owner reference, on one line.
pub fn owner(owner: &Value) -> String {
    one_line(owner, OWNER)
}

/// Owner references, on one line.
pub fn owners(owners: &[Value]) -> String {
    let owners: Vec<String> = owners.iter().map(owner).collect();
    format!("[{}]", owners.join(","))
}

fn one_line(value: &Value, shape: Shape) -> String {
    lines(value, shape).iter().map(|line| line.trim_start().replacen("\": ", "\":", 1)).collect()
}

fn lines(value: &Value, shape: Shape) -> Vec<String> {
    let mut out = vec!["{".to_owned()];
    write(value, shape, 1, &mut out);
    out.push("}".to_owned());
    out
}

fn write(value: &Value, shape: Shape, depth: usize, out: &mut Vec<String>) {
    let indent = " ".repeat(depth);
    let shown =
        |part: &Part, name: &str| !matches!(part, Part::MaybeLeaf | Part::MaybeList(_)) || value.get(name).is_some();
    let shape: Vec<_> = shape.iter().filter(|(_, name, part)| shown(part, name)).collect();
    for (index, (go, name, part)) in shape.iter().enumerate() {
        let comma = if index + 1 < shape.len() { "," } else { "" };
        let found = value.get(name);
        match (part, found) {
            (Part::Leaf(none), None) => out.push(format!("{indent}\"{go}\": {none}{comma}")),
            (Part::Struct(_) | Part::List(_) | Part::MaybeLeaf | Part::MaybeList(_), None) => {
                out.push(format!("{indent}\"{go}\": null{comma}"))
            }
            (Part::Leaf(_) | Part::MaybeLeaf, Some(found)) => {
                write_leaf(&format!("{indent}\"{go}\": "), found, depth, out);
                end(out, comma);
            }
            (Part::Struct(inner) | Part::Inline(inner), found) => {
                out.push(format!("{indent}\"{go}\": {{"));
                write(found.unwrap_or(&Value::Null), inner, depth + 1, out);
                out.push(format!("{indent}}}{comma}"));
            }
            (Part::List(inner) | Part::MaybeList(inner), Some(found)) => {
                out.push(format!("{indent}\"{go}\": ["));
                let items = found.as_array().map_or(&[][..], Vec::as_slice);
                for (position, item) in items.iter().enumerate() {
                    out.push(format!("{indent} {{"));
                    write(item, inner, depth + 2, out);
                    out.push(format!("{indent} }}{}", if position + 1 < items.len() { "," } else { "" }));
                }
                out.push(format!("{indent}]{comma}"));
            }
        }
    }
}

fn end(out: &mut [String], comma: &str) {
    if let Some(last) = out.last_mut() {
        last.push_str(comma);
    }
}

fn write_leaf(start: &str, value: &Value, depth: usize, out: &mut Vec<String>) {
    let indent = " ".repeat(depth);
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push(format!("{start}["));
            for (index, item) in items.iter().enumerate() {
                write_leaf(&format!("{indent} "), item, depth + 1, out);
                end(out, if index + 1 < items.len() { "," } else { "" });
            }
            out.push(format!("{indent}]"));
        }
        Value::Object(members) if !members.is_empty() => {
            out.push(format!("{start}{{"));
            for (index, (name, member)) in members.iter().enumerate() {
                write_leaf(&format!("{indent} {}: ", Value::from(name.as_str())), member, depth + 1, out);
                end(out, if index + 1 < members.len() { "," } else { "" });
            }
            out.push(format!("{indent}}}"));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            out.push(format!("{start}{value}"));
        }
    }
}

/// The number of lines of both texts, multiplied, up to which common lines are searched for. It is
/// far more than any valid object needs, and the search takes quadratic time.
const COMPARISONS_MAX: usize = 4_000_000;

/// A unified diff with three lines of context and no header. Beyond [`COMPARISONS_MAX`] all lines
/// differ.
pub fn diff(old: &[String], new: &[String]) -> String {
    let steps = marked(old, new, &too_common(new));
    let changed: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].0 != ' ').collect();
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for at in changed {
        let (from, to) = (at.saturating_sub(3), (at + 4).min(steps.len()));
        match hunks.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            Some(_) | None => hunks.push((from, to)),
        }
    }
    let mut out = String::new();
    for (from, to) in hunks {
        let before = |mark: char| 1 + steps[..from].iter().filter(|(kind, _)| *kind == ' ' || *kind == mark).count();
        let within = |mark: char| steps[from..to].iter().filter(|(kind, _)| *kind == ' ' || *kind == mark).count();
        out += &format!("@@ -{},{} +{},{} @@\n", before('-'), within('-'), before('+'), within('+'));
        for (mark, line) in &steps[from..to] {
            out += &format!("{mark}{line}\n");
        }
    }
    out
}

/// The lines of both texts, each marked as common, old or new. Upstream's library finds the longest
/// common run and continues recursively before and after it, which is not always a minimal diff.
fn marked<'a>(old: &'a [String], new: &'a [String], common: &BTreeSet<&str>) -> Vec<(char, &'a str)> {
    let with = |mark: char, lines: &'a [String]| lines.iter().map(move |line| (mark, line.as_str()));
    let is_short = old.len().saturating_mul(new.len()) <= COMPARISONS_MAX;
    let (at_old, at_new, length) = if is_short { longest_run(old, new, common) } else { (0, 0, 0) };
    if length == 0 {
        return with('-', old).chain(with('+', new)).collect();
    }
    let before = marked(&old[..at_old], &new[..at_new], common);
    let after = marked(&old[at_old + length..], &new[at_new + length..], common);
    before.into_iter().chain(with(' ', &old[at_old..at_old + length])).chain(after).collect()
}

/// Lines that are too frequent in a long text to start a run.
fn too_common(lines: &[String]) -> BTreeSet<&str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    let max = if lines.len() >= 200 { lines.len() / 100 + 1 } else { usize::MAX };
    counts.into_iter().filter(|(_, count)| *count > max).map(|(line, _)| line).collect()
}

/// The start in both texts and the length of the longest common run; the first if there are
/// several.
fn longest_run(old: &[String], new: &[String], common: &BTreeSet<&str>) -> (usize, usize, usize) {
    let mut best = (0, 0, 0);
    // For each line of `new`, the length of the run that ends with it and the current line of
    // `old`.
    let mut ending = vec![0; new.len() + 1];
    for (i, line) in old.iter().enumerate() {
        let mut next = vec![0; new.len() + 1];
        let skipped = common.contains(line.as_str());
        for j in (0..new.len()).filter(|j| !skipped && new[*j] == *line) {
            next[j + 1] = ending[j] + 1;
            if next[j + 1] > best.2 {
                best = (i + 1 - next[j + 1], j + 1 - next[j + 1], next[j + 1]);
            }
        }
        ending = next;
    }
    let (mut i, mut j, mut length) = best;
    while i > 0 && j > 0 && old[i - 1] == new[j - 1] {
        (i, j, length) = (i - 1, j - 1, length + 1);
    }
    while i + length < old.len() && j + length < new.len() && old[i + length] == new[j + length] {
        length += 1;
    }
    (i, j, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claim_specs_are_compared_as_upstream_does() {
        let spec = |size: &str| json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"});
        let text = diff(&claim_spec(&spec("1500m")), &claim_spec(&spec("6")));
        let wanted = "@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1500m\"\n+   \
                      \"storage\": \"6\"\n   }\n  },\n  \"VolumeName\": \"\",\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn volume_sources_are_compared_as_upstream_does() {
        let old = volume_source(&json!({"csi": {"driver": "a", "volumeHandle": "b"}}));
        let text = diff(&old, &volume_source(&json!({"hostPath": {"path": "/x", "type": ""}})));
        assert!(text.starts_with("@@ -1,7 +1,10 @@\n {\n  \"GCEPersistentDisk\": null,\n"), "{text}");
        assert!(text.contains("\n@@ -20,16 +23,5 @@\n"), "{text}");
    }
}
