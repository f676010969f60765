//! What a witness of nondeterminism is, and what it takes to be feasible.

use std::fmt::{self, Display, Formatter};

use reweave_trace::EventId;

/// The three orders that break the reads-from edge of a write and the read that saw it.
///
/// They order events; they do not ask that the read sees the interfering write and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WitnessKind {
    /// The interfering write, the read, then the writer.
    WriterAfter,
    /// The writer, the interfering write, then the read.
    Between,
    /// The interfering write, then the read; the writer does not happen.
    WriterAbsent,
}

impl WitnessKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::WriterAfter, Self::Between, Self::WriterAbsent];

    /// The number that the paper gives it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::WriterAfter => 1,
            Self::Between => 2,
            Self::WriterAbsent => 3,
        }
    }

    /// Whether no reordering shows a witness of this kind, there being no such events: an initial
    /// value is there before everything else.
    #[must_use]
    pub const fn is_void(self, writer: Option<EventId>, interfering: Option<EventId>) -> bool {
        match self {
            Self::WriterAfter | Self::WriterAbsent => writer.is_none(),
            Self::Between => interfering.is_none(),
        }
    }
}

/// A read that saw `writer`, and another write of the variable that it might see instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Witness {
    /// How the reads-from edge is broken.
    pub kind: WitnessKind,
    /// What the read saw; none is the initial value.
    pub writer: Option<EventId>,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The other write; none is the initial value.
    pub interfering: Option<EventId>,
}

/// Which reorderings count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All events happen, and every other read comes after what it saw, though other writes may come
    /// in between; for kind 3, some events do, so. This is what the paper decides.
    Order,
    /// Some events of each thread happen, and every other read sees what it saw.
    Prefix,
    /// As [`Mode::Prefix`], and the thread of the read goes no further: what it would do with the
    /// other value is not known.
    #[default]
    Strict,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Order, Self::Prefix, Self::Strict];

    /// How reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Prefix => "prefix",
            Self::Strict => "strict",
        }
    }
}

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
