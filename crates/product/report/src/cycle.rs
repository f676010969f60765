//! A cycle of conflicts that no specification allows, in terms of the program: the events as a
//! table or a picture, which thread must come before which and why, and why no event can be left out.

use std::io::{self, Write};

use reweave_ndseq::{Chain, Explanation, Hop, Link, Reason};
use reweave_trace::{EventId, ThreadId, Trace};
use serde_json::{Value, json};

use crate::schedule::Table;
use crate::shown::{clipped, markup, prose};
use crate::site::place;
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
    write_table(out, &Table::observed(trace, &shown, &marked), None)?;
    writeln!(out)?;
    for hop in &explanation.cycle {
        writeln!(out, "  {}", hop_text(trace, hop))?;
    }
    writeln!(out, "  So no thread can come first. Each of these events is needed:")?;
    for chain in &explanation.chains {
        writeln!(out, "  - {}", chain_text(trace, chain))?;
    }
    Ok(())
}

fn hop_text(trace: &Trace, hop: &Hop) -> String {
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

/// How many links at the start and at the end of a chain are listed.
const LINKS_MAX: usize = 3;

/// The links of a chain that are listed: all, or the first and the last.
fn ends(links: &[Link]) -> (&[Link], &[Link]) {
    if links.len() <= 2 * LINKS_MAX {
        return (links, &[]);
    }
    (&links[..LINKS_MAX], &links[links.len() - LINKS_MAX..])
}

fn chain_text(trace: &Trace, chain: &Chain) -> String {
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
                format!("is a branch whose statement contains event {}", event.number())
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

/// How many letters stand beside a mark.
const LETTERS_MAX: usize = 28;
/// How wide a letter is about.
const LETTER: usize = 8;
const ROW: usize = 34;
const TOP: usize = 52;
const GUTTER: usize = 96;

/// Writes why the run that `trace` recorded is not serializable: its cycle as a picture, in which each
/// arrow says which thread must come first, and the same in words.
///
/// # Errors
/// If `out` does.
pub fn cycle_html(out: &mut dyn Write, trace: &Trace, explanation: &Explanation) -> io::Result<()> {
    let picture = Cycle::new(trace, explanation);
    picture.write(out, explanation)?;
    writeln!(out, "<ul>")?;
    for hop in &explanation.cycle {
        writeln!(out, "<li>{}</li>", markup(&hop_text(trace, hop)))?;
    }
    writeln!(
        out,
        "</ul>\n<p>So no thread can come first. Each of these events is needed:</p>\n<ul>"
    )?;
    for chain in &explanation.chains {
        writeln!(out, "<li>{}</li>", prose(&chain_text(trace, chain)))?;
    }
    writeln!(out, "</ul>")
}

/// The events of a cycle in observed order, a column a thread.
struct Cycle<'t> {
    trace: &'t Trace,
    events: Vec<EventId>,
    threads: Vec<ThreadId>,
    /// Where each column starts, and where the last one ends.
    starts: Vec<usize>,
}

impl<'t> Cycle<'t> {
    fn new(trace: &'t Trace, explanation: &Explanation) -> Self {
        let mut events: Vec<EventId> =
            explanation.cycle.iter().flat_map(|hop| [hop.earlier, hop.later]).collect();
        events.sort_unstable();
        events.dedup();
        let mut threads: Vec<ThreadId> =
            events.iter().map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut cycle = Self { trace, events, threads, starts: vec![GUTTER] };
        for &thread in &cycle.threads {
            let mine = cycle.events.iter().filter(|&&event| trace.event(event).thread == thread);
            let name = clipped(trace.names().threads.name(thread), LETTERS_MAX);
            let texts = mine.map(|&event| cycle.text(event)).chain([name]);
            let letters = texts.map(|text| text.chars().count()).max().unwrap_or(0);
            let start = cycle.starts[cycle.starts.len() - 1];
            cycle.starts.push(start + 60 + letters * LETTER);
        }
        cycle
    }

    /// What stands beside the mark of `event`.
    fn text(&self, event: EventId) -> String {
        let (event, names) = (self.trace.event(event), self.trace.names());
        let op = clipped(&names.spell(event.op).to_string(), LETTERS_MAX);
        match clipped(&place(names.location(event.site)), LETTERS_MAX) {
            place if place.is_empty() => op,
            place => format!("{op} {place}"),
        }
    }

    /// Where the mark of `event` is.
    fn at(&self, event: EventId) -> (usize, usize) {
        let thread = self.trace.event(event).thread;
        let column = self.threads.iter().position(|&other| other == thread).unwrap_or(0);
        let row = self.events.iter().position(|&other| other == event).unwrap_or(0);
        (self.starts[column], TOP + row * ROW)
    }

    fn write(&self, out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
        let width = self.starts[self.starts.len() - 1];
        let height = TOP + self.events.len() * ROW;
        writeln!(
            out,
            "<div class=\"scroll\"><svg role=\"img\" aria-label=\"the cycle of conflicts\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-size=\"13\">"
        )?;
        for (&thread, &x) in self.threads.iter().zip(&self.starts) {
            let name = markup(&clipped(self.trace.names().threads.name(thread), LETTERS_MAX));
            writeln!(
                out,
                "<path d=\"M{x} {}V{}\" stroke=\"var(--line)\"/>\
                 <text x=\"{x}\" y=\"22\" font-weight=\"bold\">{name}</text>",
                TOP - 18,
                height - 8
            )?;
        }
        for hop in &explanation.cycle {
            self.write_hop(out, self.at(hop.earlier), self.at(hop.later))?;
        }
        for &event in &self.events {
            let ((x, y), text) = (self.at(event), markup(&self.text(event)));
            writeln!(
                out,
                "<text x=\"12\" y=\"{baseline}\" class=\"soft\">event {}</text>\
                 <circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"var(--bad)\"/>\
                 <text x=\"{}\" y=\"{baseline}\" class=\"over\">{text}</text>",
                event.number(),
                x + 13,
                baseline = y + 5
            )?;
        }
        writeln!(out, "</svg></div>")
    }

    /// Leaves along the thread, and comes in from its side.
    fn write_hop(
        &self,
        out: &mut dyn Write,
        (x, y): (usize, usize),
        (to, bottom): (usize, usize),
    ) -> io::Result<()> {
        // The arrow must not cross the text to the right of its own mark.
        let (bend, tip, back) = if x < to { (to - 60, to - 8, -12) } else { (to + 60, to + 8, 12) };
        writeln!(
            out,
            "<path class=\"hop\" d=\"M{x} {}C{x} {} {bend} {bottom} {tip} {bottom}\" fill=\"none\" \
             stroke=\"var(--bad)\" stroke-width=\"2\"/>\
             <path d=\"M{tip} {bottom}l{back} -6v12z\" fill=\"var(--bad)\"/>",
            y + 7,
            y + 30
        )
    }
}
