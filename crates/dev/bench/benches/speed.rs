//! How the cost of each case grows with the trace.
//!
//! `cargo bench -p reweave-bench --bench speed [NAME]`. Rates are events a second.

use divan::Bencher;
use divan::counter::ItemsCount;
use reweave_bench::{CASES, Case, Prepared};

fn main() {
    divan::main();
}

#[divan::bench(args = CASES, consts = [1_000, 10_000, 100_000], sample_count = 20)]
fn cases<const EVENTS: usize>(bencher: Bencher<'_, '_>, case: Case) {
    let prepared = Prepared::new(EVENTS);
    bencher.counter(ItemsCount::new(EVENTS)).bench(|| (case.run)(&prepared));
}
