//! Blocks that the observed run did not run at once: drawn, and compared with the definition.

use crate::reference;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_atomicity::blocks::{self, Blocks};
use reweave_atomicity::observed::{Kind, violations};
use reweave_base::Id;
use reweave_oracle::atomicity as oracle;
use reweave_testkit::{Scope, Shape, draw, soak, traces};
use reweave_trace::{OpKind, Trace};

const STEPS: u64 = 1_000_000;

/// Lists the violations: the block's begin, in what way, and the events that show it.
#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    let blocks = blocks::marked(&trace);
    assert_eq!(fault(&trace, &blocks).unwrap_or_default(), "");
    let mut lines = String::new();
    for violation in violations(&trace, &blocks, STEPS).all {
        let begin = blocks[violation.block].begin.number();
        let chain: Vec<u32> = violation.chain.iter().map(|event| event.number()).collect();
        lines += &format!("block at {begin} {:?}: {chain:?}\n", violation.kind);
    }
    expected.assert_eq(&lines);
}

/// Why the violations found are not those of the definition, if they are not.
fn fault(trace: &Trace, blocks: &Blocks) -> Option<String> {
    let found = violations(trace, blocks, STEPS);
    let of_kind = |kind: Kind| {
        let mut ids: Vec<_> =
            found.all.iter().filter(|one| one.kind == kind).map(|one| one.block).collect();
        ids.sort_unstable();
        ids
    };
    let expected = reference::violations(trace, blocks);
    let reported = [of_kind(Kind::Interleaved), of_kind(Kind::Overlap)];
    if reported != expected {
        return Some(format!("{reported:?}, not {expected:?}\n{}", draw(trace)));
    }
    let whole = vec![true; blocks.len()];
    let plain = reference::plain(blocks);
    let is_cyclic = oracle::on_cycle(trace, &plain, &whole).iter().any(|&is_on| is_on);
    if is_cyclic == found.all.is_empty() {
        return Some(format!("serializable: {}\n{}", !is_cyclic, draw(trace)));
    }
    for violation in &found.all {
        let chain = &violation.chain;
        if !chain.is_sorted() || chain.len() < 3 {
            return Some(format!("{violation:?}\n{}", draw(trace)));
        }
        if violation.kind == Kind::Overlap {
            continue;
        }
        let block = &blocks[violation.block];
        let ends = [chain[0], chain[chain.len() - 1]];
        let leaves = !chain[1..chain.len() - 1].iter().any(|&event| block.holds(trace, event));
        let closes = ends[1].index() + 1;
        let at = violation.block.index();
        let spoiled = |count, rule| oracle::violated(trace, &plain, count, rule)[at];
        let rule: oracle::Rule = match spoiled(trace.len(), oracle::is_data_edge) {
            true => oracle::is_data_edge,
            false => oracle::is_edge,
        };
        let is_path = chain.windows(2).all(|pair| rule(trace, pair[0], pair[1]));
        let is_first = spoiled(closes, rule) && !spoiled(closes - 1, rule);
        if !(leaves && is_path && is_first && ends.iter().all(|&end| block.holds(trace, end))) {
            return Some(format!("{violation:?}\n{}", draw(trace)));
        }
    }
    None
}

#[test]
fn a_write_between_two_accesses_spoils_a_block() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
                  w(x)
        w(x)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 4]
        "#]],
    );
}

#[test]
fn what_touches_one_end_only_does_not() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
                  w(x)
        w(y)
        end(k)
                  w(y)
        ",
        &expect![""],
    );
}

#[test]
fn two_reads_do_not_conflict_and_two_atomic_accesses_do() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
                  r(x)
        r(x)
        end(k)
        begin(k)
        aw(y)
                  arw(y)
        ar(y)
        end(k)
        ",
        &expect![[r#"
            block at 6 Interleaved: [7, 8, 9]
        "#]],
    );
}

