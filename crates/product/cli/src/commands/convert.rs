//! `convert`: change the format of a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use reweave_format::Format;
use reweave_trace::{LockOp, Op, Trace};

use crate::destination::Destination;
use crate::exit::say;
use crate::input;

/// Convert a trace to another format.
///
/// The extension of the output selects the format: .std, .rwt, .trace (columns), .jsonl or .parquet, followed by .gz
/// or .zst to compress it; or use `--to`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave convert run.std.gz run.rwt\n  \
                        reweave convert --to jsonl run.rwt - | head\n  \
                        reweave convert --to chrome run.rwt run.json  # for ui.perfetto.dev")]
pub struct Args {
    /// The trace to read; `-` is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; `-` is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Output format [default: by the extension of OUT]
    #[arg(long, value_name = "FORMAT", value_parser = input::named(input::FORMATS))]
    to: Option<Format>,
    /// Repair a trace whose events cannot have happened, and list the changes
    #[arg(long)]
    repair: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (format, compression) = input::format_of_output(&args.output, args.to)?;
    let destination = Destination::prepare(Some(&args.output))?;
    let reading = input::read(&args.input, args.repair)?;
    destination.write_trace(&reading.trace, format, compression)?;
    for what in left_out(&reading.trace, format) {
        let (output, word) = (input::output_name(&args.output), input::format_name(format));
        say(&format!("{output}: {what} dropped: the format {word} cannot store them"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What `trace` holds and `format` cannot store.
fn left_out(trace: &Trace, format: Format) -> Vec<&'static str> {
    let names = trace.names();
    let is_plain = match format {
        Format::Std | Format::Columns => true,
        Format::Rwt | Format::JsonLines => false,
        // These are views of a trace, which nobody takes for the trace itself.
        Format::Chrome | Format::Parquet => return Vec::new(),
    };
    let has_stacks = || names.sites.entries().any(|(site, _)| names.stack(site).next().is_some());
    let declared = trace.declared();
    let has_declared =
        declared.starts.iter().any(Option::is_some) || declared.parties.iter().any(Option::is_some);
    let has_attempts = || {
        declared.waits_are_requested
            && trace.events().any(|(id, event)| {
                let is_acquire =
                    matches!(event.op, Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _));
                is_acquire && !trace.may_wait(id)
            })
    };
    let candidates = [
        ("call stacks", is_plain && has_stacks()),
        ("initial values of semaphores and sizes of barriers", is_plain && has_declared),
        (
            "the marks of acquires that cannot wait, such as `trylock` (deadlocks may be reported \
             that cannot happen),",
            is_plain && has_attempts(),
        ),
        ("the recorded command", is_plain && trace.run_start().is_some()),
        ("data and control flow", trace.flow().is_some()),
        ("the program's transitions", trace.program().is_some()),
        (
            "machine code addresses (which `reweave confirm` needs)",
            format != Format::Rwt && trace.origins().is_some(),
        ),
    ];
    candidates.into_iter().filter(|&(_, is_lost)| is_lost).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::{AccessOp, Code, Flow, Module, Origin, SemaphoreOp, TraceBuilder};

    #[test]
    fn what_a_format_cannot_store_is_known() {
        let mut builder = TraceBuilder::new();
        let (thread, semaphore) = (builder.thread("T1"), builder.semaphore("s"));
        let site = builder.names().site("a.c:1", ["main.c:9"]);
        builder.push(thread, Op::Semaphore(SemaphoreOp::Post, semaphore), site);
        builder.declare_start(semaphore, 0);
        let trace = builder.finish().unwrap();
        for format in [Format::Std, Format::Columns] {
            assert_eq!(left_out(&trace, format).len(), 2, "{format:?}");
        }
        for format in [Format::Rwt, Format::JsonLines] {
            assert_eq!(left_out(&trace, format).len(), 0, "{format:?}");
        }
    }

    #[test]
    fn no_format_stores_the_flow_layer() {
        let mut builder = TraceBuilder::new();
        builder.set_flow(Flow::default());
        let trace = builder.finish().unwrap();
        assert_eq!(left_out(&trace, Format::JsonLines), ["data and control flow"]);
    }

    #[test]
    fn only_our_own_format_stores_the_origins_that_confirming_needs() {
        let mut builder = TraceBuilder::new();
        let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("a.c:1"));
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
        let origins = builder.origins();
        let module = origins.add_module(Module::default());
        let code = origins.add_code(Code { module, offset: 7 });
        builder.origin(Origin { code, occurrence: 0 });
        let trace = builder.finish().unwrap();
        for format in [Format::Std, Format::Columns, Format::JsonLines] {
            let lost = left_out(&trace, format);
            assert!(matches!(lost[..], [what] if what.contains("confirm")), "{format:?}: {lost:?}");
        }
        assert_eq!(left_out(&trace, Format::Rwt).len(), 0);
    }
}
