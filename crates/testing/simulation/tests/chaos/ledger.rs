//! The promises of a provisioner, kept by a storage that writes down who asked it for what: checked at every call against how
//! things stand on the server, and at the end against all that it holds. Independent of the rules that are to keep them.
//!
//! There is one thing that nobody can promise. Where two provisioners work at once, each with a driver of its own, and the drivers
//! do not know of each other, one may be told something certain (there is a volume, there is none) while a call of the other under
//! the same name is still on its way. The first takes the intent off, as it may; and when the other never hears what came of its
//! call, because it has crashed or given it up, what that call made is known to nobody. Such a piece is *overtaken*, and is the
//! only one that may be left. Where one driver, or the storage behind several, deals with one call at a time under a name, as CSI
//! wants it, there is no such piece.

use std::collections::{BTreeMap, BTreeSet};

use bindery_engine::Answer;
use bindery_model::{Annotation, Kind, Name, ObjectKey, finalizer};
use bindery_rules_api::{FailureEffect, Operation, ProvisionRequest, Request};
use bindery_simulation::World;
use bindery_simulation::storage::Asked;
use serde_json::Value;

use crate::guards::{is_deleting, list, of_kind, text};
use crate::storage::{Drivers, name_of};

/// An engine: where it sits, and which of those that sat there it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub seat: usize,
    pub life: usize,
}

/// The seat of a user who is certain of something.
const A_USER: usize = usize::MAX;

/// What was asked for, and nobody knows yet what came of it.
#[derive(Debug)]
struct Open {
    seat: usize,
    asked: Asked,
    is_overtaken: bool,
}

/// Something that the storage holds, and that is a provisioner's to look after.
#[derive(Debug, Default)]
struct Piece {
    asked: Option<Asked>,
    is_overtaken: bool,
    /// Who was told of it.
    known_by: BTreeSet<Caller>,
}

/// What was asked, what came of it, and what has been.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What it holds, by handle.
    pieces: BTreeMap<String, Piece>,
    /// What is uncertain, by name.
    open: BTreeMap<String, Vec<Open>>,
    /// The seats that were told something certain, by name, since the claim's intent was put down, or again.
    certain: BTreeMap<String, BTreeSet<usize>>,
    /// The intents on claims, by UID.
    intended: BTreeMap<String, String>,
    /// The UIDs of all claims that ever were, and the nodes that were ever chosen for them.
    claims: BTreeSet<String>,
    chosen: BTreeSet<(String, String)>,
    /// The names of volumes that users brought. Where one of them is in the way, and the intent is taken off too, what was made in
    /// vain is known to one engine alone, and only for as long as it gets answers.
    brought: BTreeSet<String>,
    /// The handles of volumes that somebody wanted to be retained: what becomes of their storage is up to whoever did.
    retained: BTreeSet<String>,
}

fn handle(volume: &Value) -> &str {
    text(volume, "/spec/csi/volumeHandle")
}

pub fn has_intent(claim: &Value) -> bool {
    list(claim, "/metadata/finalizers").any(|name| *name == finalizer::PROVISIONING)
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// The class of a claim, if there is one that is the provisioner's.
fn class_of<'a>(world: &'a World, claim: &Value) -> Option<&'a Value> {
    let key = ObjectKey::cluster(Kind::Class, Name::from(text(claim, "/spec/storageClassName")));
    world.get(&key).filter(|class| text(class, "/provisioner") == "csi.example.com")
}

fn holds(world: &World) -> &BTreeMap<String, String> {
    &world.storage.as_ref().expect("there is a storage").holds
}

