//! Joins findings to faults: within a trace, and over several.
//!
//! What makes two findings the same fault is said in [`Identities`]. Here they are put together: each finding
//! joins those that share a mark with it, and joins these with each other. Over several traces each fault joins the
//! first that shares a mark with it and is another trace's, and what that is listed with.
//!
//! Linear in the findings and their marks, but for look-ups.

use reweave_analysis::{Finding, Identities, Kind, Listed, Outcome, Reach, Reported};
use reweave_base::FxHashMap;
use reweave_trace::Trace;

/// Which findings are the same fault, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// For each finding one of the same fault that came before it, or itself.
    parents: Vec<usize>,
    /// For each mark a finding that has it.
    marked: FxHashMap<u64, usize>,
    count: usize,
}

impl Faults {
    /// How many faults there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Whether what has `marks` is of a fault that is known.
    pub(crate) fn has(&self, marks: &[u64]) -> bool {
        marks.iter().any(|mark| self.marked.contains_key(mark))
    }

    /// Adds the next finding, which has `marks`.
    pub(crate) fn add(&mut self, marks: &[u64]) {
        let at = self.parents.len();
        self.parents.push(at);
        self.count += 1;
        for &mark in marks {
            let other = *self.marked.entry(mark).or_insert(at);
            let [one, other] = [self.first(at), self.first(other)];
            self.count -= usize::from(one != other);
            self.parents[one.max(other)] = one.min(other);
        }
    }

    /// The first finding of the fault that the finding `at` is of.
    pub(crate) fn first(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }
}

/// The faults that `findings`, the first to be shown first, are of; each finding is one by itself if
/// `is_grouped` is false. Each gets its id and its fingerprints.
pub(crate) fn faults(
    identities: &Identities<'_>,
    findings: Vec<Finding>,
    is_grouped: bool,
) -> Vec<Reported> {
    let mut known = Faults::default();
    for finding in &findings {
        let marks = if is_grouped { identities.marks(finding, Reach::Trace) } else { Vec::new() };
        known.add(&marks);
    }
    let mut numbers = [0; Kind::ALL.len()];
    let mut faults: Vec<Reported> = Vec::new();
    let mut fault_of: FxHashMap<usize, usize> = FxHashMap::default();
    for (at, finding) in findings.into_iter().enumerate() {
        let fingerprint = identities.fingerprint(&finding);
        let of = *fault_of.entry(known.first(at)).or_insert(faults.len());
        if let Some(fault) = faults.get_mut(of) {
            fault.places.push((fingerprint, finding));
            continue;
        }
        let number = &mut numbers[finding.kind as usize];
        *number += 1;
        let id = format!("{}{number}", finding.kind.letter());
        faults.push(Reported::new(id, fingerprint, finding));
    }
    faults
}

/// A trace that was examined: what it is called, and what was found in it.
pub type Examined<'a> = (&'a str, &'a Trace, &'a mut Outcome);

/// Lists each fault that several of `examined` show once, with the first of them. The others say which that are; no id changes.
///
/// ```
/// use reweave_analysis::Settings;
/// use reweave_catalog::{Quiet, list_once, run, select};
///
/// let traces = [
///     reweave_testkit::std("T1|w(x)|a.c:1\nT2|w(x)|a.c:2\n"),
///     reweave_testkit::std("T1|w(x)|a.c:1\nT2|w(x)|a.c:2\nT1|w(y)|a.c:3\nT2|w(y)|a.c:4\n"),
/// ];
/// let analyses = select("races.exact", &[])?;
/// let mut found = traces.each_ref().map(|it| run(it, &analyses, &Settings::default(), &Quiet));
/// let [one, other] = &mut found;
/// list_once(&mut [("one", &traces[0], one), ("other", &traces[1], other)]);
/// assert_eq!(found[0].findings[0].traces, ["other"]);
/// assert_eq!((found[1].findings.len(), &*found[1].listed[0].trace), (1, "one"));
/// # Ok::<(), reweave_catalog::UnknownName>(())
/// ```
pub fn list_once(examined: &mut [Examined<'_>]) {
    // For each mark the first fault that has it, and where each fault is: which trace, and which of its findings.
    let mut marked: FxHashMap<u64, usize> = FxHashMap::default();
    let mut places: Vec<(usize, usize)> = Vec::new();
    // What is listed with another trace, and where.
    let mut homes: FxHashMap<(usize, usize), (usize, usize)> = FxHashMap::default();
    for (trace_at, (_, trace, outcome)) in examined.iter().enumerate() {
        let identities = Identities::new(trace);
        for (at, fault) in outcome.findings.iter().enumerate() {
            let marks = fault.findings().flat_map(|it| identities.marks(it, Reach::Traces));
            let number = places.len();
            places.push((trace_at, at));
            let firsts = marks.map(|mark| *marked.entry(mark).or_insert(number));
            // What one trace tells apart stays so. What both share with a third need not be what they are.
            let first = firsts.filter(|&first| places[first].0 != trace_at).min();
            if let Some(first) = first {
                let home = homes.get(&places[first]).copied().unwrap_or(places[first]);
                homes.insert((trace_at, at), home);
            }
        }
    }
    for place in &places {
        let Some(&(home, listed)) = homes.get(place) else { continue };
        let name = examined[place.0].0.to_owned();
        let traces = &mut examined[home].2.findings[listed].traces;
        if traces.last() != Some(&name) {
            traces.push(name);
        }
    }
    let names: Vec<(&str, Vec<String>)> = examined.iter().map(|it| (it.0, ids(it.2))).collect();
    for (trace_at, (_, _, outcome)) in examined.iter_mut().enumerate() {
        for (at, fault) in std::mem::take(&mut outcome.findings).into_iter().enumerate() {
            match homes.get(&(trace_at, at)) {
                None => outcome.findings.push(fault),
                Some(&(home, listed)) => {
                    let (trace, ids) = &names[home];
                    let (trace, id) = ((*trace).to_owned(), ids[listed].clone());
                    outcome.listed.push(Listed { fault, trace, id });
                }
            }
        }
    }
}

fn ids(outcome: &Outcome) -> Vec<String> {
    outcome.findings.iter().map(|fault| fault.id.clone()).collect()
}
