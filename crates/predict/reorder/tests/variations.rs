//! Variations of traces on which a closure is not enough: the search decides them as the oracle
//! does. Random traces hardly ever need a decision.

use crate::asked;

use proptest::prelude::*;
use reweave_base::Rng;
use reweave_reorder::{Answer, Budget, Engine, Query, Solver};
use reweave_testkit::{corpus, draw, soak};
use reweave_trace::{AccessOp, Checker, EventId, Goal, LockOp, Op, Trace, TraceBuilder};

/// An event: its thread, its operation and the operand.
type Line = (String, String, String);

/// All choices of which section comes first are cyclic (the sixth figure of the paper on
/// nondeterminism).
const CHOICES: &str = "0|r(v) 0|w(a) 1|acq(l) 1|w(s) 1|r(a) 1|rel(l) 2|acq(l) 2|w(t) 2|r(a) 2|rel(l) \
    3|acq(m) 3|w(p) 3|r(s) 3|r(t) 3|rel(m) 4|acq(m) 4|w(q) 4|r(s) 4|r(t) 4|rel(m) 5|r(p) 5|r(q) 5|w(v)";

fn lines(text: &str) -> Vec<Line> {
    let line = |text: &str| {
        let (thread, rest) = text.split_once('|').expect("a thread comes first");
        let (op, rest) = rest.split_once('(').expect("an operation has an operand");
        let operand = rest.split_once(')').expect("a bracket is closed").0;
        (thread.to_owned(), op.to_owned(), operand.to_owned())
    };
    text.split_whitespace().map(line).collect()
}

fn bases() -> Vec<Vec<Line>> {
    let named = ["sep_first_opposite", "sep_search_refute"];
    let litmus = corpus::litmus().into_iter().filter(|case| named.contains(&case.name.as_str()));
    litmus.map(|case| lines(&case.text())).chain([lines(CHOICES)]).collect()
}

/// The trace of `lines`, if it can have happened.
fn trace(lines: &[Line]) -> Option<Trace> {
    let mut builder = TraceBuilder::new();
    let site = builder.site("here");
    for (thread, op, operand) in lines {
        let thread = builder.thread(thread);
        let op = match op.as_str() {
            "r" => Op::Access(AccessOp::Read, builder.var(operand)),
            "w" => Op::Access(AccessOp::Write, builder.var(operand)),
            "acq" => Op::Lock(LockOp::Acquire, builder.lock(operand)),
            "rel" => Op::Lock(LockOp::Release, builder.lock(operand)),
            "racq" => Op::Lock(LockOp::AcquireShared, builder.lock(operand)),
            "rrel" => Op::Lock(LockOp::ReleaseShared, builder.lock(operand)),
            other => panic!("no operation `{other}`"),
        };
        builder.push(thread, op, site);
    }
    builder.finish().ok()
}

fn vary(lines: &mut Vec<Line>, rng: &mut Rng) {
    let find = |lines: &[Line], op: &str| -> Vec<usize> {
        (0..lines.len()).filter(|&at| lines[at].1 == op).collect()
    };
    match rng.below(4) {
        // A section in shared mode around a section of the same lock, or across its end.
        0 => {
            let Some(&at) = rng.pick(&find(lines, "acq")) else { return };
            let (thread, _, lock) = lines[at].clone();
            let ends = |line: &Line| *line == (thread.clone(), "rel".to_owned(), lock.clone());
            let Some(end) = (at..lines.len()).find(|&end| ends(&lines[end])) else { return };
            let after = end + 1 + rng.below(lines.len() - end);
            lines.insert(after, (thread.clone(), "rrel".to_owned(), lock.clone()));
            lines.insert(at + rng.below(2), (thread, "racq".to_owned(), lock));
        }
        1 => {
            let line = lines.remove(rng.below(lines.len()));
            lines.insert(rng.below(lines.len() + 1), line);
        }
        2 => {
            let mut line = lines[rng.below(lines.len())].clone();
            line.1 = if rng.chance(50) { "r" } else { "w" }.to_owned();
            lines.insert(rng.below(lines.len() + 1), line);
        }
        _ => {
            if let Some(&at) = rng.pick(&find(lines, "rel")).filter(|_| rng.clone().chance(30)) {
                lines.remove(at);
            }
        }
    }
}

/// The races of `trace`, and the order of some pairs the other way round.
fn queries(trace: &Trace, rng: &mut Rng) -> Vec<(Query, Option<Goal>)> {
    let ids: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
    let mut queries = Vec::new();
    for &late in &ids {
        for &early in ids.iter().filter(|&&early| early < late) {
            let (from, to) = (trace.event(early), trace.event(late));
            if from.thread == to.thread {
                continue;
            }
            if from.op.conflicts_with(to.op) {
                queries.push((Query::enabled(&[early, late]), Some(Goal::Race(early, late))));
            }
            if rng.chance(8) {
                queries.push((Query::order_up_to(&[late, early], from.op.is_read()), None));
            }
        }
    }
    queries
}

/// How many queries about a variation with this `seed` take a decision; all are answered rightly.
fn decisions(seed: u64, bases: &[Vec<Line>]) -> Result<usize, TestCaseError> {
    let mut rng = Rng::new(seed);
    let mut lines = bases[rng.below(bases.len())].clone();
    for _ in 0..=rng.below(4) {
        vary(&mut lines, &mut rng);
    }
    let Some(trace) = trace(&lines) else { return Ok(0) };
    let (engine, checker) = (Engine::new(&trace), Checker::new(&trace));
    let mut decided = 0;
    for (query, goal) in queries(&trace, &mut rng) {
        let answer = engine.solve(&query);
        let none = Budget { decisions: 0, ..Budget::default() };
        let is_decided = Solver::new(&engine, none).solve(&query) == Answer::Unknown;
        decided += usize::from(is_decided);
        // The oracle takes long: of what needs no decision it judges some.
        if !is_decided && !rng.chance(5) {
            continue;
        }
        let Some(expected) = asked::oracle(&trace, &query, 500_000).known() else { continue };
        prop_assert!(answer != Answer::Unknown, "{:?}\n{}", query, draw(&trace));
        prop_assert_eq!(
            matches!(answer, Answer::Feasible(_)),
            expected,
            "{:?}\n{}",
            query,
            draw(&trace)
        );
        if let (Answer::Feasible(reordering), Some(goal)) = (&answer, goal) {
            let refusal = checker.check(reordering, &goal).err();
            prop_assert_eq!(refusal, None, "{:?}\n{}", query, draw(&trace));
        }
    }
    Ok(decided)
}

#[test]
fn some_variations_take_decisions_and_all_are_answered_rightly() {
    let bases = bases();
    let decided: usize = (0..400).map(|seed| decisions(seed, &bases).unwrap()).sum();
    assert!(decided >= 5, "{decided} queries took a decision");
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn variations_are_answered_rightly(seed in any::<u64>()) {
        decisions(seed, &bases())?;
    }
}