#[test]
fn a_path_may_pass_through_other_variables_and_threads() {
    check(
        "
        t1        t2     t3
        begin(k)
        w(x)
                  r(x)
                  w(y)
                         r(y)
                         w(z)
        r(z)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 4, 5, 6, 7]
        "#]],
    );
}

#[test]
fn the_shortest_way_back_is_shown() {
    check(
        "
        t1        t2     t3
        begin(k)
        w(x)
                  w(x)
                         w(x)
        r(x)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 4, 5]
        "#]],
    );
}

#[test]
fn only_the_block_that_is_interrupted_is_to_blame() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
                  begin(k)
                  r(x)
                  w(x)
                  end(k)
        w(x)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 5, 7]
        "#]],
    );
}

#[test]
fn blocks_that_are_not_interrupted_may_still_overlap() {
    check(
        "
        t1        t2
        begin(k)
                  begin(k)
        r(x)
                  r(y)
        w(y)
                  w(x)
        end(k)
                  end(k)
        ",
        &expect![[r#"
            block at 1 Overlap: [3, 4, 5, 6]
            block at 2 Overlap: [3, 4, 5, 6]
        "#]],
    );
}

#[test]
fn a_locked_block_is_atomic_and_one_that_gives_its_lock_up_is_not() {
    check(
        "
        t1        t2
        begin(k)
        acq(m)
        r(x)
        w(x)
        rel(m)
        end(k)
                  acq(m)
                  w(x)
                  rel(m)
        ",
        &expect![""],
    );
    check(
        "
        t1        t2
        begin(k)
        acq(m)
        r(x)
        rel(m)
                  acq(m)
                  w(x)
                  rel(m)
        acq(m)
        w(x)
        rel(m)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [3, 6, 9]
        "#]],
    );
}

#[test]
fn a_lock_that_another_takes_in_between_spoils_a_block_where_no_data_does() {
    check(
        "
        t1        t2
        begin(k)
        acq(m)
        r(x)
        rel(m)
                  acq(m)
                  r(x)
                  rel(m)
        acq(m)
        r(x)
        rel(m)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [4, 5, 7, 8]
        "#]],
    );
}

#[test]
fn a_wait_gives_a_block_up() {
    check(
        "
        t1        t2
        begin(k)
        acq(m)
        rel(m)
        wait(c)
                  acq(m)
                  notify(c)
                  rel(m)
        wake(c)
        acq(m)
        rel(m)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [3, 5, 6, 8]
        "#]],
    );
    check(
        "
        t1        t2
        begin(k)
        wait(c)
                  notify(c)
        wake(c)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 4]
        "#]],
    );
}

#[test]
fn a_fork_and_its_join_in_one_block_let_the_child_between() {
    check(
        "
        t1        t2
        begin(k)
        fork(t2)
                  w(x)
        join(t2)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 4]
        "#]],
    );
}

#[test]
fn a_barrier_passed_with_others_spoils_a_block_and_alone_does_not() {
    check(
        "
        t1         t2
        parties(b)=2
        begin(k)
        arrive(b)
                   arrive(b)
        depart(b)
        end(k)
                   depart(b)
        ",
        &expect![""],
    );
    check(
        "
        t1         t2
        parties(b)=2
        begin(k)
        w(x)
                   r(x)
        arrive(b)
                   arrive(b)
        depart(b)
        end(k)
                   depart(b)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 5, 6]
        "#]],
    );
}

#[test]
fn of_nested_blocks_the_outermost_counts() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
        begin(j)
        end(j)
                  w(x)
        begin(j)
        r(x)
        end(j)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 5, 7]
        "#]],
    );
}

#[test]
fn blocks_across_each_other_are_one() {
    check(
        "
        t1        t2
        begin(j)
        r(x)
        begin(k)
        end(j)
                  w(x)
        r(x)
        end(k)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 5, 6]
        "#]],
    );
}

#[test]
fn a_block_that_never_ends_lasts_to_the_end_of_its_thread() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
                  w(x)
        r(x)
                  begin(k)
                  w(x)
        ",
        &expect![[r#"
            block at 1 Interleaved: [2, 3, 4]
        "#]],
    );
}

