//! Kinds 1 and 2 in mode `order`: the fast phases say what their definition says.

use crate::common;
use crate::common::reference;

use std::time::Instant;

use expect_test::expect;
use proptest::prelude::*;
use reweave_base::{FxHashMap, Id, Rng};
use reweave_determinism::order::{OrderGraph, OrderSolver};
use reweave_determinism::{
    Accesses, Mode, Phases, ReadVerdicts, ReadsFrom, Witness, WitnessKind, WriteRanges,
};
use reweave_oracle::choice_graphs::Outcome;
use reweave_testkit::{Scope, Shape, draw, generate, soak, trace, traces};
use reweave_trace::{AccessOp, EventId, LockOp, Op, OpKind, Trace, TraceBuilder, VarId};

const KINDS: [WitnessKind; 2] = [WitnessKind::WriterAfter, WitnessKind::Between];

/// All challengers of a read that saw `writer`.
fn interfering_writes(
    accesses: &Accesses<'_>,
    var: VarId,
    writer: Option<EventId>,
    read: Option<EventId>,
) -> Vec<Option<EventId>> {
    let writes = accesses.lists(var).iter().flat_map(|list| accesses.writes(list));
    let others = writes.copied().map(Some).filter(|&write| write != writer && write != read);
    writer.map(|_| None).into_iter().chain(others).collect()
}

/// Whether `known` has `interfering`.
fn has(
    accesses: &Accesses<'_>,
    var: VarId,
    known: &WriteRanges,
    interfering: Option<EventId>,
) -> bool {
    let Some(interfering) = interfering else { return known.initial };
    known.ranges.iter().any(|(list, range)| {
        let writes = accesses.writes(&accesses.lists(var)[*list as usize]);
        writes[range.start as usize..range.end as usize].contains(&interfering)
    })
}

/// What the definition says of the witnesses of a read: verdicts, and what the phases count but for
/// graphs explored.
fn expected(trace: &Trace, witnesses: &[Witness]) -> (FxHashMap<Witness, Option<bool>>, Phases) {
    let (mut verdicts, mut phases) = (FxHashMap::default(), Phases::default());
    for witness in witnesses {
        let is_feasible = match reference::outcome(trace, witness) {
            Outcome::Cyclic => {
                phases.infeasible += 1;
                Some(false)
            }
            Outcome::Settled => {
                phases.feasible += 1;
                Some(true)
            }
            Outcome::Chosen { choices, is_feasible } => {
                phases.with_choices += 1;
                phases.feasible_with_choices += u64::from(is_feasible == Some(true));
                let graphs = 1_u64.checked_shl(choices as u32).unwrap_or(u64::MAX);
                phases.possible_graphs = phases.possible_graphs.saturating_add(graphs);
                is_feasible
            }
        };
        verdicts.insert(*witness, is_feasible);
    }
    (verdicts, phases)
}

/// A test's tally: witnesses, feasible ones, those with choices, those refuted by choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    witnesses: usize,
    feasible: usize,
    with_choices: u64,
    all_cyclic: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.witnesses += other.witnesses;
        self.feasible += other.feasible;
        self.with_choices += other.with_choices;
        self.all_cyclic += other.all_cyclic;
    }
}

