//! Functions that call themselves, directly or through others.

use reweave_base::IndexVec;

use super::Resolver;
use crate::diagnostic::{Diagnostic, short};
use crate::program::FunctionId;
use crate::source::Span;

/// How many names of a cycle are shown.
const SHOWN_MAX: usize = 8;

/// One call in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The function that calls; none for threads and `main`.
    pub(super) from: Option<FunctionId>,
    pub(super) to: FunctionId,
    /// The name in the call.
    pub(super) span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path from where the search started, at this position.
    Open(usize),
    Done,
}

impl Resolver<'_> {
    /// Reports every call that closes a cycle, in a search through all functions.
    pub(super) fn check_calls(&mut self) {
        let mut outgoing: IndexVec<FunctionId, Vec<Call>> =
            IndexVec::from_elem(Vec::new(), self.program.functions.len());
        for call in std::mem::take(&mut self.calls) {
            if let Some(from) = call.from {
                outgoing[from].push(call);
            }
        }
        let mut state = IndexVec::from_elem(State::New, outgoing.len());
        for start in outgoing.ids() {
            // The functions on the path, each with how many of its calls were followed.
            let mut path: Vec<(FunctionId, usize)> = Vec::new();
            if state[start] == State::New {
                state[start] = State::Open(0);
                path.push((start, 0));
            }
            while let Some((function, followed)) = path.last_mut() {
                let Some(&call) = outgoing[*function].get(*followed) else {
                    state[*function] = State::Done;
                    path.pop();
                    continue;
                };
                *followed += 1;
                match state[call.to] {
                    State::Done => {}
                    State::Open(position) => self.cycle(&path[position..], &outgoing, call),
                    State::New => {
                        state[call.to] = State::Open(path.len());
                        path.push((call.to, 0));
                    }
                }
            }
        }
    }

    /// Reports the cycle that `last` closes: the functions on it, from the one that is called again.
    fn cycle(
        &mut self,
        cycle: &[(FunctionId, usize)],
        outgoing: &IndexVec<FunctionId, Vec<Call>>,
        last: Call,
    ) {
        let name = |function: FunctionId| short(&self.program.functions[function].name);
        let mut names: Vec<String> =
            cycle.iter().take(SHOWN_MAX).map(|&(function, _)| name(function)).collect();
        if cycle.len() > SHOWN_MAX {
            names.push("…".into());
        }
        names.push(name(last.to));
        let message = format!("`{}` calls itself: {}", name(last.to), names.join(" → "));
        let mut error = Diagnostic::error(last.span, message, "this call closes the circle")
            .help("there is no recursion; use a loop and a `shared` array");
        for &(function, followed) in cycle.iter().take(cycle.len() - 1).take(SHOWN_MAX) {
            let call = outgoing[function][followed - 1];
            error = error.and(call.span, format!("`{}` is called here", name(call.to)));
        }
        self.report(error);
    }
}
