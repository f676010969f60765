//! Whatever was recorded, the trace is well formed; and what it says of memory is true.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::convert_support;
use crate::reference::cells_of;

use convert_support::{Logged, converted};
use proptest::prelude::*;
use reweave_base::{FxHashMap, Rng};
use reweave_oracle::cells::Cell;
use reweave_record::shadow::Access;
use reweave_runtime::wire::{Event, Kind, flag};
use reweave_testkit::soak;
use reweave_trace::{AccessOp, EventId, Op, Trace, VarId};

/// Few addresses, so that events meet; any kind with any operands.
fn event() -> impl Strategy<Value = Event> {
    let kinds = prop_oneof![
        2 => (0..Kind::ALL.len()).prop_map(|number| Kind::ALL[number]),
        2 => prop::sample::select(vec![
            Kind::Wait, Kind::Wake, Kind::Wake, Kind::Signal, Kind::Broadcast, Kind::Lock,
            Kind::Unlock, Kind::Fork, Kind::Join, Kind::BarrierArrive, Kind::BarrierDepart,
        ]),
    ];
    let address = prop_oneof![
        4 => prop::sample::select(vec![0, 1, 2, 3, 4, 0x1000, 0x1000, 0x1004, 0x1040, 0x8000]),
        1 => any::<u64>().prop_map(|word| word >> 16),
    ];
    let optional = || {
        prop_oneof![
            2 => Just(None),
            4 => prop::sample::select(vec![0, 1, 2, 3, 16, 0x1000, 0x1004]).prop_map(Some),
        ]
    };
    let wide = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    let numbers = (optional(), optional(), optional(), wide);
    let flags = prop::sample::select(vec![0, flag::SHARED, flag::TIMED_OUT, flag::RECURSIVE]);
    (kinds, address, 0..6_u64, 0..8_u8, 0..8_u8, flags, numbers).prop_map(
        |(kind, address, code, size, order, flags, (number, stored, extra, value))| {
            if kind.is_brief() {
                return Event::new(kind, address, 0);
            }
            Event { kind, size, order, flags, address, code, number, stored, extra, value }
        },
    )
}

/// The events with code addresses by which each can be told in the trace.
fn told_apart(events: &[Logged]) -> Vec<Logged> {
    let numbered = events.iter().enumerate();
    numbered
        .map(|(place, &(thread, event))| (thread, Event { code: place as u64 + 1, ..event }))
        .collect()
}

/// For each event of the trace the place of what it was made from.
fn made_from(trace: &Trace) -> Vec<usize> {
    let origins = trace.origins();
    let place = |number: usize| {
        let id = EventId::from_number(number as u32 + 1).unwrap();
        let origin = origins.unwrap().get(id).unwrap();
        origins.unwrap().codes()[origin.code].offset as usize - 1
    };
    (0..trace.len()).map(place).collect()
}

/// Accesses alone, to memory that is allocated and released.
fn memory_event() -> impl Strategy<Value = Event> {
    let kinds = prop::sample::select(vec![Kind::Read, Kind::Write, Kind::AtomicUpdate]);
    prop_oneof![
        6 => (kinds, 0x8000..0x8020_u64, 0..4_u8)
            .prop_map(|(kind, address, size)| Event { size, ..Event::new(kind, address, 0) }),
        2 => (any::<bool>(), 0..3_u64, 1..5_u64).prop_map(|(writes, place, words)| {
            let kind = if writes { Kind::WriteRange } else { Kind::ReadRange };
            Event { extra: Some(8 * words), ..Event::new(kind, 0x8000 + 8 * place, 0) }
        }),
        1 => (0..4_u64, 1..20_u64).prop_map(|(place, size)| {
            Event { extra: Some(size), ..Event::new(Kind::Alloc, 0x8000 + 8 * place, 0) }
        }),
        1 => (0..4_u64).prop_map(|place| Event::new(Kind::Free, 0x8000 + 8 * place, 0)),
        1 => (0..4_u64, 1..20_u64).prop_map(|(place, size)| {
            Event { extra: Some(size), ..Event::new(Kind::Free, 0x8000 + 8 * place, 0) }
        }),
    ]
}

