//! The engine: start, leadership, limits, the admission gate, back-off, wakes, late and lost
//! answers. Driven input by input.

mod answers;
mod backoff;
mod events;
mod gate;
mod harness;
mod limits;
mod lists;
mod rejections;
mod slices;
mod start;
mod wakes;
