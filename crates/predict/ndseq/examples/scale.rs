//! How long inference takes on large runs: `cargo run --release -p reweave-ndseq --example scale`.
//!
//! The runs are those of retry loops under contention, as Figure 1 of Burnim et al.: each thread
//! reads a shared variable, computes, and swaps if nobody else did in the meantime.

#![expect(clippy::print_stdout, reason = "an example exists to print")]

use std::collections::BTreeMap;
use std::time::Instant;

use reweave_base::Rng;
use reweave_ndseq::{Answer, Known, Settings, infer};
use reweave_trace::{
    AccessOp, EventId, Extent, Flow, Instance, InstanceId, LocalId, Marker, MemoryOrder, Op,
    StaticBlock, StaticBlockId, Step, Trace, TraceBuilder, VarId,
};

/// A family of runs.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    threads: usize,
    /// How many threads are under way at once.
    active: usize,
    /// How many swaps of a hundred fail though nobody else swapped.
    failures: usize,
    /// How many different retry loops there are, each on a variable of its own.
    loops: usize,
    /// How many steps of computation there are in each round.
    filler: usize,
    /// Whether each thread also counts its rounds in a variable that nobody reads.
    counts: bool,
    /// Whether each thread ends with an unprotected increment of the result.
    loses_updates: bool,
}

const SHAPES: [Shape; 7] = [
    Shape {
        name: "reduce",
        threads: 1_000,
        active: 320,
        failures: 99,
        loops: 1,
        filler: 0,
        counts: false,
        loses_updates: false,
    },
    Shape {
        name: "reduce, all threads at once",
        threads: 1_000,
        active: 1_000,
        failures: 98,
        loops: 1,
        filler: 0,
        counts: false,
        loses_updates: false,
    },
    Shape {
        name: "long rounds",
        threads: 1_000,
        active: 40,
        failures: 10,
        loops: 1,
        filler: 40,
        counts: false,
        loses_updates: false,
    },
    Shape {
        name: "counted",
        threads: 1_000,
        active: 300,
        failures: 99,
        loops: 1,
        filler: 0,
        counts: true,
        loses_updates: false,
    },
    Shape {
        name: "10 loops",
        threads: 1_000,
        active: 1_000,
        failures: 99,
        loops: 10,
        filler: 0,
        counts: false,
        loses_updates: false,
    },
    Shape {
        name: "100 loops",
        threads: 1_000,
        active: 1_000,
        failures: 97,
        loops: 100,
        filler: 25,
        counts: false,
        loses_updates: false,
    },
    Shape {
        name: "lost update",
        threads: 1_000,
        active: 320,
        failures: 99,
        loops: 1,
        filler: 0,
        counts: false,
        loses_updates: true,
    },
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for shape in SHAPES {
        if !wanted.is_empty() && !wanted.iter().any(|name| shape.name.contains(name.as_str())) {
            continue;
        }
        let trace = Retry::new(shape).run();
        for known in [Known::Forced, Known::Slice] {
            for grouping in [false, true] {
                let settings = Settings { known, grouping, ..Settings::default() };
                measure(shape.name, &trace, &settings);
            }
        }
    }
}

fn measure(name: &str, trace: &Trace, settings: &Settings) {
    let start = Instant::now();
    let inference = infer(&[trace], settings).expect("the run has a flow layer");
    let seconds = start.elapsed().as_secs_f64();
    let answer = match &inference.answer {
        Answer::Specification(placements) => format!("{} placements", placements.len()),
        Answer::Impossible(explanation) => format!("impossible ({} hops)", explanation.cycle.len()),
        other => format!("{other:?}"),
    };
    let statistics = &inference.statistics;
    let run = statistics.runs[0];
    println!(
        "{name}: {} events, {} sliced out, {} forced; {answer}; {:?}, grouping {}: {seconds:.2} s; \
         {} candidates, {} variables, {} clauses, {} cycles, {} rounds, {} cores",
        run.events,
        run.sliced_out,
        run.forced,
        settings.known,
        settings.grouping,
        statistics.candidates,
        statistics.variables,
        statistics.clauses,
        statistics.cycles,
        statistics.rounds,
        statistics.cores,
    );
}

