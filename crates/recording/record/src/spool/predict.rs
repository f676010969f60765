//! What the writer and the reader remember alike, so that what is as guessed need not be said.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

/// The other slot that came next, before the one that came last.
pub(super) const OTHER: u64 = 0;
/// A slot that was not there before; its shape and code follow.
pub(super) const NEW: u64 = 1;
/// The slot numbered so much less.
pub(super) const KNOWN: u64 = 2;

/// Beyond so many slots everything is forgotten when the next frame begins.
const SLOTS_MAX: usize = 1 << 19;

const MEMORY_BITS: u32 = 16;

/// What was not as guessed in a record; the numbers follow in this order.
pub(super) mod miss {
    pub(in crate::spool) const THREAD: u8 = 1;
    pub(in crate::spool) const SLOT: u8 = 1 << 1;
    pub(in crate::spool) const ADDRESS: u8 = 1 << 2;
    pub(in crate::spool) const NUMBER: u8 = 1 << 3;
    pub(in crate::spool) const STORED: u8 = 1 << 4;
    pub(in crate::spool) const EXTRA: u8 = 1 << 5;
    pub(in crate::spool) const VALUE: u8 = 1 << 6;
    /// No record but a run of events that were all as guessed; the other bits are its length, or
    /// nothing if that is longer and follows.
    pub(in crate::spool) const RUN: u8 = 1 << 7;
}

/// Everything about an event but its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape(pub(super) u32);

impl Shape {
    const VALUE: u32 = 1 << 28;
    const EXTRA: u32 = 1 << 29;
    const NUMBER: u32 = 1 << 30;
    const STORED: u32 = 1 << 31;
    /// Of the slot that comes before a thread's first event. No event has all these bits.
    const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn new(event: &Event) -> Self {
        let bit = |known: Option<u64>, bit: u32| if known.is_some() { bit } else { 0 };
        Self(
            event.kind as u32
                | u32::from(event.size & 7) << 6
                | u32::from(event.order & 7) << 9
                | u32::from(event.flags) << 12
                | bit(event.value, Self::VALUE)
                | bit(event.extra, Self::EXTRA)
                | bit(event.number, Self::NUMBER)
                | bit(event.stored, Self::STORED),
        )
    }

    /// The kind, if there is such a one.
    #[inline]
    pub(super) fn kind(self) -> Option<Kind> {
        Kind::from_number(self.0 as u8 & 0x3f)
    }

    #[inline]
    pub(super) fn size(self) -> u8 {
        (self.0 >> 6) as u8 & 7
    }

    #[inline]
    pub(super) fn order(self) -> u8 {
        (self.0 >> 9) as u8 & 7
    }

    #[inline]
    pub(super) fn flags(self) -> u16 {
        (self.0 >> 12) as u16
    }

    #[inline]
    pub(super) fn has_value(self) -> bool {
        self.0 & Self::VALUE != 0
    }

    #[inline]
    pub(super) fn has_extra(self) -> bool {
        self.0 & Self::EXTRA != 0
    }

    #[inline]
    pub(super) fn has_number(self) -> bool {
        self.0 & Self::NUMBER != 0
    }

    #[inline]
    pub(super) fn has_stored(self) -> bool {
        self.0 & Self::STORED != 0
    }
}

/// A number that moves by the same step each time, mostly.
#[derive(Clone, Copy, Default)]
pub(super) struct Trend {
    pub(super) last: u64,
    step: u64,
    /// The last difference. It becomes the step when it comes twice, so that one jump, such as to
    /// the next row of a matrix, is one surprise and not two.
    latest: u64,
}

impl Trend {
    #[inline]
    pub(super) fn guess(self) -> u64 {
        self.last.wrapping_add(self.step)
    }

    /// Learns that the guess was right.
    #[inline]
    fn confirm(&mut self) {
        self.last = self.last.wrapping_add(self.step);
        self.latest = self.step;
    }

    #[inline]
    pub(super) fn learn(&mut self, number: u64) {
        let difference = number.wrapping_sub(self.last);
        if difference == self.latest {
            self.step = difference;
        }
        self.latest = difference;
        self.last = number;
    }
}

