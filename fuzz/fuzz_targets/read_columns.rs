//! A drawing with a column per thread, then anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reweave_fuzz::check_bytes(&[b"T1  T2  T3\n", bytes].concat());
});
