//! What is asked of single programs: explanations, budgets, errors, the program's own `if (*)`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::programs::{Program, Statement};
use common::vectors::load;
use expect_test::{Expect, expect};
use reweave_base::Rng;
use reweave_ndseq::{
    Answer, CheckError, Explanation, Inferrer, Placement, PlacementError, Reason, RunError,
    Settings, Unneeded, Verdict, check, infer, own_placements, placements_of_lines,
};
use reweave_trace::{StaticBlockId, ThreadOp, Trace, TraceBuilder};

fn placement(block: u32, first: u32, last: u32) -> Placement {
    Placement { block: StaticBlockId::from_number(block).unwrap(), first, last }
}

/// The hops of the cycle, then each event with the chain that makes it count.
fn drawn(trace: &Trace, explanation: &Explanation) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let event = |id| {
        let event = trace.event(id);
        let thread = trace.names().threads.name(event.thread);
        format!("{}:{thread}:{}", id.number(), trace.names().spell(event.op))
    };
    for hop in &explanation.cycle {
        writeln!(text, "{} -> {}", event(hop.earlier), event(hop.later)).unwrap();
    }
    for chain in &explanation.chains {
        let links = chain.links.iter().map(|link| match link.reason {
            Reason::Target(var) => {
                format!(
                    "{} is the last write to {}",
                    event(link.event),
                    trace.names().vars.name(var)
                )
            }
            Reason::FlowsInto(_) => format!("{} flows into ", event(link.event)),
            Reason::Encloses(_) => format!("{} decides ", event(link.event)),
            Reason::EnclosedWith(_) => format!("{} is skipped only with ", event(link.event)),
            Reason::NotEnclosed => format!("{} always runs", event(link.event)),
        });
        writeln!(text, "{}", links.collect::<String>()).unwrap();
    }
    text
}

#[track_caller]
fn check_impossible(trace: &Trace, expected: &Expect) {
    let Answer::Impossible(explanation) = infer(&[trace], &Settings::default()).unwrap().answer
    else {
        panic!("there is no specification")
    };
    expected.assert_eq(&drawn(trace, &explanation));
}

