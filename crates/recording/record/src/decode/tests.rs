//! What the runtime would write, by the letter of its definition, decodes to what happened.

use proptest::prelude::*;
use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};
use reweave_testkit::soak;

use super::*;

/// One access of a thread: its place in the code, and where it goes.
#[derive(Clone, Copy, Debug)]
struct Access {
    thread: u32,
    kind: Kind,
    size: u8,
    code: u64,
    address: u64,
    /// What a write stores.
    value: u64,
}

/// The runtime, slowly: tables by key instead of by place would differ where places are shared, so
/// the places are those of [`predict`].
#[derive(Default)]
struct Runtime {
    slots: FxHashMap<(u32, usize), Slot>,
    previous: FxHashMap<u32, usize>,
    marks: FxHashMap<usize, u64>,
    memory: FxHashMap<(u64, u8), u64>,
    pending: Option<(u64, u8)>,
    is_passed: bool,
    run: u64,
    current: Option<u32>,
    has_values: bool,
    written: Vec<(u32, Event)>,
}

impl Runtime {
    fn load(&self, address: u64, size: u8) -> u64 {
        self.memory.get(&(address, size)).copied().unwrap_or(0)
    }

    fn is_remembered(&self, address: u64, size: u8) -> bool {
        let value = self.load(address, size);
        let mark = self.marks.get(&predict::value_slot(address)).copied().unwrap_or(0);
        mark == predict::mark(address, u32::from(size), value)
    }

    fn remember(&mut self, address: u64, size: u8) -> u64 {
        let value = self.load(address, size);
        self.marks
            .insert(predict::value_slot(address), predict::mark(address, u32::from(size), value));
        value
    }

    fn end_run(&mut self, thread: u32) {
        if self.run > 0 {
            self.written.push((thread, Event::new(Kind::Run, self.run, 0)));
            self.run = 0;
        }
    }

    /// Another thread gets the token.
    fn switch(&mut self, to: u32) {
        let Some(from) = self.current.replace(to).filter(|&from| from != to) else { return };
        if let Some((address, size)) = self.pending.take() {
            self.end_run(from);
            let stored = Some(self.remember(address, size));
            self.written.push((from, Event { stored, ..Event::new(Kind::Stored, 0, 0) }));
        }
        self.end_run(from);
    }

    fn access(&mut self, access: Access) {
        self.switch(access.thread);
        let Access { thread, kind, size, code, address, value } = access;
        let key = predict::key(kind, u32::from(size), code);
        let previous = *self.previous.entry(thread).or_default();
        let before = self.slots.get(&(thread, previous)).copied().unwrap_or_default();
        let place = before.follow as usize;
        let slot = self.slots.get(&(thread, place)).copied().unwrap_or_default();
        let mut expected = slot.key == key && slot.address == address;
        let leaves_open = kind == Kind::Read
            && !self.is_passed
            && self.pending.is_some_and(|(at, bytes)| is_apart((at, bytes), (address, size)));
        if self.has_values {
            expected &= leaves_open
                || self.pending.is_none_or(|(address, size)| self.is_remembered(address, size));
            expected &= kind == Kind::Write || self.is_remembered(address, size);
        }
        if expected {
            let moved = Slot { address: address.wrapping_add(slot.stride), ..slot };
            self.slots.insert((thread, place), moved);
            self.previous.insert(thread, place);
            self.pending = self.pending.filter(|_| leaves_open);
            self.run += 1;
        } else {
            self.end_run(thread);
            let own = predict::slot_of(key);
            self.slots.entry((thread, own)).or_default().learn(key, address);
            self.slots.entry((thread, previous)).or_default().follow = own as u64;
            self.previous.insert(thread, own);
            let mut event = Event { size, ..Event::new(kind, address, code) };
            if self.has_values {
                if !leaves_open {
                    event.stored = self.pending.take().map(|(at, size)| self.remember(at, size));
                }
                if kind == Kind::Read {
                    event.value = Some(self.remember(address, size));
                }
            }
            self.written.push((thread, event));
        }
        self.is_passed = kind == Kind::Read;
        if kind == Kind::Write {
            self.memory.insert((address, size), value);
            self.pending = self.has_values.then_some((address, size));
        }
    }
}

/// Whether two accesses have no byte in common.
fn is_apart(first: (u64, u8), second: (u64, u8)) -> bool {
    let end = |(at, size): (u64, u8)| at + (1 << size);
    end(first) <= second.0 || end(second) <= first.0
}

