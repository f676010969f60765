//! Every benchmark runs, on little.

use reweave_bench::{CASES, Prepared};

#[test]
fn every_case_runs_and_repeats_itself() {
    let prepared = Prepared::new(2_000);
    for case in CASES {
        let answer = (case.run)(&prepared);
        assert!(answer > 0, "{} did nothing", case.name);
        assert_eq!(answer, (case.run)(&prepared), "{}", case.name);
    }
}