proptest! {
    #![proptest_config(soak::config(512))]

    #[test]
    fn every_recording_becomes_a_well_formed_trace(
        events in prop::collection::vec((0..4_u32, event()), 0..80),
    ) {
        let (_, summary) = converted(&events);
        prop_assert_eq!(summary.recorded, events.len() as u64);
    }

    #[test]
    fn accesses_are_to_the_cells_of_the_definition(
        events in prop::collection::vec((0..3_u32, memory_event()), 0..40),
    ) {
        let events = told_apart(&events);
        let (trace, summary) = converted(&events);
        let mut expected: Vec<(usize, Cell)> = Vec::new();
        for place in 0..events.len() {
            expected.extend(cells_of(&events, place).into_iter().map(|cell| (place, cell)));
        }
        let places = made_from(&trace);
        let accesses: Vec<(usize, VarId)> = trace.events().zip(places)
            .filter_map(|((_, event), place)| event.op.var().map(|var| (place, var)))
            .collect();
        prop_assert_eq!(accesses.len(), expected.len());
        let mut cell_of: FxHashMap<VarId, Cell> = FxHashMap::default();
        let mut var_of: FxHashMap<Cell, VarId> = FxHashMap::default();
        for (&(place, var), &(of, cell)) in accesses.iter().zip(&expected) {
            prop_assert_eq!(place, of);
            prop_assert_eq!(*cell_of.entry(var).or_insert(cell), cell);
            prop_assert_eq!(*var_of.entry(cell).or_insert(var), var);
        }
        let all = events.iter().filter(|(_, event)| Access::new(event).is_some()).count() as u64;
        let kept: std::collections::BTreeSet<usize> = expected.iter().map(|&(at, _)| at).collect();
        prop_assert_eq!(summary.local_accesses, all - kept.len() as u64);
    }

    #[test]
    fn reads_of_a_serial_recording_see_the_last_write(seed in any::<u64>(), stride in 1..200_usize) {
        let events = serial_run(seed, stride);
        let (trace, summary) = converted(&events);
        prop_assert!(summary.impossible.is_empty());
        prop_assert_eq!(summary.unknown_reads, 0);
        let mut last: FxHashMap<VarId, i64> = FxHashMap::default();
        for (id, event) in trace.events() {
            let Some(var) = event.op.var() else { continue };
            let value = trace.value(id).expect("every value is known");
            match event.op {
                Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), _) => {
                    let seen = last.get(&var).copied().unwrap_or(value);
                    prop_assert_eq!(seen, value, "{} {}", id.number(), trace.spell(id));
                }
                _ => _ = last.insert(var, value),
            }
        }
    }

    #[test]
    fn reads_have_no_known_writer_if_conflicting_accesses_are_not_ordered(
        events in prop::collection::vec((0..2_u32, 0..12_u8, 0..2_u64), 0..20),
    ) {
        let events = free_run(&events);
        let (trace, _) = converted(&events);
        let places = made_from(&trace);
        let accesses = trace.events().zip(places).filter_map(|((_, event), place)| {
            let Op::Access(op, var) = event.op else { return None };
            Some((op, var, place))
        });
        let accesses: Vec<_> = accesses.collect();
        for &(read, var, _) in &accesses {
            if !matches!(read, AccessOp::Read | AccessOp::UnknownRead) {
                continue;
            }
            let of_var = || accesses.iter().filter(|&&(_, other, _)| other == var);
            let is_ordered = of_var().all(|&(op, _, first)| {
                let after = of_var().filter(|&&(_, _, second)| first < second);
                let mut conflicting = after.filter(|&&(other, ..)| conflict(op, other));
                conflicting.all(|&(_, _, second)| is_ordered(&events, first, second))
            });
            prop_assert_eq!(read == AccessOp::Read, is_ordered);
        }
    }
}

