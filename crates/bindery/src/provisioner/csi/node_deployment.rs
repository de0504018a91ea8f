//! One provisioner per node: the node, and the unassigned claims that it may provision there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_csi::capacity::Segment;
use bindery_csi::{Csi, Driver, NodeAssignment, ObjectClient, TouchedClaims, UnassignedClaim};
use bindery_model::migration::topologies;
use bindery_model::{Annotation, BindingMode, Claim, ClaimKey, Labels, Name};
use bindery_provisioner_sdk::{Config, OwnNode};
use bindery_runtime::Message;
use tokio::sync::mpsc::UnboundedSender;

use super::capacity::query;
use super::flags::NodeFlags;

/// The node that this provisioner serves.
pub struct LocalNode {
    /// Its name.
    pub name: String,
    /// Its topology segments, reported by the driver.
    pub topology: Segment,
}

/// The name of the node that this provisioner serves, with `--node-deployment`.
pub fn node_name(flags: &NodeFlags) -> Result<Option<String>, String> {
    if !flags.node_deployment {
        return Ok(None);
    }
    let name = std::env::var("NODE_NAME").ok().filter(|name| !name.is_empty());
    name.map(Some).ok_or_else(|| "the environment variable NODE_NAME must be set with --node-deployment".into())
}

/// The node, with the topology that the driver reports.
pub async fn local_node(name: Option<String>, driver: &Driver) -> Result<Option<LocalNode>, String> {
    let Some(name) = name else { return Ok(None) };
    let info = driver.node_info().await.map_err(|status| {
        let code = bindery_csi::code_name(status.code());
        format!("NodeGetInfo of the CSI driver failed: {code}: {}", status.message())
    })?;
    let topology = info.accessible_topology.map(|topology| topology.segments).unwrap_or_default();
    tracing::info!(node = name, ?topology, "provisioning for one node");
    Ok(Some(LocalNode { name, topology }))
}

impl LocalNode {
    fn labels(&self) -> Labels {
        self.topology.iter().map(|(key, value)| (Name::from(key.as_str()), Name::from(value.as_str()))).collect()
    }

    /// The node, for the configuration of the rules.
    pub fn own_node(&self) -> OwnNode {
        OwnNode { name: self.name.as_str().into(), segment: self.labels() }
    }

    /// Assigns claims to this node, if that is enabled.
    pub fn taking(&self, flags: &NodeFlags, csi: Arc<Csi>, look: Arc<dyn ObjectClient>) -> Option<NodeAssignment> {
        flags.node_deployment_immediate_binding.then(|| NodeAssignment {
            csi,
            objects: look,
            node: self.name.as_str().into(),
            segment: self.topology.clone(),
            delay_base: flags.node_deployment_base_delay,
            delay_max: flags.node_deployment_max_delay,
        })
    }
}

/// Assigns claims to this node, forever; does nothing if that is disabled.
pub async fn assign_claims(
    taking: Option<NodeAssignment>,
    config: Config,
    touched: Arc<TouchedClaims>,
    outbox: UnboundedSender<Message>,
) {
    let Some(taking) = taking else { return std::future::pending().await };
    let describe = |keys: BTreeSet<ClaimKey>| {
        let config = config.clone();
        query(&outbox, move |known| keys.into_iter().map(|key| unassigned(known, &config, key)).collect())
    };
    taking.run(touched, describe).await;
}

/// A claim, with its description if any node may provision it.
fn unassigned(known: &Cache, config: &Config, key: ClaimKey) -> (ClaimKey, Option<UnassignedClaim>) {
    let claim = known.claim(&key).filter(|claim| is_unassigned(known, claim, config));
    let description = claim.map(|claim| description(claim, config));
    (key, description)
}

fn description(claim: &Claim, config: &Config) -> UnassignedClaim {
    UnassignedClaim {
        claim: claim.key(),
        uid: claim.meta.uid.clone(),
        class: claim.class().clone(),
        volume: config.volume_name(&claim.meta.uid),
    }
}

/// Whether a claim needs a volume of this provisioner, with Immediate binding, in a topology that
/// includes this node.
fn is_unassigned(known: &Cache, claim: &Claim, config: &Config) -> bool {
    let annotation = |annotation| claim.annotations.get(annotation).filter(|value| !value.is_empty());
    let provisioner =
        annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner));
    let allows_node = |class: &bindery_model::Class| {
        let is_allowed =
            config.node.as_ref().is_none_or(|own| config.topology.is_none() || topologies(class).allow(&own.segment));
        class.binding == Some(BindingMode::Immediate) && config.has_name(&class.provisioner) && is_allowed
    };
    claim.volume.is_none()
        && !claim.deleting
        && provisioner.is_some_and(|name| config.has_name(name))
        && annotation(Annotation::SelectedNode).is_none()
        && known.class(claim.class()).is_some_and(|class| allows_node(class))
}
