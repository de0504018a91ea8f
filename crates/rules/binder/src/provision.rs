//! Provisioning: the StorageClass determines who provisions; an external provisioner is requested
//! by annotating the claim.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, Kind, Name, ObjectKey};
use bindery_rules_api::{ClaimEdit, Edit, Event, Measure, RejectionEvent, Timed, Verdict, Write};

use crate::decision::Decision;
use crate::plugins::{self, Handler};
use crate::{migration, rules};

impl Decision<'_> {
    /// Provisions a volume for a claim, as its class says.
    pub fn provision(self, claim: &Claim) -> Verdict {
        if !self.config.dynamic_provisioning {
            return Verdict::idle(&rules::PROVISION_DISABLED);
        }
        let name = claim.class();
        let Some(class) = self.known.class(name) else {
            let message = format!("storageclass.storage.k8s.io {:?} not found", name.as_str());
            let event = failed(claim, message).missing(ObjectKey::cluster(Kind::Class, name.clone()));
            return Verdict::idle(&rules::PROVISION_CLASS_MISSING).publish(event);
        };
        match plugins::provisioner(class) {
            Handler::External(provisioner) => external(claim, &provisioner),
            Handler::HostPath => self.host_path(claim, class),
            Handler::None(why) => Verdict::idle(&rules::PROVISION_NO_PLUGIN).publish(failed(claim, why)),
        }
    }
}

/// Requests a volume from an external provisioner, then waits for it.
fn external(claim: &Claim, provisioner: &Name) -> Verdict {
    let begin = Measure::Begin(Timed::Provision, provisioner.clone());
    if let Some(edit) = name_provisioner(claim, provisioner) {
        let rejected = RejectionEvent::claim(claim, Reason::ProvisioningFailed, "Error saving claim: ");
        let write = Write::claim(&rules::PROVISION_REQUEST, claim, edit).on_rejection(rejected);
        return Verdict::write(&rules::PROVISION_REQUEST, write).measuring(begin);
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
         administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    );
    let event = Event::claim(claim, EventType::Normal, Reason::ExternalProvisioning, message);
    Verdict::idle(&rules::PROVISION_WAIT).publish(event).measuring(begin)
}

/// The annotations that name a claim's provisioner, unless they are set. Like upstream, only the
/// current annotation key is checked.
pub(crate) fn name_provisioner(claim: &Claim, provisioner: &Name) -> Option<Edit> {
    if claim.annotations.get(Annotation::StorageProvisioner) == Some(provisioner) {
        return None;
    }
    let mut annotations = vec![
        (Annotation::BetaStorageProvisioner, Some(provisioner.clone())),
        (Annotation::StorageProvisioner, Some(provisioner.clone())),
    ];
    annotations.extend(migration::migrated_to(&claim.annotations, provisioner));
    Some(Edit::Claim(ClaimEdit { annotations, ..ClaimEdit::default() }))
}

/// A warning that provisioning failed.
pub(crate) fn failed(claim: &Claim, message: impl Into<String>) -> Event {
    Event::claim(claim, EventType::Warning, Reason::ProvisioningFailed, message)
}
