//! Texts of any kind as symbols: readable, in a length that is bounded by theirs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_symbol(bytes));
