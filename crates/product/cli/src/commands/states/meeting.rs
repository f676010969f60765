//! `states count --predicate`: how many states meet a predicate.
//!
//! Each state is looked at, since a predicate may depend on all threads at once.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_base::IndexVec;
use reweave_catalog::Watch as _;
use reweave_report::{compact, markup, page, shown};
use reweave_states::Bounds;
use reweave_states::count::CutShort;
use reweave_states::enumerate::lexical;
use reweave_states::predicate::Predicate;
use reweave_trace::ThreadId;
use serde_json::json;

use super::count::Args;
use super::space::Space;
use crate::commands::stats::DrawnFormat;
use crate::watch::Bar;
use crate::{exit, interrupt};

/// How many states there are, and how many of them meet the predicate.
#[derive(Clone, Copy, Default)]
struct Meeting {
    states: u64,
    meeting: u64,
    cut_short: Option<CutShort>,
}

/// Runs `states count --predicate`.
pub(super) fn run(args: &Args, text: &str) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let space = args.source.read_raw()?;
    let (trace, _) = space.traced().context("a poset has no values")?;
    let predicate = Predicate::parse(text, trace).context("in the predicate")?;
    anyhow::ensure!(
        !predicate.is_race(),
        "`race` is about two accesses, not about a state: use `states find`"
    );
    interrupt::keep(interrupt::RESULTS);
    let counted = count(args, &space, &predicate);
    let what = format!("{} of {} global states", counted.meeting, counted.states);
    destination.write(&what, |out| match format {
        DrawnFormat::Text => write_text(out, &space, &predicate, counted),
        DrawnFormat::Json => write_json(out, &space, &predicate, counted),
        DrawnFormat::Html => {
            let title = format!("{}: states", shown(&space.path));
            page(out, &title, "How many global states meet a predicate", |out| {
                lines(&space, &predicate, counted)
                    .iter()
                    .try_for_each(|line| writeln!(out, "<p>{}</p>", markup(line)))
            })
        }
    })?;
    Ok(exit::of_answer(counted.cut_short.is_none()))
}

fn count(args: &Args, space: &Space, predicate: &Predicate) -> Meeting {
    let bar = Bar::new("counting", None).within(args.budget);
    let mut counted = Meeting::default();
    let Some((trace, traced)) = space.traced() else { return counted };
    let mut cut: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, trace.names().threads.len());
    _ = lexical(space.poset(), &Bounds::all(space.poset()), |state| {
        if args.work == Some(counted.states) {
            counted.cut_short = Some(CutShort::Budget);
        } else if !bar.go_on(counted.states) {
            let is_late = bar.is_out_of_time();
            counted.cut_short = Some(if is_late { CutShort::Time } else { CutShort::Stopped });
        }
        if counted.cut_short.is_some() {
            return ControlFlow::Break(());
        }
        for (&thread, &count) in traced.threads().iter().zip(state) {
            cut[thread] = count;
        }
        counted.states += 1;
        counted.meeting += u64::from(predicate.is_met(&cut));
        ControlFlow::Continue(())
    });
    counted
}

/// What is said of the count, in lines.
fn lines(space: &Space, predicate: &Predicate, counted: Meeting) -> Vec<String> {
    let Meeting { states, meeting, cut_short } = counted;
    let verb = if predicate.modality().is_rule() { "violate" } else { "meet" };
    let (path, bound) = (&space.path, if cut_short.is_some() { "at least " } else { "" });
    let mut head =
        format!("{path}: {bound}{meeting} of {states} global states {verb} {}", predicate.text());
    if let Some(reason) = cut_short {
        head += &format!("; not all were looked at, as {reason}");
    }
    let unknowns: Vec<&str> = predicate.unknowns().collect();
    let unknown = (!unknowns.is_empty())
        .then(|| format!("The trace does not have every value of {}.", unknowns.join(", ")));
    [head, space.order_sentence()].into_iter().chain(unknown).collect()
}

fn write_text(
    out: &mut dyn Write,
    space: &Space,
    predicate: &Predicate,
    counted: Meeting,
) -> io::Result<()> {
    for (at, line) in lines(space, predicate, counted).iter().enumerate() {
        writeln!(out, "{}{}", if at > 0 { "  " } else { "" }, shown(line))?;
    }
    Ok(())
}

fn write_json(
    out: &mut dyn Write,
    space: &Space,
    predicate: &Predicate,
    counted: Meeting,
) -> io::Result<()> {
    let mut document = space.document();
    document["states"] = json!(counted.states.to_string());
    document["predicate"] = json!(predicate.text());
    document["meeting"] = json!(counted.meeting.to_string());
    document["complete"] = json!(counted.cut_short.is_none());
    document["truncated"] = json!(counted.cut_short.map(|reason| reason.as_str()));
    serde_json::to_writer_pretty(&mut *out, &compact(document))?;
    writeln!(out)
}
