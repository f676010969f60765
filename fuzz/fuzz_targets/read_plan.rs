//! Words of any kind as a plan: refused, or it names only what is there and can be written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_plan(bytes));
