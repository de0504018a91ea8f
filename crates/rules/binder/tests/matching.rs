//! Index lookups choose the same volumes and claims as a naive scan, after any sequence of changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_binder::matching::{Choice, choose, taker};
use bindery_cache::{Cache, VolumeRequirements};
use bindery_matching::{MatchCriteria, check_satisfies, mismatch, reserved_mismatch};
use bindery_model::{
    AccessMode, AccessModes, Annotation, Claim, ClaimKey, ClaimRef, Labels, Meta, Name, Object, ObjectKey, Quantity,
    Selector, Volume, VolumeMode, VolumePhase,
};
use proptest::prelude::*;

/// A change in the cluster.
#[derive(Debug, Clone)]
enum Event {
    Volume(Volume),
    VolumeDeleted(Name),
    Claim(Claim),
    ClaimDeleted(ClaimKey),
    /// A pending write reserves a volume for a claim.
    Reserve(Name, ClaimKey),
    /// The pending write failed.
    DropPending(Name),
}

const SIZES: [&str; 6] = ["0", "1Gi", "1500M", "2Gi", "1.5Gi", "800E"];

fn meta(name: &str) -> Meta {
    Meta { namespace: Name::default(), name: name.into(), uid: format!("uid-{name}").into(), version: 0 }
}

fn size() -> impl Strategy<Value = Option<Quantity>> {
    prop::sample::select(SIZES.to_vec()).prop_map(|text| text.parse().ok())
}

fn modes() -> impl Strategy<Value = AccessModes> {
    prop::collection::vec(prop::sample::select(AccessMode::ALL.to_vec()), 0..3).prop_map(|m| m.into_iter().collect())
}

fn volume_mode() -> impl Strategy<Value = VolumeMode> {
    prop_oneof![5 => Just(VolumeMode::Filesystem), 1 => Just(VolumeMode::Block)]
}

/// Mostly `None`, sometimes one of two words.
fn rarely(words: [&'static str; 2]) -> impl Strategy<Value = Option<Name>> {
    prop_oneof![3 => Just(None), 1 => prop::sample::select(words.to_vec()).prop_map(|word| Some(word.into()))]
}

fn volume_name() -> impl Strategy<Value = Name> {
    (0..8_u8).prop_map(|n| format!("v{n}").into())
}

fn claim_key() -> impl Strategy<Value = ClaimKey> {
    (0..5_u8).prop_map(|n| ClaimKey::new("ns", format!("c{n}")))
}

fn claim_ref() -> impl Strategy<Value = Option<ClaimRef>> {
    let uid = |key: &ClaimKey, kind: u8| match kind {
        0 => Name::default(),
        1 => format!("uid-{}", key.name).into(),
        _ => "stale".into(),
    };
    let reserved = (claim_key(), 0..3_u8).prop_map(move |(key, kind)| Some(ClaimRef { uid: uid(&key, kind), key }));
    prop_oneof![3 => Just(None), 1 => reserved]
}

fn phase() -> impl Strategy<Value = VolumePhase> {
    prop_oneof![
        4 => Just(VolumePhase::Available),
        2 => Just(VolumePhase::Pending),
        1 => Just(VolumePhase::Bound),
        1 => Just(VolumePhase::Released),
        1 => Just(VolumePhase::Failed),
    ]
}

/// Up to two labels, of few keys and values.
fn labels() -> impl Strategy<Value = Labels> {
    let label = (prop::sample::select(vec!["disk", "zone"]), prop::sample::select(vec!["a", "b", "c"]));
    prop::collection::vec(label, 0..3)
        .prop_map(|labels| labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

/// Mostly none; requirements of all kinds on these labels.
fn selector() -> impl Strategy<Value = Option<Box<Result<Selector, String>>>> {
    let key = prop::sample::select(vec!["disk", "zone", "unknown"]);
    let test = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 1..3).prop_map(|values| ("In", values)),
        1 => prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..3).prop_map(|values| ("NotIn", values)),
        1 => Just(("Exists", vec![])),
        1 => Just(("DoesNotExist", vec![])),
    ];
    let selector = prop::collection::vec((key, test), 0..3).prop_map(|requirements| {
        let mut selector = Selector::default();
        for (key, (operator, values)) in requirements {
            let values = values.into_iter().map(Name::from).collect();
            selector.express(key.into(), operator, values).expect("a valid requirement");
        }
        Some(Box::new(Ok(selector)))
    });
    prop_oneof![1 => Just(None), 1 => selector]
}

