//! Positions of a thread that has one way only.

use reweave_trace::ThreadId;

use super::{Station, Stations};
use crate::ctp::{Action, Ctp, Point, StepId};

/// A thread of one way by its accesses: the steps that others can notice.
///
/// A *position* is a number of accesses made. Other steps belong to the access that follows, and
/// those at the end to the last one; a thread that has no other has them as its only access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The accesses, in order.
    pub accesses: Vec<StepId>,
    /// The point of each position, one more than accesses.
    pub points: Vec<Point>,
    stations: Vec<Station>,
}

impl Line {
    /// The line of `thread`, which must have one way only and the given stations.
    #[must_use]
    pub fn new(ctp: &Ctp, stations: &Stations, thread: ThreadId) -> Self {
        let entry = ctp.threads[thread].points.start;
        let mut points = vec![entry];
        let mut accesses = Vec::new();
        let mut end = entry;
        while let Some((id, step)) = ctp.steps_from(end).next() {
            end = step.to;
            if step.action != Action::Local {
                accesses.push(id);
                points.push(step.to);
            }
        }
        if accesses.is_empty()
            && let Some((first, _)) = ctp.steps_from(entry).next()
        {
            accesses.push(first);
            points.push(end);
        }
        if let Some(last) = points.last_mut() {
            *last = end;
        }
        let stations = points.iter().map(|&point| stations.of(point)).collect();
        Self { accesses, points, stations }
    }

    /// The last position.
    #[must_use]
    pub fn end(&self) -> usize {
        self.accesses.len()
    }

    /// The station of `position`; positions past the end are at the end.
    #[must_use]
    pub fn station(&self, position: usize) -> Station {
        self.stations[position.min(self.end())]
    }
}
