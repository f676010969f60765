//! RAPID text: a first line that settles the format, then anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reweave_fuzz::check_bytes(&[b"T1|w(x)|1\n", bytes].concat());
});
