//! Decoding and patches: see `entries/fields.rs`.

#![no_main]

#[path = "../entries/fields.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::check(bytes));
