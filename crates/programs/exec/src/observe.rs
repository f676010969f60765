//! Observers of a run.

use reweave_lang::BlockId;

use crate::code::Address;

/// A thread of a run, numbered from 0 in the order in which threads start.
pub type ThreadNumber = u32;

/// What an event did, by the numbers that the machine has for things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Let,
    // A branch; whether what follows depends on it.
    Branch { opens: bool },
    Read(u32),
    Write(u32),
    AtomicRead(u32),
    AtomicUpdate(u32),
    // Asks for a lock, and never gets it.
    Request(u32),
    Acquire(u32),
    Release(u32),
    Wait(u32),
    Wake(u32),
    Notify(u32),
    NotifyAll(u32),
    Begin(u32),
    End(u32),
    Fork(ThreadNumber),
    Join(ThreadNumber),
}

/// Observes a run. By default everything is ignored.
pub(crate) trait Observer {
    /// A thread starts: at the start of the run, or by the event that is reported next.
    fn thread(&mut self, _thread: ThreadNumber, _name: &str) {}
    /// The instruction `at` of `thread` did something, with `value` where there is one.
    fn event(&mut self, _thread: ThreadNumber, _at: Address, _what: Happened, _value: Option<i64>) {
    }
    /// An execution of `block` starts, inside `depth` others of the function.
    fn enter(&mut self, _thread: ThreadNumber, _block: BlockId, _depth: u16) {}
    /// A statement starts.
    fn begin(&mut self, _thread: ThreadNumber, _position: u32, _depth: u16) {}
    /// A function is called by the instruction `at`.
    fn call(&mut self, _thread: ThreadNumber, _at: Address) {}
    /// A function returns.
    fn leave(&mut self, _thread: ThreadNumber) {}
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {}
