//! How ranges are printed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use reweave_intervals::answers;
use reweave_intervals::ctp::{Action, Ctp, Owner};
use reweave_intervals::domain::{Congruence, Domain, Interval, Product};
use reweave_intervals::graph::GraphKind;
use reweave_intervals::terms::Slot;
use reweave_report::{counted, graph_svg, markup, page, shown};
use reweave_trace::SiteId;
use reweave_workflows::ranges::{Ranges, Shown, Verdict};
use serde_json::{Value, json};

use crate::program::Loaded;

/// A set of numbers that can be shown to people.
pub(super) trait Described: Domain {
    /// What all members leave when they are divided, if that is known: the divisor, then the rest.
    fn remainder(&self) -> Option<(u64, i64)>;

    /// How it is called.
    fn text(&self) -> String {
        let (low, high) = self.bounds();
        let is_bounded = low != i64::MIN || high != i64::MAX;
        match self.remainder() {
            Some((modulus, residue)) if is_bounded => {
                let ends = Interval::new(low, high).unwrap_or(Interval::TOP);
                format!("{ends}, {residue} mod {modulus}")
            }
            Some((modulus, residue)) => format!("{residue} mod {modulus}"),
            None => Interval::new(low, high).unwrap_or(Interval::TOP).to_string(),
        }
    }
}

impl Described for Interval {
    fn remainder(&self) -> Option<(u64, i64)> {
        None
    }
}

impl Described for Congruence {
    fn remainder(&self) -> Option<(u64, i64)> {
        (self.modulus() > 1).then(|| (self.modulus(), self.residue()))
    }
}

impl Described for Product {
    fn remainder(&self) -> Option<(u64, i64)> {
        self.congruence().remainder()
    }
}

/// How many variables are shown to people at most.
const FINALS_MAX: usize = 40;
/// How many steps of a schedule are shown to people at most.
const STEPS_MAX: usize = 400;

/// The line of a site.
fn line(ctp: &Ctp, site: SiteId) -> u32 {
    ctp.names.line(site).unwrap_or(0)
}

const fn graph_name(kind: GraphKind) -> &'static str {
    match kind {
        GraphKind::Ccfg => "ccfg",
        GraphKind::Tsg => "tsg",
        GraphKind::TsgReduced => "tsg-reduced",
    }
}

/// What a slot is called, if it has a name in the program: a value that was only just read is
/// called like the variable.
fn name_of(ctp: &Ctp, slot: Slot) -> Option<&str> {
    let local = match ctp.slots[slot] {
        Owner::Shared(var) => return Some(ctp.names.vars.name(var)),
        Owner::Local(_, local) => ctp.names.locals.name(local),
    };
    if !local.starts_with('%') {
        // Of several locals of one name the others have the line where they are declared.
        return Some(local.split('@').next().unwrap_or(local));
    }
    let read = ctp.steps.iter().find(|step| step.define.is_some_and(|(of, _)| of == slot))?;
    match read.action {
        Action::Read(var) | Action::Update(var) => Some(ctp.names.vars.name(var)),
        _ => None,
    }
}

/// Whether a slot is none of the program's own.
fn is_hidden(ctp: &Ctp, slot: Slot) -> bool {
    match ctp.slots[slot] {
        Owner::Shared(var) => ctp.is_passed(var),
        Owner::Local(_, local) => ctp.names.locals.name(local).starts_with('%'),
    }
}

/// What happens to a variable at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Read,
    Written,
    Local,
}

impl Use {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Written => "writes",
            Self::Local => "sets",
        }
    }
}