/// What the stream should be: every access, each write's value with the next event of its thread, but
/// for one read of something else.
fn literally(accesses: &[Access], has_values: bool) -> Vec<(u32, Event)> {
    let mut memory: FxHashMap<(u64, u8), u64> = FxHashMap::default();
    let mut pending: FxHashMap<u32, ((u64, u8), u64, bool)> = FxHashMap::default();
    let mut events = Vec::new();
    let mut current = None;
    for access in accesses {
        let Access { thread, kind, size, code, address, value } = *access;
        if let Some(from) = current.replace(thread).filter(|&from| from != thread)
            && let Some((_, stored, _)) = pending.remove(&from)
        {
            let stored = Some(stored);
            events.push((from, Event { stored, ..Event::new(Kind::Stored, 0, 0) }));
        }
        let mut event = Event { size, ..Event::new(kind, address, code) };
        if has_values {
            match pending.get_mut(&thread) {
                Some((at, _, is_passed))
                    if kind == Kind::Read && !*is_passed && is_apart(*at, (address, size)) =>
                {
                    *is_passed = true;
                }
                _ => event.stored = pending.remove(&thread).map(|(_, stored, _)| stored),
            }
            if kind == Kind::Read {
                event.value = Some(memory.get(&(address, size)).copied().unwrap_or(0));
            }
        }
        events.push((thread, event));
        if kind == Kind::Write {
            memory.insert((address, size), value);
            if has_values {
                pending.insert(thread, ((address, size), value, false));
            }
        }
    }
    events
}

fn check(accesses: &[Access], has_values: bool) -> Result<(), TestCaseError> {
    let mut runtime = Runtime { has_values, ..Runtime::default() };
    accesses.iter().for_each(|access| runtime.access(*access));
    if let Some(thread) = runtime.current {
        runtime.end_run(thread);
    }
    let mut expanded = Decoded::new(runtime.written.into_iter());
    let mut events = Vec::new();
    while let Some(event) = expanded.next_event().unwrap() {
        events.push(event);
    }
    prop_assert_eq!(events, literally(accesses, has_values));
    Ok(())
}

/// Loops over arrays, with a few places, strides and values, so that much is as expected.
fn loops() -> impl Strategy<Value = Vec<Access>> {
    let body = (0..3_u32, 1..4_usize, 0..4_u64, 1..9_u64, 1..20_usize, 0..3_u64);
    prop::collection::vec(body, 0..12).prop_map(|bodies| {
        let mut accesses = Vec::new();
        for (thread, places, array, stride, rounds, change) in bodies {
            for round in 0..rounds as u64 {
                for place in 0..places as u64 {
                    let kind = if (place + array) % 3 == 0 { Kind::Write } else { Kind::Read };
                    let address = 0x1000 * (array + place + 1) + 8 * stride * round;
                    let (size, code) = (3, 0x40_0000 + 16 * place + 256 * array);
                    let value = change * round;
                    accesses.push(Access { thread, kind, size, code, address, value });
                }
            }
        }
        accesses
    })
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn loops_expand_to_what_happened(accesses in loops(), has_values: bool) {
        check(&accesses, has_values)?;
    }
}

#[test]
fn every_short_sequence_expands_to_what_happened() {
    let choices: Vec<Access> = [(0, Kind::Read, 0), (0, Kind::Write, 1), (1, Kind::Write, 0)]
        .into_iter()
        .flat_map(|(thread, kind, value)| {
            [0x1000, 0x1008].map(|address| Access {
                thread,
                kind,
                size: 3,
                code: 0x40_0000,
                address,
                value,
            })
        })
        .collect();
    for number in 0..choices.len().pow(5) {
        let digits = (0..5).map(|digit| number / choices.len().pow(digit) % choices.len());
        let accesses: Vec<Access> = digits.map(|digit| choices[digit]).collect();
        for has_values in [false, true] {
            check(&accesses, has_values).unwrap();
        }
    }
}

#[test]
fn a_run_before_anything_is_known_does_no_harm() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.take(7, Event::new(Kind::Run, 3, 0)), None);
    assert_eq!(std::iter::from_fn(|| decoder.next_decoded()).count(), 3);
}

#[test]
fn a_lock_that_was_free_was_asked_for() {
    let lock = |kind, flags, stored| Event { flags, stored, ..Event::new(kind, 16, 100) };
    let mut decoder = Decoder::default();
    let taken = lock(Kind::Lock, flag::ASKED | flag::SHARED, Some(7));
    let decoded = [decoder.take(2, taken).map(|event| (2, event)), decoder.next_decoded()];
    let expected =
        [lock(Kind::LockRequest, flag::SHARED, Some(7)), lock(Kind::Lock, flag::SHARED, None)];
    assert_eq!(decoded, expected.map(|event| Some((2, event))));
    assert_eq!(decoder.next_decoded(), None);
}
