//! What the writer and the reader remember alike, so that what is as guessed need not be said.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

/// The other slot that came next, before the one that came last.
pub const OTHER: u64 = 0;
/// A slot that was not there before; its shape and code follow.
pub const NEW: u64 = 1;
/// The slot numbered so much less.
pub const KNOWN: u64 = 2;

/// Beyond so many slots everything is forgotten when the next frame begins.
const SLOTS_MAX: usize = 1 << 19;

const MEMORY_BITS: u32 = 16;

/// What was not as guessed in a record; the numbers follow in this order.
pub mod miss {
    pub const THREAD: u8 = 1;
    pub const SLOT: u8 = 1 << 1;
    pub const ADDRESS: u8 = 1 << 2;
    pub const NUMBER: u8 = 1 << 3;
    pub const STORED: u8 = 1 << 4;
    pub const EXTRA: u8 = 1 << 5;
    pub const VALUE: u8 = 1 << 6;
    /// No record but a run of events that were all as guessed; the other bits are its length, or
    /// nothing if that is longer and follows.
    pub const RUN: u8 = 1 << 7;
}

/// Everything about an event but its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(pub u32);

impl Shape {
    const VALUE: u32 = 1 << 28;
    const EXTRA: u32 = 1 << 29;
    const NUMBER: u32 = 1 << 30;
    const STORED: u32 = 1 << 31;
    /// Of the slot that comes before a thread's first event. No event has all these bits.
    const NONE: Self = Self(u32::MAX);

    #[inline]
    pub fn new(event: &Event) -> Self {
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

    /// An event of this shape at `code`, with zeros for its numbers; none if there is no such kind.
    #[inline]
    pub fn event(self, code: u64) -> Option<Event> {
        let number = |bit: u32| (self.0 & bit != 0).then_some(0);
        Some(Event {
            size: (self.0 >> 6) as u8 & 7,
            order: (self.0 >> 9) as u8 & 7,
            flags: (self.0 >> 12) as u16,
            value: number(Self::VALUE),
            extra: number(Self::EXTRA),
            number: number(Self::NUMBER),
            stored: number(Self::STORED),
            ..Event::new(Kind::from_number(self.0 as u8 & 0x3f)?, 0, code)
        })
    }
}

/// A number that moves by the same step each time, mostly.
#[derive(Clone, Copy, Default)]
pub struct Trend {
    pub last: u64,
    step: u64,
    /// The last difference. It becomes the step when it comes twice, so that one jump, such as to
    /// the next row of a matrix, is one surprise and not two.
    latest: u64,
}

impl Trend {
    #[inline]
    pub fn guess(self) -> u64 {
        self.last.wrapping_add(self.step)
    }

    /// Learns that the guess was right.
    #[inline]
    fn confirm(&mut self) {
        self.last = self.last.wrapping_add(self.step);
        self.latest = self.step;
    }

    #[inline]
    pub fn learn(&mut self, number: u64) {
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
pub struct Slot {
    pub code: u64,
    pub shape: Shape,
    next: u32,
    other: u32,
    /// Whether values are guessed from memory rather than from their trend.
    by_memory: bool,
    pub address: Trend,
    value: Trend,
    pub stored: Trend,
    pub extra: Trend,
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
    pub fn guess_value(&self, held: u64) -> u64 {
        if self.by_memory { held } else { self.value.guess() }
    }

    /// What a value that was not as guessed is a difference from.
    #[inline]
    pub fn last_value(&self) -> u64 {
        self.value.last
    }

    #[inline]
    pub fn learn_value(&mut self, value: u64, held: u64) {
        if self.guess_value(held) != value {
            let other = if self.by_memory { self.value.guess() } else { held };
            self.by_memory ^= other == value;
        }
        self.value.learn(value);
    }
}

/// What is remembered of one thread.
pub struct Thread {
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
    pub fn slot(&mut self) -> &mut Slot {
        &mut self.slots[self.at as usize]
    }

    /// Goes to the slot that is expected next if it is the one of `code` and `shape`.
    #[inline]
    pub fn goes_on_as_guessed(&mut self, code: u64, shape: Shape) -> bool {
        let next = self.slots[self.at as usize].next;
        let found = self.slots[next as usize].is(code, shape);
        if found {
            self.at = next;
        }
        found
    }

    /// Goes to the slot that is expected next.
    #[inline]
    pub fn go_on(&mut self) {
        self.at = self.slots[self.at as usize].next;
    }

    /// The slot that came next before the one that came last.
    #[inline]
    pub fn other(&self) -> u32 {
        self.slots[self.at as usize].other
    }

    #[inline]
    pub fn is_at(&self, place: u32, code: u64, shape: Shape) -> bool {
        self.slots[place as usize].is(code, shape)
    }

    /// Goes to the slot at `place`, if there is one.
    pub fn go_to(&mut self, place: u32) -> Option<()> {
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
pub struct Model {
    threads: Vec<Thread>,
    places: FxHashMap<u32, usize>,
    current: usize,
    /// The number of the current thread; no thread has the number that it starts with.
    number: u64,
    slots_count: usize,
    /// What was last seen or stored, by a part of the address.
    memory: Vec<u64>,
    /// The last place in the order of synchronization.
    pub sequence: u64,
}

impl Model {
    pub fn new() -> Self {
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
    pub fn begin_frame(&mut self) -> bool {
        let is_full = self.slots_count >= SLOTS_MAX;
        if is_full {
            *self = Self::new();
        }
        is_full
    }

    #[inline]
    pub fn is_at_thread(&self, thread: u32) -> bool {
        self.number == u64::from(thread)
    }

    /// The number of the current thread, once there is one.
    #[inline]
    pub fn thread_number(&self) -> Option<u32> {
        u32::try_from(self.number).ok()
    }

    /// Where the current thread is among the threads.
    #[inline]
    pub fn current(&self) -> usize {
        self.current
    }

    /// Makes `thread` the current one.
    pub fn enter(&mut self, thread: u32) {
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
    pub fn thread(&mut self) -> &mut Thread {
        &mut self.threads[self.current]
    }

    /// Goes on to `event` if it is all as guessed, `address` and `code` changed places where it is
    /// a single word; else says so and changes nothing.
    #[inline]
    pub fn goes_on(&mut self, thread: u32, event: &Event, at: (u64, u64)) -> bool {
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
    pub fn add(&mut self, code: u64, shape: Shape) -> u32 {
        self.slots_count += 1;
        let thread = &mut self.threads[self.current];
        let place = thread.slots.len() as u32;
        thread.slots.push(Slot::new(code, shape));
        thread.code = code;
        thread.go_to(place).expect("the slot was just added");
        place
    }

    /// What the code address of a new slot is a difference from.
    pub fn last_new_code(&self) -> u64 {
        self.threads[self.current].code
    }

    /// Where memory remembers the value at `address`.
    #[inline]
    pub fn place_of(address: u64, size: u8) -> usize {
        let word = address >> size;
        (word ^ word >> MEMORY_BITS) as usize & ((1 << MEMORY_BITS) - 1)
    }

    #[inline]
    pub fn held(&self, place: usize) -> u64 {
        self.memory[place]
    }

    /// Remembers what the current thread's last plain write stored.
    #[inline]
    pub fn learn_stored(&mut self, stored: u64) {
        let place = self.threads[self.current].written;
        self.memory[place] = stored;
    }

    /// Remembers what memory holds after `event`.
    #[inline]
    pub fn learn_memory(&mut self, event: &Event, place: usize) {
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
pub fn fold(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64) >> 63) as u64
}

/// The difference that [`fold`] gave `number` for.
#[inline]
pub fn unfold(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
