//! Reads by code that was not recorded: which writes may a library have waited for?
//!
//! A library that was not rebuilt may wait for an atomic variable that the program changes in its own
//! code, or in what headers of the library bring. The read is not seen, so nothing would order what
//! follows the call after what came before the write. What a call may have looked at is what it was
//! given: objects that its arguments point to. It comes after all atomic writes to these. That is
//! assumed, as for unseen writes. What the library finds by pointers within the objects is not looked at.

use std::collections::BTreeMap;
use std::io;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

use super::AssumedOrder;
use super::values::Time;
use crate::event_log::Stream;
use crate::shadow::Blocks;

/// How long an object is taken to be that is no block of its own, or a part of a longer one.
const OBJECT_BYTES: u64 = 1 << 12;

/// Adds to `assumed` what calls of libraries come after because of what they may have read.
pub fn add_order(stream: &mut dyn Stream, assumed: &mut AssumedOrder) -> io::Result<()> {
    let mut writes = AtomicWrites::default();
    let mut time: Time = 0;
    while let Some((thread, event)) = stream.next_event()? {
        let Some(next) = time.checked_add(1) else { break };
        time = next;
        writes.step(thread, &event, time, assumed);
    }
    Ok(())
}

#[derive(Default)]
struct AtomicWrites {
    /// The last by each thread to what begins at an address.
    last: BTreeMap<u64, Vec<(u32, Time)>>,
    blocks: Blocks,
    /// Up to when the first thread comes after the second.
    acquired: FxHashMap<(u32, u32), Time>,
}

impl AtomicWrites {
    fn step(&mut self, thread: u32, event: &Event, time: Time, assumed: &mut AssumedOrder) {
        match event.kind {
            Kind::AtomicStore | Kind::AtomicUpdate => {
                let writers = self.last.entry(event.address).or_default();
                match writers.iter_mut().find(|(of, _)| *of == thread) {
                    Some((_, last)) => *last = time,
                    None => writers.push((thread, time)),
                }
            }
            Kind::Alloc | Kind::Free => self.change_blocks(event),
            Kind::Argument => self.look(thread, event.address, time, assumed),
            _ => {}
        }
    }

    fn change_blocks(&mut self, event: &Event) {
        // A stack is no object.
        if event.flags & flag::STACK != 0 {
            return;
        }
        let Some(change) = self.blocks.step(event) else { return };
        for (start, end) in change.renewed() {
            let over: Vec<u64> = self.last.range(start..end).map(|(&at, _)| at).collect();
            for at in over {
                self.last.remove(&at);
            }
        }
    }

    /// A library that `thread` calls may have read what is at `address`.
    fn look(&mut self, thread: u32, address: u64, time: Time, assumed: &mut AssumedOrder) {
        let Self { last, blocks, acquired } = self;
        let range = match blocks.holding(address) {
            Some(block) if block.end - block.start <= OBJECT_BYTES => block.start..block.end,
            Some(block) => address..block.end.min(address.saturating_add(OBJECT_BYTES)),
            None => address..address.saturating_add(OBJECT_BYTES),
        };
        let writes = last.range(range).flat_map(|(_, writers)| writers);
        for &(writer, until) in writes.filter(|&&(writer, _)| writer != thread) {
            let known = acquired.entry((thread, writer)).or_default();
            if *known < until {
                *known = until;
                assumed.add((until, false), time);
            }
        }
    }
}
