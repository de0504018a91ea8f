//! In every recorded state, a claim is explained as binding to a volume exactly when the engine
//! binds it.

use std::collections::VecDeque;

use bindery_binder::{Binder, rules};
use bindery_cache::Cache;
use bindery_engine::{Config, Engine, Input, Moment, Output, RequestId};
use bindery_explain::{Explanation, explain_claim};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Edit, RefEdit, Request};
use bindery_simulation::oracle::memory::{act, begin};
use bindery_simulation::oracle::recorded;
use bindery_simulation::run::cache_of;
use bindery_simulation::{SimulatedCluster, WatchEvent};

/// The number of comparisons, to notice a test that compares nothing.
#[derive(Debug, Default)]
struct Compared {
    binds: usize,
    waits: usize,
}

/// An engine with at most one request in flight, so that its cache equals the cluster.
struct OneByOne {
    cluster: SimulatedCluster,
    engine: Engine,
    inbox: VecDeque<(RequestId, Request)>,
    compared: Compared,
}

impl OneByOne {
    fn start(cluster: SimulatedCluster) -> OneByOne {
        let mut run = OneByOne::idle(cluster);
        for kind in Kind::ALL {
            let (version, objects) = run.cluster.list(kind);
            run.handle(Input::Listed { kind, version, objects });
        }
        run.handle(Input::Leader(true));
        run
    }

    fn idle(mut cluster: SimulatedCluster) -> OneByOne {
        cluster.pending_events.clear();
        let config = Config { requests_max: 1, ..Config::default() };
        let engine = Engine::new(config, vec![Box::new(Binder::default())]);
        OneByOne { cluster, engine, inbox: VecDeque::new(), compared: Compared::default() }
    }

    fn handle(&mut self, input: Input) {
        let known = cache_of(&self.cluster, &[]);
        let mut outputs = self.engine.handle(Moment::default(), input).into_iter().peekable();
        while let Some(output) = outputs.next() {
            match output {
                Output::Decided(decided) if decided.key.kind == Kind::Claim => {
                    // The request of a decision follows it.
                    let request = match outputs.peek() {
                        Some(Output::Send(_, request)) => Some(request),
                        Some(_) | None => None,
                    };
                    self.compare(&known, &decided.key, decided.rule.name, request);
                }
                Output::Send(id, request) => self.inbox.push_back((id, request)),
                Output::Decided(_)
                | Output::Publish(_)
                | Output::TickAt(_)
                | Output::Measured(_)
                | Output::Rejected(_) => {}
            }
        }
    }

    fn compare(&mut self, known: &Cache, key: &ObjectKey, rule: &str, request: Option<&Request>) {
        let Ok(explained) = explain_claim(&Binder::default(), known, &key.claim_key(), 10) else {
            assert_eq!(rule, rules::CLAIM_DELETED.name, "{key} exists for the engine, but not for explain");
            return;
        };
        let explained_bind = would_bind_to(&explained);
        let done = request.and_then(|request| bound_by(known, key, request));
        assert_eq!(explained_bind, done, "{key} by {rule}:\n{explained}\n{request:#?}");
        match explained_bind {
            Some(volume) => {
                assert!(explained.to_string().contains(&format!("would bind to {volume}")), "{explained}");
                self.compared.binds += 1;
            }
            None => {
                assert!(!explained.to_string().contains("would bind to"), "{explained}");
                self.compared.waits += 1;
            }
        }
    }

    fn until_idle(&mut self) {
        for _ in 0..10_000 {
            if let Some(event) = self.cluster.pending_events.pop_front() {
                self.handle(match event {
                    WatchEvent::Changed(object) => Input::Watched(object),
                    WatchEvent::Deleted(key, version) => Input::Deleted { key, version },
                });
            } else if let Some((id, request)) = self.inbox.pop_front() {
                let answer = self.cluster.answer(&request);
                self.handle(Input::Answered(id, answer));
            } else {
                return;
            }
        }
        panic!("the engine does not become idle");
    }
}

fn would_bind_to(explained: &Explanation) -> Option<String> {
    explained.bind.as_ref().filter(|bind| !bind.is_done).map(|bind| bind.to.clone())
}

/// The volume that a request binds a claim to, derived from the request alone: it sets the
/// `claimRef`, sets `volumeName`, or marks one of the pair.
fn bound_by(known: &Cache, claim: &ObjectKey, request: &Request) -> Option<String> {
    let Request::Write(write) = request else { return None };
    let named = || known.claim(&claim.claim_key()).and_then(|claim| claim.volume.as_ref()).map(ToString::to_string);
    match write.edit() {
        Edit::Volume(edit) => match &edit.claim_ref {
            Some(RefEdit::Set(owner, _)) => {
                assert_eq!(ObjectKey::from(owner.key.clone()), *claim, "the claimRef is the decided claim");
                Some(write.target().name.to_string())
            }
            Some(RefEdit::Clear | RefEdit::ClearUid) => None,
            // The bound-by-controller annotation.
            None => Some(write.target().name.to_string()),
        },
        Edit::VolumeStatus(_) => Some(write.target().name.to_string()),
        Edit::ClaimReport(_) | Edit::PodStatus(_) | Edit::Protection(_) | Edit::Record(_) => None,
        Edit::Claim(edit) => {
            let is_completed =
                edit.annotations.iter().any(|(annotation, _)| annotation.key().ends_with("bind-completed"));
            edit.volume.as_ref().map(ToString::to_string).or_else(|| named().filter(|_| is_completed))
        }
        Edit::ClaimStatus(edit) => named().filter(|_| edit.phase.as_str() == "Bound"),
    }
}

#[test]
fn explanation_says_would_bind_exactly_when_the_engine_binds() {
    let (mut states, mut binds, mut waits) = (0, 0, 0);
    for recorded in recorded() {
        let (mut cluster, mut ledger) = begin(&recorded);
        let mut run_until_idle = |cluster: &mut SimulatedCluster| {
            let mut run = OneByOne::start(std::mem::take(cluster));
            run.until_idle();
            binds += run.compared.binds;
            waits += run.compared.waits;
            *cluster = run.cluster;
        };
        run_until_idle(&mut cluster);
        for action in recorded.actions() {
            act(&recorded, &action, &mut cluster, &mut ledger);
            run_until_idle(&mut cluster);
        }
        states += 1;
    }
    assert_eq!(states, 600);
    assert!(binds > 500 && waits > 2_000, "{binds} binds and {waits} other decisions were compared");
    println!("{binds} steps of binds, {waits} other decisions");
}
