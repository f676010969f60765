//! Exactly the sets of acquires that some correct reordering blocks are found, each with a schedule
//! that the checker takes.

use std::collections::{BTreeMap, BTreeSet};

use crate::programs::{self, Style};
use expect_test::expect;
use proptest::prelude::*;
use reweave_analysis::{Analysis, Coverage, Finding, Gathered, Guarantee, Settings, Subject};
use reweave_deadlocks::exact::{Deadlock, Deadlocks, ExactDeadlocks, Reorderings, deadlocks};
use reweave_oracle as oracle;
use reweave_reorder::{Budget, Engine, Query, Solver};
use reweave_testkit::{Scope, Shape, corpus, draw, soak, traces};
use reweave_trace::{Checker, EventId, Goal, Op, OpKind, Trace, TraceBuilder};

/// How many states an oracle may visit.
const STATES_MAX: usize = 200_000;

/// One deadlock of each pattern.
pub(crate) fn grouped() -> Settings {
    Settings::default()
}

/// Every deadlock.
pub(crate) fn ungrouped() -> Settings {
    Settings { all: true, ..Settings::default() }
}

pub(crate) fn examine(trace: &Trace, reorderings: Reorderings, settings: &Settings) -> Deadlocks {
    deadlocks(&Subject::new(trace), reorderings, settings)
}

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}

/// The sets of blocked acquires by `reorderings`, by number.
pub(crate) fn sets(trace: &Trace, reorderings: Reorderings) -> Vec<Vec<u32>> {
    let all = examine(trace, reorderings, &ungrouped());
    assert_eq!(all.truncated, None);
    let mut sets: Vec<Vec<u32>> = all.found.iter().map(|found| numbers(&found.blocked())).collect();
    sets.sort_unstable();
    sets
}

pub(crate) fn run(trace: &Trace, settings: &Settings) -> (Vec<Finding>, Coverage) {
    let mut sink = Gathered::default();
    let coverage = ExactDeadlocks.run(&Subject::new(trace), settings, &mut sink);
    (sink.findings, coverage)
}

/// The same trace with every event at the same code location, so that acquires have instances.
fn at_one_location(trace: &Trace) -> Trace {
    let mut builder = TraceBuilder::new();
    *builder.names() = trace.names().clone();
    let site = builder.site("loop");
    for (_, event) in trace.events() {
        builder.push(event.thread, event.op, site);
    }
    builder.declare(trace.declared().clone());
    builder.finish().expect("the events are well formed")
}

/// The same trace as a recorder of programs gives it, which says which acquires would have waited.
pub(crate) fn with_requested_waits(trace: &Trace) -> Trace {
    let mut builder = TraceBuilder::new();
    *builder.names() = trace.names().clone();
    for (_, event) in trace.events() {
        builder.push(event.thread, event.op, event.site);
    }
    builder.declare_requested_waits();
    builder.finish().expect("the events are well formed")
}

/// Whether the checker takes what is found, and nothing comes twice.
fn refusal(trace: &Trace, found: &[Deadlock]) -> Option<String> {
    let checker = Checker::new(trace);
    let mut seen = BTreeSet::new();
    found.iter().find_map(|deadlock| {
        let cycle = numbers(&deadlock.cycle);
        let checked = checker.check(&deadlock.reordering, &Goal::Deadlock(deadlock.cycle.clone()));
        let refused = checked.err().map(|refusal| format!("{cycle:?}: {refusal}"));
        refused.or((!seen.insert(deadlock.blocked())).then(|| format!("{cycle:?} twice")))
    })
}

/// How what is found in `trace` differs from what all reorderings show.
fn fault(trace: &Trace) -> Option<String> {
    let every = examine(trace, Reorderings::All, &ungrouped());
    if let Some(refused) = refusal(trace, &every.found) {
        return Some(refused);
    }
    let found: BTreeSet<Vec<EventId>> = every.found.iter().map(Deadlock::blocked).collect();
    let is_request =
        |&event: &EventId| matches!(trace.event(event).op, Op::Lock(op, _) if op.is_request());
    let mut acquires = found.clone();
    acquires.retain(|set| !set.iter().any(is_request));
    let known = oracle::reachable::predictable(trace, STATES_MAX);
    let expected: BTreeSet<Vec<EventId>> = known.deadlocks.into_keys().collect();
    if known.explored.complete && (acquires != expected || every.truncated.is_some()) {
        return Some(format!("{acquires:?}, not {expected:?}"));
    }
    if let Some(expected) = oracle::deadlocks::deadlocks(trace, STATES_MAX)
        && found != expected
    {
        return Some(format!("{found:?}, not {expected:?} by the oracle"));
    }
    None
}

