//! HTTP requests to the embedded API server: see `entries/requests.rs`.

#![no_main]

#[path = "../entries/requests.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::check(bytes));