/// What is remembered of the events of one shape at one code address.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) code: u64,
    pub(super) shape: Shape,
    next: u32,
    other: u32,
    /// Whether values are guessed from memory rather than from their trend.
    by_memory: bool,
    pub(super) address: Trend,
    value: Trend,
    pub(super) stored: Trend,
    pub(super) extra: Trend,
}

impl Slot {
    fn new(code: u64, shape: Shape) -> Self {
        let trend = Trend::default();
        let by_memory = false;
        let [address, value, stored, extra] = [trend; 4];
        Self { code, shape, next: 0, other: 0, by_memory, address, value, stored, extra }
    }

    #[inline]
    fn is(&self, code: u64, shape: Shape) -> bool {
        self.code == code && self.shape == shape
    }

    /// What the value will be, where memory is thought to hold `held`.
    #[inline]
    pub(super) fn guess_value(&self, held: u64) -> u64 {
        if self.by_memory { held } else { self.value.guess() }
    }

    /// What a value that was not as guessed is told from.
    #[inline]
    pub(super) fn last_value(&self) -> u64 {
        self.value.last
    }

    #[inline]
    pub(super) fn learn_value(&mut self, value: u64, held: u64) {
        if self.guess_value(held) != value {
            let other = if self.by_memory { self.value.guess() } else { held };
            self.by_memory ^= other == value;
        }
        self.value.learn(value);
    }
}

/// What is remembered of one thread.
pub(super) struct Thread {
    slots: Vec<Slot>,
    at: u32,
    /// Where in memory its last plain write went.
    written: usize,
    /// The code address of the slot that was new last.
    code: u64,
}

impl Thread {
    fn new() -> Self {
        let first = Slot::new(u64::MAX, Shape::NONE);
        Self { slots: vec![first], at: 0, written: 0, code: 0 }
    }

    /// The slot of the last event.
    #[inline]
    pub(super) fn slot(&mut self) -> &mut Slot {
        &mut self.slots[self.at as usize]
    }

    /// Goes to the slot that is expected next if it is the one of `code` and `shape`.
    #[inline]
    pub(super) fn goes_on_as_guessed(&mut self, code: u64, shape: Shape) -> bool {
        let next = self.slots[self.at as usize].next;
        let found = self.slots[next as usize].is(code, shape);
        if found {
            self.at = next;
        }
        found
    }

    /// Goes to the slot that is expected next.
    #[inline]
    pub(super) fn go_on(&mut self) {
        self.at = self.slots[self.at as usize].next;
    }

    /// The slot that came next before the one that came last.
    #[inline]
    pub(super) fn other(&self) -> u32 {
        self.slots[self.at as usize].other
    }

    #[inline]
    pub(super) fn is_at(&self, place: u32, code: u64, shape: Shape) -> bool {
        self.slots[place as usize].is(code, shape)
    }

    /// Goes to the slot at `place`, if there is one.
    pub(super) fn go_to(&mut self, place: u32) -> Option<()> {
        self.slots.get(place as usize)?;
        let here = &mut self.slots[self.at as usize];
        if here.next != place {
            here.other = here.next;
            here.next = place;
        }
        self.at = place;
        Some(())
    }
}

