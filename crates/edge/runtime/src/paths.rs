//! API paths.

use bindery_model::{Kind, ObjectKey};

/// The path of a kind in all namespaces.
pub(crate) fn all(kind: Kind) -> &'static str {
    match kind {
        Kind::Claim => "/api/v1/persistentvolumeclaims",
        Kind::Volume => "/api/v1/persistentvolumes",
        Kind::Class => "/apis/storage.k8s.io/v1/storageclasses",
        Kind::AttributesClass => "/apis/storage.k8s.io/v1/volumeattributesclasses",
        Kind::Pod => "/api/v1/pods",
        Kind::Node => "/api/v1/nodes",
        Kind::CsiNode => "/apis/storage.k8s.io/v1/csinodes",
        Kind::CsiDriver => "/apis/storage.k8s.io/v1/csidrivers",
        Kind::Capacity => "/apis/storage.k8s.io/v1/csistoragecapacities",
        Kind::Attachment => "/apis/storage.k8s.io/v1/volumeattachments",
    }
}

/// The path of an object's collection.
pub(crate) fn collection(key: &ObjectKey) -> String {
    if key.namespace.is_empty() {
        return all(key.kind).to_owned();
    }
    let (group, plural) = all(key.kind).rsplit_once('/').expect("paths have a slash");
    format!("{group}/namespaces/{}/{plural}", key.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_model::ClaimKey;

    #[test]
    fn paths_of_namespaced_and_cluster_scoped_objects() {
        assert_eq!(collection(&ObjectKey::volume("v")), "/api/v1/persistentvolumes");
        let claim = ClaimKey::new("ns", "c").into();
        assert_eq!(collection(&claim), "/api/v1/namespaces/ns/persistentvolumeclaims");
        let class = ObjectKey::cluster(Kind::Class, "fast");
        assert_eq!(collection(&class), "/apis/storage.k8s.io/v1/storageclasses");
    }
}