/// For each line, use and name the values; elements of an array as one if `by_array`.
fn by_line<D: Described>(ranges: &Ranges<D>, by_array: bool) -> BTreeMap<(u32, Use, String), D> {
    let ctp = &ranges.ctp;
    let mut rows: BTreeMap<(u32, Use, String), D> = BTreeMap::new();
    let answers = &ranges.analysis.answers;
    let reads = answers.read.iter().map(|range| (range, true));
    for (range, is_read) in answers.assigned.iter().map(|range| (range, false)).chain(reads) {
        if is_hidden(ctp, range.slot) {
            continue;
        }
        let kind = match (is_read, ctp.slots[range.slot]) {
            (true, _) => Use::Read,
            (false, Owner::Shared(_)) => Use::Written,
            (false, Owner::Local(..)) => Use::Local,
        };
        let Some(name) = name_of(ctp, range.slot) else { continue };
        let name = match name.split_once('[') {
            Some((array, _)) if by_array => format!("{array}[…]"),
            _ => name.to_owned(),
        };
        let key = (line(ctp, range.site), kind, name);
        match rows.get_mut(&key) {
            Some(value) => value.join(&range.value),
            None => _ = rows.insert(key, range.value.clone()),
        }
    }
    rows
}

fn lines_of(ctp: &Ctp, sites: &[SiteId]) -> Vec<u32> {
    let mut lines: Vec<u32> = sites.iter().map(|&site| line(ctp, site)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn spelled(lines: &[u32]) -> String {
    let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", numbers.join(", "))
}

/// What the ranges are about.
fn scope<D: Described>(ranges: &Ranges<D>) -> String {
    let mut runs = counted(ranges.runs_count as u64, "run");
    if ranges.left_out_count > 0 {
        let others = counted(ranges.left_out_count as u64, "other");
        runs.push_str(&format!(" ({others} failed and left out)"));
    }
    if !ranges.is_sound {
        return format!(
            "the interleavings of {runs} in the paper's graph, which misses some if there are three or more threads"
        );
    }
    if ranges.is_closed {
        return format!("all runs of the program: every branch outcome was covered by {runs}");
    }
    let mut text = format!("all interleavings of {runs}");
    let answers = &ranges.analysis.answers;
    let leaves = lines_of(&ranges.ctp, &answers.leaves);
    let faults = lines_of(&ranges.ctp, &answers.faults);
    if !leaves.is_empty() {
        text.push_str(&format!(
            "; another branch may be taken at {}, which more runs (--runs) may cover",
            spelled(&leaves)
        ));
    }
    if !faults.is_empty() {
        text.push_str(&format!("; {} may divide by zero", spelled(&faults)));
    }
    if leaves.is_empty() && faults.is_empty() {
        text.push_str("; a thread may end early, at a failed assertion or because a run failed");
    }
    text
}

/// Writes what was found in the program `name` for people.
pub(super) fn text<D: Described>(
    out: &mut dyn Write,
    name: &str,
    ranges: &Ranges<D>,
) -> io::Result<()> {
    let ctp = &ranges.ctp;
    let sizes =
        [counted(ctp.threads.len() as u64, "thread"), counted(ctp.steps.len() as u64, "step")];
    writeln!(out, "{}: {}", shown(name), sizes.join(", "))?;
    writeln!(out, "ranges cover {}", scope(ranges))?;
    troubles(out, ranges)?;
    if ranges.analysis.answers.exhausted {
        writeln!(out, "the budget ran out: ranges may be wider than necessary")?;
    }
    finals(out, ranges)?;
    let rows = by_line(ranges, true);
    if !rows.is_empty() {
        writeln!(out, "\nline by line")?;
    }
    let width = rows.keys().map(|(_, _, name)| name.chars().count()).max().unwrap_or(0);
    for ((line, kind, name), value) in &rows {
        writeln!(
            out,
            "  {line:>5}  {:<6} {:<width$}  {}",
            kind.as_str(),
            shown(name),
            value.text()
        )?;
    }
    assertions(out, ranges)?;
    remarks(out, ranges)?;
    graphs(out, ranges)
}

/// What went wrong in runs, each kind once.
fn troubles<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for trouble in &ranges.troubles {
        kinds.entry(trouble.what()).or_default().push(trouble.seed);
    }
    for (trouble, seeds) in kinds {
        match seeds[..] {
            [seed] => writeln!(out, "the run with seed {seed} {trouble}")?,
            [first, ..] => {
                let count = seeds.len();
                writeln!(out, "each of {count} runs (first seed: {first}) {trouble}")?;
            }
            [] => {}
        }
    }
    Ok(())
}

/// What the program's own variables hold at the end, by name; nothing if no run came to it.
fn finals_of<D: Described>(ranges: &Ranges<D>) -> Vec<&answers::Final<D>> {
    let own = ranges.analysis.answers.finals.iter();
    let own = own.filter(|of| ranges.has_end && !ranges.ctp.is_passed(of.var));
    let mut finals: Vec<_> = own.collect();
    let key = |of: &&answers::Final<D>| {
        let name = ranges.ctp.names.vars.name(of.var);
        let (array, index) = name.split_once('[').unwrap_or((name, ""));
        (array.to_owned(), index.trim_end_matches(']').parse::<u64>().unwrap_or(0))
    };
    finals.sort_by_key(key);
    finals
}

fn finals<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    let finals = finals_of(ranges);
    if finals.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nfinal values, if every thread ends without a fault")?;
    let name = |of: &answers::Final<D>| shown(ranges.ctp.names.vars.name(of.var)).into_owned();
    let width =
        finals.iter().take(FINALS_MAX).map(|of| name(of).chars().count()).max().unwrap_or(0);
    for of in finals.iter().take(FINALS_MAX) {
        let value = of.value.as_ref().map_or_else(|| "never".to_owned(), D::text);
        writeln!(out, "  {:<width$}  {value}  ({})", name(of), counted(of.bits.into(), "bit"))?;
    }
    if finals.len() > FINALS_MAX {
        let more = counted((finals.len() - FINALS_MAX) as u64, "variable");
        writeln!(out, "  and {more} more (--format json has all)")?;
    }
    Ok(())
}