#[test]
fn there_is_nothing_to_spoil_without_blocks() {
    check("a  b\nw(x)\n   w(x)\nw(x)\n", &expect![""]);
}

#[test]
fn critical_sections_are_blocks_too() {
    let trace = reweave_testkit::trace(
        "
        t1      t2
        acq(l)
        acq(m)
        rel(l)
        r(x)
                w(x)
        w(x)
        rel(m)
                acq(m)
        ",
    );
    let sections = blocks::sections(&trace);
    let ends: Vec<_> =
        sections.iter().map(|block| (block.begin.number(), block.end.number())).collect();
    assert_eq!(ends, [(1, 7), (8, 8)]);
    assert_eq!(fault(&trace, &sections), None);
    let found = violations(&trace, &sections, STEPS).all;
    assert_eq!(found.len(), 1);
}

#[test]
fn steps_that_are_used_up_are_counted() {
    let trace = reweave_testkit::trace("a  b\nbegin(k)\nr(x)\n   w(x)\nr(x)\n");
    let found = violations(&trace, &blocks::marked(&trace), 1);
    assert_eq!((found.all.len(), found.untried), (0, 1));
}

const BLOCKS: Scope =
    Scope::new(&[OpKind::Begin, OpKind::End, OpKind::Read, OpKind::Write]).events(6);

#[test]
fn every_small_trace_has_the_violations_of_the_definition() {
    let scopes = [
        BLOCKS,
        BLOCKS.events(5).threads(3).things(2),
        Scope::new(&[OpKind::Begin, OpKind::Acquire, OpKind::Release, OpKind::Write]).events(6),
        Scope::new(&[OpKind::Begin, OpKind::Fork, OpKind::Join, OpKind::Write]).events(5),
        Scope::new(&[OpKind::Begin, OpKind::Wait, OpKind::Wake, OpKind::Notify]).events(6),
        Scope {
            parties: Some(2),
            ..Scope::new(&[OpKind::Begin, OpKind::Arrive, OpKind::Depart, OpKind::Write]).events(6)
        },
        Scope::new(&[OpKind::Begin, OpKind::Post, OpKind::Take]).events(6),
    ];
    for scope in scopes {
        let mut blocks_count = 0;
        scope.for_each(|trace| {
            let marked = blocks::marked(trace);
            blocks_count += marked.len();
            assert_eq!(fault(trace, &marked).unwrap_or_default(), "");
        });
        assert!(blocks_count > 1_000, "{scope:?} {blocks_count}");
    }
    for scope in [Scope::LOCKS.events(6), Scope::SHARED_LOCKS.threads(3).events(5)] {
        scope.for_each(|trace| {
            assert_eq!(fault(trace, &blocks::sections(trace)).unwrap_or_default(), "");
        });
    }
}

macro_rules! violations_are_right {
    ($($name:ident: $shape:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(150))]
            $(
                #[test]
                fn $name(trace in traces(Shape { blocks: 1, ..$shape })) {
                    prop_assert_eq!(fault(&trace, &blocks::marked(&trace)).unwrap_or_default(), "");
                    prop_assert_eq!(fault(&trace, &blocks::sections(&trace)).unwrap_or_default(), "");
                }
            )+
        }
    };
}

violations_are_right! {
    violations_are_right_on_small_traces: Shape::SMALL;
    violations_are_right_on_general_traces: Shape::GENERAL;
    violations_are_right_on_nested_locks: Shape::NESTED;
    violations_are_right_on_forks: Shape::FORKS;
    violations_are_right_on_signals: Shape::SIGNALS;
    violations_are_right_on_barriers: Shape::BARRIERS;
    violations_are_right_on_semaphores: Shape::SEMAPHORES;
    violations_are_right_on_atomics: Shape::ATOMICS;
    violations_are_right_on_everything: Shape::EVERYTHING;
    violations_are_right_on_many_variables: Shape { vars: 12, locks: 0, ..Shape::GENERAL };
}