#[test]
fn a_lost_update_is_explained_by_its_cycle() {
    check_impossible(
        &load("lost_update").traces[0],
        &expect![[r#"
        1:t0:r(x) -> 5:t1:w(x)
        5:t1:w(x) -> 6:t0:w(x)
        1:t0:r(x) flows into 2:t0:let(u) flows into 6:t0:w(x) is the last write to x
        5:t1:w(x) is the last write to x
        6:t0:w(x) is the last write to x
    "#]],
    );
}

/// A run in which the choices of the program, then those of the schedule, are `choices`; of those
/// that are left the first way is gone.
fn run(program: &Program, choices: &[usize]) -> Trace {
    let mut choices = choices.iter().copied();
    program.run(100, &mut |bound| choices.next().unwrap_or(0).min(bound - 1))
}

/// A racy counter that nobody reads, beside a result of which each thread writes its own part.
#[test]
fn a_racy_statistic_needs_nothing() {
    let count = [
        Statement::Read { local: 0, var: 2 },
        Statement::Write { var: 2, uses: vec![0] },
        Statement::Write { var: 0, uses: vec![] },
    ];
    let other = [count[0].clone(), count[1].clone(), Statement::Write { var: 1, uses: vec![] }];
    let program = Program::new(&[count.to_vec(), other.to_vec()], &[], &[0, 1]);
    // Both read before either writes.
    let trace = run(&program, &[0, 1, 0, 1, 0, 1]);
    let inference = infer(&[&trace], &Settings::default()).unwrap();
    assert_eq!(inference.answer, Answer::Unneeded(Unneeded::IrrelevantConflicts));
    assert!(!inference.statistics.runs[0].is_serializable);
    assert_eq!(inference.statistics.variables, 0);
}

/// The children's accesses conflict in a cycle, and the parent writes between each two of them; it
/// conflicts with neither.
#[test]
fn a_parents_access_between_those_of_its_children_hides_no_conflict() {
    let write = |var| Statement::Write { var, uses: vec![] };
    let child = vec![write(0), write(1)];
    let fork = |body| Statement::Fork { body, captured: vec![] };
    let parent = vec![fork(0), fork(1), write(0), write(1)];
    let program = Program::new(&[parent], &[child.clone(), child], &[0, 1]);
    let trace = run(&program, &[0, 1, 0, 2, 2, 0]);
    let threads: Vec<u32> = trace.events().map(|(_, event)| event.thread.number()).collect();
    assert_eq!(threads, [1, 1, 2, 1, 3, 3, 1, 2]);
    let Answer::Impossible(explanation) = infer(&[&trace], &Settings::default()).unwrap().answer
    else {
        panic!("the children's writes conflict in a cycle")
    };
    let mut threads: Vec<u32> = explanation.cycle.iter().map(|hop| hop.from.number()).collect();
    threads.sort_unstable();
    assert_eq!(threads, [2, 3]);
}

/// A thread that sees another's change and does nothing about it: `if (*)` around what it sees.
fn looking_twice(is_optional: bool) -> Program {
    let look = vec![
        Statement::Read { local: 0, var: 0 },
        Statement::Read { local: 1, var: 0 },
        Statement::Let { local: 2, uses: vec![0, 1] },
        Statement::If { condition: 2, body: 0 },
    ];
    let change = vec![Statement::Write { var: 0, uses: vec![] }];
    let blocks = [vec![Statement::Let { local: 3, uses: vec![] }], look.clone()];
    if is_optional {
        let mut program =
            Program::new(&[vec![Statement::Optional { body: 1 }], change], &blocks, &[0]);
        program.blocks[1].is_optional = true;
        program
    } else {
        Program::new(&[look, change], &blocks, &[0])
    }
}

#[test]
fn the_programs_own_if_star_counts() {
    // The branch is not taken; the change comes between the two looks.
    let turns = [0, 0, 1, 0, 0];
    let bare = run(&looking_twice(false), &turns);
    let Answer::Specification(placements) = infer(&[&bare], &Settings::default()).unwrap().answer
    else {
        panic!("one `if (*)` is needed")
    };
    // The first look may stay: without the second it conflicts in no cycle.
    assert_eq!(placements, [placement(3, 1, 3)]);
    assert_eq!(check(&[&bare], &placements), Ok(Verdict::Serializable));
    assert!(matches!(check(&[&bare], &[]), Ok(Verdict::Violated(_))));

    let own = run(&looking_twice(true), &turns);
    assert_eq!(own_placements(own.flow().unwrap()), [placement(2, 0, 3)]);
    assert_eq!(check(&[&own], &[]), Ok(Verdict::Serializable));
    let mut inferrer = Inferrer::new(&[&own], &Settings::default()).unwrap();
    assert_eq!(inferrer.infer().answer, Answer::Unneeded(Unneeded::OwnPlacements));
    inferrer.reject(&own_placements(own.flow().unwrap()));
    assert_eq!(inferrer.infer().answer, Answer::NoneLeft);
}

#[test]
fn a_violated_check_says_which_branch_always_runs() {
    let trace = run(&looking_twice(false), &[0, 0, 1, 0, 0]);
    let Ok(Verdict::Violated(explanation)) = check(&[&trace], &[]) else { panic!("a violation") };
    expect![[r#"
        1:t0:r(x0) -> 2:t1:w(x0)
        2:t1:w(x0) -> 3:t0:r(x0)
        1:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch always runs
        2:t1:w(x0) is the last write to x0
        3:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch always runs
    "#]]
    .assert_eq(&drawn(&trace, &explanation));
}

/// A look that decides about a write to what is looked at, or is followed by one.
fn looking_and_writing(is_decided: bool) -> Program {
    let mut program = looking_twice(false);
    let (inner, look) = (0, program.threads[0]);
    let write = Statement::Write { var: 0, uses: vec![] };
    let written = if is_decided { inner } else { look };
    program.blocks[written].statements.push(write);
    program
}

#[test]
fn a_branch_that_decides_about_the_result_cannot_be_left_out() {
    // The branch is taken; the change comes between the two looks.
    check_impossible(
        &run(&looking_and_writing(true), &[1, 0, 1, 0, 0, 0, 0]),
        &expect![[r#"
            1:t0:r(x0) -> 2:t1:w(x0)
            2:t1:w(x0) -> 3:t0:r(x0)
            1:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch decides 7:t0:w(x0) is the last write to x0
            2:t1:w(x0) is the last write to x0
            3:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch decides 7:t0:w(x0) is the last write to x0
        "#]],
    );
}

/// The branch has nothing to do with the write, but an `if (*)` around both can skip neither.
#[test]
fn a_violated_check_says_what_an_if_star_cannot_skip() {
    let trace = run(&looking_and_writing(false), &[0, 0, 1, 0, 0, 0]);
    let Ok(Verdict::Violated(explanation)) = check(&[&trace], &[placement(3, 0, 4)]) else {
        panic!("a violation")
    };
    expect![[r#"
        1:t0:r(x0) -> 2:t1:w(x0)
        2:t1:w(x0) -> 3:t0:r(x0)
        1:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch is skipped only with 6:t0:w(x0) is the last write to x0
        2:t1:w(x0) is the last write to x0
        3:t0:r(x0) flows into 4:t0:let(l2) flows into 5:t0:branch is skipped only with 6:t0:w(x0) is the last write to x0
    "#]]
    .assert_eq(&drawn(&trace, &explanation));
    assert_eq!(check(&[&trace], &[placement(3, 0, 3)]), Ok(Verdict::Serializable));
}

/// A thread that looks twice, again and again, in one block, and one that changes what it looks at
/// after its first look.
fn looking_often(times: usize) -> Trace {
    let mut program = looking_twice(false);
    let look = program.threads[0];
    let once = std::mem::take(&mut program.blocks[look].statements);
    program.blocks[look].statements = vec![once; times].concat();
    // No branch is taken.
    let mut choices = vec![0; times];
    choices.extend([0, 1]);
    let mut choices = choices.into_iter();
    program.run(5 * times, &mut |bound| choices.next().unwrap_or(0).min(bound - 1))
}

#[test]
fn a_block_of_ten_thousand_statements_exhausts_the_budget_and_no_more() {
    let trace = looking_often(2_500);
    let settings = Settings { encoding_max: 1_000_000, ..Settings::default() };
    let inference = infer(&[&trace], &settings).unwrap();
    assert_eq!(inference.answer, Answer::Exhausted { lower_bound: 0, found: None });
    // All but those between two branches, of which each has three statements before it.
    assert_eq!(inference.statistics.candidates, 10_000 * 10_001 / 2 - 2_500 * 6);
    assert!(inference.statistics.variables < 40_000, "{:?}", inference.statistics);
}

#[test]
fn an_exhausted_encoding_stays_exhausted() {
    let trace = looking_often(10);
    let settings = Settings { encoding_max: 1_000, ..Settings::default() };
    let mut inferrer = Inferrer::new(&[&trace], &settings).unwrap();
    let exhausted = Answer::Exhausted { lower_bound: 0, found: None };
    assert_eq!(inferrer.infer().answer, exhausted);
    inferrer.reject(&[placement(3, 1, 3)]);
    assert_eq!(inferrer.infer().answer, exhausted);
}

#[test]
fn a_budget_of_the_encoding_changes_no_answer_that_is_given() {
    let trace = looking_often(3);
    // The first look has to go: the others stay, and see the change as it does not.
    let best = vec![placement(3, 0, 3)];
    let mut kinds = [0; 3];
    for encoding_max in (0..30_000).step_by(50) {
        let settings = Settings { encoding_max, ..Settings::default() };
        match infer(&[&trace], &settings).unwrap().answer {
            Answer::Exhausted { lower_bound, found: None } => {
                assert!(lower_bound <= 1);
                kinds[0] += 1;
            }
            Answer::Exhausted { lower_bound, found: Some(found) } => {
                assert_eq!((lower_bound, found.len()), (1, 1));
                assert_eq!(check(&[&trace], &found), Ok(Verdict::Serializable));
                kinds[1] += 1;
            }
            Answer::Specification(placements) => {
                assert_eq!(placements, best);
                kinds[2] += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
}

#[test]
fn a_budget_that_runs_out_is_said() {
    let vector = load("treiber");
    let traces: Vec<&Trace> = vector.traces.iter().collect();
    for rounds_max in 0..8 {
        let settings = Settings { rounds_max, ..Settings::default() };
        match infer(&traces, &settings).unwrap().answer {
            Answer::Exhausted { lower_bound, found } => {
                assert!(lower_bound <= 2);
                if let Some(found) = found {
                    assert_eq!(found.len(), 2);
                    assert_eq!(check(&traces, &found), Ok(Verdict::Serializable));
                }
            }
            Answer::Specification(placements) => assert_eq!(placements.len(), 2),
            other => panic!("{other:?}"),
        }
    }
    let settings = Settings { rounds_max: 0, ..Settings::default() };
    let answer = infer(&traces, &settings).unwrap().answer;
    assert_eq!(answer, Answer::Exhausted { lower_bound: 0, found: None });
}

#[test]
fn a_trace_without_a_flow_layer_is_refused() {
    let bare = TraceBuilder::new().finish().unwrap();
    let error = infer(&[&bare], &Settings::default()).unwrap_err();
    assert_eq!(error, RunError::NoFlow { run: 0 });
    assert_eq!(check(&[&bare], &[]), Err(CheckError::Run(error)));
    expect!["run 1 has no flow layer; only runs of programs written in the language have one"]
        .assert_eq(&error.to_string());
}

#[test]
fn runs_of_different_programs_are_refused() {
    let (fig1, treiber) = (load("fig1"), load("treiber"));
    let error = infer(&[&fig1.traces[0], &treiber.traces[0]], &Settings::default()).unwrap_err();
    assert_eq!(error, RunError::OtherProgram { run: 1 });
}

#[test]
fn placements_that_cannot_stand_are_refused() {
    let trace = &load("fig1").traces[0];
    let beyond = placement(2, 1, 4);
    let error = PlacementError::NoSuchStatements(beyond);
    assert_eq!(check(&[trace], &[beyond]), Err(error.into()));
    let (left, right) = (placement(2, 0, 2), placement(2, 1, 3));
    let error = PlacementError::Overlap(left, right);
    assert_eq!(check(&[trace], &[left, right]), Err(error.into()));
}

#[test]
fn lines_name_the_statements_that_start_and_end_there() {
    let trace = &load("fig1").traces[0];
    let flow = trace.flow().unwrap();
    assert_eq!(placements_of_lines(flow, 5, 10), Ok(vec![placement(2, 0, 3)]));
    assert_eq!(placements_of_lines(flow, 9, 9), Ok(vec![placement(3, 0, 0)]));
    let error = placements_of_lines(flow, 4, 10).unwrap_err();
    expect!["no statements start at line 4 and end at line 10 in one block"]
        .assert_eq(&error.to_string());
}

/// The random programs are worth comparing answers on: every kind of answer is among them.
#[test]
fn random_programs_have_every_kind_of_answer() {
    let mut counts = [0; 7];
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let program = Program::random(&mut rng);
        let trace = program.run(40, &mut |bound| rng.below(bound));
        let kind = match infer(&[&trace], &Settings::default()).unwrap().answer {
            Answer::Unneeded(Unneeded::Serializable) => 0,
            Answer::Unneeded(Unneeded::IrrelevantConflicts) => 1,
            Answer::Unneeded(Unneeded::OwnPlacements) => 2,
            Answer::Specification(placements) if placements.len() == 1 => 3,
            Answer::Specification(_) => 4,
            Answer::Impossible(_) => 5,
            other => panic!("{seed}: {other:?}"),
        };
        counts[kind] += 1;
        counts[6] +=
            usize::from(trace.events().any(|(_, event)| {
                matches!(event.op, reweave_trace::Op::Thread(ThreadOp::Fork, _))
            }));
    }
    assert!(counts.iter().all(|&count| count >= 20), "{counts:?}");
}
