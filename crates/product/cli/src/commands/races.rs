//! `races`: conflicting accesses that another run can do at once.

use std::process::ExitCode;

use super::examine::{self, Options};

/// Find data races: by one relation, or all that can be proven.
///
/// Exits with 0 when nothing is found, 66 when something is, and 3 when nothing is but the search
/// was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave races --relation cp --window 500 run.std")]
pub(crate) struct Args {
    /// What to go by
    #[arg(long, value_enum, default_value_t)]
    relation: RelationName,
    /// With `--relation cp`: look only at accesses less than this many events apart
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    #[command(flatten)]
    options: Options,
}

/// What races are found by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum RelationName {
    /// happens-before
    Hb,
    /// schedulable happens-before
    Shb,
    /// weak causally-precedes
    Wcp,
    /// causally-precedes
    Cp,
    /// reorderings that keep the order of critical sections
    Syncp,
    /// all correct reorderings
    #[default]
    Exact,
}

impl RelationName {
    /// The analysis that goes by it.
    const fn analysis(self) -> &'static str {
        match self {
            Self::Hb => "races.hb",
            Self::Shb => "races.shb",
            Self::Wcp => "races.wcp",
            Self::Cp => "races.cp",
            Self::Syncp => "races.syncp",
            Self::Exact => "races.exact",
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_windowed = args.window.is_none() || args.relation == RelationName::Cp;
    anyhow::ensure!(is_windowed, "`--window` goes with `--relation cp` only");
    let analyses = reweave_catalog::select(args.relation.analysis(), &[])?;
    examine::run(&args.options, &analyses, |settings| settings.window = args.window)
}