/// How the answers about `trace` fail to agree with each other.
fn disagreement(trace: &Trace) -> Option<String> {
    for reorderings in [Reorderings::All, Reorderings::SyncPreserving] {
        let (all, one) =
            (examine(trace, reorderings, &ungrouped()), examine(trace, reorderings, &grouped()));
        if let Some(refused) = refusal(trace, &one.found) {
            return Some(refused);
        }
        if one.counts != all.counts {
            return Some(format!("{:?}, but {:?} for all", one.counts, all.counts));
        }
        let sum: u64 = one.found.iter().map(|found| found.count).sum();
        if sum != all.found.len() as u64 {
            return Some(format!("{sum} counted, {} listed", all.found.len()));
        }
        if all != examine(trace, reorderings, &Settings { threads: 3, ..ungrouped() }) {
            return Some("threads matter".to_owned());
        }
    }
    // What keeps the observed order is found whether it is looked for alone or among all.
    let engine = Engine::new(trace);
    let mut solver = Solver::new(&engine, Budget::default());
    let every = examine(trace, Reorderings::All, &ungrouped()).found;
    let keeps_order =
        |found: &&Deadlock| solver.sync_preserving(&Query::enabled(&found.cycle)).is_some();
    let expected = every.iter().filter(keeps_order).map(Deadlock::blocked).collect();
    let alone = examine(trace, Reorderings::SyncPreserving, &ungrouped()).found;
    let found: BTreeSet<Vec<EventId>> = alone.iter().map(Deadlock::blocked).collect();
    (found != expected).then(|| format!("{found:?} keep the order, not {expected:?}"))
}

fn fault_and_figure(trace: &Trace) -> String {
    let merged = at_one_location(trace);
    let wrong = fault(trace).or_else(|| fault(&merged)).or_else(|| disagreement(&merged));
    wrong.map(|wrong| format!("{wrong}\n{}", draw(trace))).unwrap_or_default()
}

#[test]
fn litmus_cases_have_exactly_the_deadlocks_of_all_reorderings() {
    for case in corpus::litmus() {
        let trace = case.trace();
        assert_eq!(
            sets(&trace, Reorderings::All),
            case.numbers("predictable_deadlocks"),
            "{}",
            case.name
        );
        assert_eq!(
            sets(&trace, Reorderings::SyncPreserving),
            case.numbers("syncp_deadlocks"),
            "{}",
            case.name
        );
        assert_eq!(fault_and_figure(&trace), "", "{}", case.name);
    }
}

#[test]
fn recorded_traces_have_the_expected_deadlocks() {
    let mut compared = 0;
    for case in corpus::traces() {
        let trace = case.trace();
        let all = examine(&trace, Reorderings::All, &ungrouped());
        assert_eq!((all.truncated, all.counts.unknown), (None, 0), "{}", case.name);
        assert_eq!(refusal(&trace, &all.found), None, "{}", case.name);
        let exhaustive = &case.expected["exhaustive"];
        if exhaustive["complete"] == true {
            compared += 1;
            let expected = |key: &str| corpus::numbers(&exhaustive[key]);
            assert_eq!(
                sets(&trace, Reorderings::All),
                expected("predictable_deadlocks"),
                "{}",
                case.name
            );
            assert_eq!(
                sets(&trace, Reorderings::SyncPreserving),
                expected("syncp_deadlocks"),
                "{}",
                case.name
            );
        }
    }
    assert_eq!(compared, 3);
}

