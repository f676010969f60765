//! What orders threads of OpenMP, event by event.

use expect_test::{Expect, expect};
use reweave_runtime::wire::{Event, Kind, flag};

use super::TaskExpander;

/// An event with flags and a second operand.
fn event(kind: Kind, address: u64, flags: u16, extra: Option<u64>) -> Event {
    Event { flags, extra, ..Event::new(kind, address, 1) }
}

fn plain(kind: Kind, address: u64) -> Event {
    event(kind, address, 0, None)
}

fn task(number: u64) -> Event {
    event(Kind::Fork, number, flag::TASK, None)
}

#[track_caller]
fn check(events: &[(u32, Event)], expected: Expect) {
    let mut expander = TaskExpander::default();
    let mut text = String::new();
    for &(thread, event) in events {
        let mut kept = 0;
        expander.rewrite(thread, event, &mut |thread, out: Event| {
            kept += usize::from(out.code == event.code);
            if out.kind != Kind::Nothing {
                text.push_str(&format!("{thread}: {:?} {:x}\n", out.kind, out.address));
            }
        });
        assert_eq!(kept, 1, "{event:?} counts once at its code address");
    }
    expected.assert_eq(&text);
}

#[test]
fn a_wait_joins_the_tasks_of_its_thread_and_not_theirs() {
    check(
        &[
            (0, task(1)),
            (1, plain(Kind::Begin, 1)),
            (1, task(2)),
            (1, plain(Kind::End, 1)),
            (0, plain(Kind::TaskWait, 0)),
        ],
        expect![[r#"
            0: Fork 1
            1: Begin 1
            1: Fork 2
            1: End 1
            0: Join 1
        "#]],
    );
}

#[test]
fn the_end_of_a_group_joins_the_tasks_of_its_tasks_too() {
    check(
        &[
            (0, plain(Kind::GroupBegin, 0)),
            (0, task(1)),
            (1, task(2)),
            (0, plain(Kind::GroupEnd, 0)),
        ],
        expect![[r#"
            0: Fork 1
            1: Fork 2
            0: Join 1
            0: Join 2
        "#]],
    );
}

#[test]
fn a_task_joins_those_that_it_depends_on_when_it_begins() {
    let depends = |number, flags| event(Kind::Depend, 0x70, flags, Some(number));
    check(
        &[
            (0, task(1)),
            (0, depends(1, flag::OUT)),
            (0, task(2)),
            (0, depends(2, 0)),
            (0, task(3)),
            (0, depends(3, 0)),
            (0, task(4)),
            (0, depends(4, flag::OUT)),
            (2, plain(Kind::Begin, 2)),
            (4, plain(Kind::Begin, 4)),
            (0, event(Kind::Depend, 0x70, 0, None)),
            (0, event(Kind::TaskWait, 0, flag::OUT, None)),
        ],
        expect![[r#"
            0: Fork 1
            0: Fork 2
            0: Fork 3
            0: Fork 4
            2: Begin 2
            2: Join 1
            4: Begin 4
            4: Join 1
            4: Join 2
            4: Join 3
            0: Join 4
        "#]],
    );
}

#[test]
fn tasks_of_a_set_exclude_each_other_and_are_in_no_order() {
    let depends = |number| event(Kind::Depend, 0x70, flag::SET, Some(number));
    check(
        &[
            (0, task(1)),
            (0, depends(1)),
            (0, task(2)),
            (0, depends(2)),
            (2, plain(Kind::Begin, 2)),
            (2, plain(Kind::End, 2)),
        ],
        expect![[r#"
            0: Fork 1
            0: Fork 2
            2: Begin 2
            2: Lock 70
            2: Unlock 70
            2: End 2
        "#]],
    );
}

#[test]
fn who_leaves_a_barrier_first_joins_the_tasks_and_meets_the_others() {
    check(
        &[
            (0, plain(Kind::TeamBegin, 1)),
            (0, event(Kind::Fork, 1, flag::MEMBER, None)),
            (1, task(2)),
            (0, plain(Kind::TeamArrive, 0)),
            (1, plain(Kind::TeamArrive, 0)),
            (0, plain(Kind::TeamDepart, 0)),
            (1, plain(Kind::TeamDepart, 0)),
            (0, plain(Kind::TeamArrive, 0)),
            (0, plain(Kind::TeamEnd, 1)),
        ],
        expect![[r#"
            0: Fork 1
            1: Fork 2
            0: BarrierArrive c00000000004
            1: BarrierArrive c00000000004
            0: BarrierDepart c00000000004
            0: Join 2
            0: BarrierArrive c00000000005
            0: BarrierDepart c00000000005
            1: BarrierDepart c00000000004
            1: BarrierArrive c00000000005
            1: BarrierDepart c00000000005
            0: BarrierArrive c00000000006
            0: Join 1
        "#]],
    );
}
