//! Recordings on disk, and what the runtime only counted.

use reweave_record::decode::Decoded;
use reweave_record::event_log::{Ending, Reader, Stream, Writer, single_frame};
use reweave_record::wire::{Event, Kind};

use super::events::{self, Logged};

/// What a file begins with, before its frames.
const MAGIC_LENGTH: usize = 8;

/// The most events that a frame is said to hold: one byte can stand for all of them.
const FRAME_EVENTS_MAX: u16 = 2048;

/// The most events that are taken from a stream: a run can be as long as it likes.
const EVENTS_MAX: usize = 4096;

/// Reads `bytes` as a recording, and as frames whose checksums are put right.
pub fn check_event_log(bytes: &[u8]) {
    if let Some((events, _)) = read(bytes) {
        check_written(&events);
    }
    let file = frames(bytes);
    let (events, ending) = read(&file).expect("a recording begins so");
    assert!(matches!(ending, Some(Ending::Broken(_))), "there is no mark of the end");
    check_written(&events);
}

/// A recording of the frames that `bytes` cut themselves into: the number of events, the lengths
/// of both parts, the parts.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = single_frame(&[], &[], 0)[..MAGIC_LENGTH].to_vec();
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let [low, high, control, payload] = *head;
        let count = u16::from_le_bytes([low, high]) % FRAME_EVENTS_MAX;
        let (control, rest) = rest.split_at(usize::from(control).min(rest.len()));
        let (payload, rest) = rest.split_at(usize::from(payload).min(rest.len()));
        bytes = rest;
        file.extend_from_slice(&single_frame(control, payload, count.into())[MAGIC_LENGTH..]);
    }
    file
}

fn read(bytes: &[u8]) -> Option<(Vec<Logged>, Option<Ending>)> {
    let mut reader = Reader::new(bytes).ok()?;
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().expect("bytes in memory can be read") {
        events.push(event);
    }
    assert!(reader.next_event().is_ok_and(|event| event.is_none()), "an end is an end");
    Some((events, reader.ending()))
}

/// What was read can be written and comes back.
fn check_written(events: &[Logged]) {
    let mut writer = Writer::new(Vec::new()).expect("a vector takes what is written to it");
    for (thread, event) in events {
        writer.push(*thread, event).expect("a vector takes what is written to it");
    }
    let bytes = writer.finish().expect("a vector takes what is written to it");
    let (back, ending) = read(&bytes).expect("what was written is a recording");
    assert_eq!(ending, Some(Ending::Clean));
    let kept = events.iter().filter(|(_, event)| event.kind != Kind::Switch);
    assert!(back.iter().eq(kept), "{events:?} comes back as {back:?}");
}

/// Expands any events: those that were logged stay, and each run becomes as many as it says.
pub fn check_decoding(bytes: &[u8]) {
    let events = events::from_bytes(bytes);
    let mut expanded = Decoded::new(events.clone().into_iter());
    let mut next = || expanded.next_event().expect("events in memory can be read");
    let mut budget = EVENTS_MAX;
    for (thread, event) in events {
        if event.kind != Kind::Run {
            let (of, found) = next().expect("what was logged stays");
            // That a lock was asked for may be told with that it was taken.
            if (event.kind, found.kind) == (Kind::Lock, Kind::LockRequest) {
                assert_eq!((of, found.address), (thread, event.address));
                let (of, found) = next().expect("what was logged stays");
                assert_eq!((of, found.kind), (thread, Kind::Lock));
                continue;
            }
            // What an earlier write stored may be told with it.
            let stored = event.stored.or(found.stored);
            // The second half of sixteen bytes is an access of eight.
            let is_half = matches!(event.kind, Kind::Read | Kind::Write) && event.size == 4;
            let size = if is_half { 3 } else { event.size };
            assert_eq!((of, found), (thread, Event { stored, size, ..event }));
            continue;
        }
        for _ in 0..event.address {
            let (of, access) = next().expect("a run is as long as it says");
            assert_eq!(of, thread);
            assert!(matches!(access.kind, Kind::Read | Kind::Write), "{access:?}");
            budget -= 1;
            if budget == 0 {
                return;
            }
        }
    }
    assert_eq!(next(), None);
}
