//! Where else a fault is, and in which other traces.

use reweave_analysis::{Finding, Kind, Listed, Outcome, Reported};
use reweave_base::FxHashSet;
use reweave_trace::Trace;

use crate::counted;
use crate::text::sites_line;

/// How many places of a fault are listed below it.
pub const PLACES_MAX: usize = 5;

/// How many places are listed where a fault is explained.
pub const ALL_PLACES_MAX: usize = 50;

/// How many traces are named.
const TRACES_MAX: usize = 5;

/// What stands for each place, and for several of them.
const fn thing(kind: Kind) -> &'static str {
    match kind {
        Kind::Race => "pair of locations",
        _ => "place",
    }
}

/// `count` places of faults of `kind`: `2 pairs of locations`.
pub fn counted_places(kind: Kind, count: u64) -> String {
    match (kind, count) {
        (Kind::Race, 2..) => format!("{count} pairs of locations"),
        _ => counted(count, thing(kind)),
    }
}

/// Where a fault is besides where it is shown.
pub struct Places {
    /// What introduces them.
    pub heading: String,
    /// What happens there, a line each.
    pub lines: Vec<String>,
    /// How many there are besides these.
    pub unlisted_count: usize,
}

impl Places {
    /// At most `max` of those of `reported`; none if it has none.
    pub fn new(trace: &Trace, reported: &Reported, max: usize) -> Option<Self> {
        let count = reported.places.len();
        let line = |finding: &Finding| match finding.count {
            1 => sites_line(trace, finding),
            count => format!("{}, {}", sites_line(trace, finding), counted(count, "instance")),
        };
        let others = counted_places(reported.finding.kind, count as u64);
        let (number, things) = others.split_once(' ')?;
        (count > 0).then(|| Self {
            heading: format!("The same fault at {number} other {things}:"),
            lines: chosen(trace, reported, max).into_iter().map(line).collect(),
            unlisted_count: count.saturating_sub(max),
        })
    }

    /// What says how many are not listed; none if all are.
    pub fn unlisted_note(&self) -> Option<String> {
        let more = self.unlisted_count;
        (more > 0).then(|| format!("and {more} more; --all lists each instance"))
    }
}

/// At most `max` places of `reported`, of which those are preferred that name a location for the first time.
pub fn chosen<'r>(trace: &Trace, reported: &'r Reported, max: usize) -> Vec<&'r Finding> {
    let mut named: FxHashSet<&str> = reported.finding.locations(trace).into_iter().collect();
    let mut is_chosen = vec![false; reported.places.len()];
    let mut left = max;
    for is_any_good in [false, true] {
        for (is_chosen, (_, place)) in is_chosen.iter_mut().zip(&reported.places) {
            let mut is_new = false;
            for location in place.locations(trace) {
                is_new |= named.insert(location);
            }
            if left > 0 && !*is_chosen && (is_new || is_any_good) {
                *is_chosen = true;
                left -= 1;
            }
        }
    }
    let places = reported.places.iter().zip(is_chosen);
    places.filter(|(_, is_chosen)| *is_chosen).map(|((_, place), _)| place).collect()
}

/// Which other traces show `reported`, as a sentence; none if no other does.
pub fn traces_note(reported: &Reported) -> Option<String> {
    let traces = &reported.traces;
    let mut named: Vec<String> = traces.iter().take(TRACES_MAX).cloned().collect();
    if traces.len() > TRACES_MAX {
        named.push(counted((traces.len() - TRACES_MAX) as u64, "other trace"));
    }
    (!named.is_empty()).then(|| format!("Also found in {}.", named.join(", ")))
}

/// Which findings of `outcome` are listed with other traces, as a sentence; none if none is.
pub fn listed_note(outcome: &Outcome) -> Option<String> {
    let mut by_trace: Vec<(&str, Vec<&str>)> = Vec::new();
    for Listed { trace, id, .. } in &outcome.listed {
        match by_trace.iter_mut().find(|(name, _)| name == trace) {
            Some((_, ids)) if ids.contains(&id.as_str()) => {}
            Some((_, ids)) => ids.push(id),
            None => by_trace.push((trace, vec![id])),
        }
    }
    let said = |(trace, ids): &(&str, Vec<&str>)| {
        let shown = &ids[..ids.len().min(TRACES_MAX)];
        let more = match ids.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more} of {trace}", shown.join(", "))
    };
    let said: Vec<String> = by_trace.iter().map(said).collect();
    (!said.is_empty()).then(|| format!("Also found here: {}.", said.join("; ")))
}
