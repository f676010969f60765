//! What comes before what, in a program that runs or in a recording.
//!
//! The order is the one that every cut of a trace keeps (`order::poset::TraceOrder`), derived from the
//! events of the recording instead of those of the trace: locks, threads, conditions, barriers,
//! semaphores, channels; each read after the write that it saw; the birth of memory before its end. Things live at addresses, and what was at an address before is another thing, as in
//! [`crate::convert`]. Promised: of followed events, one comes before another exactly if it does in
//! the trace that the recording becomes, unless the recording holds what cannot have happened.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};
use reweave_trace::views::Mode;

use crate::shadow::{Access, Blocks, WORD_BYTES, drop_within};

/// The most things that are followed at once.
const THINGS_MAX: usize = 1 << 18;

/// Counts what is followed at the moment at which it happens, in the clock of its thread.
pub trait Ticks {
    /// `thread` makes `access`, which writes, by `event`.
    fn write(&mut self, thread: u32, event: &Event, access: Access, clock: &mut Clock);

    /// `thread` takes, or releases, the lock at `address` by `event`.
    fn lock(&mut self, thread: u32, event: &Event, address: u64, takes: bool, clock: &mut Clock);
}

/// What the releases of a lock hand on, and who holds it.
#[derive(Default)]
struct Lock {
    exclusive: Clock,
    shared: Clock,
    owner: Option<u32>,
    depth: u32,
    readers: Vec<u32>,
}

impl Lock {
    fn hold(&self, thread: u32) -> Option<Mode> {
        if self.owner == Some(thread) {
            return Some(Mode::Exclusive);
        }
        self.readers.contains(&thread).then_some(Mode::Shared)
    }

    /// Whether `thread` can take it so.
    fn take(&mut self, thread: u32, hold: Mode) -> bool {
        let is_owned = self.owner.is_some_and(|owner| owner != thread);
        match hold {
            _ if is_owned => return false,
            Mode::Exclusive if self.readers.iter().any(|&reader| reader != thread) => return false,
            Mode::Exclusive => {
                self.owner = Some(thread);
                self.depth += 1;
            }
            Mode::Shared => self.readers.push(thread),
        }
        true
    }

    fn give(&mut self, thread: u32, hold: Mode) {
        match hold {
            Mode::Exclusive => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.owner = None;
                }
            }
            Mode::Shared => {
                if let Some(place) = self.readers.iter().position(|&reader| reader == thread) {
                    self.readers.swap_remove(place);
                }
            }
        }
    }
}

/// Posts that nothing took yet, the oldest first, with how many are alike.
type Posts = VecDeque<(Clock, u64)>;

/// What was handed to a channel in the kernel, and what was taken from it.
#[derive(Default)]
struct Channel {
    sent: Clock,
    taken: Clock,
    is_looked_at: bool,
}

/// A thread that waits on a condition, and the lock that it released for it.
struct Waiting {
    condition: u64,
    released: Option<(u64, Mode)>,
}

/// The clocks of a running program.
#[derive(Default)]
pub struct Order {
    threads: FxHashMap<u32, Clock>,
    locks: BTreeMap<u64, Lock>,
    conditions: BTreeMap<u64, Clock>,
    barriers: BTreeMap<u64, Clock>,
    semaphores: BTreeMap<u64, Posts>,
    channels: BTreeMap<u64, Channel>,
    waits: FxHashMap<u32, Waiting>,
    blocks: Blocks,
    /// Of live blocks, by the time of their allocation: what came before it, and whether threads
    /// shared a part that is over.
    births: FxHashMap<u64, (Clock, bool)>,
    memory: Memory,
}

impl Order {
    /// Whether there is more than is followed, so that the order may lack something from now on.
    pub fn is_full(&self) -> bool {
        let things = self.locks.len() + self.conditions.len() + self.semaphores.len();
        let more = self.threads.len() + self.channels.len();
        self.memory.is_full || things + more > THINGS_MAX
    }

