//! Our binary format. Checksums stop almost every mutation, so the bytes are taken as the
//! payloads of frames whose checksums are put right.
#![no_main]

use reweave_format::rwt;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reweave_fuzz::check_bytes(&rwt::framed(bytes));
    reweave_fuzz::check_bytes(&[&rwt::MAGIC, bytes].concat());
});
