//! Every benchmark runs, on little.

use reweave_bench::ingest::{Measured, measure, table};
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

#[test]
fn ingest_measures_every_row() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = table(folder.path(), 2_000, |what, path| {
        let measured = measure(what, path, 1);
        Measured::parse(&measured.line()).expect("what was written can be read")
    });
    assert_eq!(table.lines().count(), 5, "{table}");
}
