//! Provisioning: who makes a volume for a claim, and asking an external provisioner for one.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, Kind, Name, ObjectKey};
use bindery_rules_api::{ClaimEdit, Edit, Event, Measure, Plugin, RejectionEvent, Timed, Verdict, Write};

use crate::decision::Decision;
use crate::plugins::{self, Who};
use crate::{migration, rules};

impl Decision<'_> {
    /// Has a volume made for a claim, by whoever makes those of its class.
    pub fn provision(self, claim: &Claim) -> Verdict {
        if !self.config.dynamic_provisioning {
            return Verdict::settle(&rules::PROVISION_DISABLED);
        }
        let name = claim.class();
        let Some(class) = self.known.class(name) else {
            let message = format!("storageclass.storage.k8s.io {:?} not found", name.as_str());
            let notice = failed(claim, message).missing(ObjectKey::cluster(Kind::Class, name.clone()));
            return Verdict::settle(&rules::PROVISION_CLASS_MISSING).tell(notice);
        };
        match plugins::provisioner(class) {
            Who::External(provisioner) => external(claim, &provisioner),
            Who::InTree(plugin) => self.in_tree(claim, class, plugin),
            Who::NoObserver(why) => Verdict::settle(&rules::PROVISION_NO_PLUGIN).tell(failed(claim, why)),
        }
    }
}

/// Asks an external provisioner, once; then waits for its volume.
fn external(claim: &Claim, provisioner: &Name) -> Verdict {
    let begin = Measure::Begin(Timed::Provision, provisioner.clone());
    if let Some(edit) = name_provisioner(claim, provisioner) {
        let regret = RejectionEvent::claim(claim, Reason::ProvisioningFailed, "Error saving claim: ");
        let write = Write::claim(&rules::PROVISION_ASK, claim, edit).on_rejection(regret);
        return Verdict::write(&rules::PROVISION_ASK, write).measuring(begin);
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
         administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    );
    let notice = Event::claim(claim, EventType::Normal, Reason::ExternalProvisioning, message);
    Verdict::settle(&rules::PROVISION_WAIT).tell(notice).measuring(begin)
}

/// The annotations that name a claim's provisioner, if they are not there yet. Only the current key is looked at, as upstream.
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

/// The name under which a plugin's work is measured.
pub(crate) fn measured_as(plugin: Plugin) -> Name {
    Name::new_static(plugin.as_str())
}
