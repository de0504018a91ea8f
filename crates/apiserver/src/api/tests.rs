//! The API as a whole.
