//! Breadth-first search over all states that a model can reach.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustc_hash::FxHashMap;

/// A system with steps. Equal digests mean equal states: with a 64-bit digest, two of a million
/// states are confused with a probability of about 3 in 100 million.
pub trait Model: Sized {
    /// A step.
    type Step: Copy;

    /// The possible steps, in a fixed order.
    fn steps(&self) -> Vec<Self::Step>;

    /// Whether a step may also never happen: a fault, or an action of a user. A state in which only
    /// such steps are possible is an end.
    fn is_optional(step: Self::Step) -> bool;

    /// The state after a step, or the promise that it breaks.
    fn after(&self, step: Self::Step) -> Result<Self, String>;

    /// Identifies the state.
    fn digest(&self) -> u64;

    /// The promise that is broken if nothing happens anymore.
    fn check_end(&self) -> Result<(), String>;

    /// A step as text.
    fn describe(&self, step: Self::Step) -> String;
}

/// How much was explored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Steps from one state to another.
    pub steps: usize,
    /// States in which only optional steps are possible.
    pub ends: usize,
    /// The length of the longest shortest path to a state.
    pub depth: usize,
}

/// The shortest sequence of steps that breaks a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The broken promise.
    pub broken: String,
    /// The steps that lead to it.
    pub trace: Vec<String>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.broken)?;
        self.trace.iter().enumerate().try_for_each(|(at, step)| writeln!(f, "{:>4}. {step}", at + 1))
    }
}

/// Where a state was reached from first.
struct Origin<S> {
    parent: u32,
    step: Option<S>,
    depth: u32,
}

struct Search<'a, M: Model> {
    start: &'a M,
    visited: FxHashMap<u64, u32>,
    origins: Vec<Origin<M::Step>>,
    /// Steps that are not optional, as pairs of states.
    required: Vec<(u32, u32)>,
    explored: Explored,
}

/// Visits every state that can be reached, and checks that every run without further optional steps
/// ends in a state that breaks no promise. More than `states_max` states are an error, too: it
/// bounds memory and time.
pub fn explore<M: Model + Clone>(start: &M, states_max: usize) -> Result<Explored, Box<Counterexample>> {
    let mut search = Search {
        start,
        visited: FxHashMap::default(),
        origins: vec![Origin { parent: 0, step: None, depth: 0 }],
        required: Vec::new(),
        explored: Explored { states: 1, ..Explored::default() },
    };
    search.visited.insert(start.digest(), 0);
    let mut frontier = VecDeque::from([(0, start.clone())]);
    while let Some((at, state)) = frontier.pop_front() {
        search.expand(at, &state, |next, state| frontier.push_back((next, state)))?;
        if search.explored.states > states_max {
            return Err(search.counterexample(at, None, format!("more than {states_max} states, such as this one")));
        }
    }
    search.check_termination()?;
    Ok(search.explored)
}

impl<M: Model + Clone> Search<'_, M> {
    fn expand(&mut self, at: u32, state: &M, mut found: impl FnMut(u32, M)) -> Result<(), Box<Counterexample>> {
        let steps = state.steps();
        if steps.iter().all(|step| M::is_optional(*step)) {
            self.explored.ends += 1;
            state.check_end().map_err(|broken| self.counterexample(at, None, broken))?;
        }
        for step in steps {
            let next = after(state, step).map_err(|broken| self.counterexample(at, Some(step), broken))?;
            self.explored.steps += 1;
            let number = u32::try_from(self.origins.len()).expect("the bound is below 2^32 states");
            let number = match self.visited.entry(next.digest()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    new.insert(number);
                    let depth = self.origins[at as usize].depth + 1;
                    self.origins.push(Origin { parent: at, step: Some(step), depth });
                    self.explored.states += 1;
                    self.explored.depth = depth as usize;
                    found(number, next);
                    number
                }
            };
            if !M::is_optional(step) {
                self.required.push((at, number));
            }
        }
        Ok(())
    }

    /// Checks that the steps that are not optional form no cycle: then every run without further
    /// optional steps ends, and all ends were checked.
    fn check_termination(&self) -> Result<(), Box<Counterexample>> {
        let mut incoming = vec![0_u32; self.origins.len()];
        let mut outgoing: Vec<Vec<u32>> = vec![Vec::new(); self.origins.len()];
        for (from, to) in &self.required {
            incoming[*to as usize] += 1;
            outgoing[*from as usize].push(*to);
        }
        let is_free = |state: &u32| incoming[*state as usize] == 0;
        let states = 0..u32::try_from(incoming.len()).expect("the bound is below 2^32 states");
        let mut free: Vec<u32> = states.filter(is_free).collect();
        while let Some(state) = free.pop() {
            for next in &outgoing[state as usize] {
                incoming[*next as usize] -= 1;
                if incoming[*next as usize] == 0 {
                    free.push(*next);
                }
            }
        }
        match incoming.iter().position(|left| *left > 0) {
            None => Ok(()),
            Some(state) => {
                let broken = "L4: the steps from here on lead back here, without a fault".to_owned();
                Err(self.counterexample(u32::try_from(state).unwrap_or_default(), None, broken))
            }
        }
    }

    /// The steps to a state, and one more that breaks a promise.
    fn counterexample(&self, at: u32, last: Option<M::Step>, broken: String) -> Box<Counterexample> {
        let mut path = Vec::from_iter(last);
        let mut origin = &self.origins[at as usize];
        while let Some(step) = origin.step {
            path.push(step);
            origin = &self.origins[origin.parent as usize];
        }
        path.reverse();
        let mut state = self.start.clone();
        let mut trace = Vec::new();
        for step in path {
            trace.push(state.describe(step));
            // The last step breaks the promise, so there is no state after it.
            let Ok(next) = after(&state, step) else { break };
            state = next;
        }
        Box::new(Counterexample { broken, trace })
    }
}