fn volume() -> impl Strategy<Value = Volume> {
    let spec = (size(), modes(), volume_mode(), rarely(["fast", "slow"]), rarely(["gold", ""]));
    let rest = (claim_ref(), phase(), prop::bool::weighted(0.1), labels());
    (volume_name(), spec, rest).prop_map(|(name, (capacity, modes, volume_mode, class, vac), rest)| {
        let (claim_ref, phase, deleting, labels) = rest;
        Volume {
            meta: meta(&name),
            capacity,
            modes,
            volume_mode,
            class_field: class.unwrap_or_default(),
            attributes_class: vac,
            claim_ref,
            phase,
            deleting,
            labels,
            ..Volume::default()
        }
    })
}

fn claim() -> impl Strategy<Value = Claim> {
    let spec = (size(), modes(), volume_mode(), rarely(["fast", "slow"]), rarely(["gold", ""]));
    let named = prop_oneof![3 => Just(None), 1 => volume_name().prop_map(Some)];
    (claim_key(), spec, named, selector(), prop::bool::weighted(0.1)).prop_map(
        |(key, (request, modes, volume_mode, class_field, attributes_class), volume, selector, bound)| {
            let mut claim = Claim {
                meta: Meta { namespace: key.namespace, ..meta(&key.name) },
                request,
                modes,
                volume_mode,
                class_field,
                attributes_class,
                volume,
                selector,
                ..Claim::default()
            };
            if bound {
                claim.annotations.set(Annotation::BindCompleted, Annotation::YES);
            }
            claim
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => volume().prop_map(Event::Volume),
        1 => volume_name().prop_map(Event::VolumeDeleted),
        3 => claim().prop_map(Event::Claim),
        1 => claim_key().prop_map(Event::ClaimDeleted),
        1 => (volume_name(), claim_key()).prop_map(|(volume, claim)| Event::Reserve(volume, claim)),
        1 => volume_name().prop_map(Event::DropPending),
    ]
}

/// The state of the naive scan, in plain maps.
#[derive(Default)]
struct Naive {
    volumes: BTreeMap<Name, Volume>,
    assumed: BTreeMap<Name, Volume>,
    claims: BTreeMap<ClaimKey, Claim>,
}

impl Naive {
    fn shown(&self) -> impl Iterator<Item = &Volume> {
        let seen = self.volumes.iter().filter(|(name, _)| !self.assumed.contains_key(*name));
        self.assumed.values().chain(seen.map(|(_, volume)| volume))
    }

    fn is_requested_by_name(&self, volume: &Volume) -> bool {
        self.claims.values().any(|claim| {
            claim.volume.as_ref() == Some(volume.name())
                && (claim.is_bind_completed() || check_satisfies(claim, volume).is_ok())
        })
    }

    fn choose(&self, request: &MatchCriteria<'_>) -> Option<Name> {
        let claim = request.claim;
        let rank = |volume: &&Volume| (volume.modes.set().count(), volume.size().clone(), volume.name().clone());
        let reserved = self
            .shown()
            .filter(|volume| volume.refers_to(claim) && reserved_mismatch(request, volume).is_none())
            .min_by_key(|volume| (Reverse(volume.belongs_to(&claim.meta.uid)), rank(volume)));
        let free = || {
            let fits = |volume: &&Volume| {
                volume.claim_ref.is_none() && mismatch(request, volume).is_none() && !self.is_requested_by_name(volume)
            };
            self.shown().filter(fits).min_by_key(rank)
        };
        reserved.or_else(free).map(|volume| volume.name().clone())
    }

    /// The smallest Available volume that a pod's claim may get, on a node that reaches them all.
    fn available(&self, request: &MatchCriteria<'_>) -> Option<Name> {
        let node = Labels::default();
        let fits = |volume: &&Volume| {
            volume.claim_ref.is_none()
                && mismatch(&request.on(&node), volume).is_none()
                && !self.is_requested_by_name(volume)
        };
        let rank = |volume: &&Volume| (volume.size().clone(), volume.name().clone());
        self.shown().filter(fits).min_by_key(rank).map(|volume| volume.name().clone())
    }

    /// Of the unbound claims without a reserved volume, the matching one that requests most.
    fn taker(&self, volume: &Volume) -> Option<ClaimKey> {
        if !volume.is_free() || self.is_requested_by_name(volume) {
            return None;
        }
        let looks = |claim: &&Claim| {
            let request = MatchCriteria::of(claim, false).expect("valid selectors");
            let serves = |other: &Volume| other.refers_to(claim) && reserved_mismatch(&request, other).is_none();
            claim.needs_volume() && !self.shown().any(serves) && mismatch(&request, volume).is_none()
        };
        let most = self.claims.values().filter(looks);
        most.min_by_key(|claim| (Reverse(claim.requested().clone()), claim.key())).map(Claim::key)
    }

    fn apply(&mut self, known: &mut Cache, event: &Event, version: u64) {
        match event {
            Event::Volume(volume) => {
                let mut volume = volume.clone();
                volume.meta.version = version;
                self.volumes.insert(volume.name().clone(), volume.clone());
                known.watched(Object::Volume(Arc::new(volume)));
            }
            Event::VolumeDeleted(name) => {
                self.volumes.remove(name);
                known.watched_deleted(&ObjectKey::volume(name.clone()), version);
            }
            Event::Claim(claim) => {
                let mut claim = claim.clone();
                claim.meta.version = version;
                self.claims.insert(claim.key(), claim.clone());
                known.watched(Object::Claim(Arc::new(claim)));
            }
            Event::ClaimDeleted(key) => {
                self.claims.remove(key);
                known.watched_deleted(&key.clone().into(), version);
            }
            Event::Reserve(name, key) => {
                if let Some(volume) = known.volume(name) {
                    let mut volume = volume.as_ref().clone();
                    volume.claim_ref = Some(ClaimRef { uid: format!("uid-{}", key.name).into(), key: key.clone() });
                    self.assumed.insert(name.clone(), volume.clone());
                    known.assume_volume(Arc::new(volume));
                }
            }
            Event::DropPending(name) => {
                self.assumed.remove(name);
                known.unassume(&ObjectKey::volume(name.clone()));
            }
        }
    }
}

fn chosen(choice: Option<Choice<'_>>) -> Option<Name> {
    choice.map(|choice| match choice {
        Choice::Reserved(volume) | Choice::Fits(volume) => volume.name().clone(),
    })
}

/// The same by the index that scheduling uses.
fn available(known: &Cache, request: &MatchCriteria<'_>) -> Option<Name> {
    let (requirements, node) = (VolumeRequirements::of(request.claim), Labels::default());
    let candidates = known.topology_index().candidates(&requirements, request.selector);
    let found = candidates.reachable(&node).first(&requirements, &node, |_| false);
    found.map(|candidate| candidate.volume().name().clone())
}

/// The number of volumes by class and whether they are bound, and of claims by namespace.
fn counts(known: &Cache) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (group, count) in known.volume_counts().iter() {
        *counts.entry(format!("{} {} {:?}", group.class, group.is_bound, group.volume_mode)).or_default() += count;
    }
    for (group, count) in known.claim_counts().iter() {
        *counts.entry(format!("{} {} {}", group.namespace, group.class, group.attributes_class)).or_default() += count;
    }
    counts
}

