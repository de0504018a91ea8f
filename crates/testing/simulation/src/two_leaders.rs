//! Two engines that both act as leader of one cluster. The result must be the same as with one.

use std::collections::VecDeque;
use std::time::Duration;

use bindery_engine::{Config, Engine, Input, Moment, Output, RequestId};
use bindery_model::Kind;
use bindery_rules_api::Request;

use crate::SimulatedCluster;
use crate::run::{Report, Rules};

/// Two engines in a cluster. They run alternately, and both receive all watch events.
pub struct TwoLeaders {
    /// The cluster.
    pub cluster: SimulatedCluster,
    /// What both engines did so far.
    pub report: Report,
    engines: [Leader; 2],
    now: Moment,
}

struct Leader {
    engine: Engine,
    watch: VecDeque<Input>,
    inbox: VecDeque<(RequestId, Request)>,
    tick_at: Option<Moment>,
}

impl TwoLeaders {
    /// Starts two engines that have listed everything and are leaders.
    pub fn start(mut cluster: SimulatedCluster, rules: Rules<'_>) -> TwoLeaders {
        cluster.pending_events.clear();
        let leader = || Leader {
            engine: Engine::new(Config::default(), rules()),
            watch: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
        };
        let mut two_leaders =
            TwoLeaders { cluster, report: Report::default(), engines: [leader(), leader()], now: Moment::default() };
        for which in 0..2 {
            for kind in Kind::ALL {
                let (version, objects) = two_leaders.cluster.list(kind);
                two_leaders.handle(which, Input::Listed { kind, version, objects });
            }
            two_leaders.handle(which, Input::Leader(true));
        }
        two_leaders
    }

    fn handle(&mut self, which: usize, input: Input) {
        let leader = &mut self.engines[which];
        for output in leader.engine.handle(self.now, input) {
            match output {
                Output::Send(id, request) => leader.inbox.push_back((id, request)),
                Output::TickAt(moment) => leader.tick_at = Some(moment),
                Output::Decided(decided) => {
                    self.report.rule(decided.rule);
                    decided.step.into_iter().for_each(|step| self.report.rule(step));
                }
                Output::Publish(event) => self.report.events.push(event),
                Output::Measured(_) | Output::Rejected(_) => {}
            }
        }
    }

    /// Delivers one input to an engine; answers come first, so that each engine acts on stale
    /// state. `false` when nothing is left.
    fn step(&mut self, which: usize) -> bool {
        for event in std::mem::take(&mut self.cluster.pending_events) {
            self.engines.iter_mut().for_each(|leader| leader.watch.push_back(event.clone().into()));
        }
        if let Some((id, request)) = self.engines[which].inbox.pop_front() {
            let answer = self.cluster.answer(&request);
            self.handle(which, Input::Answered(id, answer));
        } else if let Some(input) = self.engines[which].watch.pop_front() {
            self.handle(which, input);
        } else {
            return false;
        }
        true
    }

    fn until_idle(&mut self) {
        for _ in 0..100_000 {
            let first = self.step(0);
            if !self.step(1) && !first {
                return;
            }
        }
        panic!("two engines do not become idle: {:#?}", self.cluster.history.iter().rev().take(50).collect::<Vec<_>>());
    }

    /// Runs until idle, and then for ten minutes with resyncs and retries.
    pub fn until_stable(&mut self) {
        self.until_idle();
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            let due = self.engines.iter().filter_map(|leader| leader.tick_at).min();
            self.now = due.unwrap_or(end).max(self.now);
            for which in 0..2 {
                if self.engines[which].tick_at.is_some_and(|moment| moment <= self.now) {
                    self.engines[which].tick_at = None;
                    self.handle(which, Input::Tick);
                }
            }
            self.until_idle();
        }
    }
}
