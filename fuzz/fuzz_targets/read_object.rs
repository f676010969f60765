//! Bytes of any kind as a file of code that was mapped: every address has some name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_object(bytes));
