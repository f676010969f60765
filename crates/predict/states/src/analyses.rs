//! The search for states as analyses: what the driver runs.

use reweave_analysis::{
    Analysis, Counter, Coverage, Detail, Evidence, Finding, GlobalState, Guarantee, Info, Kind,
    Layer, Settings, Sink, Subject, Truncation,
};
use reweave_base::IndexVec;
use reweave_order::poset::{Relation, least_cut};
use reweave_trace::{EventId, Goal, Reordering, ThreadId, Trace};

use crate::find::{Answer, find, find_online, last_events};
use crate::pairwise::{RacyPair, first_races_until};
use crate::predicate::{Leaf, Modality, Predicate};

/// What the family offers without being given a predicate.
pub const ANALYSES: &[&dyn Analysis] = &[&Race];

/// The paper that the family follows.
const PAPER: &str = "Chang, Garg (PPoPP 2015)";

/// States that meet given predicates.
#[derive(Clone, Debug)]
pub struct Find {
    /// The predicates, which are about the trace that is examined.
    pub predicates: Vec<Predicate>,
    /// Which order the states are of.
    pub relation: Relation,
    /// Whether the online detector searches.
    pub is_online: bool,
}

/// What the search for given predicates is called.
pub const FIND: &str = "states.find";

static FIND_INFO: Info = Info {
    name: FIND,
    family: "states",
    kind: Kind::Predicate,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: false,
    summary: "global states that meet a given predicate",
    paper: PAPER,
};

impl Analysis for Find {
    fn info(&self) -> &'static Info {
        &FIND_INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut counts = Counts::default();
        let total = self.predicates.len() as u64;
        for (done, predicate) in (0..).zip(&self.predicates) {
            sink.progress(done, total);
            if sink.is_cancelled() {
                counts.truncated = counts.truncated.or(Some(Truncation::Cancelled));
                break;
            }
            counts.predicates += 1;
            let stop = || sink.is_cancelled();
            let (trace, budget) = (subject.trace(), settings.budget);
            let found = if self.is_online {
                find_online(trace, predicate, self.relation, settings.threads, budget, &stop)
            } else {
                find(trace, predicate, self.relation, budget, &stop)
            };
            let Ok(answer) = found else {
                // Its poset does not fit in memory.
                counts.undecided += 1;
                counts.truncated = counts.truncated.or(Some(Truncation::Budget));
                continue;
            };
            counts.events += answer.events_count as u64;
            if answer.is_cut_short {
                let is_cancelled = sink.is_cancelled();
                let reason = if is_cancelled { Truncation::Cancelled } else { Truncation::Budget };
                counts.truncated = counts.truncated.or(Some(reason));
            }
            match answer.is_met.filter(|&is_met| is_met == answer.state.is_some()) {
                Some(true) => {
                    counts.met += 1;
                    let found = finding(subject, predicate, self.relation, &answer);
                    if found.as_ref().is_some_and(is_fault) {
                        counts.refused += 1;
                        counts.truncated = Some(Truncation::EngineFault);
                    }
                    if found.is_some_and(|found| sink.found(found).is_break()) {
                        counts.truncated = counts.truncated.or(Some(Truncation::Limit));
                        break;
                    }
                }
                Some(false) => {
                    counts.missing_values += u64::from(predicate.unknowns().next().is_some());
                    if predicate.never_known().next().is_some() {
                        // Known nowhere, they leave the question undecided.
                        counts.truncated = counts.truncated.or(Some(Truncation::MissingValues));
                    }
                }
                None => counts.undecided += 1,
            }
        }
        counts.coverage(FIND)
    }
}

/// How far a search went.
#[derive(Debug, Default)]
struct Counts {
    predicates: u64,
    met: u64,
    undecided: u64,
    /// Those not met that speak of values that the trace does not have everywhere.
    missing_values: u64,
    events: u64,
    refused: u64,
    truncated: Option<Truncation>,
}

impl Counts {
    fn coverage(self, analysis: &'static str) -> Coverage {
        let mut counters = vec![
            (Counter::Predicates, self.predicates),
            (Counter::Met, self.met),
            (Counter::Undecided, self.undecided),
            (Counter::MissingValues, self.missing_values),
            (Counter::Events, self.events),
        ];
        counters.extend((self.refused > 0).then_some((Counter::Refused, self.refused)));
        Coverage { analysis, truncated: self.truncated, counters }
    }
}

/// Whether the checker refused a state of the relation of which every state is reached by some run.
fn is_fault(finding: &Finding) -> bool {
    let state = finding.detail.state();
    let is_reachable = state.is_some_and(|it| it.order == Relation::TraceOrderPreserving);
    is_reachable && finding.evidence.proof().is_none()
}

