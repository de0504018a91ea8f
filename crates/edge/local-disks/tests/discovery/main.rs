//! Discovery and the choice of what is cleaned: a state, and what is found. Every rule has its case.

mod cleaning;
mod entries;
mod volumes;
mod world;
