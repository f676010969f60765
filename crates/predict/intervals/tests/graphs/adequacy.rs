//! Graphs cover all interleavings: complete ones as wholes, and the steps of all others.

use super::schedules::{State, cover, settled};
use proptest::collection::vec;
use proptest::prelude::*;
use reweave_base::Id;
use reweave_intervals::ctp::{Action, Ctp};
use reweave_intervals::graph::{GraphKind, Rule, Settings, build};
use reweave_testkit::soak;
use reweave_trace::{LockId, ThreadId, VarId};

use crate::graphs::common::{Edge, Shape, drawn, program, thread, threads_of};

const KINDS: [GraphKind; 3] = [GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced];

/// Checks the sound graphs of `ctp` against its interleavings.
#[track_caller]
fn check(ctp: &Ctp) {
    let runs = settled(ctp);
    for kind in KINDS {
        for switches in [Rule::Lattice, Rule::Lockset] {
            let graph = build(ctp, kind, &Settings { switches, ..Settings::default() });
            for run in &runs {
                let covered = cover(ctp, &graph, run);
                let steps: Vec<Action> = run.iter().map(|&step| ctp.steps[step].action).collect();
                assert!(
                    covered.missing.is_empty(),
                    "{kind:?} {switches:?} {steps:?} {:?}\n{:?}\n{:?}",
                    covered.missing,
                    graph.nodes,
                    graph.switches
                );
                let is_complete = State::after(ctp, run).is_complete();
                assert!(covered.is_whole || !is_complete, "{kind:?} {switches:?} {steps:?}");
            }
        }
    }
}

/// Adds a fork of `child` to the first thread, and a join if there is room.
fn tie(threads: &mut [Vec<Edge>], child: usize, fork: u8, join: Option<u8>) {
    let first = &mut threads[0];
    let mut end = first.iter().map(|edge| edge.to).max().unwrap_or(0);
    // Points that every path passes are those that no edge passes over.
    let is_bridge = |edges: &[Edge], point: usize| {
        !edges.iter().any(|edge| edge.from < point && point < edge.to)
    };
    let mut insert = |first: &mut Vec<Edge>, point: usize, action| {
        for edge in first.iter_mut() {
            edge.from += usize::from(edge.from >= point);
            edge.to += usize::from(edge.to > point);
        }
        first.push(Edge { from: point, to: point + 1, action, has_guard: false });
        end += 1;
        end
    };
    let count = first.iter().map(|edge| edge.to).max().unwrap_or(0);
    let bridges: Vec<usize> = (0..=count).filter(|&point| is_bridge(first, point)).collect();
    let fork = bridges[usize::from(fork) % bridges.len()];
    let child = ThreadId::from_index(child);
    let count = insert(first, fork, Action::Fork(child));
    if let Some(join) = join {
        let bridges: Vec<usize> =
            (fork + 1..=count).filter(|&point| is_bridge(first, point)).collect();
        insert(first, bridges[usize::from(join) % bridges.len()], Action::Join(child));
    }
}

#[test]
fn what_a_failing_guard_leaves_behind_is_covered() {
    check(&drawn(&["WX ?. WX", "RX RX WY"]));
    check(&drawn(&["WX . ?. .", "RX RX"]));
    check(&drawn(&["LK WX ?. UK", "WY LK RX UK ?RY WX"]));
    check(&drawn(&["?RX ?RX WX", "?WX ?WX"]));
    check(&drawn(&["LK WX ?WX UK RX", "LK RX WX UK ?. RX", "RX ?. WX"]));
}

#[test]
fn deadlocks_are_covered() {
    check(&drawn(&["LK LM WX UM UK", "LM LK WX UK UM"]));
    check(&drawn(&["WX LK . LM WX UM UK", ". LM RX . LK WX UK UM", "LK RX UK"]));
    check(&drawn(&["F1 LK J1 WX UK", "LK WX UK WX"]));
    check(&drawn(&["LK F1 . WX ?. UK WX J1", ". . LK WX UK WX"]));
}

#[test]
fn forks_and_joins_are_covered() {
    check(&drawn(&["WX F1 WX F2 RX J1 WX J2 RX", "RX WX", "WX RX"]));
    check(&drawn(&["F1 RX", "WX F2 WX", "RX WX ."]));
    check(&drawn(&["F1 F2 J1 J2 RX", ". LK RX WX UK .", ". LK RX WX UK ."]));
    check(&drawn(&["F1", ""]));
    check(&drawn(&["", ". ."]));
    check(&drawn(&[]));
}

#[test]
fn all_small_pairs_of_threads_are_covered() {
    let (var, lock) = (VarId::from_index(0), LockId::from_index(0));
    let words = [
        (Action::Read(var), false),
        (Action::Write(var), true),
        (Action::Update(var), false),
        (Action::Acquire(lock), false),
        (Action::Release(lock), false),
    ];
    let (longs, shorts) = (threads_of(&words, 3), threads_of(&words, 2));
    for long in &longs {
        for short in &shorts {
            check(&program(&[long.clone(), short.clone()]));
            check(&program(&[short.clone(), long.clone()]));
        }
    }
}

fn straight(locks: u8, guards: u8, leaks: bool) -> Shape {
    Shape { vars: 2, locks, guards, branches: false, leaks }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn two_threads_without_guards_are_covered(
        first in vec(any::<u8>(), 0..7),
        second in vec(any::<u8>(), 0..7),
        locks in 0..3_u8,
    ) {
        let shape = straight(locks, 0, false);
        check(&program(&[thread(&first, shape), thread(&second, shape)]));
    }

    #[test]
    fn two_threads_with_guards_are_covered(
        first in vec(any::<u8>(), 0..7),
        second in vec(any::<u8>(), 0..7),
        locks in 0..3_u8,
        guards in 1..10_u8,
        leaks in any::<bool>(),
    ) {
        let shape = straight(locks, guards, leaks);
        check(&program(&[thread(&first, shape), thread(&second, shape)]));
    }

    #[test]
    fn two_branching_threads_are_covered(
        first in vec(any::<u8>(), 0..7),
        second in vec(any::<u8>(), 0..7),
        locks in 0..3_u8,
        guards in 0..5_u8,
        fork in any::<Option<(u8, Option<u8>)>>(),
    ) {
        let shape = Shape { branches: true, ..straight(locks, guards, false) };
        let mut threads = vec![thread(&first, shape), thread(&second, shape)];
        if let Some((fork, join)) = fork {
            tie(&mut threads, 1, fork, join);
        }
        check(&program(&threads));
    }
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn three_threads_are_covered(
        bytes in vec(vec(any::<u8>(), 0..5), 3),
        locks in 0..3_u8,
        guards in 0..6_u8,
        branches in any::<bool>(),
        forks in [any::<Option<(u8, Option<u8>)>>(), any::<Option<(u8, Option<u8>)>>()],
    ) {
        let shape = Shape { branches, ..straight(locks, guards, false) };
        let mut threads: Vec<Vec<Edge>> = bytes.iter().map(|bytes| thread(bytes, shape)).collect();
        for (index, fork) in forks.into_iter().enumerate() {
            if let Some((fork, join)) = fork {
                tie(&mut threads, index + 1, fork, join);
            }
        }
        check(&program(&threads));
    }
}