/// Compares the witnesses of one read; `edge` has none for the read at the end.
#[track_caller]
fn check_read(
    accesses: &Accesses<'_>,
    solver: &mut OrderSolver<'_, '_>,
    (var, writer, read): (VarId, Option<EventId>, Option<EventId>),
    seen: &mut Seen,
) {
    let trace = accesses.trace();
    let interfering_writes = interfering_writes(accesses, var, writer, read);
    let mut verdicts = ReadVerdicts::default();
    let mut budget = u64::MAX;
    let edge = ReadsFrom { var, read, writer };
    let phases = solver.decide(&edge, &mut verdicts, &mut budget);
    let witnesses: Vec<Witness> = KINDS
        .into_iter()
        .flat_map(|kind| interfering_writes.iter().map(move |&interfering| (kind, interfering)))
        .map(|(kind, interfering)| Witness { kind, writer, read, interfering })
        .collect();
    let (mut defined, mut counts) = expected(trace, &witnesses);
    if read.is_none() {
        // Nothing comes after the end: the reference knows no event that it could put there.
        counts = Phases { infeasible: interfering_writes.len() as u64, ..Phases::default() };
        counts.add(&expected(trace, &witnesses[interfering_writes.len()..]).1);
        for witness in &witnesses[..interfering_writes.len()] {
            defined.insert(*witness, Some(false));
        }
    }
    let what = || format!("{var:?} {writer:?} {read:?}\n{}", draw(trace));
    assert!(phases.explored_graphs >= phases.with_choices, "{}", what());
    assert!(phases.explored_graphs <= phases.possible_graphs, "{}", what());
    for witness in &witnesses {
        let known = verdicts.of_kind(witness.kind);
        assert!(!has(accesses, var, &known.unknown, witness.interfering), "{}", what());
        let is_feasible = has(accesses, var, &known.feasible, witness.interfering);
        if let Some(defined) = defined[witness] {
            assert_eq!(is_feasible, defined, "{witness:?}\n{}", what());
        } else {
            // Too many graphs for the reference: the schedule judges.
            counts.feasible_with_choices += u64::from(is_feasible);
        }
        let order = solver.schedule(witness);
        assert_eq!(order.is_some(), is_feasible, "{witness:?}\n{}", what());
        if let Some(order) = order {
            assert!(
                reference::is_shown(trace, witness, &order),
                "{witness:?} {order:?}\n{}",
                what()
            );
        }
        seen.witnesses += 1;
        seen.feasible += usize::from(is_feasible);
    }
    seen.with_choices += phases.with_choices;
    seen.all_cyclic += phases.with_choices - phases.feasible_with_choices;
    let phases = Phases { explored_graphs: 0, ..phases };
    assert_eq!(phases, counts, "{}", what());
}

/// Compares all witnesses of `trace`, those of reads at the end among them.
#[track_caller]
fn check(trace: &Trace) -> Seen {
    let mut seen = Seen::default();
    let accesses = Accesses::new(trace);
    let graph = OrderGraph::new(&accesses);
    let mut solver = OrderSolver::new(&graph);
    for edge in accesses.edges() {
        let read = (edge.var, edge.writer, edge.read);
        check_read(&accesses, &mut solver, read, &mut seen);
    }
    for var in (0..trace.names().vars.len()).map(VarId::from_index) {
        let writes = trace.accesses(var).iter();
        let last = writes.rev().copied().find(|&id| trace.event(id).op.is_write());
        if last.is_some() {
            check_read(&accesses, &mut solver, (var, last, None), &mut seen);
        }
    }
    seen
}

#[test]
fn worked_witnesses_are_decided_as_an_explicit_search_decides_them() {
    let mut counts = [0; 3];
    for vector in common::vectors::all() {
        check(&vector.trace);
        let accesses = Accesses::new(&vector.trace);
        let graph = OrderGraph::new(&accesses);
        let mut solver = OrderSolver::new(&graph);
        for expected in &vector.witnesses {
            let witness = expected.witness;
            if !KINDS.contains(&witness.kind) {
                continue;
            }
            let what = format!("{} {witness:?}\n{}", vector.name, draw(&vector.trace));
            assert_eq!(solver.schedule(&witness).is_some(), expected.order, "{what}");
            assert_eq!(expected.order, expected.paper, "{what}");
            let outcome = reference::outcome(&vector.trace, &witness);
            let has_choices = matches!(outcome, Outcome::Chosen { .. });
            assert_eq!(has_choices, expected.choice, "{what}");
            let is_refuted = matches!(outcome, Outcome::Chosen { is_feasible: Some(false), .. });
            assert_eq!(is_refuted, expected.all_choice_cyclic, "{what}");
            counts[0] += usize::from(expected.order);
            counts[1] += usize::from(has_choices);
            counts[2] += usize::from(is_refuted);
        }
    }
    assert_eq!(counts, [436, 128, 1]);
}

