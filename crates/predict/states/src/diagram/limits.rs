//! How much a diagram may cost, and what happens when that is not enough.

use std::fmt::{self, Display, Formatter};

/// How much a diagram may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From how many windows of a level on it is worth looking for a better order of the chains.
    pub windows_soft: usize,
    /// The most windows of a level.
    pub windows_max: usize,
    /// About the most bytes that it takes.
    pub bytes_max: usize,
    /// The most choices of a number of events that are gone through.
    pub work_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { windows_soft: 1 << 14, windows_max: 1 << 20, bytes_max: 1 << 30, work_max: 1 << 34 }
    }
}

/// Says whether to stop.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// That on the windows of a level.
    Windows,
    /// That on bytes.
    Memory,
    /// That on choices gone through.
    Work,
    /// It was told to stop.
    Stopped,
}

impl Reason {
    /// Whether no other way of doing the same is worth trying.
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Work | Self::Stopped)
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Windows => "too many windows",
            Self::Memory => "too little memory",
            Self::Work => "too much work",
            Self::Stopped => "stopped",
        })
    }
}

/// A diagram that would not fit its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Which of them.
    pub reason: Reason,
    /// How many chains were fixed by then.
    pub level: usize,
    /// How many windows that left.
    pub windows_count: usize,
}

impl Display for Overflow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { reason, level, windows_count } = self;
        write!(
            f,
            "{reason} for the cut diagram (threads fixed: {level}, windows then: {windows_count})"
        )
    }
}

impl std::error::Error for Overflow {}

/// Counts work.
pub(super) struct Meter<'a> {
    left: u64,
    /// How much was spent since `stop` was asked.
    unasked: u64,
    /// Once told to stop it stays so.
    is_stopped: bool,
    stop: Stop<'a>,
}

/// After how much work `stop` is asked again.
const ASK_EVERY: u64 = 1 << 14;

impl<'a> Meter<'a> {
    pub(super) const fn new(work_max: u64, stop: Stop<'a>) -> Self {
        // Asked at the first occasion, so that even small work ends when told to.
        Self { left: work_max, unasked: ASK_EVERY, is_stopped: false, stop }
    }

    /// Takes `work` from what is left.
    ///
    /// # Errors
    /// If there is not so much left, or it was told to stop.
    #[inline]
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Reason> {
        self.left = self.left.checked_sub(work).ok_or(Reason::Work)?;
        self.unasked = self.unasked.saturating_add(work);
        if self.unasked >= ASK_EVERY {
            self.unasked = 0;
            self.is_stopped |= (self.stop)();
        }
        if self.is_stopped { Err(Reason::Stopped) } else { Ok(()) }
    }

    /// Allows for so much more work.
    pub(super) const fn grant(&mut self, work: u64) {
        self.left = self.left.saturating_add(work);
    }
}
