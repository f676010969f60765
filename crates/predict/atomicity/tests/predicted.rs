//! Patterns that another run shows: drawn, and compared with every reordering.

use crate::reference;

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_atomicity::blocks::{self, Blocks};
use reweave_atomicity::predicted::{Candidates, Extent, Group, Pattern, Width, questions};
use reweave_oracle::reordering::Definition;
use reweave_reorder::{Answer, Budget, Engine, Solver};
use reweave_testkit::{Scope, Shape, draw, soak, traces};
use reweave_trace::{After, Checker, EventId, Goal, OpKind, Trace};

/// How many states the oracle may visit for one question.
const STATES_MAX: usize = 30_000;

fn groups(engine: &Engine<'_>, blocks: &Blocks, extent: Extent) -> Vec<Group> {
    let mut candidates = Candidates::new(engine.mhb(), engine.trace(), blocks, extent, u64::MAX);
    let [(one, is_all), (two, is_all_too)] =
        [Width::One, Width::Two].map(|width| candidates.find(width, |_| Some(true)));
    assert!(is_all && is_all_too);
    [one, two].concat()
}

/// The patterns that are shown, each accepted by the checker.
fn shown(engine: &Engine<'_>, patterns: &[Pattern]) -> Result<Vec<Pattern>, String> {
    let checker = Checker::new(engine.trace());
    let mut solver = Solver::new(engine, Budget::default());
    let mut shown = Vec::new();
    for pattern in patterns {
        let mut is_unknown = false;
        for (query, goal) in questions(engine.trace(), pattern) {
            match solver.solve(&query) {
                Answer::Feasible(reordering) => {
                    let checked = checker.check(&reordering, &goal);
                    checked.map_err(|refusal| format!("{pattern:?}: {refusal}"))?;
                    shown.push(*pattern);
                    is_unknown = false;
                    break;
                }
                Answer::Infeasible(_) => {}
                Answer::Unknown => is_unknown = true,
            }
        }
        if is_unknown {
            return Err(format!("{pattern:?} is unknown"));
        }
    }
    Ok(shown)
}

/// Lists the patterns that are shown, each by its events.
#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    let blocks = blocks::marked(&trace);
    assert_eq!(fault(&trace, &blocks).unwrap_or_default(), "");
    let engine = Engine::new(&trace);
    let all: Vec<Pattern> =
        groups(&engine, &blocks, Extent::All).into_iter().flat_map(|group| group.kept).collect();
    let mut lines = String::new();
    for pattern in shown(&engine, &all).expect("the checker takes every schedule") {
        let numbers: Vec<u32> = pattern.chain().iter().map(|event| event.number()).collect();
        lines += &format!("{numbers:?}\n");
    }
    expected.assert_eq(&lines);
}

/// Whether some schedule shows `pattern` by the definition, tried one by one.
fn is_defined(definition: &Definition<'_>, trace: &Trace, pattern: &Pattern) -> bool {
    let reads = |event: &EventId| trace.event(*event).op.is_read();
    let ends = [pattern.second, pattern.between[1]];
    [&ends[..1], &ends].into_iter().any(|free| {
        let free: Vec<EventId> = free.iter().copied().filter(reads).collect();
        let (chain, absent) = (Vec::new(), Vec::new());
        let correct = Goal::Order { chain, absent, free: free.clone(), after: After::RunsOn };
        let (chain, absent) = (pattern.chain(), Vec::new());
        let goal = Goal::Order { chain, absent, free, after: After::Stops };
        is_reached(definition, trace, &mut Vec::new(), &correct, &goal)
    })
}

fn is_reached(
    definition: &Definition<'_>,
    trace: &Trace,
    schedule: &mut Vec<EventId>,
    correct: &Goal,
    goal: &Goal,
) -> bool {
    if !definition.shows(schedule, correct) {
        return false;
    }
    definition.shows(schedule, goal)
        || trace.events().any(|(event, _)| {
            if schedule.contains(&event) {
                return false;
            }
            schedule.push(event);
            let is_reached = is_reached(definition, trace, schedule, correct, goal);
            schedule.pop();
            is_reached
        })
}

