//! Clone sources: claims that other claims are being cloned from keep a finalizer.

use bindery_model::{Claim, ClaimPhase, Kind, Name, finalizer};
use bindery_rules_api::{ClaimEdit, Edit, Verdict, Write};

use crate::rules;
use crate::ruleset::Decision;

impl Decision<'_> {
    /// Removes the cloning finalizer of a Terminating claim once no other is being cloned from it.
    pub fn clone_source(self, claim: &Claim) -> Option<Verdict> {
        let has_finalizer = claim.finalizers.iter().any(|name| name == finalizer::CLONING);
        if !self.config.supports_cloning || !claim.deleting || !has_finalizer {
            return None;
        }
        if self.is_being_cloned(claim) {
            return Some(Verdict::idle(&rules::SOURCE_IN_USE));
        }
        let keep = |name: &&Name| **name != finalizer::CLONING;
        let finalizers = claim.finalizers.iter().filter(keep).cloned().collect();
        let edit = ClaimEdit { finalizers: Some(finalizers), ..ClaimEdit::default() };
        let write = Write::claim(&rules::RELEASE_SOURCE, claim, Edit::Claim(edit));
        Some(Verdict::write(&rules::RELEASE_SOURCE, write))
    }

    /// Scans all claims; clone sources are rarely deleted.
    fn is_being_cloned(self, source: &Claim) -> bool {
        let others = self.known.keys(Kind::Claim).into_iter().filter(|key| key.namespace == source.meta.namespace);
        let mut others = others.filter_map(|key| self.known.claim(&key.claim_key()));
        others.any(|claim| claim.status.phase == ClaimPhase::Pending && claim.is_clone_of(&source.meta.name))
    }
}
