//! What the driver does with what analyses claim.

use reweave_analysis::{
    Analysis, Counter, Coverage, Detail, Evidence, Finding, Guarantee, Info, Kind, Layer,
    Nondeterminism, Outcome, Settings, Sink, Subject, Truncation, WitnessVerdict,
};
use reweave_catalog::{Quiet, run, select};
use reweave_trace::{
    After, Code, EventId, Flow, Goal, LockOp, Module, Op, Origin, Reordering, Trace, TraceBuilder,
};

/// An analysis that claims what it is told to.
struct Claims {
    info: &'static Info,
    pairs: &'static [(u32, u32)],
}

const INFO: Info = Info {
    name: "races.claims",
    family: "races",
    kind: Kind::Race,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "",
    paper: "",
};

impl Analysis for Claims {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        for &(first, second) in self.pairs {
            let events: Vec<EventId> =
                [first, second].into_iter().filter_map(EventId::from_number).collect();
            let goal = Goal::Race(events[0], events[1]);
            let proof = subject.prove(Reordering::default(), goal);
            let evidence = proof.map_or(Evidence::Unordered, Evidence::Schedule);
            let finding = Finding {
                analysis: self.info.name,
                kind: self.info.kind,
                events,
                message: String::new(),
                count: 1,
                evidence,
                detail: Detail::None,
            };
            if sink.found(finding).is_break() {
                break;
            }
        }
        Coverage { analysis: self.info.name, truncated: None, counters: Vec::new() }
    }
}

const TRACE: &str = "T1|w(x)|a\nT2|w(x)|b\nT1|w(x)|a\nT2|w(x)|b\n";

fn trace() -> Trace {
    reweave_testkit::std(TRACE)
}

#[test]
fn what_the_checker_refuses_is_shown_only_if_all_is_asked_for() {
    let claims = Claims { info: &INFO, pairs: &[(1, 4)] };
    let shown = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!((shown.findings.len(), shown.unshown_count()), (0, 1));
    let settings = Settings { all: true, ..Settings::default() };
    let all = run(&trace(), &[&claims], &settings, &Quiet);
    assert_eq!(all.findings[0].finding.guarantee(), Guarantee::Unordered);
}

#[test]
fn an_analysis_whose_layer_the_trace_lacks_is_not_run_and_said_not_to_be() {
    const FLOW: Info = Info { needs: Layer::Flow, ..INFO };
    let claims = Claims { info: &FLOW, pairs: &[] };
    let outcome = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!(outcome.coverage[0].truncated, Some(Truncation::Lacks(Layer::Flow)));
    assert!(!outcome.is_complete());
    let mut builder = TraceBuilder::new();
    builder.set_flow(Flow::default());
    let with_flow = builder.finish().unwrap();
    let outcome = run(&with_flow, &[&claims], &Settings::default(), &Quiet);
    assert_eq!(outcome.coverage[0].truncated, Some(Truncation::NoEvents));
}

#[test]
fn findings_at_the_same_locations_are_one_unless_all_are_asked_for() {
    let claims = Claims { info: &INFO, pairs: &[(1, 2), (1, 2)] };
    let grouped = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!(grouped.findings.len(), 1);
    assert_eq!((grouped.findings[0].id.as_str(), grouped.findings[0].finding.count), ("R1", 2));
    let settings = Settings { all: true, ..Settings::default() };
    assert_eq!(run(&trace(), &[&claims], &settings, &Quiet).findings.len(), 2);
}

#[test]
fn a_limit_that_cuts_nothing_leaves_the_answer_complete() {
    let claims = Claims { info: &INFO, pairs: &[(1, 2)] };
    let settings = Settings { limit: Some(1), ..Settings::default() };
    assert!(run(&trace(), &[&claims], &settings, &Quiet).is_complete());
    let settings = Settings { limit: Some(0), ..Settings::default() };
    assert!(!run(&trace(), &[&claims], &settings, &Quiet).is_complete());
}

