//! Pictures that stand in plain pages: a cycle of conflicts, and how many states there are of each
//! size.

use std::io::{self, Write};

use reweave_ndseq::Explanation;
use reweave_trace::{EventId, ThreadId, Trace};

use crate::cycle::{chain_text, hop_text};
use crate::shown::{clipped, markup, prose};
use crate::site::place;

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
    writeln!(out, "</ul>\n<p>So no thread can come first. Each of these events counts:</p>\n<ul>")?;
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

/// How many bars a histogram has at most; more sizes share bars.
const BARS_MAX: usize = 240;
const PLOT: (f64, f64) = (720.0, 240.0);
const MARGIN: (f64, f64) = (16.0, 34.0);

/// Writes how many states there are of each size, as bars: `counts` are pairs of a number of events
/// and a count in decimal digits, by the number of events.
///
/// # Errors
/// If `out` does.
pub fn histogram_svg(out: &mut dyn Write, counts: &[(u64, String)]) -> io::Result<()> {
    let Some(((first, _), (last, _))) = counts.first().zip(counts.last()) else { return Ok(()) };
    let most = counts.iter().max_by(|a, b| order(&a.1).total_cmp(&order(&b.1)));
    let Some((peak, most)) = most else { return Ok(()) };
    let each = counts.len().div_ceil(BARS_MAX);
    let width = PLOT.0 / counts.len().div_ceil(each) as f64;
    let (right, bottom) = (PLOT.0 + 2.0 * MARGIN.0, PLOT.1 + 2.0 * MARGIN.1);
    writeln!(
        out,
        "<div class=\"scroll\"><svg role=\"img\" aria-label=\"states by how many events have \
         happened\" width=\"{right}\" height=\"{bottom}\" viewBox=\"0 0 {right} {bottom}\" \
         font-size=\"13\">"
    )?;
    for (at, bar) in counts.chunks(each).enumerate() {
        let Some(tallest) = bar.iter().max_by(|a, b| order(&a.1).total_cmp(&order(&b.1))) else {
            continue;
        };
        let share = 10_f64.powf(order(&tallest.1) - order(most));
        let height = (share * PLOT.1).max(1.0);
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
             fill=\"var(--blue)\"><title>{} events: {} states</title></rect>",
            MARGIN.0 + at as f64 * width,
            MARGIN.1 + PLOT.1 - height,
            (width - 1.0).max(0.8),
            tallest.0,
            tallest.1
        )?;
    }
    let line = MARGIN.1 + PLOT.1 + 18.0;
    writeln!(
        out,
        "<text x=\"{left}\" y=\"20\">{}</text>\n<text x=\"{left}\" y=\"{line}\">{first}</text>\n\
         <text x=\"{}\" y=\"{line}\" text-anchor=\"end\">{last} events have happened</text>\n\
         </svg></div>",
        markup(&format!("at most {} states, after {peak} events", short(most))),
        right - MARGIN.0,
        left = MARGIN.0,
    )
}

/// The logarithm of a number in decimal digits, however long it is.
fn order(digits: &str) -> f64 {
    let head: f64 = digits.get(..15).unwrap_or(digits).parse().unwrap_or(0.0);
    head.log10() + digits.len().saturating_sub(15) as f64
}

/// A number in decimal digits, in short if it is long.
fn short(digits: &str) -> String {
    match digits.len() {
        0..=18 => digits.to_owned(),
        count => format!("{}.{} × 10^{}", &digits[..1], &digits[1..4], count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_have_an_order() {
        assert!((order("1000") - 3.0).abs() < 1e-9);
        assert!((order(&format!("1{}", "0".repeat(400))) - 400.0).abs() < 1e-9);
        assert_eq!(short(&"123456".repeat(10)), "1.234 × 10^59");
    }

    #[test]
    fn a_histogram_has_a_bar_a_size_and_no_more_than_fit() {
        let drawn = |count: u64| {
            let counts: Vec<(u64, String)> =
                (0..count).map(|at| (at, (at * at + 1).to_string())).collect();
            let mut out = Vec::new();
            histogram_svg(&mut out, &counts).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(drawn(7).matches("<rect").count(), 7);
        assert!(drawn(7).contains("at most 37 states, after 6 events"), "{}", drawn(7));
        assert!(drawn(100_000).matches("<rect").count() <= BARS_MAX);
        assert_eq!(drawn(0), "");
    }
}
