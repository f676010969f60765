//! What a query about correct reorderings means: every state that one can reach, until a state
//! meets the query or all were visited.
//!
//! Exact where it ends. A state is how far each thread has come and the last write of each variable.

use std::ops::ControlFlow;

use reweave_trace::{AccessOp, ConditionOp, EventId, LockOp, Op, SemaphoreOp, Trace};

use crate::reachable::{Search, depth_first};

/// A question about the correct reorderings of a trace: is there one that meets all of this?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Events that happen.
    pub must: Vec<EventId>,
    /// Pairs of events that both happen, the first before the second.
    pub order: Vec<(EventId, EventId)>,
    /// Events that do not happen.
    pub absent: Vec<EventId>,
    /// Events that are each the next of their thread at the end, and that only locks, what a read
    /// sees, who waits and how many tokens there are keep from happening.
    pub enabled: Vec<EventId>,
    /// Reads that happen and need not see what they saw when observed.
    pub views: Vec<(EventId, View)>,
    /// Events after which their thread does nothing, and whose writes only reads of `views` see.
    pub stop: Vec<EventId>,
    /// Whether the other reads need only come after the write that they saw.
    pub relaxed: bool,
}

/// What a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Whatever is there.
    Any,
    /// This write, or the initial value.
    Of(Option<EventId>),
}

/// Whether a correct reordering meets a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This one does.
    Feasible(Vec<EventId>),
    /// None does.
    Infeasible,
    /// There are too many states.
    Unknown,
}

impl Answer {
    /// Whether there is one, if that is known.
    #[must_use]
    pub const fn known(&self) -> Option<bool> {
        match self {
            Self::Feasible(_) => Some(true),
            Self::Infeasible => Some(false),
            Self::Unknown => None,
        }
    }
}

impl Query {
    /// Are all of `events` next at once?
    #[must_use]
    pub fn enabled(events: &[EventId]) -> Self {
        Self { enabled: events.to_vec(), ..Self::default() }
    }

    /// Answers the query after at most `states_max` states.
    #[must_use]
    pub fn search(&self, trace: &Trace, states_max: usize) -> Answer {
        let mut found = None;
        let may_run = |search: &Search<'_>, event| {
            self.is_permitted(search, event)
                && self.sees_as_asked(search, event)
                && search.may_run_whatever_it_sees(event)
        };
        // Where reads need only come after what they saw, nobody asks for the last write.
        let writes_count = !self.relaxed || self.views.iter().any(|&(_, view)| view != View::Any);
        let explored = depth_first(trace, states_max, writes_count, may_run, |search, path| {
            if self.is_met(search) {
                found = Some(path.to_vec());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match found {
            Some(schedule) => Answer::Feasible(schedule),
            None if explored.complete => Answer::Infeasible,
            None => Answer::Unknown,
        }
    }

    fn view(&self, read: EventId) -> Option<View> {
        self.views.iter().find(|&&(own, _)| own == read).map(|&(_, view)| view)
    }

    fn is_met(&self, search: &Search<'_>) -> bool {
        self.enabled.iter().all(|&event| is_enabled(search, event))
            && self.must.iter().all(|&event| search.has_run(event))
            && self.order.iter().all(|&(_, second)| search.has_run(second))
            && self.views.iter().all(|&(read, _)| search.has_run(read))
    }

    /// Whether the query lets `event` happen now.
    fn is_permitted(&self, search: &Search<'_>, event: EventId) -> bool {
        let observed = &search.observed;
        let happening = observed.event(event);
        let is_after = |&stopped: &EventId| {
            let sees = observed.saw_write(event) == Some(stopped) && self.view(event).is_none();
            sees || observed.event(stopped).thread == happening.thread && stopped < event
        };
        !self.absent.contains(&event)
            && !self.enabled.contains(&event)
            && !self.stop.iter().any(is_after)
            && self.order.iter().all(|&(first, second)| second != event || search.has_run(first))
    }

    /// Whether `event`, if it is a read, sees now what it is to see.
    fn sees_as_asked(&self, search: &Search<'_>, event: EventId) -> bool {
        let op = search.observed.event(event).op;
        let Some(var) = op.var().filter(|_| op.is_read()) else { return true };
        let saw = search.observed.saw_write(event);
        match self.view(event) {
            Some(View::Any) => true,
            Some(View::Of(write)) => search.last_write(var) == write,
            None if matches!(op, Op::Access(AccessOp::UnknownRead, _)) => true,
            None if self.relaxed => saw.is_none_or(|writer| search.has_run(writer)),
            None => search.last_write(var) == saw,
        }
    }
}

/// Whether `event` is the next of its thread, and all that it needs has happened.
fn is_enabled(search: &Search<'_>, event: EventId) -> bool {
    let observed = &search.observed;
    let happening = observed.event(event);
    let is_next = search.next(happening.thread) == Some(event);
    let has_what_it_needs = match happening.op {
        Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
            observed.woken_by(event).all(|wait| search.has_run(wait.begin))
        }
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) | Op::Access(..) => true,
        Op::Semaphore(SemaphoreOp::Take, semaphore)
            if observed.trace.declared().start(semaphore).is_some() =>
        {
            true
        }
        _ => search.may_run_whatever_it_sees(event),
    };
    is_next && search.is_started(happening.thread) && has_what_it_needs
}
