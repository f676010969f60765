//! A cycle of conflicts that no specification allows, in terms of the program: the events as a
//! table, which thread must come before which and why, and why no event can be left out.

use std::io::{self, Write};

use reweave_ndseq::{Chain, Explanation, Hop, Link, Reason};
use reweave_trace::{EventId, Trace};
use serde_json::{Value, json};

use crate::site::place;
use crate::table::Table;
use crate::text::write_table;

/// Writes why the run that `trace` recorded is not serializable.
///
/// # Errors
/// If `out` does.
pub fn cycle_text(out: &mut dyn Write, trace: &Trace, explanation: &Explanation) -> io::Result<()> {
    let marked: Vec<EventId> =
        explanation.cycle.iter().flat_map(|hop| [hop.earlier, hop.later]).collect();
    let mut shown = marked.clone();
    for chain in &explanation.chains {
        let (first, last) = ends(&chain.links);
        shown.extend(first.iter().chain(last).map(|link| link.event));
    }
    write_table(out, &Table::observed(trace, &shown, &marked))?;
    writeln!(out)?;
    for hop in &explanation.cycle {
        writeln!(out, "  {}", hop_text(trace, hop))?;
    }
    writeln!(out, "  So no thread can come first. Each of these events counts:")?;
    for chain in &explanation.chains {
        writeln!(out, "  - {}", chain_text(trace, chain))?;
    }
    Ok(())
}

pub(crate) fn hop_text(trace: &Trace, hop: &Hop) -> String {
    let names = trace.names();
    let (from, to) = (names.threads.name(hop.from), names.threads.name(hop.to));
    let does = |event: EventId| match trace.event(event).op {
        op if op.is_write() => "writes",
        _ => "reads",
    };
    let var = names.vars.name(hop.var);
    format!(
        "{from} comes before {to}: event {} {} {var} before event {} {} it",
        hop.earlier.number(),
        does(hop.earlier),
        hop.later.number(),
        does(hop.later),
    )
}

/// How many links at the start and at the end of a chain are told.
const LINKS_MAX: usize = 3;

/// The links of a chain that are told: all, or the first and the last.
fn ends(links: &[Link]) -> (&[Link], &[Link]) {
    match links.len() <= 2 * LINKS_MAX {
        true => (links, &[]),
        false => (&links[..LINKS_MAX], &links[links.len() - LINKS_MAX..]),
    }
}

pub(crate) fn chain_text(trace: &Trace, chain: &Chain) -> String {
    let names = trace.names();
    let mut text = String::new();
    let (first, last) = ends(&chain.links);
    let left_out = chain.links.len() - first.len() - last.len();
    for (place, link) in first.iter().chain(last).enumerate() {
        if place == first.len() {
            text.push_str(&format!(", and so on through {left_out} more"));
        }
        let subject = if place == 0 {
            format!("event {}", link.event.number())
        } else {
            ", which".to_owned()
        };
        let thread = names.threads.name(trace.event(link.event).thread);
        let reason = match link.reason {
            Reason::Target(var) => {
                format!("is the last write of {thread} to {}", names.vars.name(var))
            }
            Reason::FlowsInto(event) => format!("flows into event {}", event.number()),
            Reason::Encloses(event) => {
                format!("is a branch whose statement makes event {}", event.number())
            }
            Reason::EnclosedWith(event) => format!(
                "is a branch that only an `if (*)` with event {} in it encloses",
                event.number()
            ),
            Reason::NotEnclosed => "is a branch that no `if (*)` encloses".to_owned(),
        };
        text.push_str(&format!("{subject} {reason}"));
    }
    text
}

/// The same for programs: `cycle` and `relevance`.
#[must_use]
pub fn cycle_json(trace: &Trace, explanation: &Explanation) -> Value {
    let names = trace.names();
    let event = |id: EventId| {
        let of = trace.event(id);
        json!({
            "event": id.number(),
            "thread": names.threads.name(of.thread),
            "op": names.spell(of.op).to_string(),
            "location": place(names.location(of.site)),
        })
    };
    let hops = explanation.cycle.iter().map(|hop| {
        json!({
            "before": names.threads.name(hop.from),
            "after": names.threads.name(hop.to),
            "variable": names.vars.name(hop.var),
            "earlier": event(hop.earlier),
            "later": event(hop.later),
        })
    });
    let chains = explanation.chains.iter().map(|chain| {
        let links = chain.links.iter().map(|link| {
            let (reason, of) = match link.reason {
                Reason::Target(var) => ("target", json!(names.vars.name(var))),
                Reason::FlowsInto(event) => ("flows-into", json!(event.number())),
                Reason::Encloses(event) => ("encloses", json!(event.number())),
                Reason::EnclosedWith(event) => ("enclosed-with", json!(event.number())),
                Reason::NotEnclosed => ("not-enclosed", Value::Null),
            };
            json!({ "event": link.event.number(), "reason": reason, "of": of })
        });
        Value::from_iter(links)
    });
    json!({
        "run": explanation.run + 1,
        "hops": Value::from_iter(hops),
        "relevance": Value::from_iter(chains),
    })
}
