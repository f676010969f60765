//! What is fast agrees with the definitions, on random runs and on all runs of small programs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::programs::{Program, Statement, for_all_choices};
use proptest::prelude::*;
use reweave_base::{Id, IndexVec, Rng};
use reweave_ndseq::conflict::Conflicts;
use reweave_ndseq::events::NodeId;
use reweave_ndseq::relevant::{Regions, relevant};
use reweave_ndseq::relevant::{forced, slice};
use reweave_ndseq::{
    Answer, Inferrer, Known, Placement, Run, Settings, Verdict, check, infer, own_placements,
};
use reweave_oracle::ndseq::{BruteForce, Definitions, Set};
use reweave_testkit::soak;
use reweave_trace::Trace;

fn members(run: &Run<'_>, is_member: &IndexVec<NodeId, bool>) -> Set {
    let members = run.events.nodes().filter(|&node| is_member[node]);
    members.fold(0, |set, node| set | 1 << node.index())
}

/// Everything that is linear, on one run.
#[track_caller]
fn check_run(trace: &Trace, rng: &mut Rng) {
    let (run, reference) = (Run::new(trace).unwrap(), Definitions::new(trace));
    for node in run.events.nodes() {
        let direct = run.dependences.direct(node);
        let direct = direct.iter().fold(0_u128, |set, source| set | 1 << source.index());
        assert_eq!(direct, reference.sources(node.index()), "sources of {node:?}");
    }
    let targets = run.targets.iter().fold(0_u128, |set, target| set | 1 << target.index());
    assert_eq!(targets, reference.targets());
    assert_eq!(members(&run, &slice(&run)), reference.slice());
    assert_eq!(members(&run, &forced(&run).is_member), reference.forced());
    for _ in 0..4 {
        let placements = some_placements(&run, rng);
        let regions = Regions::new(&run, &placements, |node| run.events.is_branch(node));
        let found = relevant(&run, &regions).is_member;
        let executions: Vec<Set> = placements
            .iter()
            .flat_map(|&placement| reference.executions(plain(placement)))
            .collect();
        let expected = reference.relevant(&executions, None);
        assert_eq!(members(&run, &found), expected, "{placements:?}");
        let is_serializable = Conflicts::new(&run, &found).is_serializable();
        assert_eq!(is_serializable, reference.is_serializable(expected), "{placements:?}");
    }
    check_conflicts(&run, &reference, rng);
}

/// Conflicts, on random sets of events.
#[track_caller]
fn check_conflicts(run: &Run<'_>, reference: &Definitions<'_>, rng: &mut Rng) {
    for percent in [100, 80, 50, 30] {
        let mut is_member = IndexVec::from_elem(false, run.dependences.nodes_count());
        for node in run.events.nodes() {
            is_member[node] = rng.chance(percent);
        }
        let conflicts = Conflicts::new(run, &is_member);
        let set = members(run, &is_member);
        assert_eq!(conflicts.is_serializable(), reference.is_serializable(set));
        let shortest = conflicts.shortest_cycle();
        assert_eq!(shortest.is_none(), conflicts.is_serializable());
        let mut cycles_count = 0;
        conflicts.visit_cycles(
            2,
            |_| 0,
            |cycle| {
                cycles_count += 1;
                let events = cycle.iter().flat_map(|edge| [edge.earlier, edge.later]);
                let events = events.fold(0_u128, |set, node| set | 1 << node.index());
                assert!(!reference.is_serializable(events), "{cycle:?}");
                assert_eq!(events & !set, 0);
                assert!(cycle.len() >= shortest.as_ref().unwrap().len());
                let ends = cycle.iter().zip(cycle.iter().cycle().skip(1));
                assert!(ends.into_iter().all(|(edge, next)| edge.to == next.from), "{cycle:?}");
            },
        );
        assert_eq!(cycles_count == 0, conflicts.is_serializable());
    }
}

/// The program's own placements and some that do not overlap.
fn some_placements(run: &Run<'_>, rng: &mut Rng) -> Vec<Placement> {
    let mut placements = own_placements(run.flow);
    for (block, static_block) in run.flow.blocks().entries() {
        let count = static_block.statements.len();
        if count == 0 || rng.chance(40) {
            continue;
        }
        let first = rng.below(count);
        let last = first + rng.below(count - first);
        placements.push(Placement { block, first: first as u32, last: last as u32 });
    }
    placements
}

