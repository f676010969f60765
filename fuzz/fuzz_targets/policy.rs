//! Arbitrary bytes as a baseline and as suppressions: rejected with a position, or parsed; and matching a
//! pattern against a name takes no more than linear time.
#![no_main]

use reweave_analysis::Kind;
use reweave_policy::{Baseline, Pattern, ReadError, Suppressions};

/// The position is within the file.
fn check_position(bytes: &[u8], error: &ReadError) {
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
    assert!((1..=lines).contains(&error.line), "{error}");
    assert!((1..=bytes.len() + 1).contains(&error.column), "{error}");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Baseline::parse("file", bytes) {
        Ok(baseline) => assert_eq!(baseline.not_found(&Kind::ALL).count(), baseline.len()),
        Err(error) => check_position(bytes, &error),
    }
    match Suppressions::parse("file", bytes) {
        Ok(suppressions) => _ = suppressions.unused(&Kind::ALL).count(),
        Err(error) => check_position(bytes, &error),
    }
    if let Some((pattern, name)) = std::str::from_utf8(bytes).ok().and_then(|it| it.split_once('\n')) {
        let is_matched = Pattern::new(pattern).matches(name);
        assert!(!(is_matched && name.is_empty()));
    }
});
