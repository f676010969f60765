//! `states`: the consistent global states of a run or of a poset.

mod count;
mod list;
mod meeting;
mod space;

use std::process::ExitCode;

use clap::Subcommand;
use reweave_analysis::Analysis;
use reweave_states::analyses::Find;
use reweave_states::predicate::Predicate;
use reweave_trace::Trace;

use super::examine::{self, Options};
pub(crate) use space::OrderName;

/// Count, list, sample and search the global states of a run.
///
/// A global state (consistent cut) says how many events of each thread have happened; it has, with an event, all that
/// happen before it. INPUT is a trace, or a poset: a JSON object with `n`, the number of threads, and `events`, a list
/// of `[thread, clock]`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states count run.std")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Count(count::Args),
    Find(FindArgs),
    List(list::Args),
    Sample(list::SampleArgs),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Count(args) => count::run(args),
        Command::Find(args) => find(args),
        Command::List(args) => list::run(args),
        Command::Sample(args) => list::sample(args),
    }
}

/// Find global states that meet a predicate, or violate one.
///
/// A predicate is about values (`x + y > 3`), locations (`at(T1, "a.c:12")`), locks (`holds(T1, m)`) and threads
/// (`count(t: holds(t, m)) >= 2`), and may be inside `possibly` (the default), `definitely`, `always` or `never`. Shows
/// the least state that meets it, and a run that reaches it. Exits with 0 if nothing is found, 66 if something is, and
/// 3 if nothing is found but the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states find run.std --predicate 'never(x > limit)'")]
struct FindArgs {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    question: Question,
}

/// Which states are looked for.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Question {
    /// Predicate on global states
    ///
    /// May be given several times.
    #[arg(long = "predicate", value_name = "EXPR", required = true, allow_hyphen_values = true)]
    pub(crate) predicates: Vec<String>,
    /// Order of the events [default: preserving]
    #[arg(long, value_enum, default_value_t = OrderName::Preserving, hide_default_value = true)]
    pub(crate) order: OrderName,
    /// Use the online detector, as for a live run
    #[arg(long)]
    pub(crate) online: bool,
}

impl Question {
    /// The search of `trace` that answers it.
    pub(crate) fn analysis(&self, trace: &Trace) -> anyhow::Result<Find> {
        let parse = |text: &String| Predicate::parse(text, trace);
        let predicates = self.predicates.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Find { predicates, relation: self.order.relation(), is_online: self.online })
    }
}

/// Runs `states find`.
fn find(args: &FindArgs) -> anyhow::Result<ExitCode> {
    let choose = |trace: &Trace| -> anyhow::Result<Vec<Box<dyn Analysis>>> {
        Ok(vec![Box::new(args.question.analysis(trace)?)])
    };
    examine::run_chosen(&args.options, choose, |_| {})
}
