//! Shared memory is found and cut as the definition says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::reference::cells_of;

use proptest::prelude::*;
use reweave_base::FxHashMap;
use reweave_oracle::cells::Cell;
use reweave_record::shadow::{Access, Blocks, ShadowCells, SharingAnalysis};
use reweave_runtime::wire::{Event, Kind};
use reweave_testkit::soak;

type Logged = (u32, Event);

fn survey(events: &[Logged]) -> ShadowCells {
    let mut survey = SharingAnalysis::new(false);
    for (thread, event) in events {
        _ = survey.step(*thread, event);
    }
    survey.finish(None)
}

/// Every access covers the cells of the definition, and the same lifetimes are told the same.
#[track_caller]
fn check(events: &[Logged]) {
    check_accesses(events, 0..events.len());
}

/// As [`check`], for the accesses at `places` only.
#[track_caller]
fn check_accesses(events: &[Logged], places: std::ops::Range<usize>) {
    let mut cells = survey(events);
    let mut blocks = Blocks::default();
    let mut first: FxHashMap<u32, usize> = FxHashMap::default();
    for (place, (_, event)) in events.iter().enumerate() {
        blocks.step(event);
        let Some(access) = Access::new(event) else { continue };
        let mut found = Vec::new();
        let mut at = access.start;
        while let Some(cell) = cells.next_cell(access, at, blocks.time()) {
            let lifetime = *first.entry(cell.lifetime).or_insert(place);
            found.push(Cell { begin: cell.begin, end: cell.end, lifetime });
            at = cell.end;
        }
        if places.contains(&place) {
            assert_eq!(found, cells_of(events, place), "event {place} of {events:?}");
        }
    }
}

fn sized(kind: Kind, address: u64, size: u8) -> Event {
    Event { size, ..Event::new(kind, address, 1) }
}

fn with_extra(kind: Kind, address: u64, extra: u64) -> Event {
    Event { extra: Some(extra), ..Event::new(kind, address, 1) }
}

#[test]
fn all_streams_of_four_events_are_cut_as_defined() {
    let mut alphabet = Vec::new();
    for thread in 0..2 {
        for event in [
            sized(Kind::Read, 64, 0),
            sized(Kind::Write, 64, 3),
            sized(Kind::Write, 66, 1),
            sized(Kind::AtomicLoad, 68, 2),
            sized(Kind::Write, 70, 2),
            with_extra(Kind::ReadRange, 65, 20),
        ] {
            alphabet.push((thread, event));
        }
    }
    alphabet.push((0, with_extra(Kind::Alloc, 64, 12)));
    alphabet.push((0, with_extra(Kind::Alloc, 72, 8)));
    alphabet.push((1, with_extra(Kind::Free, 64, 0)));
    alphabet.push((1, with_extra(Kind::Free, 64, 8)));
    let count = alphabet.len();
    for number in 0..count.pow(4) {
        let digit = |place: u32| alphabet[number / count.pow(place) % count];
        check(&[digit(0), digit(1), digit(2), digit(3)]);
    }
}

#[test]
fn all_streams_of_four_ranges_and_blocks_are_cut_as_defined() {
    let accesses = [
        with_extra(Kind::WriteRange, 64, 32),
        with_extra(Kind::ReadRange, 64, 16),
        with_extra(Kind::WriteRange, 76, 20),
        sized(Kind::Write, 72, 3),
    ];
    let blocks = [
        with_extra(Kind::Alloc, 64, 32),
        with_extra(Kind::Alloc, 72, 12),
        with_extra(Kind::Free, 64, 0),
        with_extra(Kind::Free, 64, 16),
    ];
    let accesses = accesses.into_iter().flat_map(|event| [(0, event), (1, event)]);
    let alphabet: Vec<Logged> = accesses.chain(blocks.map(|event| (0, event))).collect();
    let count = alphabet.len();
    for number in 0..count.pow(4) {
        let digit = |place: u32| alphabet[number / count.pow(place) % count];
        check(&[digit(0), digit(1), digit(2), digit(3)]);
    }
}

#[test]
fn memory_of_one_thread_or_never_written_is_dropped() {
    let write = sized(Kind::Write, 8, 3);
    let read = sized(Kind::Read, 16, 3);
    assert!(survey(&[(1, write), (1, write), (1, read), (2, read)]).lifetimes().is_empty());
    assert_eq!(survey(&[(1, write), (2, sized(Kind::Read, 8, 0))]).lifetimes().len(), 1);
}

#[test]
fn reused_memory_is_another_lifetime() {
    let alloc = with_extra(Kind::Alloc, 4096, 16);
    let free = with_extra(Kind::Free, 4096, 0);
    let write = sized(Kind::Write, 4096, 3);
    let shared = [(0, alloc), (0, write), (1, write), (0, free)];
    let local = [(0, alloc), (0, write), (0, free)];
    let cells = survey(&[&shared[..], &local, &shared].concat());
    assert_eq!(cells.lifetimes().len(), 2);
    assert!(cells.keeps_block(0) && !cells.keeps_block(2) && cells.keeps_block(4));
}

#[test]
fn a_huge_block_costs_no_more_than_what_was_touched() {
    let alloc = with_extra(Kind::Alloc, 4096, 1 << 46);
    let write = sized(Kind::Write, 1 << 40, 3);
    let cells = survey(&[(0, alloc), (0, write), (1, write), (0, alloc), (0, write)]);
    assert_eq!(cells.lifetimes().len(), 1);
}

