//! Whether a recorded event can have happened, by the rules of the trace model.
//!
//! A recording can be wrong: code that was not seen takes and releases locks, and threads that run
//! freely are seen in an order that was not quite theirs. What breaks a rule is not passed on. The
//! rules are those of [`Monitor`], and one more: a wake needs a notify since its wait that woke no
//! other. Among those it takes the earliest; since wakes come in the order of their ends, that
//! explains as many of them as can be explained.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, Id as _, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{ConditionId, ConditionOp, EventId, LockId, Monitor, Op, ThreadId, Violation};

/// Why an event cannot have happened.
pub type Impossible = &'static str;

const NO_LIFE: Impossible = "end of an object that is not live";
pub const NO_BLOCK: Impossible = "end of a block that did not begin";

/// What orders no threads, so that nothing is lost if it is left out.
pub const HARMLESS: [Impossible; 2] = [NO_LIFE, NO_BLOCK];

#[derive(Clone, Debug, Default)]
struct ConditionState {
    waiting_count: u32,
    /// Notifies that woke nobody yet, while somebody waits.
    notifies: BTreeSet<u64>,
    all_notified: u64,
}

/// The state that decides what can happen next.
#[derive(Debug, Default)]
pub struct Rules {
    pub monitor: Monitor,
    conditions: IndexVec<ConditionId, ConditionState>,
    /// Since how many events on conditions each waiting thread waits.
    waits: FxHashMap<ThreadId, u64>,
    condition_events: u64,
}

impl Rules {
    /// How `thread` holds `lock` now.
    pub fn hold(&self, thread: ThreadId, lock: LockId) -> Option<Mode> {
        let holds = |mode: &Mode| self.monitor.depth(lock, thread, *mode) > 0;
        [Mode::Exclusive, Mode::Shared].into_iter().find(holds)
    }

    /// Lets `op` happen next, or says why it cannot and changes nothing.
    pub fn step(&mut self, thread: ThreadId, op: Op) -> Result<(), Impossible> {
        let notify = match op {
            Op::Condition(ConditionOp::Wake, on) if self.monitor.waits_on(thread) == Some(on) => {
                self.notify_of(thread, on)?
            }
            _ => None,
        };
        // Only explanations speak of other events by their ids, and nothing is explained here.
        let id = EventId::from_index(0);
        self.monitor.step(id, thread, op).map_err(reason)?;
        if let Op::Condition(op, on) = op {
            self.step_condition(thread, op, on, notify);
        }
        Ok(())
    }

    /// The notify that wakes `thread`, which waits on `condition`; none where all were notified.
    fn notify_of(
        &mut self,
        thread: ThreadId,
        condition: ConditionId,
    ) -> Result<Option<u64>, Impossible> {
        let since = self.waits.get(&thread).copied().unwrap_or(0);
        let state = self.conditions.get_or_default(condition);
        if state.all_notified >= since {
            return Ok(None);
        }
        state.notifies.range(since..).next().map(|&it| Some(it)).ok_or("wake without a notify")
    }

    fn step_condition(
        &mut self,
        thread: ThreadId,
        op: ConditionOp,
        on: ConditionId,
        notify: Option<u64>,
    ) {
        self.condition_events += 1;
        let now = self.condition_events;
        let state = self.conditions.get_or_default(on);
        match op {
            ConditionOp::Wait => {
                state.waiting_count += 1;
                self.waits.insert(thread, now);
            }
            ConditionOp::Notify if state.waiting_count > 0 => _ = state.notifies.insert(now),
            ConditionOp::Notify => {}
            ConditionOp::NotifyAll => state.all_notified = now,
            ConditionOp::Wake | ConditionOp::Timeout => {
                notify.inspect(|notify| _ = state.notifies.remove(notify));
                state.waiting_count -= 1;
                // Notifies that nobody is left to be woken by need no memory.
                if state.waiting_count == 0 {
                    state.notifies.clear();
                }
                self.waits.remove(&thread);
            }
        }
    }
}

/// The rule that `violation` breaks, as it is counted.
fn reason(violation: Violation) -> Impossible {
    match violation {
        Violation::AfterJoin { .. } => "of a thread that was joined",
        Violation::StillWaiting(_) => "of a thread that waits",
        Violation::NotWaiting(_) => "wake without a wait",
        Violation::Held { .. } => "acquire of a lock that another thread holds",
        Violation::NotHeld { .. } => "release of a lock that its thread does not hold",
        Violation::ForksItself => "fork of oneself",
        Violation::ForkedTwice { .. } => "second fork of a thread",
        Violation::BeforeFork { .. } | Violation::ForkedAfterJoin { .. } => {
            "fork of a thread that ran before"
        }
        Violation::JoinsItself => "join of oneself",
        Violation::JoinsWaiting { .. } => "join of a thread that waits",
        Violation::StillInside(_) => "arrival at a barrier before departure from it",
        Violation::NotArrived(_) => "departure from a barrier without arrival",
        Violation::TooFewArrived { .. } => "departure from a barrier before all arrived",
        Violation::BelowZero(_) => "take from a semaphore at zero",
        Violation::AllocatedTwice(_) | Violation::FreedTwice(_) => NO_LIFE,
        Violation::NotBegun(_) => NO_BLOCK,
        _ => "of something that has no name",
    }
}