#[test]
fn a_program_without_races_may_be_nondeterministic() {
    let trace = trace(
        "
         a       b
         acq(l)
         w(x)
         rel(l)
                 acq(l)
                 r(x)
                 rel(l)",
    );
    let seen = check(&trace);
    // The read before its write, and the initial value before both.
    assert_eq!(seen, Seen { witnesses: 4, feasible: 1, with_choices: 0, all_cyclic: 0 });
}

#[test]
fn a_section_that_never_ends_keeps_others_before_it() {
    let trace = trace(
        "
         a       b
         acq(l)
         w(x)
         rel(l)
                 acq(l)
                 r(x)",
    );
    assert_eq!(check(&trace).feasible, 0);
}

#[test]
fn sections_in_shared_mode_do_not_exclude_each_other() {
    let trace = trace(
        "
         a        b
         racq(l)
         w(x)
                  racq(l)
                  r(x)
                  rrel(l)
         rrel(l)",
    );
    assert_eq!(check(&trace).feasible, 1);
}

#[test]
fn all_choice_graphs_of_the_sixth_figure_have_a_cycle() {
    let lines: Vec<String> = NO_CHOICE.split_whitespace().map(str::to_owned).collect();
    let trace = parse(&lines).unwrap();
    let accesses = Accesses::new(&trace);
    let graph = OrderGraph::new(&accesses);
    let mut verdicts = ReadVerdicts::default();
    let edge = accesses.edges().iter().find(|edge| edge.writer.is_none()).unwrap();
    let phases = OrderSolver::new(&graph).decide(edge, &mut verdicts, &mut 100_000);
    expect![[r#"
        Phases {
            infeasible: 1,
            feasible: 0,
            with_choices: 1,
            feasible_with_choices: 0,
            possible_graphs: 4,
            explored_graphs: 2,
        }
    "#]]
    .assert_debug_eq(&phases);
}

#[test]
fn choices_too_many_to_count_are_counted_as_the_most() {
    let mut is_saturated = false;
    for seed in 0..3 {
        let shape = reweave_workload::Shape::LockHeavy;
        let (events, threads, locks, vars) = (200, 3, 6, 20);
        let config = reweave_workload::Config { events, threads, locks, vars, seed, shape };
        let trace = reweave_workload::generate(&config);
        let accesses = Accesses::new(&trace);
        let graph = OrderGraph::new(&accesses);
        let mut solver = OrderSolver::new(&graph);
        for edge in accesses.edges().iter().step_by(3) {
            let read = (edge.var, edge.writer, edge.read);
            check_read(&accesses, &mut solver, read, &mut Seen::default());
            let phases = solver.decide(edge, &mut ReadVerdicts::default(), &mut u64::MAX.clone());
            is_saturated |= phases.possible_graphs == u64::MAX;
        }
    }
    assert!(is_saturated);
}

/// Sections and accesses of few things by many threads, so that much is left to choose.
const CROWDED: Shape =
    Shape { threads: 5, vars: 3, locks: 3, held_max: 2, shared: true, ..Shape::SMALL };

#[test]
fn random_traces_of_every_shape_are_decided_as_defined() {
    let mut total = Seen::default();
    for shape in Shape::ALL.map(|(_, shape)| shape).into_iter().chain([CROWDED.events(34)]) {
        for seed in 0..u64::from(soak::cases(12)) {
            total.add(check(&generate::random(shape.events(shape.events.min(34)), seed)));
        }
    }
    assert!(total.feasible * 20 > total.witnesses && total.with_choices > 100, "{total:?}");
}

proptest! {
    #![proptest_config(soak::config(40))]

    #[test]
    fn crowded_traces_are_decided_as_defined(trace in traces(CROWDED.events(34))) {
        check(&trace);
    }

    #[test]
    fn traces_of_every_operation_are_decided_as_defined(
        trace in traces(Shape::EVERYTHING.events(40)),
    ) {
        check(&trace);
    }

    #[test]
    fn the_phases_agree_with_a_search_of_all_orders(trace in traces(CROWDED.events(12))) {
        let accesses = Accesses::new(&trace);
        let graph = OrderGraph::new(&accesses);
        let mut solver = OrderSolver::new(&graph);
        let all = reference::witnesses(&trace);
        for witness in all.iter().filter(|witness| KINDS.contains(&witness.kind)) {
            let is_feasible =
                reference::is_feasible(&trace, witness, Mode::Order);
            prop_assert_eq!(solver.schedule(witness).is_some(), is_feasible, "{:?}", witness);
        }
    }

    #[test]
    fn variations_of_a_figure_without_a_choice_are_decided_as_defined(seed in any::<u64>()) {
        if let Some(trace) = variation(seed) {
            check(&trace);
        }
    }

    #[test]
    fn a_budget_leaves_verdicts_unknown_but_none_wrong(
        trace in traces(CROWDED.events(40)),
        budget in 0..400_u64,
    ) {
        check_budget(&trace, budget)?;
    }
}

#[test]
fn every_small_trace_is_decided_as_defined() {
    const ACCESSES_AND_LOCKS: Scope = Scope::LOCKS.events(6);
    const SHARED: Scope = Scope::new(&[
        OpKind::Write,
        OpKind::Read,
        OpKind::Acquire,
        OpKind::Release,
        OpKind::AcquireShared,
        OpKind::ReleaseShared,
    ]);
    const UPDATES: Scope =
        Scope::new(&[OpKind::Write, OpKind::AtomicUpdate, OpKind::Read]).threads(3).events(5);
    const SIGNALS: Scope =
        Scope::new(&[OpKind::Write, OpKind::Read, OpKind::Wait, OpKind::Wake, OpKind::Notify]);
    const COUNTING: Scope = Scope::new(&[
        OpKind::Write,
        OpKind::Read,
        OpKind::Arrive,
        OpKind::Depart,
        OpKind::Post,
        OpKind::Take,
    ]);
    let scopes = [
        ACCESSES_AND_LOCKS,
        SHARED.events(5),
        UPDATES,
        Scope::FORKS.events(5),
        Scope::ATOMICS,
        SIGNALS.events(5),
        COUNTING,
    ];
    let mut total = Seen::default();
    for scope in scopes {
        scope.for_each(|trace| total.add(check(trace)));
    }
    assert_eq!((total.witnesses, total.feasible), (827_598, 173_501));
}

/// The sixth figure of the paper: whichever section of each lock comes first, the read of `v`
/// cannot come after its write.
const NO_CHOICE: &str = "0|r(v) 0|w(a) 1|acq(l) 1|w(s) 1|r(a) 1|rel(l) 2|acq(l) 2|w(t) 2|r(a) \
    2|rel(l) 3|acq(m) 3|w(p) 3|r(s) 3|r(t) 3|rel(m) 4|acq(m) 4|w(q) 4|r(s) 4|r(t) 4|rel(m) 5|r(p) \
    5|r(q) 5|w(v)";

/// The figure with a few events moved, added or left out, if it can have happened.
fn variation(seed: u64) -> Option<Trace> {
    let mut rng = Rng::new(seed);
    let mut lines: Vec<String> = NO_CHOICE.split_whitespace().map(str::to_owned).collect();
    for _ in 0..=rng.below(4) {
        let at = rng.below(lines.len());
        match rng.below(4) {
            0 => {
                let line = lines.remove(at);
                lines.insert(rng.below(lines.len() + 1), line);
            }
            1 => {
                let (thread, access) = (rng.below(6), rng.pick(&["r", "w"]).copied()?);
                let var = rng.pick(&["v", "a", "s", "t", "p", "q"]).copied()?;
                lines.insert(at, format!("{thread}|{access}({var})"));
            }
            2 => {
                let lock = rng.pick(&["l", "m"]).copied()?;
                let (thread, mode) = (rng.below(6), rng.pick(&["", "r"]).copied()?);
                let end = at + 1 + rng.below(lines.len() - at);
                lines.insert(end, format!("{thread}|{mode}rel({lock})"));
                lines.insert(at, format!("{thread}|{mode}acq({lock})"));
            }
            _ => _ = lines.remove(at),
        }
    }
    parse(&lines)
}

/// The trace of `lines`, if it can have happened.
fn parse(lines: &[String]) -> Option<Trace> {
    let mut builder = TraceBuilder::new();
    let site = builder.site("here");
    for line in lines {
        let (thread, rest) = line.split_once('|')?;
        let (word, operand) = rest.strip_suffix(')')?.split_once('(')?;
        let thread = builder.thread(thread);
        let op = match word {
            "r" => Op::Access(AccessOp::Read, builder.var(operand)),
            "w" => Op::Access(AccessOp::Write, builder.var(operand)),
            "acq" => Op::Lock(LockOp::Acquire, builder.lock(operand)),
            "rel" => Op::Lock(LockOp::Release, builder.lock(operand)),
            "racq" => Op::Lock(LockOp::AcquireShared, builder.lock(operand)),
            "rrel" => Op::Lock(LockOp::ReleaseShared, builder.lock(operand)),
            _ => return None,
        };
        builder.push(thread, op, site);
    }
    builder.finish().ok()
}

#[test]
fn some_variations_have_choices_that_are_all_cyclic() {
    let mut total = Seen::default();
    for trace in (0..300).filter_map(variation) {
        total.add(check(&trace));
    }
    assert!(total.all_cyclic >= 20, "{total:?}");
}

/// With `budget` the verdicts are those without, or unknown, and the phases count every witness.
fn check_budget(trace: &Trace, budget: u64) -> Result<(), TestCaseError> {
    let accesses = Accesses::new(trace);
    let graph = OrderGraph::new(&accesses);
    let (mut solver, mut fresh) = (OrderSolver::new(&graph), OrderSolver::new(&graph));
    for edge in accesses.edges() {
        let [mut some, mut all] = [ReadVerdicts::default(), ReadVerdicts::default()];
        let phases = solver.decide(edge, &mut some, &mut budget.clone());
        fresh.decide(edge, &mut all, &mut u64::MAX.clone());
        let unknown: u64 = some.kinds.iter().map(|kind| kind.unknown.count()).sum();
        let known = phases.infeasible + phases.feasible + phases.with_choices;
        prop_assert_eq!(known + unknown, 2 * accesses.interfering_count(edge));
        for interfering in interfering_writes(&accesses, edge.var, edge.writer, edge.read) {
            for kind in KINDS {
                let is_in = |known: &WriteRanges| has(&accesses, edge.var, known, interfering);
                let is_feasible = is_in(&some.of_kind(kind).feasible);
                let is_unknown = is_in(&some.of_kind(kind).unknown);
                prop_assert!(!is_feasible || !is_unknown);
                prop_assert!(is_unknown || is_feasible == is_in(&all.of_kind(kind).feasible));
            }
        }
    }
    Ok(())
}

#[test]
fn verdicts_do_not_depend_on_what_was_decided_before() {
    let trace = generate::random(CROWDED.events(200), 3);
    let accesses = Accesses::new(&trace);
    let graph = OrderGraph::new(&accesses);
    let mut solver = OrderSolver::new(&graph);
    let decide = |solver: &mut OrderSolver<'_, '_>, edge: &ReadsFrom| {
        let (mut verdicts, mut budget) = (ReadVerdicts::default(), 5_000);
        let phases = solver.decide(edge, &mut verdicts, &mut budget);
        (verdicts, phases, budget)
    };
    let mut in_order: Vec<_> =
        accesses.edges().iter().map(|edge| decide(&mut solver, edge)).collect();
    for edge in accesses.edges().iter().rev() {
        let alone = decide(&mut OrderSolver::new(&graph), edge);
        assert_eq!(Some(&alone), in_order.last());
        assert_eq!(Some(decide(&mut solver, edge)), in_order.pop());
    }
}

#[test]
fn too_many_threads_leave_all_but_what_is_so_by_definition_unknown() {
    let mut builder = TraceBuilder::new();
    let (site, var, other) = (builder.site("here"), builder.var("x"), builder.var("y"));
    for thread in 0..9_000 {
        let thread = builder.thread(&thread.to_string());
        builder.push(thread, Op::Access(AccessOp::Write, other), site);
        builder.push(thread, Op::Access(AccessOp::Read, var), site);
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
    }
    let trace = builder.finish().unwrap();
    let accesses = Accesses::new(&trace);
    let graph = OrderGraph::new(&accesses);
    assert!(graph.is_too_large());
    let mut solver = OrderSolver::new(&graph);
    let mut unknown = Vec::new();
    for edge in [accesses.edges()[0], accesses.edges()[500]] {
        let mut verdicts = ReadVerdicts::default();
        let phases = solver.decide(&edge, &mut verdicts, &mut u64::MAX.clone());
        let counts = verdicts.kinds.map(|kind| kind.unknown.count());
        assert_eq!(phases.infeasible + counts[0] + counts[1], 18_000);
        unknown.push(counts);
    }
    // A read of the initial value has no witness of kind 1; that is no challenger of kind 2.
    assert_eq!(unknown, [[0, 9_000, 0], [9_000, 8_999, 0]]);
}

#[test]
fn phases_add_up_to_millions_of_witnesses() {
    use reweave_workload::Shape::{Barrier, ForkJoin, Guarded, LockHeavy, Mixed};
    let mut table = String::new();
    for shape in [Guarded, Mixed, LockHeavy, ForkJoin, Barrier] {
        let (events, threads, locks, vars, seed) = (8_000, 3, 18, 12, 1);
        let config = reweave_workload::Config { events, threads, locks, vars, seed, shape };
        let trace = reweave_workload::generate(&config);
        let accesses = Accesses::new(&trace);
        let begin = Instant::now();
        let graph = OrderGraph::new(&accesses);
        let mut solver = OrderSolver::new(&graph);
        let (mut phases, mut verdicts) = (Phases::default(), ReadVerdicts::default());
        for edge in accesses.edges() {
            phases.add(&solver.decide(edge, &mut verdicts, &mut 10_000_000));
        }
        println!("{}: {:?}", shape.as_str(), begin.elapsed());
        let Phases { infeasible, feasible, with_choices, feasible_with_choices, .. } = phases;
        let count = infeasible + feasible + with_choices;
        table += &format!(
            "{}: {count} witnesses, {infeasible} infeasible, {feasible} feasible, {with_choices} \
             with choices, {feasible_with_choices} of these feasible, {} graphs explored\n",
            shape.as_str(),
            phases.explored_graphs
        );
    }
    expect![[r#"
        guarded: 2524332 witnesses, 2380721 infeasible, 95378 feasible, 48233 with choices, 48233 of these feasible, 48233 graphs explored
        mixed: 1661722 witnesses, 1538538 infeasible, 119054 feasible, 4130 with choices, 4130 of these feasible, 4130 graphs explored
        lock-heavy: 262436 witnesses, 242855 infeasible, 835 feasible, 18746 with choices, 18746 of these feasible, 18746 graphs explored
        fork-join: 2048684 witnesses, 1900935 infeasible, 147643 feasible, 106 with choices, 106 of these feasible, 106 graphs explored
        barrier: 1665780 witnesses, 1599433 infeasible, 66347 feasible, 0 with choices, 0 of these feasible, 0 graphs explored
    "#]].assert_eq(&table);
}