/// A run under construction.
struct Retry {
    shape: Shape,
    builder: TraceBuilder,
    flow: Flow,
    rng: Rng,
    events: u32,
    executions: u32,
    /// How often each loop's variable was written.
    versions: Vec<u32>,
    locals: BTreeMap<&'static str, LocalId>,
    vars: Vec<VarId>,
    statistics: VarId,
}

/// A thread under way.
struct Thread {
    number: usize,
    program: usize,
    step: usize,
    version: u32,
    done: bool,
    body: u32,
    outer: Option<InstanceId>,
    round: u32,
    branch: Option<EventId>,
}

/// Blocks of each loop: the thread's body, the round, what follows success.
const BLOCKS: usize = 3;

impl Retry {
    fn new(shape: Shape) -> Self {
        let mut builder = TraceBuilder::new();
        let locals = ["done", "previous", "current", "swapped", "count", "t"];
        let locals = locals.map(|name| (name, builder.local(name)));
        let vars = (0..shape.loops).map(|at| builder.var(&format!("x{at}"))).collect();
        let statistics = builder.var("statistics");
        let mut flow = Flow::default();
        for _ in 0..shape.loops {
            let body_length = 2 + if shape.loses_updates { 2 } else { 0 };
            let round_length = 4 + shape.filler + if shape.counts { 2 } else { 0 };
            for length in [body_length, round_length, 1] {
                let statements = vec![Extent::default(); length];
                flow.add_block(StaticBlock { inside: None, is_optional: false, statements });
            }
        }
        Self {
            shape,
            builder,
            flow,
            rng: Rng::new(1),
            events: 0,
            executions: 0,
            versions: vec![0; shape.loops],
            locals: locals.into_iter().collect(),
            vars,
            statistics,
        }
    }

    fn run(mut self) -> Trace {
        let mut next = 0;
        let mut active: Vec<Thread> = Vec::new();
        loop {
            while active.len() < self.shape.active && next < self.shape.threads {
                active.push(self.start(next));
                next += 1;
            }
            if active.is_empty() {
                break;
            }
            let at = self.rng.below(active.len());
            if self.step(&mut active[at]) {
                active.swap_remove(at);
            }
        }
        for &var in &self.vars {
            self.flow.add_focus(var);
        }
        self.builder.set_flow(self.flow);
        self.builder.finish().expect("the run is well formed")
    }

    fn start(&mut self, number: usize) -> Thread {
        self.executions += 1;
        Thread {
            number,
            program: number % self.shape.loops,
            step: 0,
            version: 0,
            done: false,
            body: self.executions,
            outer: None,
            round: 0,
            branch: None,
        }
    }

    fn instance(
        &mut self,
        thread: &Thread,
        parent: Option<InstanceId>,
        block: usize,
        execution: u32,
        position: usize,
    ) -> Option<InstanceId> {
        let number = (thread.program * BLOCKS + block) as u32 + 1;
        let block = StaticBlockId::from_number(number)?;
        let position = position as u32;
        Some(self.flow.add_instance(Instance { parent, block, execution, position }))
    }

    fn emit(
        &mut self,
        thread: &Thread,
        op: Op,
        uses: &[&str],
        defines: Option<&str>,
        control: Option<EventId>,
        instance: Option<InstanceId>,
    ) -> Option<EventId> {
        let id = self.builder.thread(&format!("t{}", thread.number));
        let site = self.builder.site("");
        self.builder.push(id, op, site);
        let mut step = Step::default();
        step.defines = defines.map(|name| self.locals[name]);
        step.control = control;
        step.instance = instance;
        let uses: Vec<LocalId> = uses.iter().map(|&name| self.locals[name]).collect();
        self.flow.push(step, &uses);
        self.events += 1;
        EventId::from_number(self.events)
    }

