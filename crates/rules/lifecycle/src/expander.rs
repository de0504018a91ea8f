//! The expand controller: requests expansion from external resizers. Only FlexVolumes are expanded
//! here, by [`crate::flex`].

use bindery_cache::{Cache, Change};
use bindery_model::event::{EventType, Reason};
use bindery_model::migration::driver_of;
use bindery_model::{Annotation, Claim, ClaimPhase, Kind, Object, ObjectKey, Source, Volume};
use bindery_rules_api::{
    ClaimReport, Event, LiveReads, Profile, RejectionEvent, ResyncInterval, RuleSet, Verdict, Write,
};

use crate::flex;
use crate::rules::expander as rules;

/// The rule set of the expand controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expander;

impl RuleSet for Expander {
    fn profile(&self) -> Profile {
        Profile {
            name: "persistentvolume-expander",
            component: "volume_expand",
            resync: ResyncInterval::Rarely,
            watches: &[Kind::Claim, Kind::Volume],
            queues: &[(Kind::Claim, "volume_expand")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, _: &LiveReads) -> Verdict {
        if key.kind != Kind::Claim {
            return Verdict::idle(&rules::NOT_HANDLED);
        }
        let Some(claim) = known.claim(&key.claim_key()) else { return Verdict::idle(&rules::CLAIM_DELETED) };
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::MALFORMED).with_note(error.to_string());
        }
        if claim.status.phase != ClaimPhase::Bound {
            return Verdict::idle(&rules::NOT_BOUND);
        }
        let volume = claim.volume.as_ref().and_then(|name| known.volume(name));
        let Some(volume) = volume.filter(|volume| is_bound_to(volume, claim)) else {
            return Verdict::idle(&rules::VOLUME_NOT_BOUND);
        };
        if let Some(error) = &volume.field_error {
            return Verdict::idle(&rules::MALFORMED).with_note(format!("{}: {error}", volume.name()));
        }
        if !requests_more(claim) && !volume.annotations.has(Annotation::PreResizeCapacity) {
            return Verdict::idle(&rules::LARGE_ENOUGH);
        }
        match &volume.source {
            Source::Migrated(plugin) => migrated(claim, plugin),
            Source::Flex(driver) => flex::expand(claim, volume, driver),
            Source::HostPath(_) | Source::Nfs(_) | Source::Csi(_) | Source::Local(_) | Source::Other => {
                let message = "waiting for an external controller to expand this PVC";
                Verdict::idle(&rules::EXTERNAL).publish(external(claim, EventType::Normal, message))
            }
        }
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        for object in change.after.iter().chain(&change.before) {
            match object {
                Object::Claim(claim) if may_expand(known, claim) => wake(claim.key().into()),
                Object::Volume(volume) => {
                    let has_former_size = volume.annotations.has(Annotation::PreResizeCapacity);
                    for claim in known.claims_naming(volume.name()) {
                        if has_former_size && claim.status.phase == ClaimPhase::Bound || may_expand(known, claim) {
                            wake(claim.key().into());
                        }
                    }
                }
                Object::Claim(_)
                | Object::Class(_)
                | Object::AttributesClass(_)
                | Object::Pod(_)
                | Object::Node(_)
                | Object::CsiNode(_)
                | Object::CsiDriver(_)
                | Object::Capacity(_)
                | Object::Attachment(_)
                | Object::Record(_) => {}
            }
        }
    }
}

/// Whether a volume is bound to a claim. As upstream, the claim's name is not compared.
fn is_bound_to(volume: &Volume, claim: &Claim) -> bool {
    let claim_ref = volume.claim_ref.as_ref();
    claim_ref.is_some_and(|found| found.key.namespace == claim.meta.namespace && found.uid == claim.meta.uid)
}

/// Whether a claim requests more than its capacity.
fn requests_more(claim: &Claim) -> bool {
    flex::capacity(claim) < claim.requested()
}

/// Whether a claim may need expansion, or has an unfinished one.
fn may_expand(known: &Cache, claim: &Claim) -> bool {
    let is_unfinished = || {
        let volume = claim.volume.as_ref().and_then(|name| known.volume(name));
        volume.is_some_and(|volume| volume.annotations.has(Annotation::PreResizeCapacity))
    };
    claim.status.phase == ClaimPhase::Bound
        && (requests_more(claim) || claim.status.change.is_some() || is_unfinished())
}

/// Annotates the claim with the resizer of the CSI driver that its plugin was migrated to.
fn migrated(claim: &Claim, plugin: &str) -> Verdict {
    let message = format!("CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc");
    let event = external(claim, EventType::Normal, message);
    let driver = driver_of(plugin).unwrap_or_default();
    if claim.annotations.get(Annotation::StorageResizer).is_some_and(|resizer| resizer == driver) {
        return Verdict::idle(&rules::MIGRATED).publish(event);
    }
    let report =
        ClaimReport { annotations: vec![(Annotation::StorageResizer, Some(driver.into()))], ..ClaimReport::default() };
    let prefix = format!("error setting resizer annotation to pvc {}, with error ", claim.key());
    let write = Write::report(&rules::MIGRATED, claim, report);
    let write = write.on_rejection(RejectionEvent::claim(claim, Reason::ExternalExpanding, &prefix));
    Verdict::write(&rules::MIGRATED, write).publish(event)
}

fn external(claim: &Claim, event_type: EventType, message: impl Into<String>) -> Event {
    Event::claim(claim, event_type, Reason::ExternalExpanding, message)
}
