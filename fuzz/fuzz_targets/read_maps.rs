//! Texts of any kind as the map of a process: every address has some name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_maps(bytes));
