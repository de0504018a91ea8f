//! The engine by itself: order, limits, back-off, wakes, answers that come late or never. Driven by hand, input by input.

mod answers;
mod backoff;
mod events;
mod hand;
mod limits;
mod lists;
mod start;
mod wakes;