#[test]
fn recorded_traces_are_decided() {
    let mut table = String::new();
    for case in corpus::traces() {
        let trace = case.trace();
        let (findings, coverage) = run(&trace, &grouped());
        let longest = findings.iter().map(|finding| finding.events.len()).max().unwrap_or(0);
        let counters: Vec<u64> = coverage.counters.iter().map(|&(_, count)| count).collect();
        if counters.iter().any(|&count| count > 0) {
            let name = case.name;
            table +=
                &format!("{name}: {} findings, longest {longest}, {counters:?}\n", findings.len());
        }
        assert!(coverage.is_complete());
        assert!(findings.iter().all(|finding| finding.guarantee() == Guarantee::Witnessed));
    }
    expect![[r#"
        focs/jigsaw.std: 0 findings, longest 0, [0, 32, 0, 0, 0]
        spd/Account.std: 0 findings, longest 0, [0, 3, 0, 0, 0]
        spd/Bensalem.std: 1 findings, longest 2, [1, 2, 1, 0, 0]
        spd/Dbcp1.std: 2 findings, longest 2, [2, 3, 2, 0, 0]
        spd/Deadlock.std: 0 findings, longest 0, [0, 1, 0, 0, 0]
        spd/DiningPhil.std: 1 findings, longest 5, [257, 1, 257, 0, 0, 1]
        spd/StringBuffer.std: 2 findings, longest 2, [2, 2, 2, 0, 0]
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_race_by_causality_may_be_only_a_deadlock() {
    let cases = corpus::litmus();
    let figure = cases.iter().find(|case| case.name == "cp_fig9").unwrap();
    assert_eq!(sets(&figure.trace(), Reorderings::All), [[2, 7]]);
    assert!(!figure.numbers("cp_races").is_empty());
    assert!(oracle::reachable::predictable_races(&figure.trace()).is_empty());
}

#[test]
fn every_small_trace_has_exactly_the_deadlocks_of_all_reorderings() {
    let scopes = [
        Scope::LOCKS.things(2).events(5),
        Scope::new(&[OpKind::Acquire, OpKind::Release]).things(2).events(8),
        Scope::SHARED_LOCKS.events(7),
        Scope::SHARED_LOCKS.things(2).events(6),
        Scope::new(&[
            OpKind::Acquire,
            OpKind::AcquireShared,
            OpKind::Request,
            OpKind::RequestExclusive,
        ])
        .things(2)
        .events(5),
        Scope::MONITORS.things(2).events(5),
        Scope::REST.events(3),
    ];
    let mut count = 0;
    for scope in scopes {
        scope.for_each(|trace| {
            count += usize::from(!oracle::reachable::predictable_deadlocks(trace).is_empty());
            assert_eq!(fault(trace).map(|wrong| wrong + &draw(trace)).unwrap_or_default(), "");
        });
    }
    assert!(count > 200, "only {count} traces have a deadlock");
}

/// How what is found differs from the definition where the trace says which acquires would wait.
fn fault_of_attempts(trace: &Trace) -> String {
    let recorded = with_requested_waits(trace);
    let every = examine(&recorded, Reorderings::All, &ungrouped());
    let found: BTreeSet<Vec<EventId>> = every.found.iter().map(Deadlock::blocked).collect();
    let wrong = refusal(&recorded, &every.found).or_else(|| {
        let expected = oracle::deadlocks::deadlocks(&recorded, STATES_MAX)?;
        (found != expected).then(|| format!("{found:?}, not {expected:?} by the oracle"))
    });
    wrong.map(|wrong| format!("{wrong}\n{}", draw(trace))).unwrap_or_default()
}

#[test]
fn every_small_trace_with_attempts_has_exactly_the_deadlocks_of_the_definition() {
    const KINDS: [OpKind; 3] = [OpKind::Acquire, OpKind::Release, OpKind::Request];
    let (mut all, mut without_attempts) = (0, 0);
    Scope::new(&KINDS).things(2).events(6).for_each(|trace| {
        all += sets(trace, Reorderings::All).len();
        without_attempts += sets(&with_requested_waits(trace), Reorderings::All).len();
        assert_eq!(fault_of_attempts(trace), "");
    });
    assert!(0 < without_attempts && without_attempts < all, "{without_attempts} of {all}");
}

proptest! {
    #![proptest_config(soak::config(250))]

    #[test]
    fn attempts_among_acquires_that_wait(trace in traces(MIXED)) {
        prop_assert_eq!(fault_of_attempts(&trace), "");
    }

    #[test]
    fn attempts_in_crowded_traces(trace in traces(CROWDED)) {
        prop_assert_eq!(fault_of_attempts(&trace), "");
    }
}

macro_rules! exactly_the_deadlocks {
    ($($name:ident: $shape:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(250))]
            $(
                #[test]
                fn $name(trace in traces($shape)) {
                    prop_assert_eq!(fault_and_figure(&trace), "");
                }
            )+
        }
    };
}

/// Few threads that do little but take locks inside each other.
const CROWDED: Shape = Shape { locks: 3, vars: 1, held_max: 3, events: 24, ..Shape::SMALL };
/// Enough threads for longer cycles.
const LONGER: Shape =
    Shape { threads: 4, locks: 4, vars: 1, held_max: 2, events: 26, ..Shape::SMALL };
/// Few locks, shared and taken again, among waits.
const MIXED: Shape = Shape {
    conditions: 1,
    semaphores: 1,
    vars: 1,
    locks: 2,
    held_max: 3,
    reentrant: true,
    shared: true,
    events: 22,
    ..Shape::SMALL
};

exactly_the_deadlocks! {
    small_traces: Shape::SMALL.events(20);
    crowded_traces: CROWDED;
    longer_cycles: LONGER;
    mixed_traces: MIXED;
    general_traces: Shape::GENERAL.events(24);
    traces_of_locks: Shape::LOCKS.events(26);
    traces_of_nested_locks: Shape::NESTED.events(24);
    traces_of_forks: Shape::FORKS.events(24);
    traces_of_signals: Shape::SIGNALS.events(24);
    traces_of_barriers: Shape::BARRIERS.events(20);
    traces_of_semaphores: Shape::SEMAPHORES.events(18);
    traces_of_atomics: Shape::ATOMICS.events(20);
    traces_of_everything: Shape::EVERYTHING.events(24);
}

/// Nothing but locks.
const PLAIN: Style =
    Style { threads: 3, locks: 3, blocks_max: 2, shared: 0, extras: 0, start: None };
/// Locks in both modes.
const SHARED: Style = Style { shared: 40, ..PLAIN };
/// Enough threads for cycles of four.
const WIDE: Style = Style { threads: 4, locks: 4, blocks_max: 1, shared: 15, ..PLAIN };
/// Locks among everything else.
const BUSY: Style = Style { shared: 20, extras: 30, ..PLAIN };
/// Two threads that do the same again and again.
const LOOPS: Style = Style { threads: 2, locks: 2, blocks_max: 5, extras: 15, ..PLAIN };
/// Semaphores whose tokens are counted.
const TOKENS: Style = Style { extras: 25, start: Some(1), ..PLAIN };

const STYLES: [Style; 6] = [PLAIN, SHARED, WIDE, BUSY, LOOPS, TOKENS];

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn runs_of_programs(seed in any::<u64>()) {
        for style in STYLES {
            prop_assert_eq!(fault_and_figure(&programs::random(style, seed)), "");
        }
    }
}

#[test]
fn runs_of_programs_have_deadlocks_of_every_kind() {
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    let mut note = |kind: String| *kinds.entry(kind).or_default() += 1;
    for (seed, style) in (0..300).flat_map(|seed| STYLES.map(|style| (seed, style))) {
        let trace = at_one_location(&programs::random(style, seed));
        let found = examine(&trace, Reorderings::All, &ungrouped());
        for deadlock in &found.found {
            for &event in &deadlock.cycle {
                note(format!("{:?}", trace.event(event).op.kind()));
            }
            note(format!("cycles of {}", deadlock.cycle.len()));
        }
        let keeping = examine(&trace, Reorderings::SyncPreserving, &ungrouped());
        (found.found.len() > keeping.found.len()).then(|| note("beyond preserving".to_owned()));
        (found.counts.refuted > 0).then(|| note("refuted".to_owned()));
        (found.counts.deadlocks > found.counts.patterns).then(|| note("instances".to_owned()));
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    expect![[r#"
        Acquire 1805
        AcquireShared 123
        Request 2
        RequestExclusive 31
        beyond preserving 162
        cycles of 2 869
        cycles of 3 73
        cycles of 4 1
        instances 101
        refuted 3"#]]
    .assert_eq(&kinds.join("\n"));
}