/// What is remembered of all threads.
pub(super) struct Model {
    threads: Vec<Thread>,
    places: FxHashMap<u32, usize>,
    current: usize,
    /// The number of the current thread; no thread has the number that it starts with.
    number: u64,
    slots_count: usize,
    /// What was last seen or stored, by a part of the address.
    memory: Vec<u64>,
    /// The last place in the order of synchronisation.
    pub(super) sequence: u64,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            threads: vec![Thread::new()],
            places: FxHashMap::default(),
            current: 0,
            number: u64::MAX,
            slots_count: 0,
            memory: vec![0; 1 << MEMORY_BITS],
            sequence: 0,
        }
    }

    /// Forgets everything if there is too much of it; says whether it did.
    pub(super) fn begin_frame(&mut self) -> bool {
        let is_full = self.slots_count >= SLOTS_MAX;
        if is_full {
            *self = Self::new();
        }
        is_full
    }

    #[inline]
    pub(super) fn is_at_thread(&self, thread: u32) -> bool {
        self.number == u64::from(thread)
    }

    /// The number of the current thread, once there is one.
    #[inline]
    pub(super) fn thread_number(&self) -> Option<u32> {
        u32::try_from(self.number).ok()
    }

    /// Where the current thread is among the threads.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Makes `thread` the current one.
    pub(super) fn enter(&mut self, thread: u32) {
        self.number = u64::from(thread);
        let threads = &mut self.threads;
        let slots_count = &mut self.slots_count;
        self.current = *self.places.entry(thread).or_insert_with(|| {
            *slots_count += 1;
            threads.push(Thread::new());
            threads.len() - 1
        });
    }

    #[inline]
    pub(super) fn thread(&mut self) -> &mut Thread {
        &mut self.threads[self.current]
    }

    /// Goes on to `event` if it is all as guessed, `address` and `code` changed places where it is
    /// a single word; else says so and changes nothing.
    #[inline]
    pub(super) fn goes_on(&mut self, thread: u32, event: &Event, at: (u64, u64)) -> bool {
        let (code, address) = at;
        if self.number != u64::from(thread) {
            return false;
        }
        let state = &mut self.threads[self.current];
        let next = state.slots[state.at as usize].next;
        let slot = &mut state.slots[next as usize];
        if slot.address.guess() != address || !slot.is(code, Shape::new(event)) {
            return false;
        }
        let place = Self::place_of(address, event.size);
        let differs = |known: Option<u64>, guess: u64| known.is_some_and(|known| known != guess);
        if differs(event.number, self.sequence.wrapping_add(1))
            || differs(event.stored, slot.stored.guess())
            || differs(event.extra, slot.extra.guess())
            // Memory is looked at only where it matters: that is slow.
            || event.value.is_some_and(|value| value != slot.guess_value(self.memory[place]))
        {
            return false;
        }
        state.at = next;
        slot.address.confirm();
        if let Some(number) = event.number {
            self.sequence = number;
        }
        if let Some(stored) = event.stored {
            slot.stored.confirm();
            self.memory[state.written] = stored;
        }
        if event.extra.is_some() {
            slot.extra.confirm();
        }
        if let Some(value) = event.value {
            slot.value.learn(value);
        }
        self.learn_memory(event, place);
        true
    }

    /// Adds a slot to the current thread, goes to it, and gives its number.
    pub(super) fn add(&mut self, code: u64, shape: Shape) -> u32 {
        self.slots_count += 1;
        let thread = &mut self.threads[self.current];
        let place = thread.slots.len() as u32;
        thread.slots.push(Slot::new(code, shape));
        thread.code = code;
        thread.go_to(place).expect("the slot was just added");
        place
    }

    /// What the code address of a new slot is told from.
    pub(super) fn last_new_code(&self) -> u64 {
        self.threads[self.current].code
    }

    /// Where memory remembers the value at `address`.
    #[inline]
    pub(super) fn place_of(address: u64, size: u8) -> usize {
        let granule = address >> size;
        (granule ^ granule >> MEMORY_BITS) as usize & ((1 << MEMORY_BITS) - 1)
    }

    #[inline]
    pub(super) fn held(&self, place: usize) -> u64 {
        self.memory[place]
    }

    /// Remembers what the current thread's last plain write stored.
    #[inline]
    pub(super) fn learn_stored(&mut self, stored: u64) {
        let place = self.threads[self.current].written;
        self.memory[place] = stored;
    }

    /// Remembers what memory holds after `event`.
    #[inline]
    pub(super) fn learn_memory(&mut self, event: &Event, place: usize) {
        match (event.kind, event.value) {
            (Kind::Write, _) => self.threads[self.current].written = place,
            (Kind::AtomicUpdate, Some(seen)) => {
                self.memory[place] = event.extra.unwrap_or(seen);
            }
            (_, Some(value)) => self.memory[place] = value,
            (_, None) => {}
        }
    }
}

/// A difference of either sign as a number that is small when the difference is.
#[inline]
pub(super) fn fold(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64) >> 63) as u64
}

/// The difference that [`fold`] gave `number` for.
#[inline]
pub(super) fn unfold(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
