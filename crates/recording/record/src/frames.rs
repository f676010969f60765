//! Frames of functions whose variables other threads access.
//!
//! Compilers say when a function is entered and left, not where its variables are. Where it keeps a frame pointer, the
//! runtime says where its frame ends; what lies below that on the same stack is gone once the function is left. An
//! access by another thread is within the innermost frame that ends above it. When that frame is left, a
//! [`Kind::Free`] with the flag `STACK` is added, of all that others accessed in it: what is there later is another
//! variable.
//!
//! A thread may have several stacks, as with coroutines, and may jump out of functions. So an end is only believed if
//! the frame that is left is the innermost one that was entered, and frames end only what is near. What is not known is not said:
//! then variables live on, as those do to which nobody else has a pointer.
//!
//! Costs a look into a table for each access.

use std::collections::VecDeque;
use std::io;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

use crate::event_log::{Ending, Stream};
use crate::shadow::{Access, PAGE_BYTES, WORD_BYTES};

/// No variable is further from the end of its frame, for all that we look at. It keeps the stacks of coroutines apart.
const DISTANCE_MAX: u64 = 32 << 10;

/// More nested calls than this are not looked at.
const DEPTH_MAX: usize = 1 << 16;

/// The frames of a thread.
#[derive(Default)]
struct Frames {
    /// Where those of the functions that it is in end, the innermost last; 0 where that is not known.
    ends: Vec<u64>,
    /// The same without those that are not known. On one stack they go down.
    known: Vec<u64>,
    /// The words that other threads accessed, by the ends of the frames that they are in.
    shared: FxHashMap<u64, Words>,
}

/// The first and the last of some words, by address.
#[derive(Clone, Copy)]
struct Words {
    first: u64,
    last: u64,
}

impl Frames {
    /// A function is entered whose frame ends at `end`, or 0.
    fn enter(&mut self, end: u64) {
        // Those that are further in were left by a jump, or are on another stack: nothing is said of them.
        while self.ends.last().is_some_and(|&top| top != 0 && top <= end) {
            self.pop();
        }
        if self.ends.len() < DEPTH_MAX {
            self.ends.push(end);
            self.known.extend((end != 0).then_some(end));
        }
    }

    /// A function is left whose frame ends at `end`, if it has one: what others accessed in it.
    fn leave(&mut self, end: u64) -> Option<Words> {
        loop {
            match *self.ends.last()? {
                top if top == end && end != 0 => return self.pop(),
                // It is on another stack.
                top if top != 0 && top < end && end - top > DISTANCE_MAX => _ = self.pop(),
                // Without a frame pointer, or if the hook is called after that was put back, `end` may be that of the
                // function around it; or those further in were left by a jump. Either way the innermost one is gone.
                top if top < end || top == 0 => {
                    self.pop();
                    return None;
                }
                _ => return None,
            }
        }
    }

    /// The innermost frame is gone: what others accessed in it.
    fn pop(&mut self) -> Option<Words> {
        let end = self.ends.pop().filter(|&end| end != 0)?;
        self.known.pop();
        self.shared.remove(&end)
    }

    /// Another thread accesses the word at `address`.
    fn share(&mut self, address: u64) {
        let outer = self.known.partition_point(|&end| end > address);
        let innermost = outer.checked_sub(1).map(|place| self.known[place]);
        let is_near = |&end: &u64| address < end && end - address <= DISTANCE_MAX;
        let Some(end) = innermost.filter(is_near) else { return };
        let words = self.shared.entry(end).or_insert(Words { first: address, last: address });
        words.first = words.first.min(address);
        words.last = words.last.max(address);
    }
}

/// A recording in which frames end that threads share.
pub struct WithFrames<S> {
    inner: S,
    threads: FxHashMap<u32, Frames>,
    /// Whose frames are in which page.
    owners: FxHashMap<u64, u32>,
    /// The page of the last frame, with its owner.
    last: Option<(u64, u32)>,
    queue: VecDeque<(u32, Event)>,
}

impl<S: Stream> WithFrames<S> {
    /// Adds to the events of `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            threads: FxHashMap::default(),
            owners: FxHashMap::default(),
            last: None,
            queue: VecDeque::new(),
        }
    }

    /// The thread `number` enters a function whose frame ends at `end`, if that is known.
    fn enter(&mut self, number: u32, end: u64) {
        self.threads.entry(number).or_default().enter(end);
        let page = (end.wrapping_sub(1)) / PAGE_BYTES;
        if end != 0 && self.last != Some((page, number)) {
            self.owners.insert(page, number);
            self.last = Some((page, number));
        }
    }

    fn access(&mut self, number: u32, access: Access) {
        for part in access.parts() {
            let owner = self.owners.get(&(part.start / PAGE_BYTES));
            let Some(&owner) = owner.filter(|&&owner| owner != number) else { continue };
            let Some(frames) = self.threads.get_mut(&owner) else { continue };
            for (word, ..) in part.words() {
                frames.share(word * WORD_BYTES);
            }
        }
    }
}

impl<S: Stream> Stream for WithFrames<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        if let Some(event) = self.queue.pop_front() {
            return Ok(Some(event));
        }
        let Some((number, event)) = self.inner.next_event()? else { return Ok(None) };
        match event.kind {
            Kind::Enter => self.enter(number, event.code),
            Kind::Leave => {
                let left = self.threads.get_mut(&number).and_then(|it| it.leave(event.address));
                if let Some(Words { first, last }) = left {
                    // It ends within the function, which is left next.
                    self.queue.push_back((number, event));
                    let mut end = Event::new(Kind::Free, first, 0);
                    (end.flags, end.extra) = (flag::STACK, Some(last + WORD_BYTES - first));
                    return Ok(Some((number, end)));
                }
            }
            Kind::End => _ = self.threads.remove(&number),
            _ if !self.owners.is_empty() => {
                if let Some(access) = Access::new(&event) {
                    self.access(number, access);
                }
            }
            _ => {}
        }
        Ok(Some((number, event)))
    }

    fn ending(&self) -> Option<Ending> {
        self.inner.ending()
    }
}

#[cfg(test)]
mod tests;