    /// Takes the next event; `ticks` counts what is followed.
    pub fn step(&mut self, thread: u32, event: &Event, ticks: &mut impl Ticks) {
        if let Some(access) = Access::new(event) {
            return self.access(thread, event, access, ticks);
        }
        let address = event.address;
        match event.kind {
            Kind::Lock => {
                let is_shared = event.flags & flag::SHARED != 0;
                let hold = if is_shared { Mode::Shared } else { Mode::Exclusive };
                self.take(thread, event, address, hold, ticks);
            }
            Kind::Unlock => {
                let hold = self.locks.get(&address).and_then(|lock| lock.hold(thread));
                if let Some(hold) = hold {
                    self.give(thread, event, address, hold, ticks);
                }
            }
            Kind::LockDestroy if event.ends_lock() => _ = self.locks.remove(&address),
            Kind::Fork => {
                let clock = self.clock(thread).clone();
                self.clock(address as u32).join(&clock);
            }
            Kind::ForkFailed => _ = self.threads.remove(&(address as u32)),
            Kind::Join => {
                // Others may join a task too.
                let ended = match event.flags & flag::TASK {
                    0 => self.threads.remove(&(address as u32)),
                    _ => self.threads.get(&(address as u32)).cloned(),
                };
                let ended = ended.unwrap_or_default();
                self.clock(thread).join(&ended);
            }
            Kind::Wait => self.wait(thread, event, ticks),
            Kind::Wake => self.wake(thread, event, ticks),
            Kind::Alloc | Kind::Free => self.change_blocks(thread, event),
            _ => self.meet(thread, event),
        }
    }

    /// Takes an event of a thing at which threads meet.
    fn meet(&mut self, thread: u32, event: &Event) {
        let address = event.address;
        let clock = self.threads.entry(thread).or_default();
        match event.kind {
            Kind::Signal | Kind::Broadcast => {
                meet(self.conditions.entry(address).or_default(), clock);
            }
            Kind::BarrierInit => _ = self.barriers.remove(&address),
            Kind::BarrierArrive | Kind::BarrierDepart => {
                meet(self.barriers.entry(address).or_default(), clock);
            }
            Kind::SemaphoreInit => _ = self.semaphores.remove(&address),
            Kind::SemaphorePost | Kind::SemaphoreTake => {
                let posts = self.semaphores.entry(address).or_default();
                match event.kind {
                    Kind::SemaphorePost => post(posts, clock),
                    _ => take(posts, clock),
                }
                // Until its value is looked at, those who use it come in no order because of it.
                let channel = self.channels.entry(address).or_default();
                if channel.is_looked_at {
                    clock.join(&channel.sent);
                }
                channel.sent.join(clock);
            }
            Kind::Send => meet(&mut self.channels.entry(address).or_default().sent, clock),
            Kind::Receive if event.is_descriptor_use() || event.is_thread_use() => {}
            Kind::Receive => {
                let channel = self.channels.entry(address).or_default();
                channel.is_looked_at = true;
                clock.join(&channel.sent);
                if event.flags & flag::TRY == 0 {
                    meet(&mut channel.taken, clock);
                } else {
                    // What is found also depends on who took something before.
                    clock.join(&channel.taken);
                }
            }
            // All others order nothing.
            _ => {}
        }
    }

    /// What comes before what `thread` does next.
    pub fn clock(&mut self, thread: u32) -> &mut Clock {
        self.threads.entry(thread).or_default()
    }

    /// What `thread` does next is event `count` of `chain`.
    pub fn advance(&mut self, thread: u32, chain: usize, count: u32) {
        self.clock(thread).set(chain, count);
    }

    #[inline]
    fn access(&mut self, thread: u32, event: &Event, access: Access, ticks: &mut impl Ticks) {
        let clock = self.threads.entry(thread).or_default();
        if !access.writes || event.kind == Kind::AtomicUpdate {
            self.memory.read(thread, access, clock);
        }
        if access.writes {
            ticks.write(thread, event, access, clock);
            self.memory.write(thread, access, clock);
        }
    }

