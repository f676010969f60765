//! Graphs drawn: one line for nodes, transactions and what leads from thread to thread.

use std::fmt::Write;

use super::schedules::{State, prefixes};
use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::prelude::*;
use reweave_base::Id;
use reweave_intervals::ctp::{Action, Ctp};
use reweave_intervals::graph::{GraphKind, Mode, NodeId, Settings, build};
use reweave_intervals::lattice::Lattice;
use reweave_intervals::mats::Dummy;
use reweave_testkit::soak;
use reweave_trace::VarId;

use crate::graphs::common::{Edge, Shape, drawn, place, program, thread};

/// Points are called by the letter of their thread and counted from 0.
#[track_caller]
fn check(ctp: &Ctp, kind: GraphKind, mode: Mode, expected: &Expect) {
    let settings = Settings { mode, dummy: Dummy::None, ..Settings::default() };
    let graph = build(ctp, kind, &settings);
    let letter = |thread: usize| char::from(b'a' + thread as u8);
    let name = |node: NodeId| {
        let (thread, point) = place(ctp, &graph, node);
        format!("{}{point}", letter(thread))
    };
    let names =
        |nodes: &[NodeId]| nodes.iter().map(|&node| name(node)).collect::<Vec<_>>().join(" ");
    let arrows = |pairs: &[(NodeId, NodeId)]| {
        let arrow = |&(from, to): &(NodeId, NodeId)| format!("{}-{}", name(from), name(to));
        pairs.iter().map(arrow).collect::<Vec<_>>().join(" ")
    };
    let mut text = String::new();
    for transaction in &graph.transactions {
        let (from, exits) = (name(transaction.from), names(&transaction.exits));
        writeln!(text, "{from} runs {} to {exits}", transaction.steps.len())
            .expect("text takes all");
    }
    writeln!(text, "roots {}", names(&graph.roots)).expect("text takes all");
    writeln!(text, "switches {}", arrows(&graph.switches)).expect("text takes all");
    if !graph.orders.is_empty() {
        writeln!(text, "orders {}", arrows(&graph.orders)).expect("text takes all");
    }
    for stop in &graph.stops {
        let thread = ctp.threads.entries().find(|(_, data)| data.points.contains(&stop.point));
        let (thread, data) = thread.expect("points are of threads");
        let point = stop.point.index() - data.points.start.index();
        let targets = names(&stop.targets);
        writeln!(text, "stop {}{point}: {targets}", letter(thread.index()))
            .expect("text takes all");
    }
    expected.assert_eq(&text);
}