/// What becomes of an assertion, in a word.
fn verdict_word<D>(ranges: &Ranges<D>, verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds | Verdict::HoldsBySearch if ranges.is_closed => "proved",
        Verdict::Holds | Verdict::HoldsBySearch => "holds",
        Verdict::Fails(_) => "fails",
        Verdict::MayFail => "may fail",
        Verdict::NotReached => "not reached",
    }
}

fn assertions<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    if ranges.assertions.is_empty() && ranges.reached.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nassertions")?;
    for assertion in &ranges.assertions {
        let line = line(&ranges.ctp, assertion.site);
        let meaning = match &assertion.verdict {
            Verdict::Holds if ranges.is_closed => "proved: it holds in every run of the program",
            Verdict::HoldsBySearch if ranges.is_closed => {
                "proved: no run of the program breaks it, by search"
            }
            Verdict::Holds if !ranges.is_sound => {
                "holds in every interleaving of the paper's graph"
            }
            Verdict::Holds => "holds in every interleaving of the recorded paths",
            Verdict::HoldsBySearch => {
                "holds in every interleaving of the recorded paths, by search"
            }
            Verdict::Fails(_) => "fails in this run, which was executed:",
            Verdict::MayFail if !assertion.is_searched => {
                "may fail: the ranges do not exclude it, and the search is disabled"
            }
            Verdict::MayFail => {
                "may fail: the ranges do not exclude it, and the search found no failing run"
            }
            Verdict::NotReached => "is not reached in any interleaving of the recorded paths",
        };
        writeln!(out, "  line {line}: {meaning}")?;
        for (name, value) in failing(ranges, assertion.site) {
            writeln!(out, "    when it fails, {} is in {}", shown(&name), value.text())?;
        }
        if let Verdict::Fails(run) = &assertion.verdict {
            schedule(out, run)?;
        }
    }
    for reached in &ranges.reached {
        let meaning = match (&reached.shown, reached.is_known) {
            (Some(_), _) => "is reached in this run, which was executed:",
            (None, true) => "is not reached in any interleaving of the recorded paths",
            (None, false) => "is unknown: no run reached it, and the search found none that does",
        };
        writeln!(out, "  line {}: {meaning}", reached.line)?;
        if let Some(run) = &reached.shown {
            schedule(out, run)?;
        }
    }
    Ok(())
}

