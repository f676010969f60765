//! Which relations order two events, and which do not.

use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_trace::{EventId, Trace};

/// In longer traces no relation is asked.
const EVENTS_MAX: usize = 2_000_000;

/// In longer traces causally-precedes is not asked, which goes through them more than once.
const CAUSAL_EVENTS_MAX: usize = 200_000;

/// What a relation says of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What the relation is called.
    pub(crate) relation: &'static str,
    /// Whether it puts one before the other.
    pub(crate) is_ordered: bool,
}

/// What the relations say of `first` and `second`, which was observed later in another thread; empty
/// if the trace is too long for that.
pub(crate) fn verdicts(trace: &Trace, first: EventId, second: EventId) -> Vec<Verdict> {
    if trace.len() > EVENTS_MAX {
        return Vec::new();
    }
    let ask = |clocks: &mut dyn Clocks| is_ordered(clocks, trace, first, second);
    let mut verdicts = vec![
        Verdict { relation: "happens-before (`hb`)", is_ordered: ask(&mut HappensBefore::new()) },
        Verdict {
            relation: "schedulable happens-before (`shb`)",
            is_ordered: ask(&mut SchedulableHappensBefore::new()),
        },
        Verdict {
            relation: "weak causally-precedes (`wcp`)",
            is_ordered: ask(&mut WeakCausallyPrecedes::new(trace)),
        },
    ];
    if trace.len() <= CAUSAL_EVENTS_MAX {
        let order = CausallyPrecedes::new(trace);
        verdicts.push(Verdict {
            relation: "causally-precedes (`cp`)",
            is_ordered: ask(&mut order.clocks()),
        });
    }
    verdicts
}

/// Goes through the events up to `second` and asks whether `first` comes before it.
fn is_ordered(clocks: &mut dyn Clocks, trace: &Trace, first: EventId, second: EventId) -> bool {
    let earlier = trace.events().map(|(id, _)| id).take_while(|&id| id < second);
    for event in earlier {
        clocks.advance(trace, event);
    }
    let clock = clocks.advance(trace, second);
    clock.get(trace.event(first).thread) > trace.position(first)
}

/// The same in sentences.
pub(crate) fn sentences(trace: &Trace, first: EventId, second: EventId, is_proven: bool) -> String {
    let verdicts = verdicts(trace, first, second);
    if verdicts.is_empty() {
        return "The trace is too long to ask the relations about this pair.".to_owned();
    }
    let of = |is_ordered: bool| {
        let names = verdicts.iter().filter(|it| it.is_ordered == is_ordered);
        names.map(|it| it.relation).collect::<Vec<_>>()
    };
    let (ordered, unordered) = (of(true), of(false));
    let verdict = match (&ordered[..], &unordered[..]) {
        ([], all) => format!("No relation orders the pair: {} leave it open.", listed(all)),
        (all, []) => format!("Every relation asked orders the pair: {}.", listed(all)),
        (some, rest) => format!(
            "{} put{} one before the other; {} {} not.",
            capital(&listed(some)),
            if some.len() == 1 { "s" } else { "" },
            listed(rest),
            if rest.len() == 1 { "does" } else { "do" },
        ),
    };
    let end = match (is_proven, ordered.is_empty()) {
        (true, false) => " The schedule proves that the order need not hold.",
        (true, true) => " The schedule proves that they can come together.",
        (false, _) => " No schedule is at hand that proves it.",
    };
    verdict + end
}

/// `a`, `a and b`, or `a, b and c`.
pub(crate) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
