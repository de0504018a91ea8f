//! The engine: start, leadership, limits, back-off, wakes, late and lost answers. Driven input by
//! input.

mod answers;
mod backoff;
mod events;
mod harness;
mod limits;
mod lists;
mod rejections;
mod start;
mod wakes;
