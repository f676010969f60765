//! The `reweave` command: one module per subcommand, no logic of its own.
//!
//! Findings go to standard output, everything else to standard error. Exit codes: 0 nothing found,
//! or done; 66 something found; 3 nothing found but the search was cut short; 2 bad input or
//! usage; 70 a fault of our own; 130 interrupted before there was anything to tell.

mod commands;
mod config;
mod destination;
mod exit;
mod gate;
mod hint;
mod input;
mod interrupt;
mod overwriting;
mod program;
mod step_summary;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Predicts what other runs of a concurrent program could do wrong, from one recorded run.
#[derive(Debug, Parser)]
#[command(
    name = "reweave",
    version,
    after_help = "Start with:\n  reweave demo\n  reweave check TRACE"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Check(commands::check::Args),
    Races(commands::races::Args),
    Deadlocks(commands::deadlocks::Args),
    Atomicity(commands::atomicity::Args),
    Determinism(commands::determinism::Args),
    States(commands::states::Args),
    Run(commands::run::Args),
    Ndseq(commands::ndseq::Args),
    Intervals(commands::intervals::Args),
    Explain(commands::explain::Args),
    Stats(commands::stats::Args),
    Convert(commands::convert::Args),
    Generate(commands::generate::Args),
    Fmt(commands::fmt::Args),
    Record(commands::record::Args),
    Confirm(commands::confirm::Args),
    Cc(commands::cc::CArgs),
    #[command(name = "c++")]
    CPlusPlus(commands::cc::CPlusPlusArgs),
    #[command(hide = true)]
    Cargo(commands::cargo::Args),
    #[command(name = reweave_record::toolchain::WRAPPER, hide = true)]
    Step(commands::cc::StepArgs),
    #[command(name = reweave_record::toolchain::RUNNER, hide = true)]
    Program(commands::cc::StepArgs),
    List(commands::list::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    Schema(commands::schema::Args),
}

/// Commands that tell what there is, and need no settings for it.
const TELLING: [&str; 2] = ["list", "schema"];

impl Command {
    /// Whether the process becomes another program, which listens for Ctrl-C in its own way.
    const fn becomes_another(&self) -> bool {
        matches!(
            self,
            Self::Cc(_) | Self::CPlusPlus(_) | Self::Cargo(_) | Self::Step(_) | Self::Program(_)
        )
    }
}

/// Every command that people are to know of.
fn visible() -> clap::Command {
    let all = config::with_own_options(Arguments::command());
    let mut visible = clap::Command::new("reweave").args(all.get_arguments().cloned());
    visible = visible.version(env!("CARGO_PKG_VERSION"));
    visible = visible.about(all.get_about().cloned().unwrap_or_default());
    visible = visible.after_help(all.get_after_help().cloned().unwrap_or_default());
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    visible.subcommands(commands.cloned()).subcommand_required(true)
}

/// The words of the command line, as far as they are text.
fn spelled(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// What the command line asks for; ends the process if that is nothing we know.
fn arguments() -> anyhow::Result<Arguments> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let plain = config::with_own_options(Arguments::command());
    let configured = config::configured(plain.clone(), words.get(1..).unwrap_or_default());
    let (configured, faulty) = match configured {
        Ok(configured) => (configured, None),
        Err(error) => (config::Configured::from(plain), Some(error)),
    };
    let matches = configured.command.clone().try_get_matches_from(&words);
    if let Some(error) = faulty {
        // Who asks what there is must be told, whatever a file in some folder says.
        let is_told = match &matches {
            Ok(matches) => matches.subcommand_name().is_some_and(|name| TELLING.contains(&name)),
            Err(error) => error.exit_code() == 0,
        };
        anyhow::ensure!(is_told, error);
        exit::say(&format!("reweave: {error:#}"));
    }
    if let Ok(matches) = &matches {
        overwriting::refuse(matches)?;
        configured.tell(matches);
    }
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    Ok(arguments.unwrap_or_else(|error| {
        let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
        let asked = words.get(1).filter(|_| is_unknown).and_then(|word| word.to_str());
        match asked.and_then(hint::of_command) {
            Some(hint) => exit::refuse(&hint),
            None => hint::with_tip(error, &spelled(&words)).exit(),
        }
    }))
}

fn main() -> ExitCode {
    exit::guarded(|| {
        let arguments = arguments()?;
        if !arguments.command.becomes_another() {
            interrupt::listen();
        }
        match arguments.command {
            Command::Demo(args) => commands::demo::run(&args),
            Command::Check(args) => commands::check::run(&args),
            Command::Races(args) => commands::races::run(&args),
            Command::Deadlocks(args) => commands::deadlocks::run(&args),
            Command::Atomicity(args) => commands::atomicity::run(&args),
            Command::Determinism(args) => commands::determinism::run(&args),
            Command::States(args) => commands::states::run(&args),
            Command::Ndseq(args) => commands::ndseq::run(&args),
            Command::Intervals(args) => commands::intervals::run(&args),
            Command::Run(args) => commands::run::run(&args),
            Command::Explain(args) => commands::explain::run(&args),
            Command::Stats(args) => commands::stats::run(&args),
            Command::Convert(args) => commands::convert::run(&args),
            Command::Generate(args) => commands::generate::run(&args),
            Command::Fmt(args) => commands::fmt::run(&args),
            Command::Record(args) => commands::record::run(&args),
            Command::Confirm(args) => commands::confirm::run(&args),
            Command::Cc(args) => commands::cc::run_c(&args),
            Command::CPlusPlus(args) => commands::cc::run_cplusplus(&args),
            Command::Cargo(args) => commands::cargo::run(&args),
            Command::Step(args) => commands::cc::run_step(&args),
            Command::Program(args) => commands::cargo::run_program(&args),
            Command::List(args) => commands::list::run(&args),
            Command::Completions(args) => commands::completions::run(&args),
            Command::Man(args) => commands::man::run(&args),
            Command::Schema(args) => commands::schema::run(&args),
        }
    })
}
