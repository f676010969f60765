//! How many steps a second does a run take, by what is recorded of it?
//!
//! `cargo bench -p reweave-bench --bench exec [NAME]`. Rates are steps a second, recording
//! included, under a random scheduler with a fixed seed.

use std::fmt::{self, Display, Formatter};

use divan::Bencher;
use divan::counter::ItemsCount;
use reweave_exec::scheduler::Random;
use reweave_exec::{Code, Layers, Settings, run};
use reweave_lang::{Source, check};

fn main() {
    divan::main();
}

/// A program that takes about a million steps.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    text: &'static str,
}

impl Display for Workload {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "accesses by 4 threads",
        text: "shared x; shared a[16];
            main { coforeach (i in 0..4) { for (k in 0..40000) {
                let t = x + a[k & 15]; a[(t + i) & 15] = t; x = t ^ k;
            } } }",
    },
    Workload {
        name: "1000 threads",
        text: "shared a[1000];
            main { coforeach (i in 0..1000) { for (k in 0..250) { a[i] = a[i] + k; } } }",
    },
    Workload {
        name: "locks and swaps",
        text: "shared x; shared y; lock m;
            main { coforeach (i in 0..4) { for (k in 0..30000) {
                sync (m) { x = x + 1; }
                let old = y; let done = cas(y, old, old + 1);
            } } }",
    },
    Workload {
        name: "calls",
        text: "shared x;
            fn middle(a, b) { if (a < b) { return a + (b - a) / 2; } return b; }
            main { coforeach (i in 0..2) { let sum = 0; for (k in 0..80000) {
                sum = sum + middle(i, k);
            } x = sum; } }",
    },
];

fn bench(bencher: Bencher<'_, '_>, workload: Workload, layers: Layers) {
    let source = Source::new(workload.name, workload.text);
    let program = check(&source).program.expect("the program is right");
    let code = Code::new(&program, &source);
    let settings = Settings { layers, ..Settings::default() };
    let once = || run(&code, &mut Random::new(1), &settings);
    let steps_count = once().schedule.0.len();
    bencher.counter(ItemsCount::new(steps_count)).bench(once);
}

#[divan::bench(args = WORKLOADS, sample_count = 10)]
fn everything(bencher: Bencher<'_, '_>, workload: Workload) {
    bench(bencher, workload, Layers::Program);
}

#[divan::bench(args = WORKLOADS, sample_count = 10)]
fn flow(bencher: Bencher<'_, '_>, workload: Workload) {
    bench(bencher, workload, Layers::Flow);
}

#[divan::bench(args = WORKLOADS, sample_count = 10)]
fn events(bencher: Bencher<'_, '_>, workload: Workload) {
    bench(bencher, workload, Layers::Events);
}