fn plain(placement: Placement) -> reweave_oracle::ndseq::Placement {
    let Placement { block, first, last } = placement;
    reweave_oracle::ndseq::Placement { block, first, last }
}

fn plain_set(placements: &[Placement]) -> Vec<reweave_oracle::ndseq::Placement> {
    placements.iter().copied().map(plain).collect()
}

/// The answer of `infer` for runs of one program, against trying everything.
#[track_caller]
fn check_answer(traces: &[&Trace], settings: &Settings) {
    let brute_force = BruteForce::new(traces);
    if brute_force.free_count() > 36 {
        return;
    }
    let answer = infer(traces, settings).unwrap().answer;
    let number_max = if let Answer::Specification(found) = &answer { found.len() } else { 2 };
    let rejected: Vec<_> = settings.rejected.iter().map(|set| plain_set(set)).collect();
    let smallest = brute_force.smallest(&rejected, number_max);
    match (answer, smallest) {
        (Answer::Specification(found), Some(smallest)) => {
            assert_eq!(check(traces, &found), Ok(Verdict::Serializable));
            assert_eq!(found.len(), smallest[0].len(), "{found:?} {smallest:?}");
            if smallest.len() < 60 {
                assert_eq!(plain_set(&found), brute_force.best(smallest, settings.cover));
            }
        }
        (Answer::Unneeded(_), Some(smallest)) => assert!(smallest[0].is_empty()),
        (Answer::Impossible(explanation), None) => check_impossible(traces, &explanation),
        (Answer::NoneLeft, None) => assert!(!settings.rejected.is_empty()),
        other => panic!("{other:?}"),
    }
}

/// The cycle is one, and every chain is made of true links.
#[track_caller]
fn check_impossible(traces: &[&Trace], explanation: &reweave_ndseq::Explanation) {
    use reweave_ndseq::Reason;
    let reference = Definitions::new(traces[explanation.run]);
    assert!(!reference.is_serializable(reference.forced()));
    let place = |event| reference.events().iter().position(|&other| other == event).unwrap();
    let mut cycle = 0;
    for hop in &explanation.cycle {
        cycle |= 1 << place(hop.earlier) | 1 << place(hop.later);
    }
    assert!(!reference.is_serializable(cycle));
    assert_eq!(cycle & !reference.forced(), 0);
    let mut explained = 0_u128;
    for chain in &explanation.chains {
        explained |= 1 << place(chain.links[0].event);
        for (index, link) in chain.links.iter().enumerate() {
            let next = chain.links.get(index + 1).map(|link| link.event);
            match link.reason {
                Reason::Target(_) => {
                    assert_eq!(reference.targets() >> place(link.event) & 1, 1);
                    assert_eq!(next, None);
                }
                Reason::FlowsInto(event) => {
                    assert_eq!(reference.sources(place(event)) >> place(link.event) & 1, 1);
                    assert_eq!(next, Some(event));
                }
                Reason::Encloses(event) => assert_eq!(next, Some(event)),
                Reason::EnclosedWith(_) => panic!("there are no placements to speak of"),
                Reason::NotEnclosed => assert_eq!(next, None),
            }
        }
    }
    assert_eq!(explained, cycle);
}

