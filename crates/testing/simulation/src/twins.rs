//! Two engines in one world, both of which lead: what becomes of it must be the same as with one.

use std::collections::VecDeque;
use std::time::Duration;

use bindery_engine::{Config, Engine, Input, Moment, Output, RequestId};
use bindery_model::Kind;
use bindery_rules_api::Request;

use crate::World;
use crate::run::{Report, Rules};

/// Two engines in a world. They take turns, and each hears of everything.
pub struct Twins {
    /// The world.
    pub world: World,
    /// What happened so far, by either.
    pub report: Report,
    engines: [Twin; 2],
    now: Moment,
}

struct Twin {
    engine: Engine,
    watch: VecDeque<Input>,
    inbox: VecDeque<(RequestId, Request)>,
    tick_at: Option<Moment>,
}

impl Twins {
    /// Starts two engines in a world: both list everything, and lead.
    pub fn start(mut world: World, rules: Rules<'_>) -> Twins {
        world.untold.clear();
        let twin = || Twin {
            engine: Engine::new(Config::default(), rules()),
            watch: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
        };
        let mut twins = Twins { world, report: Report::default(), engines: [twin(), twin()], now: Moment::default() };
        for which in 0..2 {
            for kind in Kind::ALL {
                let (version, objects) = twins.world.list(kind);
                twins.tell(which, Input::Listed { kind, version, objects });
            }
            twins.tell(which, Input::Leader(true));
        }
        twins
    }

    fn tell(&mut self, which: usize, input: Input) {
        let twin = &mut self.engines[which];
        for output in twin.engine.handle(self.now, input) {
            match output {
                Output::Send(id, request) => twin.inbox.push_back((id, request)),
                Output::TickAt(moment) => twin.tick_at = Some(moment),
                Output::Decided(decided) => {
                    self.report.rule(decided.rule);
                    decided.step.into_iter().for_each(|step| self.report.rule(step));
                }
                Output::Publish(notice) => self.report.events.push(notice),
                Output::Measured(_) => {}
            }
        }
    }

    /// One thing happens to one of them: an answer first, so that each acts on what it knew. `false` when nothing is left.
    fn step(&mut self, which: usize) -> bool {
        for told in std::mem::take(&mut self.world.untold) {
            self.engines.iter_mut().for_each(|twin| twin.watch.push_back(told.clone().into()));
        }
        if let Some((id, request)) = self.engines[which].inbox.pop_front() {
            let answer = self.world.answer(&request);
            self.tell(which, Input::Answered(id, answer));
        } else if let Some(input) = self.engines[which].watch.pop_front() {
            self.tell(which, input);
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
        panic!("two engines do not come to rest: {:#?}", self.world.history.iter().rev().take(50).collect::<Vec<_>>());
    }

    /// Goes on until nothing happens any more, ten minutes of resyncs and retries included.
    pub fn until_stable(&mut self) {
        self.until_idle();
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            let due = self.engines.iter().filter_map(|twin| twin.tick_at).min();
            self.now = due.unwrap_or(end).max(self.now);
            for which in 0..2 {
                if self.engines[which].tick_at.is_some_and(|moment| moment <= self.now) {
                    self.engines[which].tick_at = None;
                    self.tell(which, Input::Tick);
                }
            }
            self.until_idle();
        }
    }
}
