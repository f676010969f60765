//! Value ranges: propagation, lookahead, the metric and the answers.

mod agreement;
mod answers;
mod budgets;
mod common;
mod generate;
mod soundness;
mod vectors;
