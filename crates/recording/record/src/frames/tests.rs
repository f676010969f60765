//! Frames that end, and which of their variables are said to.

use super::*;

/// Where the frames of the first thread end, and of the second, far from that.
const STACK: u64 = 0x7fff_0000;
const OTHER: u64 = 0x7eff_0000;

fn enter(end: u64) -> Event {
    Event::new(Kind::Enter, 1, end)
}

fn leave(end: u64) -> Event {
    Event::new(Kind::Leave, end, 0)
}

fn write(address: u64) -> Event {
    Event { size: 2, ..Event::new(Kind::Write, address, 7) }
}

/// What ends in `events`: the thread, and the first byte and how many of what others accessed.
#[track_caller]
fn check(events: &[(u32, Event)], expected: &[(u32, u64, u64)]) {
    let recording = Vec::from(events);
    let mut stream = WithFrames::new(recording.into_iter());
    let (mut ends, mut rest) = (Vec::new(), Vec::new());
    while let Some((thread, event)) = stream.next_event().unwrap() {
        if event.ends_frame() {
            ends.push((thread, event.address, event.extra.unwrap()));
        } else {
            rest.push((thread, event));
        }
    }
    assert_eq!(ends, expected);
    assert_eq!(rest, events, "nothing else changes");
}

#[test]
fn a_frame_ends_with_what_others_accessed_in_it() {
    check(
        &[
            (0, enter(STACK)),
            (0, write(STACK - 32)),
            (0, enter(STACK - 64)),
            (0, write(STACK - 100)),
            (1, write(STACK - 28)),
            (1, write(STACK - 96)),
            (1, write(STACK - 76)),
            (0, leave(STACK - 64)),
            (0, leave(STACK)),
        ],
        &[(0, STACK - 96, 24), (0, STACK - 32, 8)],
    );
}

#[test]
fn the_next_function_at_the_same_place_has_other_variables() {
    let call = [(0, enter(STACK)), (1, write(STACK - 16)), (0, leave(STACK))];
    check(&[call, call].concat(), &[(0, STACK - 16, 8), (0, STACK - 16, 8)]);
    check(&[(0, enter(STACK)), (0, write(STACK - 16)), (0, leave(STACK))], &[]);
}

#[test]
fn a_function_without_a_frame_pointer_ends_no_frame() {
    check(
        &[
            (0, enter(STACK)),
            (0, enter(0)),
            (1, write(STACK - 80)),
            // Its register happens to point to the frame around it.
            (0, leave(STACK)),
            (1, write(STACK - 16)),
            (0, enter(0)),
            (0, leave(0)),
            (0, leave(STACK)),
        ],
        &[(0, STACK - 80, 72)],
    );
}

#[test]
fn a_function_that_is_left_behind_its_epilogue_ends_not_its_callers_frame() {
    check(
        &[
            (0, enter(STACK)),
            (1, write(STACK - 16)),
            (0, enter(STACK - 64)),
            // The register is the caller's again.
            (0, leave(STACK)),
            (1, write(STACK - 24)),
            (0, leave(STACK)),
        ],
        &[(0, STACK - 24, 16)],
    );
}

#[test]
fn calls_that_are_nested_deeply_take_no_longer_each() {
    let depth = 2 * DEPTH_MAX as u64;
    let end = |call: u64| STACK + (depth - call) * 16;
    let calls = (0..depth).map(|call| (0, enter(end(call))));
    let returns = (0..depth).rev().map(|call| (0, leave(end(call))));
    let unknown = (0..depth).map(|_| (0, enter(0))).chain((0..depth).map(|_| (0, leave(STACK))));
    check(&calls.chain(returns).chain(unknown).collect::<Vec<_>>(), &[]);
}

#[test]
fn of_what_was_left_by_a_jump_nothing_is_said() {
    check(
        &[
            (0, enter(STACK)),
            (1, write(STACK - 16)),
            (0, enter(STACK - 64)),
            (1, write(STACK - 80)),
            (0, enter(STACK - 128)),
            // Back in the first function.
            (0, enter(STACK - 64)),
            (0, leave(STACK - 64)),
            (0, leave(STACK)),
        ],
        &[(0, STACK - 16, 8)],
    );
}

#[test]
fn functions_on_another_stack_of_the_thread_live_on() {
    check(
        &[
            (0, enter(STACK)),
            (1, write(STACK - 16)),
            (0, enter(OTHER)),
            (1, write(OTHER - 16)),
            (0, leave(STACK)),
            (0, enter(STACK)),
            (0, leave(OTHER)),
        ],
        &[(0, STACK - 16, 8)],
    );
}

#[test]
fn what_is_far_from_the_end_of_any_frame_is_in_none() {
    let far = STACK - DISTANCE_MAX - 8;
    check(
        &[
            (0, enter(far + 8)),
            (0, leave(far + 8)),
            (0, enter(STACK)),
            (1, write(far)),
            (0, leave(STACK)),
        ],
        &[],
    );
}
