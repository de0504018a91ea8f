//! Zones and regions, for which plugins and drivers use different labels.

use std::collections::BTreeSet;

use super::Plugin;
use crate::{Class, Name, Requirement, Topologies};

/// The zone label.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The region label.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The beta form of [`ZONE`].
pub const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// The beta form of [`REGION`].
pub const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// Separates several zones in one label.
pub const ZONE_DELIMITER: &str = "__";

/// The parameter of a class with one zone, in lower case.
pub const ZONE_PARAMETER: &str = "zone";
/// The parameter of a class with comma-separated zones, in lower case.
pub const ZONES_PARAMETER: &str = "zones";

/// The allowed topologies of a class, with the labels of the CSI driver that replaces its plugin.
/// Zones in its parameters mean the same; a class with both is rejected elsewhere.
pub fn topologies(class: &Class) -> Topologies {
    let Some(plugin) = Plugin::named(&class.provisioner) else { return class.topologies.clone() };
    let Some(key) = plugin.zone_key().map(Name::new_static) else { return class.topologies.clone() };
    let zone = |zone: &Name| match plugin {
        // In regions without zones the plugin uses fault domain numbers, and the driver an empty
        // zone.
        Plugin::AzureDisk if !zone.is_empty() && zone.bytes().all(|digit| digit.is_ascii_digit()) => Name::default(),
        Plugin::AzureDisk
        | Plugin::AwsEbs
        | Plugin::GcePd
        | Plugin::AzureFile
        | Plugin::Cinder
        | Plugin::Vsphere
        | Plugin::Portworx => zone.clone(),
    };
    let within = |zones: &[Name]| Requirement::of_labels(key.clone(), "In", zones.iter().map(zone).collect());
    if plugin.takes_zones() && !class.zones.is_empty() {
        let term: Box<[Requirement]> = within(&class.zones).into_iter().collect();
        return Topologies::from_iter([term]);
    }
    let is_zone = |label: &Requirement| [ZONE, BETA_ZONE, &key].iter().any(|known| label.key() == *known);
    let translate = |label: &Requirement| match is_zone(label) {
        true => within(label.values()).unwrap_or_else(|_| label.clone()),
        false => label.clone(),
    };
    class.topologies.terms().map(|term| term.iter().map(translate).collect::<Box<[Requirement]>>()).collect()
}

/// The region of zones, by their names; `None` if the names of the plugin's cloud do not include
/// it.
pub fn region(plugin: Plugin, zones: &[&str]) -> Result<Option<String>, String> {
    let of: fn(&str) -> Option<String> = match plugin {
        Plugin::AwsEbs => aws_region,
        Plugin::GcePd => gce_region,
        Plugin::AzureFile | Plugin::AzureDisk | Plugin::Cinder | Plugin::Vsphere | Plugin::Portworx => return Ok(None),
    };
    let mut regions = BTreeSet::new();
    for zone in zones {
        regions.insert(of(zone).ok_or_else(|| format!("{zone:?} is not the name of a zone"))?);
    }
    let mut regions = regions.into_iter();
    match (regions.next(), regions.next()) {
        (Some(region), None) => Ok(Some(region)),
        (None, _) | (Some(_), Some(_)) => Err(format!("the zones {zones:?} are not of one region")),
    }
}

/// GCE zones are named `{continent}-{region}-{zone}`.
fn gce_region(zone: &str) -> Option<String> {
    let (region, _) = zone.rsplit_once('-')?;
    (zone.split('-').count() == 3).then(|| region.to_owned())
}

