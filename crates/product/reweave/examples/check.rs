//! Checks the traces that the command line names, and prints each finding with its schedule.
//!
//! ```sh
//! cargo run -p reweave --example check -- run.rwt
//! ```
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::path::PathBuf;

use reweave::{ReadOptions, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        let trace = reweave::read(&path, &ReadOptions::default())?.trace;
        let outcome = reweave::check(&trace, &Settings::default());
        for reported in &outcome.findings {
            let (id, finding) = (&reported.id, &reported.finding);
            println!("{}: {id} {}: {}", path.display(), finding.kind.as_str(), finding.message);
            let Some(proof) = finding.evidence.proof() else { continue };
            for event in reweave::schedule(&trace, proof.reordering()) {
                let step = trace.event(event);
                let thread = trace.names().threads.name(step.thread);
                println!("    {thread} at {}", trace.names().location(step.site));
            }
        }
        if !outcome.is_complete() {
            println!("{}: the search was cut short", path.display());
        }
    }
    Ok(())
}
