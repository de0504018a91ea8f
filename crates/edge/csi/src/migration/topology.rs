//! The topology of a CSI volume, translated to zone and region labels: in its node affinity and on
//! the volume.

use std::collections::BTreeSet;

use bindery_model::migration::{BETA_REGION, BETA_ZONE, Plugin, REGION, ZONE, ZONE_DELIMITER, region};
use serde_json::{Value, json};

/// The region label of vSphere's CSI driver.
const VSPHERE_REGION: &str = "topology.csi.vmware.com/region";

/// Renames zones and regions in a volume's node affinity, adds the regions that zone names imply,
/// and adds both as labels.
pub(super) fn to_in_tree(plugin: Plugin, volume: &mut Value) -> Result<(), String> {
    let Some(key) = zone_key(plugin) else { return Ok(()) };
    let Some(terms) = volume.pointer_mut("/spec/nodeAffinity/required/nodeSelectorTerms").and_then(Value::as_array_mut)
    else {
        return Ok(());
    };
    let is_named = |terms: &[Value], key: &str| !values(terms, key).is_empty();
    let (zone, in_region) = match !is_named(terms, ZONE) && is_named(terms, BETA_ZONE) {
        true => (BETA_ZONE, BETA_REGION),
        false => (ZONE, REGION),
    };
    rename(terms, key, zone);
    if plugin == Plugin::Vsphere {
        rename(terms, VSPHERE_REGION, in_region);
    }
    for term in terms.iter_mut().filter(|term| values(std::slice::from_ref(term), in_region).is_empty()) {
        let zones = values(std::slice::from_ref(term), zone);
        let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
        let region_name = region(plugin, &zones).map_err(|error| format!("failed to translate topology: {error}"))?;
        if let (Some(region_name), Some(expressions)) = (region_name, term["matchExpressions"].as_array_mut()) {
            expressions.push(json!({"key": in_region, "operator": "In", "values": [region_name]}));
        }
    }
    let (zones, regions) = (values(terms, zone), values(terms, in_region));
    let (zones_max, has_region) = match plugin {
        Plugin::AwsEbs | Plugin::GcePd => (usize::MAX, regions.len() == 1),
        Plugin::Vsphere => (1, true),
        Plugin::Cinder | Plugin::AzureDisk | Plugin::AzureFile | Plugin::Portworx => (usize::MAX, false),
    };
    let zones: Vec<String> = zones.into_iter().take(zones_max).collect();
    let regions: Vec<String> = regions.into_iter().take(usize::from(has_region)).collect();
    for (label, found) in [(zone, zones.join(ZONE_DELIMITER)), (in_region, regions.concat())] {
        if !found.is_empty() {
            volume["metadata"]["labels"][label] = found.into();
        }
    }
    Ok(())
}

/// The driver's zone label, if it is translated. Azure's is kept.
fn zone_key(plugin: Plugin) -> Option<&'static str> {
    match plugin {
        Plugin::AwsEbs | Plugin::GcePd | Plugin::Cinder | Plugin::Vsphere => plugin.zone_key(),
        Plugin::AzureDisk | Plugin::AzureFile | Plugin::Portworx => None,
    }
}

/// All values that terms list for a label, sorted.
fn values(terms: &[Value], key: &str) -> BTreeSet<String> {
    let expressions = terms.iter().filter_map(|term| term["matchExpressions"].as_array()).flatten();
    let values = expressions
        .filter(|expression| expression["key"] == key)
        .filter_map(|expression| expression["values"].as_array());
    values.flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

fn rename(terms: &mut [Value], from: &str, to: &str) {
    let expressions = terms.iter_mut().filter_map(|term| term["matchExpressions"].as_array_mut()).flatten();
    for expression in expressions.filter(|expression| expression["key"] == from) {
        expression["key"] = to.into();
    }
}
