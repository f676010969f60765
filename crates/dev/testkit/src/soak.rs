//! How long randomised tests run: briefly by default, as long as asked in a soak.

use proptest::test_runner::{Config, FileFailurePersistence};

/// How many times the usual number of cases to try: the environment's `REWEAVE_SOAK`, or 1.
#[must_use]
pub fn multiplier() -> u32 {
    let asked = std::env::var("REWEAVE_SOAK").ok();
    asked.and_then(|text| text.parse().ok()).filter(|&times| times > 0).unwrap_or(1)
}

/// `usual`, or as many times that as a soak asks for.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    usual.saturating_mul(multiplier())
}

/// A property test's settings: `usual` cases or more in a soak; failing seeds are kept in a
/// `.regressions` file beside the test.
#[must_use]
pub fn config(usual: u32) -> Config {
    Config {
        cases: cases(usual),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    }
}