/// The state after a step. A panic of the system breaks a promise, too.
fn after<M: Model>(state: &M, step: M::Step) -> Result<M, String> {
    let panicked = |cause: Box<dyn std::any::Any + Send>| {
        let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
        Err(format!("S15: panic: {}", text.unwrap_or_default()))
    };
    catch_unwind(AssertUnwindSafe(|| state.after(step))).unwrap_or_else(panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that grows to an end, and may be set back.
    #[derive(Clone)]
    struct Counter {
        value: u8,
        wraps_at: Option<u8>,
        broken_at: Option<u8>,
        end: u8,
    }

    const COUNTER: Counter = Counter { value: 0, wraps_at: None, broken_at: None, end: 4 };

    #[derive(Clone, Copy, PartialEq)]
    enum Count {
        Add(u8),
        SetBack,
    }

    impl Model for Counter {
        type Step = Count;

        fn steps(&self) -> Vec<Count> {
            let add = [1, 2].into_iter().filter(|by| self.value + by <= self.end).map(Count::Add);
            add.chain([Count::SetBack]).collect()
        }

        fn is_optional(step: Count) -> bool {
            step == Count::SetBack
        }

        fn after(&self, step: Count) -> Result<Counter, String> {
            let value = if let Count::Add(by) = step { self.value + by } else { 0 };
            let value = if Some(value) == self.wraps_at { 0 } else { value };
            if Some(value) == self.broken_at { Err(format!("{value}")) } else { Ok(Counter { value, ..self.clone() }) }
        }

        fn digest(&self) -> u64 {
            self.value.into()
        }

        fn check_end(&self) -> Result<(), String> {
            if self.value == self.end { Ok(()) } else { Err("stuck".into()) }
        }

        fn describe(&self, step: Count) -> String {
            if let Count::Add(by) = step { format!("{} + {by}", self.value) } else { "set back".into() }
        }
    }

    #[test]
    fn every_state_is_visited_once() {
        let explored = explore(&COUNTER, 100).expect("nothing is broken");
        assert_eq!(explored, Explored { states: 5, steps: 12, ends: 1, depth: 2 });
    }

    #[test]
    fn shortest_trace_is_found() {
        let broken = explore(&Counter { broken_at: Some(3), ..COUNTER }, 100).expect_err("3 is reached");
        assert_eq!(broken.to_string(), "3\n   1. 0 + 1\n   2. 1 + 2\n");
    }

    #[test]
    fn cycle_without_optional_steps_is_found() {
        let broken = explore(&Counter { wraps_at: Some(4), ..COUNTER }, 100).expect_err("4 is 0 again");
        assert!(broken.broken.starts_with("L4"), "{broken}");
    }

    #[test]
    fn number_of_states_is_bounded() {
        let broken = explore(&COUNTER, 2).expect_err("there are more");
        assert_eq!(broken.broken, "more than 2 states, such as this one");
    }
}