    /// Lets the thread do its next step; true if it was the last.
    fn step(&mut self, thread: &mut Thread) -> bool {
        let step = thread.step;
        thread.step += 1;
        match step {
            0 => {
                let instance = self.instance(thread, None, 0, thread.body, 0);
                self.emit(
                    thread,
                    Op::Marker(Marker::Let(self.locals["done"])),
                    &[],
                    Some("done"),
                    None,
                    instance,
                );
                thread.outer = self.instance(thread, None, 0, thread.body, 1);
                false
            }
            1 => {
                thread.branch = self.emit(
                    thread,
                    Op::Marker(Marker::Branch),
                    &["done"],
                    None,
                    None,
                    thread.outer,
                );
                self.executions += 1;
                thread.round = self.executions;
                if thread.done {
                    thread.step = 1_000;
                    return !self.shape.loses_updates;
                }
                false
            }
            1_000 | 1_001 => self.lose_update(thread, step - 1_000),
            _ => {
                self.round_step(thread, step - 2);
                false
            }
        }
    }

    fn round_step(&mut self, thread: &mut Thread, step: usize) {
        let var = self.vars[thread.program];
        let control = thread.branch;
        let instance = self.instance(thread, thread.outer, 1, thread.round, step);
        let filler = self.shape.filler;
        let current = Op::Marker(Marker::Let(self.locals["current"]));
        let counted = if self.shape.counts { 2 } else { 0 };
        match step {
            0 => {
                thread.version = self.versions[thread.program];
                self.emit(
                    thread,
                    Op::Access(AccessOp::Read, var),
                    &[],
                    Some("previous"),
                    control,
                    instance,
                );
            }
            _ if step <= filler + 1 => {
                let uses: &[&str] = if step == 1 { &["previous"] } else { &["current"] };
                self.emit(thread, current, uses, Some("current"), control, instance);
            }
            _ if step == filler + 2 => {
                let succeeds = self.versions[thread.program] == thread.version
                    && !self.rng.chance(self.shape.failures);
                let uses = ["previous", "current"];
                let op = if succeeds {
                    self.versions[thread.program] += 1;
                    thread.done = true;
                    Op::Access(AccessOp::AtomicUpdate(MemoryOrder::SeqCst), var)
                } else {
                    Op::Access(AccessOp::AtomicRead(MemoryOrder::SeqCst), var)
                };
                self.emit(thread, op, &uses, Some("swapped"), control, instance);
            }
            _ if counted > 0 && step == filler + 3 => {
                let op = Op::Access(AccessOp::Read, self.statistics);
                self.emit(thread, op, &[], Some("count"), control, instance);
            }
            _ if counted > 0 && step == filler + 4 => {
                let op = Op::Access(AccessOp::Write, self.statistics);
                self.emit(thread, op, &["count"], None, control, instance);
            }
            _ => {
                let branch = self.emit(
                    thread,
                    Op::Marker(Marker::Branch),
                    &["swapped"],
                    None,
                    control,
                    instance,
                );
                if thread.done {
                    self.executions += 1;
                    let inner = self.instance(thread, instance, 2, self.executions, 0);
                    let op = Op::Marker(Marker::Let(self.locals["done"]));
                    self.emit(thread, op, &[], Some("done"), branch, inner);
                }
                thread.step = 1;
            }
        }
    }

    fn lose_update(&mut self, thread: &mut Thread, step: usize) -> bool {
        let var = self.vars[thread.program];
        let instance = self.instance(thread, None, 0, thread.body, 2 + step);
        if step == 0 {
            self.emit(thread, Op::Access(AccessOp::Read, var), &[], Some("t"), None, instance);
            return false;
        }
        self.emit(thread, Op::Access(AccessOp::Write, var), &["t"], None, None, instance);
        true
    }
}