/// Whether one of two accesses to the same memory writes, and one is plain.
fn conflict(first: AccessOp, second: AccessOp) -> bool {
    let writes = |op| matches!(op, AccessOp::Write | AccessOp::AtomicWrite(_));
    let is_atomic = |op| matches!(op, AccessOp::AtomicWrite(_));
    (writes(first) || writes(second)) && !(is_atomic(first) && is_atomic(second))
}

/// Threads that take turns on 24 bytes of memory. What a plain write stored is said by the next
/// event of its thread; a turn is about `stride` events.
fn serial_run(seed: u64, stride: usize) -> Vec<Logged> {
    let mut rng = Rng::new(seed);
    let mut memory = [0_u8; 32];
    let mut pending: [Option<u64>; 3] = [None; 3];
    let block = Event { extra: Some(memory.len() as u64), ..Event::new(Kind::Alloc, 0x8000, 7) };
    let mut events = vec![(0, block)];
    let mut thread = 0_usize;
    for _ in 0..400 {
        if rng.below(stride) == 0 {
            thread = rng.below(3);
        }
        if rng.below(4) == 0 {
            events.push((thread as u32, Event::new(Kind::Enter, 5, 0)));
            continue;
        }
        let size = rng.below(4) as u8;
        let at = rng.below(24);
        let bytes = at..at + (1 << size);
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(&memory[bytes.clone()]);
        let seen = u64::from_le_bytes(word);
        let stored = rng.next() & (u64::MAX >> (64 - (8 << size)));
        let kinds = [Kind::Read, Kind::Write, Kind::AtomicUpdate, Kind::AtomicStore];
        let kind = kinds[rng.below(4)];
        let mut event = Event { size, ..Event::new(kind, 0x8000 + at as u64, 7) };
        event.stored = pending[thread].take();
        match kind {
            Kind::Read => event.value = Some(seen),
            Kind::Write => pending[thread] = Some(stored),
            Kind::AtomicStore => event.value = Some(stored),
            _ => (event.value, event.extra) = (Some(seen), Some(stored)),
        }
        if kind != Kind::Read {
            memory[bytes.clone()].copy_from_slice(&stored.to_le_bytes()[..bytes.len()]);
        }
        events.push((thread as u32, event));
    }
    for (thread, stored) in pending.into_iter().enumerate() {
        events.push((thread as u32, Event { stored, ..Event::new(Kind::Stored, 0, 7) }));
    }
    events
}

/// Numbered events and accesses to two variables, fewer than these.
fn free_run(deeds: &[(u32, u8, u64)]) -> Vec<Logged> {
    // A number by which the recording is told to be a free one.
    let begin = Event { number: Some(0), ..Event::new(Kind::Begin, 0, 1) };
    let mut events = vec![(0, begin)];
    for (place, &(thread, deed, var)) in (1..).zip(deeds) {
        let accesses = [Kind::Read, Kind::Write, Kind::AtomicStore];
        let kind = accesses.get(deed as usize).copied().unwrap_or(Kind::SemaphorePost);
        let number = (!kind.is_plain()).then_some(place as u64);
        let address = 0x1000 + 64 * var;
        events.push((thread, Event { number, ..Event::new(kind, address, place as u64 + 1) }));
    }
    events
}

/// Whether the recording shows that what is at `first` came before what is at `second`: their
/// threads are the same, or the first one's raised the counter after it and before the second one's.
fn is_ordered(events: &[Logged], first: usize, second: usize) -> bool {
    let (from, to) = (events[first].0, events[second].0);
    let next =
        (first + 1..second).find(|&at| events[at].0 == from && events[at].1.number.is_some());
    let before = (0..second).rfind(|&at| events[at].0 == to && events[at].1.number.is_some());
    from == to || matches!((next, before), (Some(next), Some(before)) if next < before)
}
