//! Any events as a recording, lifted and converted: the trace is well formed, in memory and in a
//! file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_conversion(bytes));
