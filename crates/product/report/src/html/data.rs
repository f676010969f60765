//! What a page is of, and the list of its findings.
//!
//! The list is read when the page opens. What there is to say of each finding is in chunks of a
//! hundred: one has the findings as JSON reports have them, the other what is drawn. Both are read when
//! one of their findings is opened.

use reweave_analysis::{Guarantee, Kind, Reported};
use serde::Serialize;

use super::facts::{Fact, facts};
use super::overview::Overview;
use super::view::Strings;
use crate::confirmation::Replayed;
use crate::left_out::{accounts, counters};
use crate::site::place;
use crate::standing;
use crate::text::size;
use crate::{Examined, json, summary, title};

/// How many findings a chunk holds.
pub(super) const CHUNK: usize = 100;

/// So many traces are drawn as a whole.
const OVERVIEWS_MAX: usize = 50;

/// What a page calls itself.
pub(super) fn heading(examined: &[Examined<'_>]) -> &'static str {
    let findings = || {
        examined.iter().flat_map(|one| {
            one.outcome.findings.iter().map(|it| standing::happened(one.trace, &it.finding))
        })
    };
    match (findings().any(|happened| happened), findings().any(|happened| !happened)) {
        (true, false) => "What went wrong in these runs",
        (true, true) => "What went wrong in these runs, and what else they could have done",
        (false, _) => "What else these runs could have done",
    }
}

/// What a page is of.
#[derive(Serialize)]
pub(super) struct Head {
    /// What wrote the page.
    name: &'static str,
    version: &'static str,
    heading: &'static str,
    /// Whether one finding has the page to itself.
    is_explanation: bool,
    /// How many findings a chunk holds.
    chunk: usize,
    /// Of predictions the strongest first, then what was observed, and what they mean.
    guarantees: Vec<GuaranteeView>,
    /// The worst first.
    kinds: Vec<&'static str>,
    traces: Vec<TraceView>,
    strings: Vec<String>,
    findings: List,
}

#[derive(Serialize)]
struct GuaranteeView {
    name: &'static str,
    meaning: &'static str,
}

/// A trace, and how far it was examined.
#[derive(Serialize)]
struct TraceView {
    name: String,
    size: String,
    summary: String,
    /// What is known of the recorded run.
    run: Vec<Fact>,
    repairs: Vec<String>,
    coverage: Vec<CoverageView>,
    known: u64,
    suppressed: u64,
    overview: Option<Overview>,
}

#[derive(Serialize)]
struct CoverageView {
    counters: String,
    incomplete: Option<&'static str>,
    left_out: Vec<String>,
}

/// The findings, the worst first: a column for each thing that the list says of them.
#[derive(Default, Serialize)]
struct List {
    trace: Vec<usize>,
    id: Vec<String>,
    /// The numbers of its kind and of its guarantee among those of the page.
    kind: Vec<usize>,
    guarantee: Vec<usize>,
    /// Whether it happened in the recorded run.
    happened: Vec<u8>,
    message: Vec<String>,
    count: Vec<u64>,
    /// 0 if it was not replayed, 1 if that did not confirm it, 2 if it did.
    replayed: Vec<u8>,
    chunk: Vec<usize>,
    /// Where it is first of all.
    place: Vec<u32>,
    /// Names that are to be found though the message does not say them.
    words: Vec<Vec<u32>>,
}

/// What a page is of, and the list of all findings of `examined`; of one finding alone, `only`, if the
/// page explains it.
pub(super) fn head(examined: &[Examined<'_>], only: Option<&Reported>) -> Head {
    let mut strings = Strings::default();
    let mut list = List::default();
    let mut first_chunk = 0;
    for (at, examined) in examined.iter().enumerate() {
        let findings = only.map_or(&examined.outcome.findings[..], std::slice::from_ref);
        for (number, reported) in findings.iter().enumerate() {
            list.push(&mut strings, examined, reported, (at, first_chunk + number / CHUNK));
        }
        first_chunk += findings.len().div_ceil(CHUNK);
    }
    let traces = examined.iter().enumerate();
    let traces = traces.map(|(at, one)| trace_view(one, only.is_some(), at < OVERVIEWS_MAX));
    Head {
        name: "reweave",
        version: env!("CARGO_PKG_VERSION"),
        heading: heading(examined),
        is_explanation: only.is_some(),
        chunk: CHUNK,
        guarantees: GUARANTEES
            .map(|it| GuaranteeView { name: it.as_str(), meaning: it.meaning() })
            .into(),
        kinds: Kind::ALL.map(Kind::as_str).into(),
        traces: traces.collect(),
        strings: strings.all,
        findings: list,
    }
}

const GUARANTEES: [Guarantee; 5] = [
    Guarantee::Witnessed,
    Guarantee::Decided,
    Guarantee::First,
    Guarantee::Unordered,
    Guarantee::Observed,
];

impl List {
    /// Adds `reported`, one of the findings of `examined`, which is the trace and in the chunk that are
    /// given.
    fn push(
        &mut self,
        strings: &mut Strings,
        examined: &Examined<'_>,
        reported: &Reported,
        (trace, chunk): (usize, usize),
    ) {
        let Reported { id, finding, .. } = reported;
        let names = examined.trace.names();
        let mut words: Vec<u32> = Vec::new();
        let mut first = None;
        for &event in &finding.events {
            let event = examined.trace.event(event);
            let op = names.spell(event.op).to_string();
            let location = place(names.location(event.site));
            first.get_or_insert_with(|| strings.text(&location));
            // The filter searches these besides the message.
            let said = [names.threads.name(event.thread), &op, &location];
            let given = names.given_name(event.thread);
            let unsaid =
                said.into_iter().chain(given).filter(|text| !finding.message.contains(text));
            words.extend(unsaid.map(|text| strings.text(text)));
        }
        words.dedup();
        self.trace.push(trace);
        self.id.push(id.clone());
        let (kind, guarantee) = (finding.kind, finding.guarantee());
        self.kind.push(Kind::ALL.iter().position(|&it| it == kind).unwrap_or(0));
        self.guarantee.push(GUARANTEES.iter().position(|&it| it == guarantee).unwrap_or(0));
        self.happened.push(standing::happened(examined.trace, finding).into());
        self.message.push(finding.message.clone());
        self.count.push(reported.count());
        self.replayed.push(match examined.replayed(id) {
            None => 0,
            Some(Replayed::NotConfirmed { .. }) => 1,
            Some(Replayed::Confirmed { .. }) => 2,
        });
        self.chunk.push(chunk);
        self.place.push(first.unwrap_or_else(|| strings.text("")));
        self.words.push(words);
    }
}

fn trace_view(examined: &Examined<'_>, is_explanation: bool, has_overview: bool) -> TraceView {
    let Examined { path, trace, outcome, set_aside, .. } = *examined;
    // How far the search went says nothing of the one finding that is explained.
    let accounts = accounts(outcome).filter(|_| !is_explanation);
    let coverage = accounts.map(|(coverage, left_out)| CoverageView {
        counters: counters(coverage),
        incomplete: coverage.truncated.map(|reason| reason.as_str()),
        left_out,
    });
    // What JSON says of the run; a value that cannot be written says nothing.
    let recorded = serde_json::to_value(json::trace_entry(path, trace)).unwrap_or_default();
    let has_overview = has_overview && !outcome.findings.is_empty();
    TraceView {
        name: title(path).to_owned(),
        size: size(trace),
        summary: if is_explanation { String::new() } else { summary(outcome, set_aside) },
        run: facts(&recorded, trace.run_end()),
        repairs: trace.repairs().iter().map(ToString::to_string).collect(),
        coverage: coverage.collect(),
        known: set_aside.known,
        suppressed: set_aside.suppressed,
        overview: has_overview.then(|| Overview::new(trace)).flatten(),
    }
}