/// The ranges of what an assertion speaks of, where it fails.
fn failing<D: Described>(ranges: &Ranges<D>, site: SiteId) -> Vec<(String, D)> {
    let judged = ranges.assertions.iter().find(|assertion| assertion.site == site);
    let may_fail = judged
        .is_some_and(|assertion| matches!(assertion.verdict, Verdict::Fails(_) | Verdict::MayFail));
    if !may_fail {
        return Vec::new();
    }
    let assertions = &ranges.analysis.answers.assertions;
    let found = assertions.iter().find(|(of, _)| *of == site);
    let Some((_, answers::Verdict::MayFail { ranges: failing })) = found else {
        return Vec::new();
    };
    let named = failing.iter().filter_map(|(slot, value)| {
        name_of(&ranges.ctp, *slot).map(|name| (name.to_owned(), value.clone()))
    });
    named.collect()
}

/// A schedule as stretches of one thread each.
fn schedule(out: &mut dyn Write, run: &Shown) -> io::Result<()> {
    let mut left = STEPS_MAX;
    for stretch in run.steps.chunk_by(|a, b| a.0 == b.0) {
        let mut lines: Vec<&str> =
            stretch.iter().map(|(_, at)| at.rsplit(':').next().unwrap_or(at)).collect();
        lines.dedup();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        writeln!(out, "    {}: {word} {}", shown(&stretch[0].0), lines.join(", "))?;
        left = left.saturating_sub(stretch.len());
        if left == 0 {
            return writeln!(out, "    … (--format json has all steps)");
        }
    }
    Ok(())
}

fn remarks<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    let answers = &ranges.analysis.answers;
    let (unreachable, overflows) =
        (lines_of(&ranges.ctp, &answers.unreachable), lines_of(&ranges.ctp, &answers.overflows));
    if !unreachable.is_empty() {
        writeln!(out, "\nunreachable: {}", spelled(&unreachable))?;
    }
    if !overflows.is_empty() {
        writeln!(out, "\npossible 64-bit overflow: {}", spelled(&overflows))?;
    }
    Ok(())
}

fn graphs<D: Described>(out: &mut dyn Write, ranges: &Ranges<D>) -> io::Result<()> {
    writeln!(out, "\ngraph        nodes  transactions  switches   MATs  local bits  global bits")?;
    for examined in &ranges.analysis.graphs {
        let graph = &examined.graph;
        let number =
            |number: Option<u64>| number.map_or_else(|| "–".to_owned(), |of| of.to_string());
        writeln!(
            out,
            "{:<11} {:>6} {:>13} {:>9} {:>6} {:>11} {:>12}",
            graph_name(graph.kind),
            graph.nodes.len(),
            graph.transaction_edges_count(),
            graph.switches.len(),
            number(graph.mats_count.map(|count| count as u64)),
            number(examined.bits.as_ref().map(|bits| bits.local)),
            number(examined.bits.as_ref().map(|bits| bits.global)),
        )?;
    }
    for &kind in &ranges.analysis.omitted {
        writeln!(out, "{:<11} too large", graph_name(kind))?;
    }
    Ok(())
}

/// `entry` with the range of `value`.
fn with_range<D: Described>(mut entry: Value, value: &D) -> Value {
    let (low, high) = value.bounds();
    entry["low"] = json!((low != i64::MIN).then_some(low));
    entry["high"] = json!((high != i64::MAX).then_some(high));
    if let Some((modulus, residue)) = value.remainder() {
        entry["modulus"] = json!(modulus);
        entry["residue"] = json!(residue);
    }
    entry
}

fn schedule_json(run: &Shown) -> Value {
    let step = |(thread, at): &(String, String)| json!({ "thread": thread, "at": at });
    Value::Array(run.steps.iter().map(step).collect())
}

