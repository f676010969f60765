//! JSON lines: a first event, then anything.
#![no_main]

const FIRST: &[u8] = br#"{"thread":"T1","op":"w","on":"x","location":"1"}
"#;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reweave_fuzz::check_bytes(&[FIRST, bytes].concat());
});
