//! Claims from which others are filled: guarded for as long as that goes on.

use bindery_model::{Claim, ClaimPhase, Kind, Name, finalizer};
use bindery_rules_api::{ClaimEdit, Edit, Verdict, Write};

use crate::rules;
use crate::set::Decision;

impl Decision<'_> {
    /// Lets go of a claim that somebody deleted, once no other is being filled from it.
    pub fn source_of_clones(self, claim: &Claim) -> Option<Verdict> {
        let has_finalizer = claim.finalizers.iter().any(|name| name == finalizer::CLONING);
        if !self.config.clones || !claim.deleting || !has_finalizer {
            return None;
        }
        if self.is_being_cloned(claim) {
            return Some(Verdict::settle(&rules::SOURCE_NEEDED));
        }
        let keep = |name: &&Name| **name != finalizer::CLONING;
        let finalizers = claim.finalizers.iter().filter(keep).cloned().collect();
        let edit = ClaimEdit { finalizers: Some(finalizers), ..ClaimEdit::default() };
        let write = Write::claim(&rules::RELEASE_SOURCE, claim, Edit::Claim(edit));
        Some(Verdict::write(&rules::RELEASE_SOURCE, write))
    }

    /// Looks at all claims: a source is deleted seldom.
    fn is_being_cloned(self, source: &Claim) -> bool {
        let others = self.known.keys(Kind::Claim).into_iter().filter(|key| key.namespace == source.meta.namespace);
        let mut others = others.filter_map(|key| self.known.claim(&key.claim_key()));
        others.any(|claim| claim.status.phase == ClaimPhase::Pending && claim.is_clone_of(&source.meta.name))
    }
}