    fn take(
        &mut self,
        thread: u32,
        event: &Event,
        address: u64,
        hold: Mode,
        ticks: &mut impl Ticks,
    ) {
        let lock = self.locks.entry(address).or_default();
        if !lock.take(thread, hold) {
            return;
        }
        let clock = self.threads.entry(thread).or_default();
        clock.join(&lock.exclusive);
        if hold == Mode::Exclusive {
            clock.join(&lock.shared);
        }
        ticks.lock(thread, event, address, true, clock);
    }

    fn give(
        &mut self,
        thread: u32,
        event: &Event,
        address: u64,
        hold: Mode,
        ticks: &mut impl Ticks,
    ) {
        let lock = self.locks.entry(address).or_default();
        lock.give(thread, hold);
        let clock = self.threads.entry(thread).or_default();
        ticks.lock(thread, event, address, false, clock);
        match hold {
            Mode::Exclusive => {
                lock.exclusive.clone_from(clock);
                lock.shared = Clock::default();
            }
            Mode::Shared => lock.shared.join(clock),
        }
    }

    fn meet_condition(&mut self, thread: u32, condition: u64) {
        let clock = self.threads.entry(thread).or_default();
        meet(self.conditions.entry(condition).or_default(), clock);
    }

    fn wait(&mut self, thread: u32, event: &Event, ticks: &mut impl Ticks) {
        let held = event.extra.and_then(|address| {
            let hold = self.locks.get(&address)?.hold(thread)?;
            Some((address, hold))
        });
        // The wait begins with the release, so that nothing comes in between.
        self.meet_condition(thread, event.address);
        if let Some((address, hold)) = held {
            self.give(thread, event, address, hold, ticks);
        }
        self.meet_condition(thread, event.address);
        self.waits.insert(thread, Waiting { condition: event.address, released: held });
    }

    fn wake(&mut self, thread: u32, event: &Event, ticks: &mut impl Ticks) {
        let waiting = self.waits.remove(&thread);
        if let Some(waiting) = &waiting {
            self.meet_condition(thread, waiting.condition);
        }
        let released = waiting.and_then(|waiting| waiting.released);
        let (address, hold) = match (released, event.extra) {
            (Some(released), _) => released,
            (None, Some(address)) => (address, Mode::Exclusive),
            (None, None) => return,
        };
        let holds = self.locks.get(&address).is_some_and(|lock| lock.hold(thread).is_some());
        if released.is_some() || !holds {
            self.take(thread, event, address, hold, ticks);
        }
    }

    /// Memory is allocated or released: what was at its addresses is no more.
    fn change_blocks(&mut self, thread: u32, event: &Event) {
        let Some(change) = self.blocks.step(event) else { return };
        for piece in &change.ended {
            let was_shared = self.end(piece.start, piece.end);
            if let Some(birth) = self.births.get_mut(&piece.time) {
                birth.1 |= was_shared;
            }
        }
        if let Some((start, end)) = change.range {
            self.end(start, end);
        }
        for time in &change.lost {
            self.births.remove(time);
        }
        for time in &change.released {
            // The trace speaks only of blocks that were shared.
            if let Some((birth, true)) = self.births.remove(time) {
                self.clock(thread).join(&birth);
            }
        }
        if let Some(block) = change.born {
            let clock = self.clock(thread).clone();
            if !clock.is_empty() {
                self.births.insert(block.time, (clock, false));
            }
        }
    }

    /// Forgets what was in the memory from `start` to `end`; says whether several threads shared
    /// some of it.
    fn end(&mut self, start: u64, end: u64) -> bool {
        drop_within(&mut self.locks, start, end);
        drop_within(&mut self.conditions, start, end);
        drop_within(&mut self.barriers, start, end);
        drop_within(&mut self.semaphores, start, end);
        drop_within(&mut self.channels, start, end);
        self.memory.forget(start, end)
    }
}

