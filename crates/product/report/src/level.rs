//! What tools that show findings beside the code need to know: how bad a finding is, and where it
//! is first of all.

use reweave_analysis::{Finding, Guarantee};
use reweave_trace::{EventId, Trace};

use crate::Examined;
use crate::sources::Place;

/// How bad a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// It is a fault, and a schedule proves it.
    Error,
    /// A theorem says that it is a fault, or that there is another before it; or a proven one that
    /// is no reason to fail.
    Warning,
    /// A lead; or a state that was asked for and may be a good one.
    Note,
}

impl Level {
    /// How bad `finding` is, one of those of `examined`.
    pub(crate) fn new(examined: &Examined<'_>, finding: &Finding) -> Self {
        let is_asked_for = finding.detail.state().is_some_and(|state| !state.modality.is_rule());
        match finding.guarantee() {
            Guarantee::Witnessed if is_asked_for => Self::Note,
            Guarantee::Witnessed if examined.fails_on.contains(&finding.kind) => Self::Error,
            Guarantee::Witnessed => Self::Warning,
            Guarantee::First => Self::Warning,
            Guarantee::Unordered => Self::Note,
        }
    }
}

/// At most `count_max` of the events at fault, the one first that the finding is to be shown at: a
/// read that can see something else, or the first at a line of a file.
pub(crate) fn main_event_first(trace: &Trace, finding: &Finding, count_max: usize) -> Vec<EventId> {
    let mut events = finding.events.clone();
    let read = finding.detail.nondeterminism().and_then(|detail| detail.read);
    let is_in_file =
        |event: &EventId| Place::new(trace.names().location(trace.event(*event).site)).is_some();
    let main = match read {
        Some(read) => events.iter().position(|&event| event == read),
        None => events.iter().position(is_in_file),
    };
    if let Some(main) = main {
        events[..=main].rotate_right(1);
    }
    events.truncate(count_max);
    events
}