#[test]
fn a_huge_range_costs_no_more_than_its_pages() {
    let fill = with_extra(Kind::WriteRange, 4096, 1 << 30);
    let write = sized(Kind::Write, 1 << 20, 3);
    let cells = survey(&[(0, fill), (0, fill), (1, write), (0, fill)]);
    assert_eq!(cells.lifetimes().len(), 1);
}

#[test]
fn memory_that_is_only_filled_is_one_cell_however_long() {
    let alloc = with_extra(Kind::Alloc, 4096 + 16, 1 << 30);
    let fill = with_extra(Kind::WriteRange, 4096 + 16, 1 << 30);
    let cells = survey(&[(0, alloc), (0, fill), (1, fill)]);
    let [lifetime] = cells.lifetimes() else { panic!("{:?}", cells.lifetimes().len()) };
    assert_eq!((lifetime.word, lifetime.words), ((4096 + 16) / 8, 1 << 27));
    // Each word that is accessed alone is a cell, and so is what is left between them.
    let write = |address| sized(Kind::Write, address, 3);
    let cells = survey(&[(0, alloc), (0, fill), (1, fill), (0, write(1 << 20)), (1, write(8192))]);
    assert_eq!(cells.lifetimes().len(), 5);
}

#[test]
fn what_is_left_of_a_block_lives_on() {
    let alloc = with_extra(Kind::Alloc, 8192, 8192);
    let release = with_extra(Kind::Free, 8192, 4096);
    let over = with_extra(Kind::Alloc, 12288 + 64, 64);
    let write = sized(Kind::Write, 12288, 3);
    let cells = survey(&[(0, alloc), (0, write), (0, release), (0, over), (1, write)]);
    let [lifetime] = cells.lifetimes() else { panic!("{:?}", cells.lifetimes()) };
    assert_eq!((lifetime.start, lifetime.end), (1, u64::MAX));
    assert!(cells.keeps_block(0) && !cells.keeps_block(2));
}

#[test]
fn a_block_ends_with_its_last_piece() {
    let mut blocks = Blocks::default();
    let mut step = |kind, address, extra| {
        let change = blocks.step(&with_extra(kind, address, extra)).unwrap();
        (change.released, change.lost)
    };
    step(Kind::Alloc, 0, 100);
    assert_eq!(step(Kind::Free, 40, 10), (vec![], vec![]));
    assert_eq!(step(Kind::Alloc, 0, 20), (vec![], vec![]));
    assert_eq!(step(Kind::Free, 50, 100), (vec![], vec![]));
    // The block that was allocated there last is a smaller one.
    assert_eq!(step(Kind::Free, 0, 0), (vec![2], vec![]));
    assert_eq!(step(Kind::Free, 0, 0), (vec![0], vec![]));
    assert_eq!(step(Kind::Free, 0, 0), (vec![], vec![]));
    step(Kind::Alloc, 0, 100);
    assert_eq!(step(Kind::Free, 0, 50), (vec![], vec![]));
    assert_eq!(step(Kind::Alloc, 20, 80), (vec![], vec![7]));
}

#[test]
fn a_page_that_is_touched_as_a_whole_and_in_parts_is_cut_as_defined() {
    let page = with_extra(Kind::WriteRange, 4090, 4200);
    let part = with_extra(Kind::WriteRange, 4096, 4096);
    let word = sized(Kind::Write, 4100, 2);
    let release = with_extra(Kind::Free, 4104, 16);
    let pages = with_extra(Kind::WriteRange, 4096, 8192);
    let alphabet: Vec<Logged> = [page, part, pages, word, release]
        .into_iter()
        .flat_map(|event| [(0, event), (1, event)])
        .collect();
    let mut watched =
        [4096, 4100, 4104, 4120, 8184].map(|address| (0, sized(Kind::Read, address, 2))).to_vec();
    watched.push((0, with_extra(Kind::ReadRange, 8000, 208)));
    let count = alphabet.len();
    for number in 0..count.pow(3) {
        let digit = |place: u32| alphabet[number / count.pow(place) % count];
        let events = [&[digit(0), digit(1), digit(2)][..], &watched].concat();
        check_accesses(&events, 3..events.len());
    }
}

fn event() -> impl Strategy<Value = Event> {
    let address = 4080..4120_u64;
    let kinds = prop::sample::select(vec![
        Kind::Read,
        Kind::Write,
        Kind::AtomicLoad,
        Kind::AtomicUpdate,
        Kind::AtomicFailed,
    ]);
    let block = (prop::sample::select(vec![4080, 4088, 4096, 4104, 4100]), 0..40_u64);
    prop_oneof![
        6 => (kinds, address.clone(), 0..4_u8)
            .prop_map(|(kind, address, size)| sized(kind, address, size)),
        1 => (any::<bool>(), address, 0..30_u64).prop_map(range),
        3 => (any::<bool>(), 509..514_u64, 0..6_u64)
            .prop_map(|(writes, word, words)| range((writes, 8 * word, 8 * words))),
        1 => block.clone().prop_map(|(address, size)| with_extra(Kind::Alloc, address, size)),
        1 => block.clone().prop_map(|(address, _)| with_extra(Kind::Free, address, 0)),
        1 => block.prop_map(|(address, size)| with_extra(Kind::Free, address, size)),
    ]
}

fn range((writes, address, length): (bool, u64, u64)) -> Event {
    let kind = if writes { Kind::WriteRange } else { Kind::ReadRange };
    with_extra(kind, address, length)
}

proptest! {
    #![proptest_config(soak::config(512))]

    #[test]
    fn memory_is_cut_as_defined(events in prop::collection::vec((0..3_u32, event()), 0..40)) {
        check(&events);
    }
}