fn post(posts: &mut Posts, clock: &Clock) {
    match posts.back_mut() {
        // A semaphore that is posted for ever and never taken needs no memory.
        Some((last, count)) if last.covers(clock) && clock.covers(last) => *count += 1,
        _ => posts.push_back((clock.clone(), 1)),
    }
}

/// The oldest post is taken; if there is none, a token of the start.
fn take(posts: &mut Posts, clock: &mut Clock) {
    let Some((posted, count)) = posts.front_mut() else { return };
    clock.join(posted);
    *count -= 1;
    if *count == 0 {
        posts.pop_front();
    }
}

// Clocks of a running program: how many followed events of each chain come before a moment.
//
// Most events are not followed and change no clock, so clocks are shared until they differ: to
// hand one on costs a count.

/// What comes before a moment; nothing, at first.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Rc<Vec<u32>>>);

impl Clock {
    /// Whether nothing comes before.
    const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many events of `chain` come before.
    pub fn get(&self, chain: usize) -> u32 {
        self.0.as_ref().and_then(|times| times.get(chain)).copied().unwrap_or(0)
    }

    /// Whether all that `other` holds comes before.
    fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(theirs)) => {
                Rc::ptr_eq(own, theirs)
                    || (theirs.len() <= own.len()
                        && own.iter().zip(&**theirs).all(|(own, theirs)| theirs <= own))
            }
        }
    }

    /// Puts all that `other` holds before.
    #[inline]
    fn join(&mut self, other: &Self) {
        if self.covers(other) {
            return;
        }
        if other.covers(self) {
            *self = other.clone();
            return;
        }
        let (Some(own), Some(theirs)) = (&mut self.0, &other.0) else { return };
        let own = Rc::make_mut(own);
        own.resize(own.len().max(theirs.len()), 0);
        for (own, &theirs) in own.iter_mut().zip(&**theirs) {
            *own = (*own).max(theirs);
        }
    }

    /// Adds an event of `chain`.
    pub fn tick(&mut self, chain: usize) {
        self.set(chain, self.get(chain).saturating_add(1));
    }

    fn set(&mut self, chain: usize, count: u32) {
        let times = Rc::make_mut(self.0.get_or_insert_default());
        times.resize(times.len().max(chain + 1), 0);
        times[chain] = count;
    }
}

/// Puts a moment with `clock` after all that `last` holds, and what comes next after it.
fn meet(last: &mut Clock, clock: &mut Clock) {
    clock.join(last);
    last.clone_from(clock);
}

// Who wrote which bytes last, while the program runs.
//
// A trace cuts memory into cells that no access covers in part, so all bytes of a cell have the
// same last write: to keep that of every byte, without knowing the cells, gives each read the write
// that it has in the trace. Memory that turns out not to be shared changes nothing: what a thread
// did itself comes before what it does in any case.
//
// Thirty-two bytes for each eight of the program that are accessed, more where halves of four bytes
// are not written as a whole.

const PAGE_WORDS: u64 = 512;

/// The most pages that are followed.
const PAGES_MAX: usize = 1 << 15;

/// What is known of eight bytes.
#[derive(Clone, Default)]
struct ShadowWord {
    /// The last writes of the first four bytes and of the others.
    halves: [Clock; 2],
    /// The last writes of each byte, once that is not enough.
    bytes: Option<Box<[Clock; WORD_BYTES as usize]>>,
    /// The thread that accessed it first, plus one.
    thread: u32,
    is_shared: bool,
    is_written: bool,
}

impl ShadowWord {
    fn note(&mut self, thread: u32, writes: bool) {
        let thread = thread.wrapping_add(1);
        if self.thread == 0 {
            self.thread = thread;
        }
        self.is_shared |= self.thread != thread;
        self.is_written |= writes;
    }

