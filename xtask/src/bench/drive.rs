//! Drives an engine through the four writes of many binds. Every request is answered immediately.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_binder::Binder;
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output};
use bindery_model::{Claim, ClaimPhase, Kind, Name, Object, ObjectKey, Volume};
use bindery_rules_api::{Edit, Request, Write};

use super::objects::{claim, size_gib, volume};

/// The result of a run.
pub struct Drive {
    /// The time from the first input to the last answer.
    pub took: Duration,
    /// The number of writes sent.
    pub writes: usize,
    /// The number of claims that ended Bound.
    pub bound: usize,
}

/// Stores objects, and answers every write with the object after the write.
struct Answerer {
    claims: HashMap<ObjectKey, Arc<Claim>>,
    volumes: HashMap<Name, Arc<Volume>>,
    version: u64,
}

impl Answerer {
    fn write(&mut self, write: &Write) -> Object {
        self.version += 1;
        let version = self.version;
        let of_claim = |edit: &dyn Fn(&mut Claim), claims: &mut HashMap<ObjectKey, Arc<Claim>>| {
            let claim = claims.get_mut(write.target()).expect("the claim was listed");
            let mut changed = claim.as_ref().clone();
            edit(&mut changed);
            changed.meta.version = version;
            *claim = Arc::new(changed);
            Object::Claim(claim.clone())
        };
        let of_volume = |edit: &dyn Fn(&mut Volume), volumes: &mut HashMap<Name, Arc<Volume>>| {
            let volume = volumes.get_mut(&write.target().name).expect("the volume was listed");
            let mut changed = volume.as_ref().clone();
            edit(&mut changed);
            changed.meta.version = version;
            *volume = Arc::new(changed);
            Object::Volume(volume.clone())
        };
        match write.edit() {
            Edit::Claim(edit) => of_claim(&|claim| edit.apply(claim), &mut self.claims),
            Edit::ClaimStatus(edit) => of_claim(&|claim| edit.apply(claim), &mut self.claims),
            Edit::Volume(edit) => of_volume(&|volume| edit.apply(volume), &mut self.volumes),
            Edit::VolumeStatus(edit) => of_volume(&|volume| edit.apply(volume), &mut self.volumes),
            Edit::ClaimReport(_) | Edit::PodStatus(_) | Edit::Protection(_) | Edit::Record(_) => {
                panic!("the binder sends no such write")
            }
        }
    }
}

/// Binds `pairs` claims to as many volumes. Every write is answered, then delivered by the watch.
pub fn drive(pairs: usize) -> Drive {
    let claims: Vec<Arc<Claim>> = (0..pairs).map(|n| Arc::new(claim(n, size_gib(n), false))).collect();
    let volumes: Vec<Arc<Volume>> = (0..pairs).map(|n| Arc::new(volume(n, size_gib(n), false))).collect();
    let mut answerer = Answerer {
        claims: claims.iter().map(|claim| (claim.key().into(), claim.clone())).collect(),
        volumes: volumes.iter().map(|volume| (volume.name().clone(), volume.clone())).collect(),
        version: 10_000_000,
    };
    let mut engine = Engine::new(Config::default(), vec![Box::new(Binder::default())]);

    let start = Instant::now();
    let now = || Moment(start.elapsed());
    let mut inputs: VecDeque<Input> = Kind::ALL
        .into_iter()
        .map(|kind| Input::Listed {
            kind,
            version: 9_000_000,
            objects: if kind == Kind::Claim {
                claims.iter().cloned().map(Object::Claim).collect()
            } else if kind == Kind::Volume {
                volumes.iter().cloned().map(Object::Volume).collect()
            } else {
                Vec::new()
            },
        })
        .collect();
    inputs.push_back(Input::Leader(true));
    let mut writes = 0;
    while let Some(input) = inputs.pop_front() {
        let at = now();
        for output in engine.handle(at, input) {
            match output {
                Output::Send(id, Request::Write(write)) => {
                    writes += 1;
                    let object = answerer.write(&write);
                    inputs.push_back(Input::Answered(id, Answer::Written(object.clone())));
                    inputs.push_back(Input::Watched(object));
                }
                // The engine continues at once.
                Output::TickAt(moment) if moment <= at => inputs.push_back(Input::Tick),
                _ => {}
            }
        }
    }
    let took = start.elapsed();
    let bound = answerer.claims.values().filter(|claim| claim.status.phase == ClaimPhase::Bound).count();
    Drive { took, writes, bound }
}