/// Whether `other` lies between the same events of the block as `pattern` or nearer ones, and has
/// its events between or one of them.
fn is_within(other: &Pattern, pattern: &Pattern) -> bool {
    let is_alone = other.between[0] == other.between[1];
    let is_one = is_alone && pattern.between.contains(&other.between[0]);
    pattern.first <= other.first
        && other.second <= pattern.second
        && (is_one || other.between == pattern.between)
}

/// Why the patterns shown are not those that some reordering shows, if they are not.
fn fault(trace: &Trace, blocks: &Blocks) -> Option<String> {
    let engine = Engine::new(trace);
    let kept = |extent| -> Vec<Pattern> {
        groups(&engine, blocks, extent).into_iter().flat_map(|group| group.kept).collect()
    };
    // Every event has a location of its own, so there is nothing to leave out.
    let all = kept(Extent::All);
    let found: BTreeSet<Pattern> = match shown(&engine, &all) {
        Ok(found) => found.into_iter().collect(),
        Err(wrong) => return Some(format!("{wrong}\n{}", draw(trace))),
    };
    if all.iter().collect::<BTreeSet<_>>() != kept(Extent::Some).iter().collect() {
        return Some(format!("patterns are left out\n{}", draw(trace)));
    }
    let patterns = reference::patterns(trace, blocks);
    for pattern in patterns.iter().chain(&found) {
        if patterns.binary_search(pattern).is_err() {
            return Some(format!("{pattern:?} is none\n{}", draw(trace)));
        }
        let Some(is_shown) = reference::is_shown(trace, pattern, STATES_MAX) else { continue };
        let is_wrong = match is_shown {
            true => !found.iter().any(|other| is_within(other, pattern)),
            false => found.contains(pattern),
        };
        if is_wrong {
            return Some(format!("{pattern:?}: {}, not {is_shown}\n{}", !is_shown, draw(trace)));
        }
    }
    None
}

/// Whether one of the patterns that are kept, where all are at one location, is shown exactly if
/// one of all is.
fn group_fault(trace: &Trace, blocks: &Blocks) -> Option<String> {
    let engine = Engine::new(trace);
    let groups = groups(&engine, blocks, Extent::Some);
    let kept: Vec<Pattern> = groups.iter().flat_map(|group| group.kept.clone()).collect();
    let is_found = match shown(&engine, &kept) {
        Ok(found) => !found.is_empty(),
        Err(wrong) => return Some(format!("{wrong}\n{}", draw(trace))),
    };
    if groups.len() > 2 || groups.iter().any(Group::is_cut) {
        return Some(format!("more than one location, or patterns left out\n{}", draw(trace)));
    }
    let definition = Definition::new(trace);
    let mut patterns = reference::patterns(trace, blocks).into_iter();
    let is_expected = patterns.any(|pattern| is_defined(&definition, trace, &pattern));
    let wrong = || format!("{is_found}, not {is_expected}\n{}", draw(trace));
    (is_found != is_expected).then(wrong)
}