/// An analysis that says what reads can see: the read, the other write, whether a value changes, and
/// whether a race detector is silent about it; and that lists as many witnesses.
struct Sees(&'static [(u32, u32, Option<bool>, Option<bool>)]);

const SEES: Info =
    Info { name: "determinism.claims", family: "determinism", kind: Kind::Nondeterminism, ..INFO };

impl Analysis for Sees {
    fn info(&self) -> &'static Info {
        &SEES
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        for &(read, write, changes_value, is_race_free) in self.0 {
            let (read, interfering) = (EventId::from_number(read), EventId::from_number(write));
            let events: Vec<EventId> = [interfering, read].into_iter().flatten().collect();
            let goal = Goal::Sees { read: events[1], write: interfering, after: After::Stops };
            let proof = subject.prove(Reordering::explicit(events.clone()), goal);
            let writer = None;
            let detail = Nondeterminism {
                witness_kind: 2,
                mode: "strict",
                writer,
                read,
                interfering,
                count: 1,
                is_race_free,
                changes_value,
                others: Vec::new(),
            };
            let finding = Finding {
                analysis: SEES.name,
                kind: SEES.kind,
                events,
                message: String::new(),
                count: 1,
                evidence: Evidence::Schedule(proof.expect("the read is free")),
                detail: Detail::Nondeterminism(Box::new(detail)),
            };
            _ = sink.found(finding);
            let is_feasible = Some(true);
            let witness =
                WitnessVerdict { witness_kind: 2, is_feasible, writer, read, interfering };
            _ = sink.listed(&[witness]);
        }
        Coverage { analysis: SEES.name, truncated: None, counters: Vec::new() }
    }
}

/// Reads at three locations, two of them at the first, and writes that they can see.
const READS: &str = "\
T1|r(x)|one
T2|r(x)|one
T3|r(x)|two
T4|r(x)|three
T5|w(x)|here
T6|w(x)|there
";

/// What is found when the reads of [`READS`] can see `sees`.
fn seeing(sees: &'static [(u32, u32, Option<bool>, Option<bool>)]) -> Outcome {
    let trace = reweave_testkit::std(READS);
    run(&trace, &[&Sees(sees)], &Settings::default(), &Quiet)
}

#[test]
fn reads_at_one_location_are_one_finding_whatever_they_see() {
    let outcome = seeing(&[
        (1, 5, None, Some(false)),
        (2, 6, Some(true), Some(true)),
        (2, 5, None, Some(false)),
    ]);
    let [reported] = &outcome.findings[..] else { panic!("{outcome:?}") };
    // The worst is shown, and the others are told of.
    let detail = reported.finding.detail.nondeterminism().unwrap();
    assert_eq!((reported.id.as_str(), reported.finding.count), ("N1", 3));
    assert_eq!(
        (detail.read, detail.interfering),
        (EventId::from_number(2), EventId::from_number(6))
    );
    let others: Vec<_> = detail.others.iter().map(|it| (it.write, it.count)).collect();
    assert_eq!(others, [(EventId::from_number(5), 2)]);
    let alone = seeing(&[(1, 5, None, Some(false))]);
    assert_eq!(alone.findings[0].fingerprint, reported.fingerprint);
    assert_ne!(seeing(&[(3, 5, None, Some(false))]).findings[0].fingerprint, reported.fingerprint);
}

#[test]
fn what_changes_a_value_comes_first_then_what_no_race_detector_tells_of() {
    let outcome = seeing(&[
        (1, 5, None, Some(false)),
        (3, 5, None, Some(true)),
        (4, 5, Some(true), Some(false)),
    ]);
    // They read one variable without a lock, which is one fault at three places.
    let [reported] = &outcome.findings[..] else { panic!("{outcome:?}") };
    let reads = reported.findings().map(|it| it.events[1].number());
    assert_eq!(reads.collect::<Vec<_>>(), [4, 3, 1]);
}

#[test]
fn listed_witnesses_are_kept_in_order_and_only_where_there_is_a_list() {
    let outcome = seeing(&[(1, 5, None, Some(false)), (2, 6, None, Some(false))]);
    let [list] = &outcome.witnesses[..] else { panic!("{outcome:?}") };
    let reads = list.witnesses.iter().map(|witness| witness.read);
    assert_eq!(reads.collect::<Vec<_>>(), [EventId::from_number(1), EventId::from_number(2)]);
    assert_eq!(list.analysis, "determinism.claims");
    assert!(seeing(&[]).witnesses.is_empty());
}

/// Two threads that take a lock in turn, recorded or not, with what is known of calls.
fn locks_only(is_recorded: bool, stack: &[&str]) -> Trace {
    let mut builder = TraceBuilder::new();
    let lock = builder.lock("m");
    for name in ["T1", "T2"] {
        let thread = builder.thread(name);
        for op in [Op::Lock(LockOp::Acquire, lock), Op::Lock(LockOp::Release, lock)] {
            let site = builder.names().site("a.c:3", stack.iter().copied());
            builder.push(thread, op, site);
            if is_recorded {
                let module = builder.origins().add_module(Module::default());
                let code = builder.origins().add_code(Code { module, offset: 0 });
                builder.origin(Origin { code, occurrence: 0 });
            }
        }
    }
    builder.finish().expect("the threads take turns")
}

