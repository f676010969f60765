//! Bytes of any kind, as a file whose format is to be found out.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_bytes(bytes));