#[test]
fn steps_that_nobody_notices_belong_to_the_access_that_follows_or_to_the_last() {
    let ctp = drawn(&[". WX . WX . .", ". ."]);
    check(
        &ctp,
        GraphKind::Ccfg,
        Mode::Sound,
        &expect![[r#"
        a0 runs 2 to a2
        a2 runs 4 to a6
        b0 runs 2 to b2
        roots a0 b0
        switches a2-b0 a6-b0 b2-a0 b2-a2
    "#]],
    );
}

#[test]
fn a_guard_after_the_last_access_is_a_node_in_the_sound_mode_only() {
    let ctp = drawn(&["WX . ?. .", "RX"]);
    check(
        &ctp,
        GraphKind::Ccfg,
        Mode::Sound,
        &expect![[r#"
        a0 runs 2 to a2
        a2 runs 2 to a4
        b0 runs 1 to b1
        roots a0 b0
        switches a2-b0 a4-b0 b1-a0 b1-a2
    "#]],
    );
    check(
        &ctp,
        GraphKind::Ccfg,
        Mode::Paper,
        &expect![[r#"
        a0 runs 4 to a4
        b0 runs 1 to b1
        roots a0 b0
        switches a4-b0 b1-a0
    "#]],
    );
}

#[test]
fn a_thread_that_stops_at_a_guard_inside_a_transaction_lets_others_go_on() {
    let ctp = drawn(&["LK RX ?. WX UK WY", "LK RX UK RZ WY"]);
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Sound,
        &expect![[r#"
        a0 runs 5 to a5
        a5 runs 1 to a6
        b0 runs 3 to b3
        b3 runs 2 to b5
        roots a0 b0
        switches a5-b0 a6-b0 a6-b3 b3-a0 b5-a0 b5-a5
        stop a2: b3
    "#]],
    );
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Paper,
        &expect![[r#"
        a0 runs 5 to a5
        a5 runs 1 to a6
        b0 runs 3 to b3
        b3 runs 2 to b5
        roots a0 b0
        switches a5-b0 a6-b0 a6-b3 b3-a0 b5-a0 b5-a5
    "#]],
    );
}

#[test]
fn a_dummy_access_ends_at_the_end_of_the_thread() {
    let ctp = drawn(&["WX WY", "RX WZ"]);
    check(
        &ctp,
        GraphKind::Tsg,
        Mode::Sound,
        &expect![[r#"
        a0 runs 1 to a1
        a1 runs 1 to a2
        b0 runs 1 to b1
        b1 runs 1 to b2
        roots a0 b0
        switches a1-b0 a2-b0 a2-b1 b1-a0 b2-a0 b2-a1
    "#]],
    );
    check(
        &ctp,
        GraphKind::Tsg,
        Mode::Paper,
        &expect![[r#"
        a0 runs 1 to a1
        a1 runs 1 to a2
        b0 runs 1 to b1
        b1 runs 1 to b2
        roots a0 b0
        switches a1-b0 b1-a0
    "#]],
    );
}

#[test]
fn forks_and_joins_are_orders_in_the_mode_of_the_paper_and_switches_in_the_sound_one() {
    let ctp = drawn(&["WX F1 F2 J1 J2 RX", "RX WX", "RX WX"]);
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Paper,
        &expect![[r#"
        a0 runs 2 to a2
        a2 runs 1 to a3
        a3 runs 1 to a4
        a4 runs 2 to a6
        b0 runs 1 to b1
        b1 runs 1 to b2
        c0 runs 1 to c1
        c1 runs 1 to c2
        roots a0
        switches b1-c1 b2-c0 b2-c1 c1-b0 c2-b0 c2-b1
        orders a2-b0 a3-c0 b2-a3 c2-a4
    "#]],
    );
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Sound,
        &expect![[r#"
        a0 runs 3 to a3
        a3 runs 3 to a6
        b0 runs 1 to b1
        b1 runs 1 to b2
        c0 runs 1 to c1
        c1 runs 1 to c2
        roots a0
        switches a3-b0 a3-b1 a3-c0 b1-c0 b1-c1 b2-a3 b2-c0 b2-c1 c1-a3 c1-b0 c1-b1 c2-a3 c2-b0 c2-b1
    "#]],
    );
}

#[test]
fn locked_sections_are_transactions_of_three_threads() {
    let section = "LK RX WX UK";
    let ctp = drawn(&[section, section, section]);
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Sound,
        &expect![[r#"
        a0 runs 4 to a4
        b0 runs 4 to b4
        c0 runs 4 to c4
        roots a0 b0 c0
        switches a4-b0 a4-c0 b4-a0 b4-c0 c4-a0 c4-b0
    "#]],
    );
}

#[test]
fn a_deadlock_cuts_before_the_inner_acquires() {
    let ctp = drawn(&["LK RX LM UM UK", "LM WX LK UK UM"]);
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Sound,
        &expect![[r#"
        a0 runs 2 to a2
        a2 runs 3 to a5
        b0 runs 2 to b2
        b2 runs 3 to b5
        roots a0 b0
        switches a2-b0 a5-b0 a5-b2 b2-a0 b5-a0 b5-a2
    "#]],
    );
}

#[test]
fn a_transaction_has_all_ways_to_the_next_nodes() {
    let (local, write) = (Action::Local, Action::Write(VarId::from_index(0)));
    let edge = |from, to, action| Edge { from, to, action, has_guard: action == local };
    let branching = vec![
        edge(0, 1, local),
        edge(0, 2, local),
        edge(1, 3, write),
        edge(2, 3, local),
        edge(3, 4, write),
    ];
    let ctp = program(&[branching, vec![edge(0, 1, write)]]);
    check(
        &ctp,
        GraphKind::TsgReduced,
        Mode::Sound,
        &expect![[r#"
        a0 runs 4 to a3
        a3 runs 1 to a4
        b0 runs 1 to b1
        roots a0 b0
        switches a3-b0 a4-b0 b1-a0 b1-a3
    "#]],
    );
    check(
        &ctp,
        GraphKind::Ccfg,
        Mode::Sound,
        &expect![[r#"
        a0 runs 4 to a3
        a3 runs 1 to a4
        b0 runs 1 to b1
        roots a0 b0
        switches a3-b0 a4-b0 b1-a0 b1-a3
    "#]],
    );
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn no_interleaving_leaves_the_reachable_pairs(
        bytes in vec(vec(any::<u8>(), 0..5), 3),
        locks in 0..3_u8,
        branches in any::<bool>(),
    ) {
        let shape = Shape { vars: 2, locks, guards: 0, branches, leaks: false };
        let threads: Vec<Vec<Edge>> = bytes.iter().map(|bytes| thread(bytes, shape)).collect();
        let ctp = program(&threads);
        let lattice = Lattice::new(&ctp);
        for run in prefixes(&ctp) {
            let state = State::after(&ctp, &run);
            let location = |thread| lattice.locations(thread).of(state.points[thread]);
            for first in ctp.threads.ids() {
                for second in ctp.threads.ids().filter(|&second| second != first) {
                    let reach = lattice.reach(first, second);
                    prop_assert!(reach.has(location(first), location(second)));
                }
            }
        }
    }
}