#[test]
fn a_block_without_a_lock_can_be_spoiled_in_four_ways() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
        r(x)
        end(k)
                  w(x)
        ",
        &expect![[r#"
            [2, 5, 3]
        "#]],
    );
    check(
        "
        t1        t2
        begin(k)
        w(x)
        r(x)
        end(k)
                  w(x)
        ",
        &expect![[r#"
            [2, 5, 3]
        "#]],
    );
    check(
        "
        t1        t2
                  w(x)
        begin(k)
        r(x)
        w(x)
        end(k)
                  w(x)
        ",
        &expect![[r#"
            [3, 6, 4]
        "#]],
    );
    check(
        "
        t1        t2
                  r(x)
        begin(k)
        w(x)
        w(x)
        end(k)
        ",
        &expect![[r#"
            [3, 1, 4]
        "#]],
    );
}

#[test]
fn a_read_between_reads_or_next_to_one_spoils_nothing() {
    check(
        "
        t1        t2
        begin(k)
        r(x)
        w(x)
        r(x)
        end(k)
                  r(x)
        ",
        &expect![""],
    );
}

#[test]
fn a_locked_block_cannot_be_spoiled_and_one_that_gives_its_lock_up_can() {
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
        end(k)
                  acq(m)
                  w(x)
                  rel(m)
        ",
        &expect![[r#"
            [3, 10, 6]
        "#]],
    );
}

#[test]
fn a_lock_in_shared_mode_keeps_nobody_out_who_shares_it() {
    check(
        "
        t1        t2
        begin(k)
        racq(m)
        w(x)
        w(x)
        rrel(m)
        end(k)
                  racq(m)
                  w(x)
                  rrel(m)
                  acq(m)
                  w(x)
                  rel(m)
        ",
        &expect![[r#"
            [3, 8, 4]
        "#]],
    );
}

#[test]
fn two_variables_that_belong_together_can_be_seen_apart() {
    check(
        "
        t1        t2
        begin(k)
        w(x)
        w(y)
        end(k)
                  r(x)
                  r(y)
        ",
        &expect![[r#"
            [2, 5, 6, 3]
        "#]],
    );
    check(
        "
        t1        t2
        begin(k)
        w(x)
        w(y)
        end(k)
                  w(x)
                  w(y)
        ",
        &expect![[r#"
            [2, 5, 6, 3]
        "#]],
    );
}

#[test]
fn what_is_ordered_by_fork_join_or_a_value_that_is_read_does_not_come_between() {
    check(
        "
        t1        t2
        begin(k)
        w(x)
        w(x)
        end(k)
        fork(t2)
                  w(x)
        ",
        &expect![""],
    );
    check(
        "
        t1        t2
        begin(k)
        w(x)
        w(x)
        w(f)
        end(k)
                  r(f)
                  w(x)
        ",
        &expect![""],
    );
}

#[test]
fn a_wait_inside_a_block_lets_another_between() {
    check(
        "
        t1        t2
        begin(k)
        acq(m)
        r(x)
        rel(m)
        wait(c)
                  acq(m)
                  notify(c)
                  rel(m)
                  acq(m)
                  w(x)
                  rel(m)
        wake(c)
        acq(m)
        r(x)
        rel(m)
        end(k)
        ",
        &expect![[r#"
            [3, 10, 14]
        "#]],
    );
}

#[test]
fn an_update_of_another_thread_can_come_between_two_of_a_block() {
    check(
        "
        t1        t2
        begin(k)
        arw(x)
        arw(x)
        end(k)
                  arw(x)
        ",
        &expect![[r#"
            [2, 5, 3]
        "#]],
    );
}

const BLOCKS: Scope = Scope::new(&[OpKind::Begin, OpKind::Read, OpKind::Write]);

#[test]
fn every_small_trace_has_the_patterns_of_all_reorderings() {
    let scopes = [
        BLOCKS.events(6),
        BLOCKS.events(5).threads(3).things(2),
        Scope::new(&[OpKind::Begin, OpKind::Acquire, OpKind::Release, OpKind::Write]).events(6),
        Scope::new(&[OpKind::Begin, OpKind::Fork, OpKind::Join, OpKind::Write]).events(5),
        Scope::new(&[OpKind::Begin, OpKind::AtomicUpdate, OpKind::AtomicRead, OpKind::UnknownRead])
            .events(5),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let blocks = blocks::marked(trace);
            if !blocks.is_empty() {
                assert_eq!(group_fault(trace, &blocks).unwrap_or_default(), "");
            }
        });
    }
}

macro_rules! patterns_are_right {
    ($($name:ident: $shape:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(100))]
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

patterns_are_right! {
    patterns_are_right_on_small_traces: Shape::SMALL;
    patterns_are_right_on_general_traces: Shape::GENERAL.events(24);
    patterns_are_right_on_locks: Shape::LOCKS.events(24);
    patterns_are_right_on_nested_locks: Shape::NESTED.events(24);
    patterns_are_right_on_forks: Shape::FORKS.events(22);
    patterns_are_right_on_signals: Shape::SIGNALS.events(22);
    patterns_are_right_on_barriers: Shape::BARRIERS.events(20);
    patterns_are_right_on_semaphores: Shape::SEMAPHORES.events(18);
    patterns_are_right_on_atomics: Shape::ATOMICS.events(18);
    patterns_are_right_on_everything: Shape::EVERYTHING.events(24);
}