    fn read(&self, from: u8, to: u8, clock: &mut Clock) {
        match &self.bytes {
            Some(bytes) => {
                bytes[usize::from(from)..usize::from(to)].iter().for_each(|byte| clock.join(byte));
            }
            None => {
                if from < 4 {
                    clock.join(&self.halves[0]);
                }
                if to > 4 {
                    clock.join(&self.halves[1]);
                }
            }
        }
    }

    fn write(&mut self, from: u8, to: u8, clock: &Clock) {
        if let Some(bytes) = &mut self.bytes {
            bytes[usize::from(from)..usize::from(to)].fill(clock.clone());
            return;
        }
        match (from, to) {
            (0, 4) => self.halves[0].clone_from(clock),
            (4, 8) => self.halves[1].clone_from(clock),
            (0, 8) => self.halves.fill(clock.clone()),
            _ => {
                let [first, second] = std::mem::take(&mut self.halves);
                if first.is_empty() && second.is_empty() && clock.is_empty() {
                    return;
                }
                let byte = |at: usize| if at < 4 { first.clone() } else { second.clone() };
                let mut bytes: Box<[Clock; WORD_BYTES as usize]> =
                    Box::new(std::array::from_fn(byte));
                bytes[usize::from(from)..usize::from(to)].fill(clock.clone());
                self.bytes = Some(bytes);
            }
        }
    }
}

/// The memory of a program.
#[derive(Default)]
struct Memory {
    pages: FxHashMap<u64, Box<[ShadowWord]>>,
    /// Whether there was more memory than is followed.
    is_full: bool,
}

impl Memory {
    /// Puts the writes that `access` of `thread` sees before it.
    fn read(&mut self, thread: u32, access: Access, clock: &mut Clock) {
        for (number, from, to) in access.words() {
            let Some(word) = self.word(number) else { return };
            word.note(thread, false);
            word.read(from, to, clock);
        }
    }

    /// From now on who reads what `access` of `thread` wrote comes after `clock`.
    fn write(&mut self, thread: u32, access: Access, clock: &Clock) {
        for (number, from, to) in access.words() {
            let Some(word) = self.word(number) else { return };
            word.note(thread, true);
            word.write(from, to, clock);
        }
    }

    /// Forgets the memory from `start` to `end`; says whether several threads shared some of it.
    fn forget(&mut self, start: u64, end: u64) -> bool {
        let words = start / WORD_BYTES..(end - 1) / WORD_BYTES + 1;
        let pages = words.start / PAGE_WORDS..(words.end - 1) / PAGE_WORDS + 1;
        let mut was_shared = false;
        let mut forget = |number: u64, page: &mut Box<[ShadowWord]>| {
            let base = number * PAGE_WORDS;
            let from = words.start.max(base) - base;
            let to = (words.end - base).min(PAGE_WORDS);
            for word in &mut page[from as usize..to as usize] {
                was_shared |= word.is_shared && word.is_written;
                *word = ShadowWord::default();
            }
        };
        // A block can be much larger than the memory that was touched.
        if pages.end - pages.start > self.pages.len() as u64 {
            let touched = self.pages.iter_mut().filter(|(number, _)| pages.contains(number));
            touched.for_each(|(&number, page)| forget(number, page));
        } else {
            for number in pages {
                if let Some(page) = self.pages.get_mut(&number) {
                    forget(number, page);
                }
            }
        }
        was_shared
    }

    fn word(&mut self, number: u64) -> Option<&mut ShadowWord> {
        let (page, place) = (number / PAGE_WORDS, (number % PAGE_WORDS) as usize);
        if self.pages.len() >= PAGES_MAX && !self.pages.contains_key(&page) {
            self.is_full = true;
            return None;
        }
        let new = || vec![ShadowWord::default(); PAGE_WORDS as usize].into_boxed_slice();
        self.pages.entry(page).or_insert_with(new).get_mut(place)
    }
}
