//! Observers of a run.

use reweave_lang::BlockId;
use reweave_trace::OpKind;

use crate::code::Address;

/// A thread of a run, numbered from 0 in the order in which threads start.
pub type ThreadNumber = u32;

/// What kind of event was made, and on what, by the number that the machine has for it; 0 for nothing.
pub(crate) type Made = (OpKind, u32);

/// Observes a run. By default everything is ignored.
pub(crate) trait Observer {
    /// A thread starts: at the start of the run, or by the event that is reported next.
    fn thread(&mut self, _thread: ThreadNumber, _name: &str) {}
    /// The instruction `at` of `thread` made an event, with `value` where there is one.
    fn event(&mut self, _thread: ThreadNumber, _at: Address, _what: Made, _value: Option<i64>) {}
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
