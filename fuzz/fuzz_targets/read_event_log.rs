//! Recordings on disk. Checksums stop almost every mutation, so the bytes are also taken as the
//! parts of frames whose checksums are put right; and what is read can be written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reweave_fuzz::check_event_log(bytes));
