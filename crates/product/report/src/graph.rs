//! Pictures for plain pages: graphs of transactions and switches, for Graphviz too, and how many states
//! there are of each size.
//!
//! In a graph a thread is a column, read downwards; solid arrows are its transactions, with the lines of their
//! statements, and dashed ones the switches to other threads.

use std::fmt::Write as _;
use std::io::{self, Write};

use reweave_base::Id;
use reweave_intervals::ctp::{Ctp, StepId};
use reweave_intervals::graph::{Graph, NodeId};
use reweave_trace::ThreadId;

use crate::shown::{markup, shown};

/// Switches beyond these would make a picture black; Graphviz is given all.
const SWITCHES_MAX: usize = 400;
/// Nodes beyond these would make it too long.
const NODES_MAX: usize = 600;

const COLUMN: usize = 170;
const ROW: usize = 52;
const TOP: usize = 56;

/// Writes `graph` in the language of Graphviz.
///
/// # Errors
/// If `out` fails.
pub fn graph_dot(out: &mut dyn Write, ctp: &Ctp, graph: &Graph) -> io::Result<()> {
    let places = places(graph);
    writeln!(out, "digraph transactions {{")?;
    writeln!(out, "  node [shape=box, fontname=\"monospace\", fontsize=10];")?;
    writeln!(out, "  edge [fontname=\"monospace\", fontsize=9];")?;
    for (thread, name) in ctp.names.threads.entries() {
        writeln!(out, "  subgraph cluster_{} {{", thread.number())?;
        writeln!(out, "    label={};", quoted(name))?;
        for (id, node) in graph.nodes.entries() {
            if node.thread == thread {
                writeln!(
                    out,
                    "    n{} [label={}];",
                    id.number(),
                    quoted(&label(graph, &places, id))
                )?;
            }
        }
        for transaction in &graph.transactions {
            if graph.nodes[transaction.from].thread == thread {
                let lines = quoted(&lines(ctp, &transaction.steps));
                for exit in &transaction.exits {
                    let (from, to) = (transaction.from.number(), exit.number());
                    writeln!(out, "    n{from} -> n{to} [label={lines}];")?;
                }
            }
        }
        writeln!(out, "  }}")?;
    }
    for (style, edges) in [("dashed", &graph.switches), ("dotted", &graph.orders)] {
        for (from, to) in edges {
            let (from, to) = (from.number(), to.number());
            writeln!(out, "  n{from} -> n{to} [style={style}, constraint=false];")?;
        }
    }
    writeln!(out, "}}")
}

/// Writes `graph` as a picture to stand in a page, or says that it is too large for one.
///
/// # Errors
/// If `out` fails.
pub fn graph_svg(out: &mut dyn Write, ctp: &Ctp, graph: &Graph) -> io::Result<()> {
    if graph.nodes.len() > NODES_MAX {
        return writeln!(
            out,
            "<p class=\"soft\">{} nodes are too many to draw; use <code>--format dot</code> with Graphviz.</p>",
            graph.nodes.len()
        );
    }
    let places = places(graph);
    let rows = places.iter().map(|&(_, row)| row + 1).max().unwrap_or(1);
    let (width, height) = (ctp.threads.len() * COLUMN + 40, TOP + rows * ROW);
    writeln!(
        out,
        "<div class=\"scroll\"><svg role=\"img\" aria-label=\"transactions and switches\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    )?;
    writeln!(
        out,
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0 8 4 0 8z\" \
         fill=\"currentColor\"/></marker></defs>"
    )?;
    for (thread, name) in ctp.names.threads.entries() {
        let x = column(thread);
        writeln!(
            out,
            "<text x=\"{x}\" y=\"22\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
            markup(name)
        )?;
    }
    // Transactions come later, so that they are drawn over the switches.
    let drawn = graph.switches.len().min(SWITCHES_MAX);
    for &(from, to) in graph.switches[..drawn].iter().chain(&graph.orders) {
        switch(out, (places[from.index()], places[to.index()]))?;
    }
    for transaction in &graph.transactions {
        let lines = lines(ctp, &transaction.steps);
        for exit in &transaction.exits {
            let ends = (places[transaction.from.index()], places[exit.index()]);
            transaction_edge(out, ends, &lines)?;
        }
    }
    for (id, node) in graph.nodes.entries() {
        let (x, y) = (column(node.thread), height_of(places[id.index()].1));
        let label = label(graph, &places, id);
        writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"44\" height=\"18\" rx=\"4\" fill=\"var(--band)\" \
             stroke=\"currentColor\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" \
             font-size=\"13\">{}</text>",
            x - 22,
            y - 9,
            y + 4,
            markup(&label)
        )?;
    }
    writeln!(out, "</svg></div>")?;
    if drawn < graph.switches.len() {
        let all = graph.switches.len();
        writeln!(out, "<p class=\"soft\">The first {drawn} of {all} switches are drawn.</p>")?;
    }
    Ok(())
}

