//! An engine whose calls are timed. The engine decides for the whole cluster on one thread, so the
//! longest call is how long everything else can be delayed.

use std::time::{Duration, Instant};

use bindery_engine::{Config, Engine, Input, Moment, Output};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_rules_api::RuleSet;

/// The phases of several rounds, each with the shortest of its longest calls: the longest call of a
/// round is likely to be one that the system interrupted.
pub fn best<const PHASES: usize>(
    rounds: usize,
    mut round: impl FnMut() -> [(&'static str, Calls); PHASES],
) -> [(&'static str, Calls); PHASES] {
    let mut best = round();
    for _ in 1..rounds {
        for ((_, best), (_, calls)) in best.iter_mut().zip(round()) {
            best.longest = best.longest.min(calls.longest);
            best.total = best.total.min(calls.total);
        }
    }
    best
}

/// The calls of one phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    /// Their number.
    pub count: usize,
    /// The longest one.
    pub longest: Duration,
    /// All together.
    pub total: Duration,
}

/// An engine, a clock that advances only on request, and the calls since the last phase.
pub struct Meter {
    /// The engine.
    pub engine: Engine,
    now: Moment,
    tick_at: Option<Moment>,
    calls: Calls,
    /// Requests that were sent. No request is answered.
    pub sent: usize,
}

impl Meter {
    /// An engine with all volume controllers.
    pub fn new() -> Meter {
        let sets: Vec<Box<dyn RuleSet + Send>> = vec![
            Box::new(bindery_binder::Binder::default()),
            Box::new(Ephemeral),
            Box::new(ClaimProtection { reports_unused: false }),
            Box::new(VolumeProtection),
            Box::new(AttributesClassProtection),
            Box::new(Expander),
        ];
        let engine = Engine::new(Config::default(), sets);
        Meter { engine, now: Moment::default(), tick_at: None, calls: Calls::default(), sent: 0 }
    }

    /// Passes an input, and every tick that is due at once.
    pub fn handle(&mut self, input: Input) {
        self.call(input);
        while self.tick_at.is_some_and(|tick_at| tick_at <= self.now) {
            self.tick_at = None;
            self.call(Input::Tick);
        }
    }

    fn call(&mut self, input: Input) {
        let start = Instant::now();
        let outputs = self.engine.handle(self.now, input);
        self.note(start.elapsed());
        for output in outputs {
            match output {
                Output::TickAt(moment) => self.tick_at = Some(moment),
                Output::Send(..) => self.sent += 1,
                _ => {}
            }
        }
    }

    fn note(&mut self, took: Duration) {
        self.calls.count += 1;
        self.calls.longest = self.calls.longest.max(took);
        self.calls.total += took;
    }

    /// Reads from the engine, as a query of the engine task does.
    pub fn query<T>(&mut self, read: impl FnOnce(&Engine) -> T) -> T {
        let start = Instant::now();
        let result = read(&self.engine);
        self.note(start.elapsed());
        result
    }

    /// Advances the clock to the next tick.
    pub fn tick(&mut self) {
        if let Some(moment) = self.tick_at.take() {
            self.now = self.now.max(moment);
        }
        self.handle(Input::Tick);
    }

    /// The calls since this was last called.
    pub fn calls(&mut self) -> Calls {
        std::mem::take(&mut self.calls)
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}
