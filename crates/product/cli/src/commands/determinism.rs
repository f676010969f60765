//! `determinism`: reads that can see another write.

use std::process::ExitCode;

use super::examine::{self, Options};

/// Find reads that can see another write than they saw, with a schedule for each.
///
/// Findings are grouped by the code location of the read, and those that no race detector tells of
/// are marked. Exits with 0 when nothing is found, 66 when something is, and 3 when nothing is but
/// the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave determinism --values run.std")]
pub(crate) struct Args {
    /// Which other runs count
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,
    /// Let go of writes that would give the read the same value
    #[arg(long)]
    values: bool,
    /// Take every variable to be read once more when the run ends
    #[arg(long)]
    final_reads: bool,
    #[command(flatten)]
    options: Options,
}

/// Which runs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ModeName {
    /// what Sinha, Malik and Gupta (2012) decide, to compare: reads come after what they saw, but
    /// other writes may come in between
    Order,
    /// every other read sees what it saw
    Prefix,
    /// as prefix, and the thread of the read goes no further: holds whatever it does with the
    /// other value
    #[default]
    Strict,
}

impl ModeName {
    /// The analysis that goes by it.
    const fn analysis(self) -> &'static str {
        match self {
            Self::Order => "determinism.order",
            Self::Prefix => "determinism.prefix",
            Self::Strict => "determinism.strict",
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let analyses = reweave_catalog::select(args.mode.analysis(), &[])?;
    examine::run(&args.options, &analyses, |settings| {
        settings.differing_values = args.values;
        settings.final_reads = args.final_reads;
    })
}
