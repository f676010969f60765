//! Any events as what the runtime wrote: those it only counted are decoded, as many as it
//! counted.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_decoding(bytes));