#[test]
fn races_are_not_answered_for_where_a_recording_could_not_see_accesses() {
    let truncated = |trace: &Trace, kind: Kind| {
        let info: &'static Info = if kind == Kind::Race { &INFO } else { &DEADLOCKS };
        let claims = Claims { info, pairs: &[] };
        run(trace, &[&claims], &Settings::default(), &Quiet).coverage[0].truncated
    };
    let inlined = ["add (a.c:3)", "work (a.c:9)"];
    let not_instrumented = locks_only(true, &inlined);
    assert_eq!(truncated(&not_instrumented, Kind::Race), Some(Truncation::NotInstrumented));
    assert_eq!(truncated(&not_instrumented, Kind::Deadlock), None);
    let watched = locks_only(true, &["add (a.c:3)", "start_thread (nptl/pthread_create.c:442)"]);
    assert_eq!(truncated(&watched, Kind::Race), None);
    assert_eq!(truncated(&locks_only(false, &[]), Kind::Race), None);
}

const DEADLOCKS: Info =
    Info { name: "deadlocks.claims", family: "deadlocks", kind: Kind::Deadlock, ..INFO };

#[test]
fn deadlocks_that_assumed_order_hides_are_counted() {
    // Each holds one lock and asks for the other; only what a library may have ordered keeps them apart.
    let trace = reweave_testkit::std(
        "T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\nT1|aw.release(assumed(libz.so)#1)|5\n\
         T2|ar.acquire(assumed(libz.so)#1)|6\nT2|acq(b)|7\nT2|acq(a)|8\nT2|rel(a)|9\nT2|rel(b)|10\n",
    );
    let analyses = select("deadlocks", &[]).expect("a name");
    let outcome = run(&trace, &analyses, &Settings::default(), &Quiet);
    assert_eq!(outcome.findings.len(), 0);
    assert_eq!(outcome.coverage[0].truncated, Some(Truncation::Assumed));
    assert_eq!(outcome.coverage[0].counter(Counter::Assumed), Some(1));
}

/// How many findings there are of atomicity and determinism in `text`.
fn count_in(text: &str) -> usize {
    let trace = reweave_testkit::std(text);
    let analyses = select("", &["atomicity".into(), "determinism".into()]).expect("names");
    run(&trace, &analyses, &Settings::default(), &Quiet).findings.len()
}

#[test]
fn no_finding_is_about_what_stands_for_assumed_order() {
    let block = |name: &str| {
        format!(
            "T1|begin(b)|1\nT1|arw.release({name})|2\nT2|arw.release({name})|3\n\
             T1|ar.acquire({name})|4\nT1|end(b)|5\n",
        )
    };
    assert_ne!(count_in(&block("x")), 0);
    assert_eq!(count_in(&block("assumed(libz.so)#1")), 0);
}

#[test]
fn a_block_that_tries_until_it_has_a_lock_is_atomic() {
    // The section of T2 begins before the block, and ends between the attempt and the acquire.
    let tries = |taken: &str| {
        format!(
            "T2|acq(m)|1\nT2|aw.relaxed({taken})|1\nT1|begin(b)|2\nT1|ar.relaxed({taken})|3\n\
             T2|aw.relaxed({taken})|4\nT2|rel(m)|4\nT1|acq(m)|5\nT1|rel(m)|6\nT1|end(b)|7\n",
        )
    };
    assert_ne!(count_in(&tries("x")), 0);
    assert_eq!(count_in(&tries("m.taken_by_T2")), 0);
    let waits = |value: &str| {
        format!(
            "T1|begin(b)|1\nT1|ar.acquire({value})|2\nT2|post(s)|3\nT2|arw.release({value})|3\n\
             T1|take(s)|4\nT1|arw.release({value})|4\nT1|end(b)|5\n",
        )
    };
    assert_ne!(count_in(&waits("x")), 0);
    assert_eq!(count_in(&waits("s.value")), 0);
}

#[test]
fn what_is_not_atomic_is_found_beside_assumed_order() {
    let text = "T1|begin(b)|1\nT1|aw.release(assumed(libz.so)#1)|2\nT1|w(x)|3\n\
                T2|ar.acquire(assumed(libz.so)#1)|4\nT2|w(x)|5\nT2|aw.release(assumed(libz.so)#2)|6\n\
                T1|ar.acquire(assumed(libz.so)#2)|7\nT1|w(x)|8\nT1|end(b)|9\n";
    let trace = reweave_testkit::std(text);
    let analyses = select("atomicity", &[]).expect("a name");
    let outcome = run(&trace, &analyses, &Settings::default(), &Quiet);
    assert_eq!(outcome.findings.len(), 1);
}
