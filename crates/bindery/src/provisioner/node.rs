//! One provisioner on each node: which node it is, and the claims that it may take for it.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_csi::capacity::Segment;
use bindery_csi::{Csi, Driver, NodeAssignment, ObjectClient, UnassignedClaim};
use bindery_model::migration::topologies;
use bindery_model::{Annotation, BindingMode, Claim, Kind, Labels, Name};
use bindery_provisioner_sdk::{Config, OwnNode};
use bindery_runtime::Message;
use tokio::sync::mpsc::UnboundedSender;

use super::flags::NodeFlags;
use super::room::ask;

/// The node that this provisioner is for.
pub struct Own {
    /// Its name.
    pub name: String,
    /// Where it is, as the driver says.
    pub place: Segment,
}

/// The name of the node that this provisioner is for, where there is one on each.
pub fn name(flags: &NodeFlags) -> Result<Option<String>, String> {
    if !flags.node_deployment {
        return Ok(None);
    }
    let name = std::env::var("NODE_NAME").ok().filter(|name| !name.is_empty());
    name.map(Some).ok_or_else(|| "the environment variable NODE_NAME must be set with --node-deployment".into())
}

/// The node of that name, and where the driver says it is.
pub async fn own(name: Option<String>, driver: &Driver) -> Result<Option<Own>, String> {
    let Some(name) = name else { return Ok(None) };
    let info = driver.node_info().await.map_err(|status| {
        let code = bindery_csi::code_name(status.code());
        format!("the CSI driver does not say which node it is on: {code}: {}", status.message())
    })?;
    let place = info.accessible_topology.map(|place| place.segments).unwrap_or_default();
    tracing::info!(node = name, ?place, "makes volumes for one node");
    Ok(Some(Own { name, place }))
}

impl Own {
    fn labels(&self) -> Labels {
        self.place.iter().map(|(key, value)| (Name::from(key.as_str()), Name::from(value.as_str()))).collect()
    }

    /// The node, as the rules have it.
    pub fn node(&self) -> OwnNode {
        OwnNode { name: self.name.as_str().into(), place: self.labels() }
    }

    /// Whoever takes claims for it, if any are to be taken.
    pub fn taking(&self, flags: &NodeFlags, csi: Arc<Csi>, look: Arc<dyn ObjectClient>) -> Option<NodeAssignment> {
        flags.node_deployment_immediate_binding.then(|| NodeAssignment {
            csi,
            objects: look,
            node: self.name.as_str().into(),
            segment: self.place.clone(),
            delay_base: flags.node_deployment_base_delay,
            delay_max: flags.node_deployment_max_delay,
        })
    }
}

/// Takes claims for ever, if any are to be taken.
pub async fn taking(taking: Option<NodeAssignment>, config: Config, outbox: UnboundedSender<Message>) {
    let Some(taking) = taking else { return std::future::pending().await };
    let free = || {
        let config = config.clone();
        ask(&outbox, move |known| free(known, &config))
    };
    taking.run(free).await;
}

/// The claims that any node may take.
fn free(known: &Cache, config: &Config) -> Vec<UnassignedClaim> {
    let claims = known.keys(Kind::Claim).into_iter().filter_map(|key| known.claim(&key.claim_key()));
    claims.filter(|claim| is_free(known, claim, config)).map(|claim| described(claim, config)).collect()
}

fn described(claim: &Claim, config: &Config) -> UnassignedClaim {
    UnassignedClaim {
        claim: claim.key(),
        uid: claim.meta.uid.clone(),
        class: claim.class().clone(),
        volume: config.volume_name(claim),
    }
}

/// Whether our provisioner is asked for a claim's volume, which is to be made at once, anywhere that this node is too.
fn is_free(known: &Cache, claim: &Claim, config: &Config) -> bool {
    let annotation = |annotation| claim.annotations.get(annotation).filter(|value| !value.is_empty());
    let asked = annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner));
    let may_be_here = |class: &bindery_model::Class| {
        let is_allowed =
            config.node.as_ref().is_none_or(|own| config.topology.is_none() || topologies(class).allow(&own.place));
        class.binding == Some(BindingMode::Immediate) && config.answers_to(&class.provisioner) && is_allowed
    };
    claim.volume.is_none()
        && !claim.deleting
        && asked.is_some_and(|name| config.answers_to(name))
        && annotation(Annotation::SelectedNode).is_none()
        && known.class(claim.class()).is_some_and(|class| may_be_here(class))
}
