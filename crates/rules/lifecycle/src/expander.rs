//! The expander: says who makes a claim's volume grow. What is left to do here is done for Flex volumes only, by [`crate::flex`].

use bindery_cache::{Cache, Change};
use bindery_model::event::{EventType, Reason};
use bindery_model::migration::driver_of;
use bindery_model::{Annotation, Claim, ClaimPhase, Kind, Object, ObjectKey, Source, Volume};
use bindery_rules_api::{
    ClaimReport, Event, LiveReads, Profile, RejectionEvent, ResyncInterval, RuleSet, Verdict, Write,
};

use crate::flex;
use crate::rules::expander as rules;

/// The rule set of the expander.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expander;

impl RuleSet for Expander {
    fn profile(&self) -> Profile {
        Profile {
            name: "persistentvolume-expander",
            component: "volume_expand",
            tempo: ResyncInterval::Rarely,
            sees: &[Kind::Claim, Kind::Volume],
            queues: &[(Kind::Claim, "volume_expand")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, _: &LiveReads) -> Verdict {
        if key.kind != Kind::Claim {
            return Verdict::settle(&rules::NOT_OURS);
        }
        let Some(claim) = known.claim(&key.claim_key()) else { return Verdict::settle(&rules::CLAIM_GONE) };
        if let Some(flaw) = &claim.field_error {
            return Verdict::settle(&rules::MALFORMED).noting(flaw.to_string());
        }
        if claim.status.phase != ClaimPhase::Bound {
            return Verdict::settle(&rules::NOT_BOUND);
        }
        let volume = claim.volume.as_ref().and_then(|name| known.volume(name));
        let Some(volume) = volume.filter(|volume| is_of(volume, claim)) else {
            return Verdict::settle(&rules::NOT_ITS_VOLUME);
        };
        if let Some(flaw) = &volume.field_error {
            return Verdict::settle(&rules::MALFORMED).noting(format!("{}: {flaw}", volume.name()));
        }
        if !wants_more(claim) && !volume.annotations.has(Annotation::PreResizeCapacity) {
            return Verdict::settle(&rules::BIG_ENOUGH);
        }
        match &volume.source {
            Source::Migrated(plugin) => migrated(claim, plugin),
            Source::Flex(driver) => flex::grow(claim, volume, driver),
            Source::HostPath(_) | Source::Nfs(_) | Source::Csi(_) | Source::Local(_) | Source::Other => {
                let message = "waiting for an external controller to expand this PVC";
                Verdict::settle(&rules::WAITS).tell(external(claim, EventType::Normal, message))
            }
        }
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        for object in change.after.iter().chain(&change.before) {
            match object {
                Object::Claim(claim) if may_grow(known, claim) => wake(claim.key().into()),
                Object::Volume(volume) => {
                    let remembers = volume.annotations.has(Annotation::PreResizeCapacity);
                    for claim in known.claims_naming(volume.name()) {
                        if remembers && claim.status.phase == ClaimPhase::Bound || may_grow(known, claim) {
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
                | Object::Attachment(_) => {}
            }
        }
    }
}

/// Whether a volume is bound to a claim. The claim's name is not looked at, as upstream.
fn is_of(volume: &Volume, claim: &Claim) -> bool {
    let refers = volume.claim_ref.as_ref();
    refers.is_some_and(|found| found.key.namespace == claim.meta.namespace && found.uid == claim.meta.uid)
}

/// Whether a claim asks for more than it has.
fn wants_more(claim: &Claim) -> bool {
    flex::had(claim) < claim.requested()
}

/// Whether there is anything to say or do about a claim.
fn may_grow(known: &Cache, claim: &Claim) -> bool {
    let is_unfinished = || {
        let volume = claim.volume.as_ref().and_then(|name| known.volume(name));
        volume.is_some_and(|volume| volume.annotations.has(Annotation::PreResizeCapacity))
    };
    claim.status.phase == ClaimPhase::Bound && (wants_more(claim) || claim.status.change.is_some() || is_unfinished())
}

/// Names the resizer of the CSI driver that an in-tree plugin has moved to.
fn migrated(claim: &Claim, plugin: &str) -> Verdict {
    let message = format!("CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc");
    let notice = external(claim, EventType::Normal, message);
    let driver = driver_of(plugin).unwrap_or_default();
    if claim.annotations.get(Annotation::StorageResizer).is_some_and(|resizer| resizer == driver) {
        return Verdict::settle(&rules::MIGRATED).tell(notice);
    }
    let report =
        ClaimReport { annotations: vec![(Annotation::StorageResizer, Some(driver.into()))], ..ClaimReport::default() };
    let regret = format!("error setting resizer annotation to pvc {}, with error ", claim.key());
    let write = Write::report(&rules::MIGRATED, claim, report);
    let write = write.on_rejection(RejectionEvent::claim(claim, Reason::ExternalExpanding, &regret));
    Verdict::write(&rules::MIGRATED, write).tell(notice)
}

fn external(claim: &Claim, event_type: EventType, message: impl Into<String>) -> Event {
    Event::claim(claim, event_type, Reason::ExternalExpanding, message)
}