/// What was found in the program `name` for programs.
pub(super) fn json<D: Described>(name: &str, ranges: &Ranges<D>) -> Value {
    let (ctp, answers) = (&ranges.ctp, &ranges.analysis.answers);
    let troubles = ranges.troubles.iter();
    json!({
        "program": name,
        "runs": ranges.runs_count,
        "left_out": ranges.left_out_count,
        "mode": if ranges.is_sound { "sound" } else { "paper" },
        "threads": ctp.threads.len(),
        "steps": ctp.steps.len(),
        "closed": ranges.is_closed,
        "leaves": lines_of(ctp, &answers.leaves),
        "divides_by_zero": lines_of(ctp, &answers.faults),
        "overflows": lines_of(ctp, &answers.overflows),
        "troubles": troubles.map(|of| json!({ "seed": of.seed, "text": of.what() })).collect::<Vec<_>>(),
        "complete": !answers.exhausted,
        "graphs": graphs_json(ranges),
        "ranges": ranges_json(ranges),
        "assertions": assertions_json(ranges),
        "reach": reach_json(ranges),
        "unreachable": lines_of(ctp, &answers.unreachable),
    })
}

fn graphs_json<D: Described>(ranges: &Ranges<D>) -> Value {
    let entry = |examined: &reweave_intervals::analyse::Examined<D>| {
        let graph = &examined.graph;
        json!({
            "name": graph_name(graph.kind),
            "nodes": graph.nodes.len(),
            "transaction_edges": graph.transaction_edges_count(),
            "switch_edges": graph.switches.len(),
            "fork_join_edges": graph.orders.len(),
            "mats": graph.mats_count,
            "rounds": examined.values.as_ref().map(|values| values.rounds),
            "local_bits": examined.bits.as_ref().map(|bits| bits.local),
            "global_bits": examined.bits.as_ref().map(|bits| bits.global),
        })
    };
    Value::Array(ranges.analysis.graphs.iter().map(entry).collect())
}

fn ranges_json<D: Described>(ranges: &Ranges<D>) -> Value {
    let finals = finals_of(ranges).into_iter().map(|of| {
        let variable = ranges.ctp.names.vars.name(of.var);
        let entry = json!({ "variable": variable, "reached": of.value.is_some(), "bits": of.bits });
        match &of.value {
            Some(value) => with_range(entry, value),
            None => entry,
        }
    });
    let rows = by_line(ranges, false);
    let lines = rows.iter().map(|((line, kind, name), value)| {
        with_range(json!({ "line": line, "use": kind.as_str(), "variable": name }), value)
    });
    json!({ "final": finals.collect::<Vec<_>>(), "lines": lines.collect::<Vec<_>>() })
}

fn assertions_json<D: Described>(ranges: &Ranges<D>) -> Value {
    let entry = |assertion: &reweave_workflows::ranges::Assertion| {
        let failing = failing(ranges, assertion.site).into_iter();
        let failing = failing.map(|(name, value)| with_range(json!({ "variable": name }), &value));
        let run = match &assertion.verdict {
            Verdict::Fails(run) => Some(schedule_json(run)),
            _ => None,
        };
        json!({
            "line": line(&ranges.ctp, assertion.site),
            "verdict": verdict_word(ranges, &assertion.verdict),
            "by_search": matches!(assertion.verdict, Verdict::HoldsBySearch),
            "failing": failing.collect::<Vec<_>>(),
            "schedule": run,
        })
    };
    Value::Array(ranges.assertions.iter().map(entry).collect())
}

fn reach_json<D: Described>(ranges: &Ranges<D>) -> Value {
    let entry = |reached: &reweave_workflows::ranges::Reached| {
        json!({
            "line": reached.line,
            "reachable": reached.is_known.then_some(reached.shown.is_some()),
            "schedule": reached.shown.as_ref().map(schedule_json),
        })
    };
    Value::Array(ranges.reached.iter().map(entry).collect())
}

/// Writes a page on all of `results`.
pub(super) fn html<D: Described>(
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
    let finals = finals_of(ranges);
    if !finals.is_empty() {
        writeln!(out, "<h3>Final values</h3>\n<div class=\"scroll\"><table>")?;
        for of in finals {
            let name = ranges.ctp.names.vars.name(of.var);
            let value = of.value.as_ref().map_or_else(|| "never".to_owned(), D::text);
            writeln!(out, "<tr><td><code>{}</code></td><td>{value}</td></tr>", markup(name))?;
        }
        writeln!(out, "</table></div>")?;
    }
    writeln!(out, "<h3>Line by line</h3>\n<div class=\"scroll\"><table>")?;
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
