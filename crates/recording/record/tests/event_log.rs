//! A recording on disk gives back what was put in, and what is whole of it when it is damaged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use reweave_record::event_log::{Ending, Reader, Stream, Writer};
use reweave_runtime::wire::{Event, Kind};
use reweave_testkit::soak;

type Logged = (u32, Event);

fn written(events: &[Logged]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (thread, event) in events {
        writer.push(*thread, event).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> (Vec<Logged>, Option<Ending>) {
    let Ok(mut reader) = Reader::new(bytes) else { return (Vec::new(), None) };
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(event);
    }
    (events, reader.ending())
}

#[track_caller]
fn check_round_trip(events: &[Logged]) {
    let bytes = written(events);
    let kept: Vec<Logged> =
        events.iter().filter(|(_, event)| event.kind != Kind::Switch).copied().collect();
    let (back, ending) = read(&bytes);
    assert_eq!(ending, Some(Ending::Clean));
    assert_eq!(back.len(), kept.len());
    for (place, (found, expected)) in back.iter().zip(&kept).enumerate() {
        assert_eq!(found, expected, "event {place}");
    }
}

fn access(kind: Kind, address: u64, code: u64, value: Option<u64>) -> Event {
    Event { size: 3, value, ..Event::new(kind, address, code) }
}

/// A loop over an array: read, write back, one event of it with what the last write stored.
fn regular_loop(rounds: u64) -> Vec<Logged> {
    let mut events = Vec::new();
    for round in 0..rounds {
        let address = 0x7f00_0000 + 8 * (round % 1000);
        let stored = (round > 0).then_some(2 * round);
        events.push((1, Event { stored, ..access(Kind::Read, address, 0x40_1000, Some(round)) }));
        events.push((1, access(Kind::Write, address, 0x40_1008, None)));
    }
    events
}

#[test]
fn a_regular_loop_takes_a_hundredth_of_a_byte_an_event() {
    let events = regular_loop(100_000);
    let bytes = written(&events);
    assert!(bytes.len() < events.len() / 100, "{} bytes", bytes.len());
    check_round_trip(&events);
}

#[test]
fn switches_are_left_out() {
    let read = access(Kind::Read, 8, 9, Some(3));
    check_round_trip(&[(0, read), (0, Event::new(Kind::Switch, 1, 0)), (1, read)]);
}

#[test]
fn an_empty_recording_ends_cleanly() {
    check_round_trip(&[]);
}

#[test]
fn a_long_recording_of_many_frames_comes_back() {
    let mut random = 1_u64;
    let mut events = Vec::new();
    for place in 0..300_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(place);
        let kind = if random >> 60 == 0 { Kind::Enter } else { Kind::Read };
        let event = match kind {
            Kind::Enter => Event::new(kind, random >> 50, 0),
            _ => access(kind, random >> 20, random >> 54, Some(random >> 30)),
        };
        events.push(((random >> 33) as u32 % 7, event));
    }
    check_round_trip(&events);
}

#[test]
fn more_code_addresses_than_are_remembered_come_back() {
    let mut events = Vec::new();
    for place in 0..700_000_u64 {
        events.push((place as u32 % 3, access(Kind::Read, place, 16 * place, None)));
    }
    events.extend_from_within(..5000);
    check_round_trip(&events);
}

#[test]
fn what_was_flushed_is_readable_when_the_rest_is_lost() {
    let events = regular_loop(1000);
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (thread, event) in &events[..1500] {
        writer.push(*thread, event).unwrap();
    }
    writer.flush().unwrap();
    for (thread, event) in &events[1500..] {
        writer.push(*thread, event).unwrap();
    }
    let bytes = writer.finish().unwrap();
    // The end's frame is 33 bytes.
    for cut in 34..60 {
        let (back, ending) = read(&bytes[..bytes.len() - cut]);
        assert_eq!(back, events[..1500]);
        assert!(matches!(ending, Some(Ending::Broken(_))));
    }
    let (back, ending) = read(&bytes[..bytes.len() - 1]);
    assert_eq!((back.len(), matches!(ending, Some(Ending::Broken(_)))), (2000, true));
}

#[test]
fn what_is_no_recording_is_refused() {
    assert!(Reader::new(&b"T1|w(x)|a.c:1\n"[..]).is_err());
}

fn optional() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..20_u64).prop_map(Some), any::<u64>().prop_map(Some)]
}

/// Few code addresses and shapes, so that guesses are right now and then.
fn event() -> impl Strategy<Value = Event> {
    let kinds = 1..Kind::ALL.len();
    let numbers = (optional(), optional(), optional(), optional());
    let address = prop_oneof![0..64_u64, any::<u64>().prop_map(|word| word >> 16)];
    (kinds, 0..8_u8, 0..8_u8, any::<u16>(), address, 0..4_u64, numbers, any::<bool>()).prop_map(
        |(kind, size, order, flags, address, code, numbers, is_plain)| {
            let kind = if is_plain { Kind::Read } else { Kind::ALL[kind] };
            if kind.is_brief() {
                return Event::new(kind, address, 0);
            }
            let (number, stored, extra, value) = numbers;
            let (size, order, flags) = if is_plain { (3, 0, 0) } else { (size, order, flags) };
            Event { kind, size, order, flags, address, code, number, stored, extra, value }
        },
    )
}

fn logged() -> impl Strategy<Value = Vec<Logged>> {
    let thread = prop_oneof![0..3_u32, any::<u32>()];
    let once = prop::collection::vec((thread, event()), 0..40);
    // Repeated, so that there are runs.
    (once, 1..6_usize).prop_map(|(events, times)| events.repeat(times))
}

/// All that a reader may do with bytes that are no recording: end.
fn survives(bytes: &[u8]) -> usize {
    read(bytes).0.len()
}

proptest! {
    #![proptest_config(soak::config(256))]

    #[test]
    fn every_stream_comes_back(events in logged()) {
        check_round_trip(&events);
    }

    #[test]
    fn a_cut_file_yields_a_prefix(events in logged(), cut in 0.0..1.0_f64) {
        let bytes = written(&events);
        let kept = (bytes.len() as f64 * cut) as usize;
        let (back, ending) = read(&bytes[..kept]);
        prop_assert_eq!(matches!(ending, Some(Ending::Broken(_))), kept < bytes.len());
        let events: Vec<Logged> =
            events.into_iter().filter(|(_, event)| event.kind != Kind::Switch).collect();
        prop_assert!(events.starts_with(&back));
    }

    #[test]
    fn a_flipped_bit_is_noticed(events in logged(), place in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut bytes = written(&events);
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        let (back, ending) = read(&bytes);
        prop_assert_ne!(ending, Some(Ending::Clean));
        let events: Vec<Logged> =
            events.into_iter().filter(|(_, event)| event.kind != Kind::Switch).collect();
        prop_assert!(events.starts_with(&back));
    }

    #[test]
    fn bytes_behind_good_checksums_do_no_harm(
        control in prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..60),
        payload in prop::collection::vec(prop_oneof![0..6_u8, any::<u8>()], 0..200),
        events_count in prop_oneof![0..100_u32, any::<u32>()],
    ) {
        survives(&reweave_record::event_log::single_frame(&control, &payload, events_count));
    }
}