/// The same by a scan.
fn scanned(naive: &Naive) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for volume in naive.shown() {
        let is_bound = volume.phase == VolumePhase::Bound;
        *counts.entry(format!("{} {is_bound} {:?}", volume.class_field, volume.volume_mode)).or_default() += 1;
    }
    for claim in naive.claims.values() {
        let group = format!("{} {} {}", claim.meta.namespace, claim.class(), claim.attributes());
        *counts.entry(group).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn index_and_scan_choose_the_same(
        events in prop::collection::vec(event(), 1..40),
        requests in prop::collection::vec(claim(), 1..8),
    ) {
        let (mut naive, mut known) = (Naive::default(), Cache::new(bindery_matching::INDEX_POLICY));
        for (version, event) in events.iter().enumerate() {
            naive.apply(&mut known, event, version as u64 + 1);
            for claim in &requests {
                let request = MatchCriteria::of(claim, false).expect("valid selectors");
                prop_assert_eq!(chosen(choose(&known, &request)), naive.choose(&request), "for {:?}", claim);
                prop_assert_eq!(available(&known, &request), naive.available(&request), "for {:?}", claim);
            }
            prop_assert_eq!(counts(&known), scanned(&naive));
            for volume in naive.shown() {
                prop_assert_eq!(taker(&known, volume, |_| false).cloned(), naive.taker(volume), "for {:?}", volume);
            }
        }
        let snapshot = known.snapshot();
        for name in naive.volumes.keys() {
            known.watched_deleted(&ObjectKey::volume(name.clone()), 0);
        }
        let copy = snapshot.build();
        prop_assert_eq!(counts(&copy), scanned(&naive), "a snapshot does not follow changes");
        for claim in &requests {
            let request = MatchCriteria::of(claim, false).expect("valid selectors");
            prop_assert_eq!(chosen(choose(&copy, &request)), naive.choose(&request), "for {:?}", claim);
        }
    }

    #[test]
    fn delayed_claim_gets_only_a_reserved_volume(
        volumes in prop::collection::vec(volume(), 1..20),
        claim in claim(),
    ) {
        let (mut naive, mut known) = (Naive::default(), Cache::new(bindery_matching::INDEX_POLICY));
        for (version, volume) in volumes.into_iter().enumerate() {
            naive.apply(&mut known, &Event::Volume(volume), version as u64 + 1);
        }
        let request = MatchCriteria::of(&claim, true).expect("valid selectors");
        let got = choose(&known, &request);
        prop_assert!(!matches!(got, Some(Choice::Fits(_))));
        if let Some(Choice::Reserved(volume)) = got {
            prop_assert!(volume.refers_to(&claim));
        }
    }
}