/// For each node its thread's column, and its row.
fn places(graph: &Graph) -> Vec<(ThreadId, usize)> {
    let mut row = 0;
    let mut last = None;
    let nodes = graph.nodes.iter().map(|node| {
        row = if last == Some(node.thread) { row + 1 } else { 0 };
        last = Some(node.thread);
        (node.thread, row)
    });
    nodes.collect()
}

fn column(thread: ThreadId) -> usize {
    COLUMN / 2 + 20 + thread.index() * COLUMN
}

fn height_of(row: usize) -> usize {
    TOP + row * ROW
}

type Placed = (ThreadId, usize);

fn transaction_edge(
    out: &mut dyn Write,
    (from, to): (Placed, Placed),
    lines: &str,
) -> io::Result<()> {
    let x = column(from.0);
    let (top, bottom) = (height_of(from.1) + 9, height_of(to.1).saturating_sub(10));
    let bend = x + 34;
    let curve = if to.1 == from.1 + 1 {
        format!("V{bottom}")
    } else {
        format!("C{bend} {top} {bend} {bottom} {x} {bottom}")
    };
    writeln!(
        out,
        "<path d=\"M{x} {top}{curve}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\" \
         marker-end=\"url(#tip)\"/>"
    )?;
    let middle = top.midpoint(bottom) + 4;
    writeln!(out, "<text x=\"{}\" y=\"{middle}\" font-size=\"13\">{}</text>", x + 6, markup(lines))
}

fn switch(out: &mut dyn Write, (from, to): (Placed, Placed)) -> io::Result<()> {
    let (start, end) = (column(from.0), column(to.0));
    let (x, tip) = if start < end { (start + 22, end - 23) } else { (start - 22, end + 23) };
    let (y, target) = (height_of(from.1), height_of(to.1));
    writeln!(
        out,
        "<path d=\"M{x} {y}L{tip} {target}\" stroke=\"currentColor\" stroke-opacity=\".45\" \
         stroke-dasharray=\"4 3\" marker-end=\"url(#tip)\"/>"
    )
}

/// What a node is called: its number in its thread, counted from 1.
fn label(graph: &Graph, places: &[(ThreadId, usize)], id: NodeId) -> String {
    let (thread, row) = places[id.index()];
    // Nodes are ordered by thread.
    let next = graph.nodes.get(NodeId::from_index(id.index() + 1));
    let is_last = next.is_none_or(|node| node.thread != thread);
    if is_last && row > 0 { "end".to_owned() } else { (row + 1).to_string() }
}

/// The lines of `steps`, as ranges.
fn lines(ctp: &Ctp, steps: &[StepId]) -> String {
    let line = |id: &StepId| ctp.names.line(ctp.steps[*id].site);
    let mut lines: Vec<u32> = steps.iter().filter_map(line).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut text = String::new();
    for run in lines.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { ", " };
        let last = run[run.len() - 1];
        // Writing to a string cannot fail.
        _ = if run[0] == last {
            write!(text, "{comma}{last}")
        } else {
            write!(text, "{comma}{}–{last}", run[0])
        };
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// How many bars a histogram has at most; more sizes share bars.
const BARS_MAX: usize = 240;
const PLOT_HEIGHT: f64 = 240.0;
/// Beside the bars in hundredths of the width, and above and below them in pixels.
const MARGIN: (f64, f64) = (2.5, 34.0);

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
    // In parts of the width, whatever that is: bars are all seen on a narrow screen, too.
    let width = (100.0 - 2.0 * MARGIN.0) / counts.len().div_ceil(each) as f64;
    let bottom = PLOT_HEIGHT + 2.0 * MARGIN.1;
    writeln!(
        out,
        "<div class=\"scroll\"><svg role=\"img\" aria-label=\"states by how many events have \
         happened\" width=\"100%\" height=\"{bottom}\" font-size=\"13\">"
    )?;
    for (at, bar) in counts.chunks(each).enumerate() {
        let Some(tallest) = bar.iter().max_by(|a, b| order(&a.1).total_cmp(&order(&b.1))) else {
            continue;
        };
        let share = 10_f64.powf(order(&tallest.1) - order(most));
        let height = (share * PLOT_HEIGHT).max(1.0);
        writeln!(
            out,
            "<rect x=\"{:.2}%\" y=\"{:.1}\" width=\"{:.2}%\" height=\"{height:.1}\" \
             fill=\"var(--blue)\"><title>{} events: {} states</title></rect>",
            MARGIN.0 + at as f64 * width,
            MARGIN.1 + PLOT_HEIGHT - height,
            width * 0.94,
            tallest.0,
            tallest.1
        )?;
    }
    let line = MARGIN.1 + PLOT_HEIGHT + 18.0;
    writeln!(
        out,
        "<text x=\"{left}%\" y=\"20\">{}</text>\n<text x=\"{left}%\" y=\"{line}\">{first}</text>\n\
         <text x=\"{}%\" y=\"{line}\" text-anchor=\"end\">{last} events have happened</text>\n\
         </svg></div>",
        markup(&format!("at most {} states, after {peak} events", short(most))),
        100.0 - MARGIN.0,
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
