//! The `reweave` command: one module per subcommand, no logic of its own.
//!
//! Findings go to standard output, everything else to standard error. Exit codes: 0 nothing found,
//! or done; 66 something found; 3 nothing found but the search was cut short; 2 bad input or
//! usage; 70 an internal error; 130 interrupted before there was anything to report.
//!
//! A binary has no public interface: `pub` marks what its modules share.
#![allow(unreachable_pub)]

mod commands;
mod config;
mod destination;
mod exit;
mod input;
mod interrupt;
mod launch;
mod policy;
mod program;
mod remap;
mod terminal;
mod verbose;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use config::Configured;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Predict concurrency bugs from one recorded run of a program.
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
    Races(commands::check::RacesArgs),
    Deadlocks(commands::check::DeadlocksArgs),
    Atomicity(commands::check::AtomicityArgs),
    Determinism(commands::check::DeterminismArgs),
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
    List(commands::about::ListArgs),
    Completions(commands::about::CompletionsArgs),
    Man(commands::about::ManArgs),
    Schema(commands::about::SchemaArgs),
}

/// Commands that describe what is supported, whatever the configuration.
const DESCRIBING: [&str; 2] = ["list", "schema"];

impl Command {
    /// Whether the process becomes another program, which handles Ctrl-C in its own way.
    const fn becomes_another(&self) -> bool {
        matches!(
            self,
            Self::Cc(_) | Self::CPlusPlus(_) | Self::Cargo(_) | Self::Step(_) | Self::Program(_)
        )
    }
}

/// The command without its hidden subcommands.
fn visible() -> clap::Command {
    let all = config::with_common_options(Arguments::command());
    let mut visible = clap::Command::new("reweave").args(all.get_arguments().cloned());
    visible = visible.version(env!("CARGO_PKG_VERSION"));
    visible = visible.about(all.get_about().cloned().unwrap_or_default());
    visible = visible.after_help(all.get_after_help().cloned().unwrap_or_default());
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    visible.subcommands(commands.cloned()).subcommand_required(true)
}

/// Parses the command line; ends the process if it is invalid or asks for help.
fn arguments() -> anyhow::Result<Arguments> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let plain = config::with_common_options(Arguments::command());
    let loaded = Configured::load(plain.clone(), words.get(1..).unwrap_or_default());
    let (configured, invalid) = match loaded {
        Ok(configured) => (configured, None),
        Err(error) => (Configured::new(plain), Some(error)),
    };
    let matches = configured.command.clone().try_get_matches_from(&words);
    if let Some(error) = invalid {
        // An invalid file in some folder must not keep anyone from reading the help.
        let is_harmless = match &matches {
            Ok(matches) => matches.subcommand_name().is_some_and(|it| DESCRIBING.contains(&it)),
            Err(error) => error.exit_code() == 0,
        };
        anyhow::ensure!(is_harmless, error);
        exit::say(&format!("reweave: {error:#}"));
    }
    if let Ok(matches) = &matches {
        verbose::start(verbosity(matches));
        destination::check_overwriting(matches)?;
        configured.report_policy(matches);
    }
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    Ok(arguments.unwrap_or_else(|error| {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        with_tip(error, &words).exit()
    }))
}

/// How often `--verbose` was given, before and after the subcommand.
fn verbosity(matches: &ArgMatches) -> u8 {
    let own = matches.try_get_one::<u8>("verbose").ok().flatten().copied().unwrap_or(0);
    own + matches.subcommand().map_or(0, |(_, inner)| verbosity(inner))
}

/// `error`, which the command line `words` led to, with a tip if the program has no `--` before it, or
/// the finding is missing.
fn with_tip<W: AsRef<str>>(mut error: clap::Error, words: &[W]) -> clap::Error {
    let command = words.get(1).map_or("", AsRef::as_ref);
    let tip = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing)))
            if ["explain", "confirm"].contains(&command)
                && missing.iter().any(|it| it == "<ID>") =>
        {
            "`reweave check TRACE` lists the findings with their ids, such as R1".to_owned()
        }
        // What starts like an option is one that we do not have.
        (ErrorKind::UnknownArgument, Some(ContextValue::String(found)))
            if ["record", "confirm"].contains(&command)
                && !found.starts_with('-')
                && !words.iter().any(|word| word.as_ref() == "--") =>
        {
            let at = words.iter().position(|word| word.as_ref() == found).unwrap_or(words.len());
            let (ours, program) = words.split_at(at);
            format!("the program comes after `--`: {} -- {}", line(ours), program_line(program))
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// `words` as one types them, this command by its name.
fn line<W: AsRef<str>>(words: &[W]) -> String {
    let rest = words.get(1..).unwrap_or_default().iter();
    let rest = rest.map(|word| reweave_report::quoted(word.as_ref()));
    ["reweave".to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}

/// `words`, a program and its arguments, as one types them: with its folder, if it is in the current one.
fn program_line<W: AsRef<str>>(words: &[W]) -> String {
    let quoted = words.iter().map(|word| reweave_report::quoted(word.as_ref()));
    let text = quoted.collect::<Vec<_>>().join(" ");
    let program = words.first().map_or("", AsRef::as_ref);
    let is_here = !program.contains('/') && std::path::Path::new(program).is_file();
    if is_here { format!("./{text}") } else { text }
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
            Command::Races(args) => commands::check::run_races(&args),
            Command::Deadlocks(args) => commands::check::run_deadlocks(&args),
            Command::Atomicity(args) => commands::check::run_atomicity(&args),
            Command::Determinism(args) => commands::check::run_determinism(&args),
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
            Command::List(args) => commands::about::list(&args),
            Command::Completions(args) => commands::about::completions(&args),
            Command::Man(args) => commands::about::man(&args),
            Command::Schema(_) => commands::about::schema(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[track_caller]
    fn has_tip(line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let record = clap::Command::new("record").arg(Arg::new("cmd").last(true).num_args(1..));
        let command = clap::Command::new("reweave").subcommand(record);
        let error = command.try_get_matches_from(&words).unwrap_err();
        let program = words.get(2..).unwrap_or_default().join(" ");
        let tip = format!("the program comes after `--`: reweave record -- {program}");
        with_tip(error, &words).to_string().contains(&tip)
    }

    #[test]
    fn first_lines_of_help_are_short() {
        fn check(command: &clap::Command) {
            let helps = command.get_arguments().filter_map(Arg::get_help);
            for text in command.get_about().into_iter().chain(helps).map(ToString::to_string) {
                assert!(text.chars().count() <= 70, "{}: {text}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&visible());
    }

    #[test]
    fn a_program_without_dashes_before_it_gets_a_tip() {
        assert!(has_tip("reweave record ./bank"));
        assert!(has_tip("reweave record ./bank 10"));
        assert!(!has_tip("reweave record --no-such"));
    }
}