/// The finding of the state that meets `predicate`, if there is one.
fn finding(
    subject: &Subject<'_>,
    predicate: &Predicate,
    relation: Relation,
    answer: &Answer,
) -> Option<Finding> {
    let trace = subject.trace();
    let state = answer.state.as_ref()?;
    if let Some((first, second)) = answer.race {
        let var = trace.event(first).op.var()?;
        let race = RacyPair { var, first, second };
        let asked = Asked { predicate: predicate.text(), modality: predicate.modality() };
        return Some(racing(subject, FIND, asked, race, state));
    }
    assert!(predicate.is_met(state), "the state found meets the predicate");
    let spelled = |value: Option<i64>, is_truth: bool| match value {
        Some(value) if is_truth => Some((value == 1).to_string()),
        value => value.map(|value| value.to_string()),
    };
    let values = predicate.values(state);
    let values = values.map(|atom| (atom.text.to_owned(), spelled(atom.value, atom.is_truth)));
    let detail = GlobalState {
        predicate: predicate.text().to_owned(),
        modality: predicate.modality(),
        order: relation,
        method: answer.method,
        cut: whole(trace, state),
        values: values.collect(),
    };
    let last = last_events(trace, state);
    let reordering = Reordering { base: state.clone(), schedule: Vec::new() };
    let proof = subject.prove(reordering, Goal::Reaches(last.clone())).ok();
    let message = message(predicate, answer, proof.is_some());
    let evidence = match (predicate.modality(), proof) {
        // What every run does, one run does not show.
        (Modality::Definitely, example) => Evidence::Decided(example),
        (_, Some(proof)) => Evidence::Schedule(proof),
        (_, None) => Evidence::Unordered,
    };
    let matters = |event: &EventId| predicate.threads().contains(&trace.event(*event).thread);
    Some(Finding {
        analysis: FIND,
        kind: Kind::Predicate,
        events: last.into_iter().filter(matters).collect(),
        message,
        count: 1,
        evidence,
        detail: Detail::State(Box::new(detail)),
    })
}

/// `state` with a number for every thread.
fn whole(trace: &Trace, state: &IndexVec<ThreadId, u32>) -> IndexVec<ThreadId, u32> {
    let threads = trace.names().threads.entries();
    threads.map(|(thread, _)| state.get(thread).copied().unwrap_or(0)).collect()
}

/// What is wrong, in a sentence.
fn message(predicate: &Predicate, answer: &Answer, is_proven: bool) -> String {
    let text = predicate.text();
    let reached = reached(is_proven);
    // A longer search might have found a lesser one.
    let least = if answer.is_cut_short { "" } else { "; no smaller state does" };
    match predicate.modality() {
        Modality::Possibly => format!("{reached} meets {text}{least}"),
        Modality::Definitely => {
            let leaves = &predicate.goal().leaves;
            let is_shared = leaves.iter().any(|leaf| matches!(leaf, Leaf::Shared(_)));
            let written =
                if is_shared { ", its variables written in the order observed," } else { "" };
            format!("{text} holds: every run in this order{written} passes such a state")
        }
        Modality::Always | Modality::Never => format!("{reached} breaks {text}{least}"),
    }
}

/// How a sentence on a state begins.
const fn reached(is_proven: bool) -> &'static str {
    if is_proven {
        "a state can be reached that"
    } else {
        "happens-before allows a state, which no run is known to reach, that"
    }
}

/// The paper's data races, a state for each variable.
#[derive(Clone, Copy, Debug)]
pub struct Race;

static RACE: Info = Info {
    name: "states.race",
    family: "states",
    kind: Kind::Predicate,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: false,
    summary: "global states whose last accesses race, by happens-before, one per variable",
    paper: PAPER,
};

impl Analysis for Race {
    fn info(&self) -> &'static Info {
        &RACE
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let (races, is_whole) = first_races_until(trace, &|| sink.is_cancelled());
        let total = races.len() as u64;
        let mut truncated = (!is_whole).then_some(Truncation::Cancelled);
        for (done, &race) in (0..).zip(&races) {
            sink.progress(done, total);
            if sink.is_cancelled() {
                truncated = Some(Truncation::Cancelled);
                break;
            }
            let state = least_cut(trace, Relation::HappensBefore, &[race.first, race.second]);
            let name = trace.names().vars.name(race.var);
            let text = format!("race on {name}");
            let asked = Asked { predicate: &text, modality: Modality::Possibly };
            if sink.found(racing(subject, RACE.name, asked, race, &state)).is_break() {
                truncated = Some(Truncation::Limit);
                break;
            }
        }
        Coverage { analysis: RACE.name, truncated, counters: vec![(Counter::ExaminedVars, total)] }
    }
}

/// The predicate that a finding is about.
struct Asked<'a> {
    predicate: &'a str,
    modality: Modality,
}

/// The finding of `race`; `state` is the least with both accesses. Shown is the one before them, in
/// which both are next: there they can happen at once, which the checker can certify.
fn racing(
    subject: &Subject<'_>,
    analysis: &'static str,
    asked: Asked<'_>,
    race: RacyPair,
    state: &IndexVec<ThreadId, u32>,
) -> Finding {
    let trace = subject.trace();
    let RacyPair { var, first, second } = race;
    // Before both, each is its thread's next.
    let mut base = state.clone();
    for event in [first, second] {
        base[trace.event(event).thread] = trace.position(event);
    }
    let cut = whole(trace, &base);
    let reordering = Reordering { base, schedule: Vec::new() };
    let proof = subject.prove(reordering, Goal::Race(first, second)).ok();
    let name = trace.names().vars.name(var);
    let detail = GlobalState {
        predicate: asked.predicate.to_owned(),
        modality: asked.modality,
        order: Relation::HappensBefore,
        method: "pairwise",
        cut,
        values: Vec::new(),
    };
    let does = if asked.modality.is_rule() { "breaks" } else { "meets" };
    Finding {
        analysis,
        kind: Kind::Predicate,
        events: vec![first, second],
        message: format!(
            "{} {does} {}: events {} and {}, which conflict on {name}, are next, and neither comes \
             before the other",
            reached(proof.is_some()),
            asked.predicate,
            first.number(),
            second.number()
        ),
        count: 1,
        evidence: proof.map_or(Evidence::Unordered, Evidence::Schedule),
        detail: Detail::State(Box::new(detail)),
    }
}