impl Ledger {
    /// Notes how things stand.
    pub fn look(&mut self, world: &World) {
        let mut intended = BTreeMap::new();
        for (_, claim) in of_kind(world, Kind::Claim) {
            let uid = uid(claim).to_owned();
            if let Some(node) = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str() {
                self.chosen.insert((uid.clone(), node.to_owned()));
            }
            if has_intent(claim) {
                let intent = claim["metadata"]["annotations"][Annotation::Provisioning.key()].to_string();
                let is_same = self.intended.get(&uid) == Some(&intent);
                intended.insert(uid.clone(), intent);
                if !is_same {
                    self.certain.remove(&format!("pvc-{uid}"));
                }
            }
            self.claims.insert(uid);
        }
        self.intended = intended;
        for (_, volume) in of_kind(world, Kind::Volume) {
            if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Retain" {
                self.retained.insert(handle(volume).to_owned());
            }
        }
    }

    /// A user brought storage along with its volume. Without a guard it is the user's to look after.
    pub fn brought(&mut self, handle: &str, volume: &Value) {
        self.brought.insert(text(volume, "/metadata/name").to_owned());
        if list(volume, "/metadata/finalizers").any(|name| *name == finalizer::EXTERNAL_PROVISIONER) {
            self.pieces.insert(handle.to_owned(), Piece::default());
        }
    }

    /// A user takes the intent off a claim. Whoever does that has to look after what may be there, unless it comes to be known.
    pub fn let_go(&mut self, claim: &Value) {
        let name = format!("pvc-{}", uid(claim));
        self.open.entry(name.clone()).or_default().iter_mut().for_each(|open| open.is_overtaken = true);
        let is_its = |handle: &String| handle.starts_with(&format!("{name}@"));
        self.pieces.iter_mut().filter(|(handle, _)| is_its(handle)).for_each(|(_, piece)| piece.is_overtaken = true);
        self.certain.entry(name).or_default().insert(A_USER);
    }

    // === At every call ===

    /// A call reaches the storage.
    pub fn begins(&mut self, caller: Caller, world: &World, request: &Request) {
        let Request::RunOperation(operation) = request else { return };
        match operation {
            Operation::CreateStorage(order, prepared) => {
                let is_its =
                    prepared["uid"] == *order.uid.as_str() && prepared["node"].as_str() == order.node.as_deref();
                assert!(is_its, "{} is asked for with what was found out for another: {prepared}", order.volume);
                self.asks(caller, order, Asked::of(order, prepared));
            }
            Operation::DeleteStorage(proof, _) => {
                let volume = world.get(&ObjectKey::volume(proof.name().clone())).expect("it was read just now");
                let policy = text(volume, "/spec/persistentVolumeReclaimPolicy");
                assert_eq!(policy, "Delete", "{} is to be retained, and its storage removed", proof.name());
                nobody_has(world, proof.name(), text(volume, "/spec/claimRef/uid"));
            }
            Operation::DiscardStorage(..) | Operation::Prepare(_) | Operation::Recycle(_) => {}
        }
    }

    /// S9, S10: storage is asked for under the name of a claim, once a node is chosen if there has to be one, and for the same
    /// as before, where that is there or nobody knows.
    fn asks(&mut self, caller: Caller, order: &ProvisionRequest, asked: Asked) {
        let name = order.volume.as_str();
        assert_eq!(name, format!("pvc-{}", order.uid), "{} has a name of its own", order.claim);
        assert!(self.claims.contains(order.uid.as_str()), "{name} is for no claim that ever was");
        if order.class == "make" {
            let node = order.node.as_ref().map(Name::to_string).unwrap_or_default();
            let is_chosen = self.chosen.contains(&(order.uid.to_string(), node));
            assert!(is_chosen, "{name} is asked for on {:?}, which nobody chose", order.node);
        }
        let open = self.open.entry(name.to_owned()).or_default();
        for before in open.iter().filter(|before| !before.is_overtaken) {
            assert_eq!(before.asked, asked, "{name}: asked for something else before it was certain what came of it");
        }
        let is_its = |handle: &String| handle.starts_with(&format!("{name}@"));
        for (handle, piece) in self.pieces.iter().filter(|(handle, piece)| is_its(handle) && !piece.is_overtaken) {
            let is_same = piece.asked.as_ref().is_none_or(|before| *before == asked);
            assert!(is_same, "{handle} is there, and something else is asked for: {asked:?}, not {:?}", piece.asked);
        }
        open.retain(|before| before.seat != caller.seat);
        open.push(Open { seat: caller.seat, asked, is_overtaken: false });
    }

    /// A call was carried out.
    pub fn landed(&mut self, caller: Caller, before: &World, after: &World, request: &Request) {
        let Some(name) = name_of(request) else { return };
        let (had, has) = (holds(before), holds(after));
        for handle in has.values().filter(|handle| !had.values().any(|old| old == *handle)) {
            let Request::RunOperation(Operation::CreateStorage(order, prepared)) = request else { continue };
            let asked = Some(Asked::of(order, prepared));
            let others = self.certain.get(name).into_iter().flatten();
            let is_overtaken = others.into_iter().any(|seat| *seat != caller.seat);
            self.pieces.insert(handle.clone(), Piece { asked, is_overtaken, known_by: BTreeSet::new() });
        }
        for (name, handle) in had.iter().filter(|(_, handle)| !has.values().any(|new| new == *handle)) {
            self.removed(before, name, handle, request);
        }
    }

    /// S4, S5: what is removed is nobody's, and nobody wanted it to be retained.
    fn removed(&mut self, before: &World, name: &str, handle_of: &str, request: &Request) {
        self.pieces.remove(handle_of);
        self.open.remove(name);
        if !matches!(request, Request::RunOperation(Operation::DiscardStorage(..))) {
            nobody_has(before, name, name.trim_start_matches("pvc-"));
        } else {
            let volume = of_kind(before, Kind::Volume).find(|(_, volume)| handle(volume) == handle_of);
            assert!(volume.is_none(), "{handle_of} lies behind {volume:?}, and was removed as if made in vain");
        }
    }

    /// An engine was told what came of its call.
    pub fn heard(&mut self, caller: Caller, request: &Request, answer: &Answer) {
        let Request::RunOperation(Operation::CreateStorage(order, _)) = request else { return };
        if matches!(answer, Answer::Done(Ok(_))) {
            let is_its = |handle: &String| handle.starts_with(&format!("{}@", order.volume));
            for (_, piece) in self.pieces.iter_mut().filter(|(handle, _)| is_its(handle)) {
                piece.known_by.insert(caller);
            }
        }
    }

    /// A storage said something certain to a seat, or not.
    pub fn said(&mut self, caller: Caller, request: &Request, answer: &Answer, drivers: Drivers) {
        let (Some(name), Answer::Done(outcome)) = (name_of(request), answer) else { return };
        let is_make = matches!(request, Request::RunOperation(Operation::CreateStorage(..)));
        let after = outcome.as_ref().err().map(|failure| failure.effect);
        if !is_make || matches!(after, Some(FailureEffect::Unknown | FailureEffect::NotAttempted)) {
            return;
        }
        // A driver that deals with one call at a time under a name knows of all of them: what it says holds for all.
        if drivers == Drivers::One {
            self.open.remove(name);
            return;
        }
        self.certain.entry(name.to_owned()).or_default().insert(caller.seat);
        let open = self.open.entry(name.to_owned()).or_default();
        open.retain(|open| open.seat != caller.seat);
        open.iter_mut().for_each(|open| open.is_overtaken = true);
    }

    // === Once all is quiet ===

    /// Nothing is forgotten: what is there lies behind a volume, or an intent on a claim tells of it. L2, L3: what can be made
    /// is made, what is released is removed, and no intent is left but where there is no class any more to say what was asked for.
    pub fn nothing_left(&self, world: &World, lives: &[usize]) {
        let history = world.history.join("\n");
        for (key, claim) in of_kind(world, Kind::Claim) {
            let Some(class) = class_of(world, claim) else { continue };
            assert!(!has_intent(claim), "{key} is still watched over: {claim}\n{history}");
            let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
            let is_delayed = text(class, "/volumeBindingMode") == "WaitForFirstConsumer";
            let can_be_made = !is_deleting(claim) && text(claim, "/spec/volumeName").is_empty();
            let is_due = can_be_made && (!is_delayed || selected.is_some());
            assert!(!is_due, "{key} has no volume: {claim}\n{history}");
        }
        for (key, volume) in of_kind(world, Kind::Volume).filter(|(_, volume)| !handle(volume).is_empty()) {
            let is_left = text(volume, "/status/phase") == "Released"
                && text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete"
                && !list(volume, "/metadata/finalizers").any(|name| *name == "example.com/mine");
            assert!(!is_left, "{key} is not removed: {volume}\n{history}");
        }
        for (name, handle_of) in holds(world).iter().filter(|(_, handle)| self.pieces.contains_key(*handle)) {
            let is_behind = of_kind(world, Kind::Volume).any(|(_, volume)| handle(volume) == handle_of);
            let its = |claim: &Value| name.as_str() == format!("pvc-{}", uid(claim));
            let is_told_of = of_kind(world, Kind::Claim).any(|(_, claim)| has_intent(claim) && its(claim));
            let is_lost = self.pieces.get(handle_of).is_some_and(|piece| {
                let lives = |caller: &Caller| lives.get(caller.seat) == Some(&caller.life);
                piece.is_overtaken && (self.brought.contains(name) || !piece.known_by.iter().any(lives))
            });
            let is_forgotten = !is_behind && !is_told_of && !is_lost && !self.retained.contains(handle_of);
            assert!(!is_forgotten, "{handle_of} is forgotten: {self:?}\n{history}");
        }
    }
}

/// No claim of that UID lives that has the volume, or may get it.
fn nobody_has(world: &World, volume: &str, uid_of: &str) {
    let has_it = |claim: &Value| uid(claim) == uid_of && ["", volume].contains(&text(claim, "/spec/volumeName"));
    let claim = of_kind(world, Kind::Claim).find(|(_, claim)| has_it(claim));
    assert!(claim.is_none(), "{volume} belongs to {claim:?}, and its storage was removed");
}
