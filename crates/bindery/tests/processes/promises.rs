//! Checks the promises on a complete history, independently of the rules that keep them.

use std::collections::BTreeMap;

use crate::history::{Kind, Revision, Seen};

/// The state at one revision: volumes by name, claims by UID.
#[derive(Default)]
struct World {
    volumes: BTreeMap<String, Seen>,
    claims: BTreeMap<String, Seen>,
}

/// Replays a history, and reports the first broken promise.
pub fn check(history: &[Revision]) -> Result<(), String> {
    let mut world = World::default();
    for Revision { kind, is_deleted, seen } in history {
        match (kind, is_deleted) {
            (Kind::Volume, true) => drop(world.volumes.remove(&seen.name)),
            (Kind::Claim, true) => drop(world.claims.remove(&seen.uid)),
            (Kind::Volume, false) => {
                world.volume(seen).map_err(|broken| format!("at {}: {broken}: {seen:?}", seen.version))?;
                world.volumes.insert(seen.name.clone(), seen.clone());
            }
            (Kind::Claim, false) => {
                world.claim(seen).map_err(|broken| format!("at {}: {broken}: {seen:?}", seen.version))?;
                world.claims.insert(seen.uid.clone(), seen.clone());
            }
        }
    }
    Ok(())
}

impl World {
    /// S1, S6: a volume is never taken from a live claim, and is only reserved for a claim it fits.
    fn volume(&self, is: &Seen) -> Result<(), String> {
        let was = self.volumes.get(&is.name).filter(|was| was.uid == is.uid);
        if was.is_some_and(|was| was.claim == is.claim) {
            return Ok(());
        }
        if let Some(owner) = was.and_then(|was| self.claims.get(&was.claim))
            && (owner.volume.is_empty() || owner.volume == is.name)
        {
            return Err(format!("the volume was taken from {}, which lives", owner.name));
        }
        match self.claims.get(&is.claim) {
            Some(owner) if owner.gib > is.gib => Err(format!("the volume is too small for {}", owner.name)),
            _ => Ok(()),
        }
    }

    /// S1, S3, S6: a claim gets one volume, once, which is reserved for it and fits; and stays
    /// Bound.
    fn claim(&self, is: &Seen) -> Result<(), String> {
        let was = self.claims.get(&is.uid);
        if let Some(was) = was {
            if !was.volume.is_empty() && was.volume != is.volume {
                return Err(format!("the claim had {} before", was.volume));
            }
            if was.phase == "Bound" && is.phase != "Bound" {
                return Err("the claim was Bound before".into());
            }
        }
        if is.volume.is_empty() {
            return if is.phase == "Bound" { Err("the claim is Bound to nothing".into()) } else { Ok(()) };
        }
        if was.is_some_and(|was| was.volume == is.volume && was.phase == is.phase) {
            return Ok(());
        }
        let has = self.volumes.get(&is.volume).ok_or("the claim has a volume that is not there")?;
        if has.claim != is.uid {
            return Err(format!("{} is not the claim's", is.volume));
        }
        if has.gib < is.gib {
            return Err(format!("{} is too small", is.volume));
        }
        match self.claims.values().find(|other| other.uid != is.uid && other.volume == is.volume) {
            Some(other) => Err(format!("{} has the same volume", other.name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, version: u64, gib: u64, claim: &str, volume: &str, phase: &str) -> Seen {
        let text = str::to_owned;
        Seen {
            name: text(name),
            uid: format!("uid-{name}"),
            version,
            phase: text(phase),
            gib,
            claim: text(claim),
            volume: text(volume),
        }
    }

    fn of(kind: Kind, seen: Seen) -> Revision {
        Revision { kind, is_deleted: false, seen }
    }

    /// A bound claim and its volume.
    fn bound() -> Vec<Revision> {
        vec![
            of(Kind::Volume, seen("v", 1, 5, "", "", "Pending")),
            of(Kind::Claim, seen("c", 2, 5, "", "", "Pending")),
            of(Kind::Volume, seen("v", 3, 5, "uid-c", "", "Pending")),
            of(Kind::Claim, seen("c", 4, 5, "", "v", "Pending")),
            of(Kind::Claim, seen("c", 5, 5, "", "v", "Bound")),
        ]
    }

    fn broken_by(more: impl IntoIterator<Item = Revision>) -> String {
        let history: Vec<Revision> = bound().into_iter().chain(more).collect();
        check(&history).expect_err("a promise is broken")
    }

    #[test]
    fn broken_promises_are_found() {
        assert_eq!(check(&bound()), Ok(()));
        let other = of(Kind::Claim, seen("d", 6, 5, "", "", "Pending"));
        let broken = broken_by([other.clone(), of(Kind::Volume, seen("v", 7, 5, "uid-d", "", "Bound"))]);
        assert!(broken.contains("taken from c"), "{broken}");
        let broken = broken_by([other, of(Kind::Claim, seen("d", 7, 5, "", "v", "Pending"))]);
        assert!(broken.contains("not the claim's"), "{broken}");
        let broken = broken_by([of(Kind::Claim, seen("c", 6, 5, "", "w", "Bound"))]);
        assert!(broken.contains("had v before"), "{broken}");
        let broken = broken_by([of(Kind::Claim, seen("c", 6, 5, "", "v", "Lost"))]);
        assert!(broken.contains("was Bound before"), "{broken}");
        let broken = broken_by([
            of(Kind::Volume, seen("w", 6, 1, "", "", "Available")),
            of(Kind::Claim, seen("d", 7, 2, "", "", "Pending")),
            of(Kind::Volume, seen("w", 8, 1, "uid-d", "", "Available")),
        ]);
        assert!(broken.contains("too small for d"), "{broken}");
    }
}
