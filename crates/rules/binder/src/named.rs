//! A claim that names a volume and is not bound yet.

use bindery_matching::check_satisfies;
use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, Name};
use bindery_rules_api::{Event, Verdict};

use crate::claim::waits;
use crate::decision::Decision;
use crate::{bind, rules, status};

impl Decision<'_> {
    /// Decides about a claim that names its volume.
    pub fn named(self, claim: &Claim, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return Verdict::write_or_idle(&rules::CLAIM_NAMED_MISSING, status::pending(claim));
        };
        if let Some(error) = &volume.field_error {
            let verdict = Verdict::write_or_idle(&rules::CLAIM_NAMED_VOLUME_MALFORMED, status::pending(claim));
            return verdict.with_note(format!("{name}: {error}"));
        }
        if volume.is_scrubbing() && (volume.claim_ref.is_none() || volume.refers_to(claim)) {
            return Verdict::write_or_idle(&rules::CLAIM_VOLUME_SCRUBBING, status::pending(claim));
        }
        match &volume.claim_ref {
            // A claim that was bound to the volume has priority: its claimRef will be restored.
            None if self.belongs_to_another(claim, name) => taken(claim, name),
            None => match check_satisfies(claim, volume) {
                Ok(()) => bind::verdict(&rules::CLAIM_NAMED_FREE, claim, volume),
                Err(why) => {
                    let message = format!("Cannot bind to requested volume {:?}: {why}", name.as_str());
                    let rule = &rules::CLAIM_NAMED_MISMATCH;
                    waits(rule, claim, EventType::Warning, Reason::VolumeMismatch, &message)
                }
            },
            Some(_) if volume.refers_to(claim) => bind::verdict(&rules::CLAIM_NAMED_RESERVED, claim, volume),
            Some(other) => {
                if claim.annotations.has(Annotation::BoundByController) {
                    let error = format!(
                        "invalid binding of claim {:?} to volume {:?}: volume already claimed by {:?}",
                        claim.key().to_string(),
                        name.as_str(),
                        other.key.to_string()
                    );
                    let event = Event::claim(claim, EventType::Warning, Reason::FailedBinding, taken_message(name));
                    return Verdict::idle(&rules::CLAIM_NAMED_CONFLICT).with_note(error).publish(event);
                }
                taken(claim, name)
            }
        }
    }

    /// Whether another claim was bound to a volume without claimRef.
    fn belongs_to_another(self, claim: &Claim, volume: &Name) -> bool {
        let mut naming = self.known.claims_naming(volume);
        naming.any(|other| other.is_bind_completed() && other.meta.uid != claim.meta.uid)
    }
}

fn taken(claim: &Claim, volume: &Name) -> Verdict {
    waits(&rules::CLAIM_NAMED_TAKEN, claim, EventType::Warning, Reason::FailedBinding, &taken_message(volume))
}

fn taken_message(volume: &Name) -> String {
    format!("volume {:?} already bound to a different claim.", volume.as_str())
}
