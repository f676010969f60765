//! How many instructions each case takes: the same on a busy machine as on an idle one, so a
//! change for the worse shows.
//!
//! `cargo bench -p reweave-bench --bench instructions` compares with the run before it and fails
//! where a case takes over three percent more. Needs valgrind and `cargo install gungraun-runner`.
#![expect(missing_docs, unused_qualifications, reason = "the macros make them")]

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use reweave_bench::{Case, Prepared, case};
use std::hint::black_box;

const EVENTS: usize = 20_000;

fn prepare(name: &str) -> (Case, Prepared) {
    (case(name), Prepared::new(EVENTS))
}

#[library_benchmark]
#[bench::read_std(args = ("read.std",), setup = prepare)]
#[bench::read_rwt(args = ("read.rwt",), setup = prepare)]
#[bench::read_jsonl(args = ("read.jsonl",), setup = prepare)]
#[bench::write_std(args = ("write.std",), setup = prepare)]
#[bench::write_rwt(args = ("write.rwt",), setup = prepare)]
#[bench::validate(args = ("validate",), setup = prepare)]
#[bench::views(args = ("views",), setup = prepare)]
#[bench::certify(args = ("certify",), setup = prepare)]
#[bench::races_hb(args = ("races.hb",), setup = prepare)]
fn run((case, prepared): (Case, Prepared)) -> (usize, Prepared) {
    // What was prepared is handed back, so that freeing it is not counted.
    (black_box((case.run)(black_box(&prepared))), prepared)
}

library_benchmark_group!(name = cases, benchmarks = run);

main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::default().soft_limits([(EventKind::Ir, 3.0)])),
    library_benchmark_groups = cases
);
