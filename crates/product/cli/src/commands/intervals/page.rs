//! Ranges as a page with the graph as a picture.

use std::io::{self, Write};

use reweave_report::{counted, graph_svg, markup, page};
use reweave_workflows::ranges::{Ranges, Shown, Verdict};

use super::report::{
    Described, by_line, failing, finals_of, graph_name, line, schedule, scope, verdict_word,
};
use crate::program::Loaded;

/// Writes a page on all of `results`.
pub(super) fn write<D: Described>(
    out: &mut dyn Write,
    results: &[(Loaded, Ranges<D>)],
) -> io::Result<()> {
    page(out, "Value ranges: reweave report", "What values other orders can give", |out| {
        for (loaded, ranges) in results {
            section(out, loaded.source.name(), ranges)?;
        }
        Ok(())
    })
}

fn section<D: Described>(out: &mut dyn Write, name: &str, ranges: &Ranges<D>) -> io::Result<()> {
    writeln!(out, "<section>\n<h2>{}</h2>", markup(name))?;
    let (threads, steps) = (ranges.ctp.threads.len(), ranges.ctp.steps.len());
    writeln!(
        out,
        "<p class=\"soft\">{}, {}</p>\n<p>Ranges cover {}.</p>",
        counted(threads as u64, "thread"),
        counted(steps as u64, "step"),
        markup(&scope(ranges))
    )?;
    if !ranges.assertions.is_empty() {
        writeln!(out, "<h3>Assertions</h3>\n<ul>")?;
        for assertion in &ranges.assertions {
            let word = verdict_word(ranges, &assertion.verdict);
            write!(out, "<li>line {}: <strong>{word}</strong>", line(&ranges.ctp, assertion.site))?;
            for (name, value) in failing(ranges, assertion.site) {
                write!(out, "; <code>{}</code> in {} when it fails", markup(&name), value.text())?;
            }
            if let Verdict::Fails(run) = &assertion.verdict {
                shown_run(out, run)?;
            }
            writeln!(out, "</li>")?;
        }
        writeln!(out, "</ul>")?;
    }
    table(out, ranges)?;
    for examined in ranges.analysis.graphs.iter().rev().take(1) {
        let graph = &examined.graph;
        writeln!(
            out,
            "<h3>The graph <code>{}</code></h3>\n<p class=\"soft\">{}, {}, {}. Solid arrows are \
             transactions with their lines, dashed ones switches.</p>",
            graph_name(graph.kind),
            counted(graph.nodes.len() as u64, "node"),
            counted(graph.transaction_edges_count() as u64, "transaction"),
            counted_switches(graph.switches.len())
        )?;
        graph_svg(out, &ranges.ctp, graph)?;
    }
    writeln!(out, "</section>")
}

/// The run that shows something.
fn shown_run(out: &mut dyn Write, run: &Shown) -> io::Result<()> {
    let mut text = Vec::new();
    schedule(&mut text, run)?;
    let lines: Vec<String> =
        String::from_utf8_lossy(&text).lines().map(|line| markup(line.trim())).collect();
    writeln!(out, " in this run, which was executed:<pre>{}</pre>", lines.join("\n"))
}

fn counted_switches(count: usize) -> String {
    if count == 1 { "1 switch".to_owned() } else { format!("{count} switches") }
}

fn table<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    writeln!(out, "<h3>Final values</h3>\n<div class=\"scroll\"><table>")?;
    for of in finals_of(ranges) {
        let name = ranges.ctp.names.vars.name(of.var);
        let value = of.value.as_ref().map_or_else(|| "never".to_owned(), D::text);
        writeln!(out, "<tr><td><code>{}</code></td><td>{value}</td></tr>", markup(name))?;
    }
    writeln!(out, "</table></div>\n<h3>Line by line</h3>\n<div class=\"scroll\"><table>")?;
    for ((line, kind, name), value) in by_line(ranges, true) {
        let word = kind.as_str();
        writeln!(
            out,
            "<tr><td class=\"number\">{line}</td><td>{word}</td><td><code>{}</code></td>\
             <td>{}</td></tr>",
            markup(&name),
            value.text()
        )?;
    }
    writeln!(out, "</table></div>")
}
