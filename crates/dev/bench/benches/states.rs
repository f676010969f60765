//! How fast are states gone through, by each way, and what does it cost to share the work?
//!
//! `cargo bench -p reweave-bench --bench states -- [POSET]…`, the 42 million states of
//! `rand:10:300:0.52:35` by default. Each state is evaluated: is the sum of a value of each chain at
//! least 60 a chain? Values are drawn from a fixed seed. Best of several rounds, of all ways in turn;
//! time of the processor is that of all threads, so it does not depend on what else it does.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use reweave_base::Rng;
use reweave_order::poset::{Poset, PosetBuilder};
use reweave_states::Bounds;
use reweave_states::by_chain::{Additive, Count, EachState, Limits, Plan};
use reweave_states::enumerate::{Gather, Lexical, ParaMount, lexical};
use reweave_workload::posets::Spec;

const ROUNDS: usize = 5;
const POSET: &str = "rand:10:300:0.52:35";

/// What is measured, and what comes of it: how many states meet the predicate, or how many there
/// are.
struct Case {
    name: &'static str,
    threads: usize,
    run: fn(&Workload) -> u64,
}

const CASES: [Case; 9] = [
    Case { name: "lexical", threads: 1, run: by_lexical },
    Case { name: "paramount over lexical", threads: 1, run: by_paramount },
    Case { name: "paramount over lexical", threads: 2, run: by_paramount },
    Case { name: "walk, function of a state", threads: 1, run: by_function },
    Case { name: "walk, sums", threads: 1, run: by_sums },
    Case { name: "walk, sums, split", threads: 1, run: by_split },
    Case { name: "walk, sums, split", threads: 2, run: by_split },
    Case { name: "walk, sums, wide rows", threads: 1, run: by_wide },
    Case { name: "walk, count alone", threads: 1, run: by_count },
];

/// A poset and a predicate.
struct Workload {
    poset: Poset,
    bounds: Bounds,
    values: Vec<Vec<i64>>,
    threshold: i64,
}

impl Workload {
    fn new(spec: &str) -> Self {
        let clocks = spec.parse::<Spec>().expect("a poset's name").make();
        let mut builder = PosetBuilder::new(clocks.chains_count).expect("few chains");
        for (chain, clock) in &clocks.events {
            builder.push(*chain, clock).expect("clocks of an order");
        }
        let poset = builder.finish();
        let mut rng = Rng::new(7);
        let values = poset.chains().map(|chain| {
            let drawn: Vec<i64> =
                (0..poset.length(chain) + 17).map(|_| rng.below(100) as i64).collect();
            drawn[..=poset.length(chain) as usize].to_vec()
        });
        let values = values.collect();
        let threshold = 60 * poset.chains_count() as i64;
        Self { bounds: Bounds::all(&poset), poset, values, threshold }
    }

    #[inline(always)]
    fn is_met(&self, state: &[u32]) -> bool {
        let values = self.values.iter().zip(state);
        values.map(|(values, &index)| values[index as usize]).sum::<i64>() >= self.threshold
    }

    fn additive(&self) -> Additive {
        Additive { values: self.values.clone(), threshold: self.threshold }
    }
}

fn by_lexical(workload: &Workload) -> u64 {
    let mut hits = 0;
    let end = lexical(&workload.poset, &workload.bounds, |state| {
        hits += u64::from(workload.is_met(state));
        ControlFlow::Continue(())
    });
    assert!(end.is_ok(), "nothing ends it");
    hits
}

/// Counts the states that meet the predicate.
#[derive(Clone)]
struct Hits<'a> {
    workload: &'a Workload,
    count: u64,
}

impl Gather for Hits<'_> {
    #[inline(always)]
    fn visit(&mut self, state: &[u32]) -> ControlFlow<()> {
        self.count += u64::from(self.workload.is_met(state));
        ControlFlow::Continue(())
    }

    fn join(&mut self, later: Self) {
        self.count += later.count;
    }
}

fn by_paramount(workload: &Workload) -> u64 {
    let paramount = ParaMount { within: Lexical };
    let gathered = paramount.gather(&workload.poset, &Hits { workload, count: 0 });
    gathered.map_or(0, |hits| hits.count)
}

fn by_function(workload: &Workload) -> u64 {
    let plan = Plan::new(&workload.poset, &workload.bounds);
    let mut hits = 0;
    let mut each = EachState::new(&plan, |state: &[u32]| {
        hits += u64::from(workload.is_met(state));
        ControlFlow::Continue(())
    });
    assert!(plan.visit(&mut each, (), &Limits::default()).is_ok(), "nothing ends it");
    hits
}

fn by_sums(workload: &Workload) -> u64 {
    let plan = Plan::new(&workload.poset, &workload.bounds);
    workload.additive().count(&plan, &Limits::default()).expect("nothing ends it")
}

fn by_wide(workload: &Workload) -> u64 {
    let plan = Plan::wide(&workload.poset, &workload.bounds);
    workload.additive().count(&plan, &Limits::default()).expect("nothing ends it")
}

fn by_split(workload: &Workload) -> u64 {
    let plan = Plan::new(&workload.poset, &workload.bounds);
    workload.additive().count_split(&plan, &Limits::default()).expect("nothing ends it")
}

fn by_count(workload: &Workload) -> u64 {
    let plan = Plan::new(&workload.poset, &workload.bounds);
    let mut count = Count::default();
    assert!(plan.visit(&mut count, (), &Limits::default()).is_ok(), "nothing ends it");
    count.states as u64
}

/// The seconds that the processor spent on this process's threads; 0 where the system does not
/// tell.
fn processor_seconds() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

/// The best of a case's rounds, in seconds.
#[derive(Clone, Copy)]
struct Best {
    result: u64,
    wall: f64,
    processor: f64,
}

fn report(spec: &str, pools: &[ThreadPool; 2]) {
    let workload = Workload::new(spec);
    let mut bests = [Best { result: 0, wall: f64::MAX, processor: f64::MAX }; CASES.len()];
    for _ in 0..ROUNDS {
        for (case, best) in CASES.iter().zip(&mut bests) {
            let (wall, processor) = (Instant::now(), processor_seconds());
            best.result = pools[case.threads - 1].install(|| (case.run)(black_box(&workload)));
            best.wall = best.wall.min(wall.elapsed().as_secs_f64());
            best.processor = best.processor.min(processor_seconds() - processor);
        }
    }
    let states = bests[CASES.len() - 1].result as f64;
    let [first, ..] = bests;
    println!("\n{spec}: {states} states, {} of which meet the predicate\n", first.result);
    println!("| way | threads | result | ms | processor ms | ns a state | times lexical |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (case, best) in CASES.iter().zip(&bests) {
        println!(
            "| {} | {} | {} | {:.1} | {:.1} | {:.3} | {:.1} |",
            case.name,
            case.threads,
            best.result,
            best.wall * 1e3,
            best.processor * 1e3,
            best.processor * 1e9 / states,
            first.processor / best.processor,
        );
    }
}

fn main() {
    let specs: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let pools = [1, 2].map(|count| {
        ThreadPoolBuilder::new().num_threads(count).build().expect("threads can be started")
    });
    if specs.is_empty() {
        report(POSET, &pools);
    }
    for spec in &specs {
        report(spec, &pools);
    }
}