/// AWS availability zones are named by region and letter (`us-west-2a`, `us-gov-east-1a`); local
/// and wavelength zones by three words for the region, and more (`us-west-2-lax-1a`,
/// `us-east-1-wl1-bos-wlz-1`).
fn aws_region(zone: &str) -> Option<String> {
    let words: Vec<&str> = zone.split('-').collect();
    match (words.len(), words.last()) {
        (3 | 4, Some(last)) if last.len() == 2 && last.is_ascii() => Some(zone[..zone.len() - 1].to_owned()),
        (5 | 7, _) => Some(words[..3].join("-")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(plugin: &str, more: &str) -> Class {
        let json = format!(r#"{{"metadata":{{"name":"k"}},"provisioner":"kubernetes.io/{plugin}",{more}}}"#);
        Class::from_json(json.as_bytes()).expect("a class")
    }

    /// The terms, as text.
    fn shown(class: &Class) -> String {
        let label = |label: &Requirement| {
            let values: Vec<&str> = label.values().iter().map(Name::as_str).collect();
            format!("{}={}", label.key(), values.join("|"))
        };
        let term = |term: &[Requirement]| term.iter().map(label).collect::<Vec<_>>().join(" ");
        topologies(class).terms().map(term).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn topologies_use_the_labels_of_the_driver() {
        let allowed = |key: &str, value: &str| {
            format!(
                r#""allowedTopologies":[{{"matchLabelExpressions":[{{"key":"{key}","values":["{value}"]}},{{"key":"rack","values":["1"]}}]}}]"#
            )
        };
        let zones = |parameter: &str, value: &str| format!(r#""parameters":{{"{parameter}":"{value}"}}"#);
        let cases = [
            ("aws-ebs", allowed(ZONE, "a"), "topology.ebs.csi.aws.com/zone=a rack=1"),
            ("gce-pd", allowed(BETA_ZONE, "a"), "topology.gke.io/zone=a rack=1"),
            ("cinder", allowed(ZONE, "a"), "topology.cinder.csi.openstack.org/zone=a rack=1"),
            ("vsphere-volume", allowed(ZONE, "a"), "topology.csi.vmware.com/zone=a rack=1"),
            ("azure-disk", allowed(ZONE, "west-1"), "topology.disk.csi.azure.com/zone=west-1 rack=1"),
            ("azure-disk", allowed(ZONE, "0"), "topology.disk.csi.azure.com/zone= rack=1"),
            ("azure-disk", zones("zones", "west-1,2"), "topology.disk.csi.azure.com/zone=west-1|"),
            ("azure-file", allowed(ZONE, "a"), "topology.kubernetes.io/zone=a rack=1"),
            ("portworx-volume", allowed(ZONE, "a"), "topology.kubernetes.io/zone=a rack=1"),
            ("aws-ebs", zones("Zone", "a"), "topology.ebs.csi.aws.com/zone=a"),
            ("gce-pd", zones("zones", "a,b"), "topology.gke.io/zone=a|b"),
            ("cinder", zones("zone", "a"), ""),
            ("vsphere-volume", zones("zone", "a"), ""),
        ];
        for (plugin, more, expected) in cases {
            assert_eq!(shown(&class(plugin, &more)), expected, "{plugin} {more}");
        }
        let ours = Class { provisioner: "ebs.csi.aws.com".into(), ..class("aws-ebs", &allowed(ZONE, "a")) };
        assert_eq!(topologies(&ours), ours.topologies);
    }

    #[test]
    fn region_follows_from_the_names_of_zones() {
        let one =
            |plugin, zones: &[&str]| region(plugin, zones).map(Option::unwrap_or_default).unwrap_or("none".into());
        let cases: [(Plugin, &[&str], &str); 10] = [
            (Plugin::AwsEbs, &["us-west-2a", "us-west-2b"], "us-west-2"),
            (Plugin::AwsEbs, &["us-gov-east-1a"], "us-gov-east-1"),
            (Plugin::AwsEbs, &["us-west-2-lax-1a", "us-west-2a"], "us-west-2"),
            (Plugin::AwsEbs, &["us-east-1-wl1-bos-wlz-1"], "us-east-1"),
            (Plugin::AwsEbs, &["us-west-2a", "us-west-1a"], "none"),
            (Plugin::AwsEbs, &["a"], "none"),
            (Plugin::AwsEbs, &[], "none"),
            (Plugin::GcePd, &["us-central1-a", "us-central1-b"], "us-central1"),
            (Plugin::GcePd, &["central1-a"], "none"),
            (Plugin::Cinder, &["nova"], ""),
        ];
        for (plugin, zones, expected) in cases {
            assert_eq!(one(plugin, zones), expected, "{zones:?}");
        }
    }
}
