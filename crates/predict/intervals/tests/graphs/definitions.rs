//! MATs and reachable pairs against their definitions.

use proptest::collection::vec;
use proptest::prelude::*;
use reweave_base::Id;
use reweave_intervals::ctp::{Action, Ctp};
use reweave_intervals::lattice::{Lattice, StraightLine};
use reweave_intervals::mats::{self, Choice, Dummy, Pair};
use reweave_oracle::mats::{self as oracle, Access, Threads};
use reweave_testkit::soak;
use reweave_trace::{LockId, ThreadId, VarId};

use crate::graphs::common::{Shape, chain, drawn, program, thread, threads_of};

fn plain(actions: &[Action]) -> Vec<Access> {
    let plain = |action: &Action| match *action {
        Action::Local => Access::Other,
        Action::Read(var) => Access::Read(var),
        Action::Write(var) | Action::Update(var) => Access::Write(var),
        Action::Acquire(lock) => Access::Acquire(lock),
        Action::Release(lock) => Access::Release(lock),
        Action::Fork(child) => Access::Fork(child),
        Action::Join(child) => Access::Join(child),
    };
    actions.iter().map(plain).collect()
}

/// Compares all tables and the MATs of two threads with the oracle.
#[track_caller]
fn check(ctp: &Ctp, dummy: Dummy) {
    let lattice = Lattice::new(ctp);
    let ids = [0, 1].map(ThreadId::from_index);
    let lines = ids.map(|thread| StraightLine::new(ctp, lattice.locations(thread), thread));
    let pair = Pair::new(ctp, &lattice, (ids[0], ids[1]), (&lines[0], &lines[1]), dummy);
    let fresh = pair.has_dummy.then_some(Action::Write(VarId::from_index(ctp.names.vars.len())));
    let accesses = lines.each_ref().map(|line| {
        let actions = line.accesses.iter().map(|&step| ctp.steps[step].action);
        actions.chain(fresh).collect::<Vec<Action>>()
    });
    assert_eq!(pair.ends, (accesses[0].len(), accesses[1].len()));
    let threads = Threads { ids, accesses: accesses.map(|actions| plain(&actions)) };
    let reach = threads.reach();
    for first in 0..=pair.ends.0 {
        for second in 0..=pair.ends.1 {
            assert_eq!(pair.is_reachable(first, second), reach[first][second]);
            if first < pair.ends.0 && reach[first][second] {
                let is_enabled = threads.is_enabled(0, [first, second]);
                assert_eq!(!pair.is_first_blocked(first, second), is_enabled);
            }
            if second < pair.ends.1 && reach[first][second] {
                let is_enabled = threads.is_enabled(1, [first, second]);
                assert_eq!(!pair.is_second_blocked(first, second), is_enabled);
            }
            if first < pair.ends.0 && second < pair.ends.1 {
                let is_conflict = threads.is_conflict(first, second);
                assert_eq!(pair.is_conflict(first, second), is_conflict);
                let is_dependent = is_conflict && reach[first + 1][second + 1];
                assert_eq!(pair.is_dependent(first, second), is_dependent);
            }
        }
    }
    for choice in [Choice::First, Choice::Feasible] {
        let plain = match choice {
            Choice::First => oracle::Choice::First,
            Choice::Feasible => oracle::Choice::Feasible,
        };
        let (found, expected) = (mats::generate(&pair, choice), oracle::generate(&threads, plain));
        let rectangles: Vec<_> = found.mats.iter().map(|mat| [mat.begin, mat.end]).collect();
        assert_eq!(rectangles, expected.mats);
        assert_eq!((found.queue, found.queued), (expected.queue, expected.queued));
    }
}

fn unguarded(actions: Vec<Action>) -> Vec<(Action, bool)> {
    actions.into_iter().map(|action| (action, false)).collect()
}

#[test]
fn all_small_pairs_of_threads_have_the_mats_of_the_definition() {
    let (var, other) = (VarId::from_index(0), VarId::from_index(1));
    let (lock, child) = (LockId::from_index(0), ThreadId::from_index(1));
    let common = [
        Action::Read(var),
        Action::Write(var),
        Action::Update(other),
        Action::Acquire(lock),
        Action::Release(lock),
    ];
    let more = [Action::Local, Action::Fork(child), Action::Join(child)];
    let firsts = threads_of(&unguarded([&common[..], &more[..]].concat()), 3);
    let seconds = threads_of(&unguarded(common.to_vec()), 3);
    for first in &firsts {
        let is_bound =
            first.iter().any(|edge| matches!(edge.action, Action::Fork(_) | Action::Join(_)));
        for second in &seconds {
            let ctp = program(&[first.clone(), second.clone()]);
            check(&ctp, Dummy::None);
            // The position after a dummy access is the thread's end, which a fork or join sees.
            if !is_bound {
                check(&ctp, Dummy::WhereNeeded);
            }
        }
    }
}

#[test]
fn positions_leave_out_what_nobody_notices() {
    check(&drawn(&[". . LK . WX UK . .", "LK RX . UK . RX"]), Dummy::None);
    check(&drawn(&[". .", "WX ."]), Dummy::WhereNeeded);
    check(&drawn(&["", "WX"]), Dummy::WhereNeeded);
    check(&drawn(&["WX F1 . J1 WX", ". WX . LK WX UK"]), Dummy::None);
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn random_pairs_have_the_mats_of_the_definition(
        first in vec(any::<u8>(), 0..8),
        second in vec(any::<u8>(), 0..8),
        locks in 0..3_u8,
        fork in any::<Option<(u8, u8)>>(),
    ) {
        let shape = Shape { vars: 2, locks, guards: 0, branches: false, leaks: false };
        let (mut first, second) = (thread(&first, shape), thread(&second, shape));
        check(&program(&[first.clone(), second.clone()]), Dummy::WhereNeeded);
        // A thread that others do not notice is at one location all the time, forked or not.
        let is_noticed = second.iter().any(|edge| edge.action != Action::Local);
        if let Some((fork, join)) = fork.filter(|_| is_noticed) {
            let mut actions: Vec<_> = first.iter().map(|edge| (edge.action, false)).collect();
            let fork = usize::from(fork) % (actions.len() + 1);
            let join = fork + usize::from(join) % (actions.len() + 1 - fork);
            actions.insert(join, (Action::Join(ThreadId::from_index(1)), false));
            actions.insert(fork, (Action::Fork(ThreadId::from_index(1)), false));
            first = chain(actions);
        }
        check(&program(&[first, second]), Dummy::None);
    }
}
