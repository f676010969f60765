//! `completions`: what makes a shell complete our commands and options.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::destination::Destination;

/// Print a script that makes a shell complete commands and options.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave completions bash > \
                        ~/.local/share/bash-completion/completions/reweave\n  \
                        reweave completions fish > ~/.config/fish/completions/reweave.fish\n  \
                        reweave completions zsh > \"${fpath[1]}/_reweave\"")]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::visible(), "reweave", &mut script);
    Destination::StandardOutput.write_bytes(|out| Ok(out.write_all(&script)?))?;
    Ok(ExitCode::SUCCESS)
}
