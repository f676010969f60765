//! A run made ready: its events, what they depend on, what they lie inside of, and its targets.

use reweave_trace::{Flow, Trace};

use crate::dependences::Dependences;
use crate::events::{Events, NodeId};
use crate::scopes::Scopes;

/// One run, made ready to be asked about.
#[derive(Clone, Debug)]
pub struct Run<'t> {
    /// Its flow layer.
    pub flow: &'t Flow,
    /// Its events.
    pub events: Events,
    /// What they depend on.
    pub dependences: Dependences,
    /// What they lie inside of.
    pub scopes: Scopes,
    /// The last write of each thread to each variable of the focus.
    pub targets: Vec<NodeId>,
}

/// Why runs cannot be looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A trace does not say what its events depend on.
    #[error("run {} has no flow layer; only runs of programs written in the language have one", .run + 1)]
    NoFlow {
        /// Which run, counted from 0.
        run: usize,
    },
    /// Two traces are not of one program.
    #[error("run {} is of another program than run 1: their blocks differ", .run + 1)]
    OtherProgram {
        /// Which run differs from the first, counted from 0.
        run: usize,
    },
}

impl<'t> Run<'t> {
    /// Makes `trace` ready; none if it has no flow layer.
    pub fn new(trace: &'t Trace) -> Option<Self> {
        let flow = trace.flow()?;
        let events = Events::new(trace, flow);
        let dependences = Dependences::new(trace, flow, &events);
        let scopes = Scopes::new(flow, &events);
        let targets = events.targets(flow.focus());
        Some(Self { flow, events, dependences, scopes, targets })
    }
}

/// Makes the runs of one program ready.
///
/// # Errors
/// If one has no flow layer, or they are not of one program.
pub fn prepare<'t>(traces: &[&'t Trace]) -> Result<Vec<Run<'t>>, RunError> {
    let mut runs: Vec<Run<'t>> = Vec::with_capacity(traces.len());
    for (run, &trace) in traces.iter().enumerate() {
        let ready = Run::new(trace).ok_or(RunError::NoFlow { run })?;
        if runs.first().is_some_and(|first| first.flow.blocks() != ready.flow.blocks()) {
            return Err(RunError::OtherProgram { run });
        }
        runs.push(ready);
    }
    Ok(runs)
}