fn random_runs(seed: u64, events_max: usize) -> Vec<Trace> {
    let mut rng = Rng::new(seed);
    let program = Program::random(&mut rng);
    let count = 1 + rng.below(2);
    (0..count).map(|_| program.run(events_max, &mut |bound| rng.below(bound))).collect()
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn linear_passes_agree_with_their_definitions(seed: u64) {
        let mut rng = Rng::new(seed ^ 1);
        for trace in random_runs(seed, 40) {
            check_run(&trace, &mut rng);
        }
    }

    #[test]
    fn answers_are_those_of_trying_everything(seed: u64) {
        let traces = random_runs(seed, 34);
        let traces: Vec<&Trace> = traces.iter().collect();
        check_answer(&traces, &Settings::default());
        check_answer(&traces, &Settings { cover: false, ..Settings::default() });
    }

    /// There is a specification if and only if the forced sets have no cycle.
    #[test]
    fn the_forced_set_decides_whether_there_is_a_specification(seed: u64) {
        let traces = random_runs(seed, 40);
        let traces: Vec<&Trace> = traces.iter().collect();
        let is_possible = traces.iter().all(|trace| {
            let reference = Definitions::new(trace);
            reference.is_serializable(reference.forced())
        });
        for known in [Known::Targets, Known::Slice, Known::Forced] {
            let settings = Settings { known, ..Settings::default() };
            let answer = infer(&traces, &settings).unwrap().answer;
            prop_assert_eq!(!matches!(answer, Answer::Impossible(_)), is_possible, "{:?}", known);
        }
    }

    #[test]
    fn what_is_known_beforehand_changes_no_answer(seed: u64) {
        let traces = random_runs(seed, 30);
        let traces: Vec<&Trace> = traces.iter().collect();
        let answer = |known, grouping| {
            let settings = Settings { known, grouping, ..Settings::default() };
            infer(&traces, &settings).unwrap().answer
        };
        let expected = answer(Known::Forced, false);
        prop_assert_eq!(&answer(Known::Slice, false), &expected);
        prop_assert_eq!(&answer(Known::Targets, false), &expected);
        for known in [Known::Targets, Known::Slice, Known::Forced] {
            match (answer(known, true), &expected) {
                (Answer::Specification(grouped), Answer::Specification(expected)) => {
                    prop_assert!(grouped.len() >= expected.len());
                    prop_assert_eq!(check(&traces, &grouped), Ok(Verdict::Serializable));
                }
                (grouped, expected) => prop_assert_eq!(&grouped, expected),
            }
        }
    }

    /// Continuing after a rejection gives what starting with it gives, and what trying all gives.
    #[test]
    fn a_rejected_answer_is_followed_by_the_next_best(seed: u64) {
        let traces = random_runs(seed, 24);
        let traces: Vec<&Trace> = traces.iter().collect();
        let mut inferrer = Inferrer::new(&traces, &Settings::default()).unwrap();
        let mut settings = Settings::default();
        for _ in 0..3 {
            let answer = inferrer.infer().answer;
            prop_assert_eq!(&infer(&traces, &settings).unwrap().answer, &answer);
            check_answer(&traces, &settings);
            let Answer::Specification(placements) = answer else { break };
            inferrer.reject(&placements);
            settings.rejected.push(placements);
        }
    }
}

/// What the threads of the enumerated programs are made of; the blocks are in `blocks`.
fn menu() -> Vec<Statement> {
    vec![
        Statement::Read { local: 0, var: 0 },
        Statement::Write { var: 0, uses: vec![0] },
        Statement::Swap { local: 0, var: 0, uses: vec![0] },
        Statement::If { condition: 0, body: 0 },
        Statement::If { condition: 0, body: 1 },
        Statement::While { condition: 0, body: 2 },
    ]
}

fn blocks() -> Vec<Vec<Statement>> {
    vec![
        vec![Statement::Write { var: 0, uses: vec![] }],
        vec![Statement::Let { local: 0, uses: vec![] }],
        vec![Statement::Swap { local: 0, var: 0, uses: vec![] }],
    ]
}

/// Every run of every program of two threads, each of one or two statements of the menu.
#[test]
fn all_runs_of_small_programs_agree() {
    let menu = menu();
    let singles = menu.iter().map(|statement| vec![statement.clone()]);
    let pairs =
        menu.iter().flat_map(|first| menu.iter().map(|second| vec![first.clone(), second.clone()]));
    let bodies: Vec<Vec<Statement>> = singles.chain(pairs).collect();
    let mut rng = Rng::new(1);
    let (mut programs_count, mut runs_count) = (0, 0);
    for (index, left) in bodies.iter().enumerate() {
        for right in &bodies[..=index] {
            programs_count += 1;
            // In a quick test, some; which ones is the same each time.
            if soak::multiplier() == 1 && programs_count % 23 != 0 {
                continue;
            }
            let program = Program::new(&[left.clone(), right.clone()], &blocks(), &[0]);
            let mut runs_left = 400;
            for_all_choices(|choose| {
                if runs_left == 0 {
                    return;
                }
                let trace = program.run(8, choose);
                runs_left -= 1;
                runs_count += 1;
                check_run(&trace, &mut rng);
                check_answer(&[&trace], &Settings::default());
            });
        }
    }
    assert_eq!(programs_count, 42 * 43 / 2);
    assert!(runs_count > 1_000, "{runs_count}");
}
