//! What shared variables hold at the start.

use reweave_base::Id as _;
use reweave_trace::Binary;

use super::Resolver;
use super::suggest::elsewhere;
use crate::diagnostic::Diagnostic;
use crate::syntax::{NodeId, NodeKind, Value};

impl Resolver<'_> {
    /// The value of a constant expression; 0 if it has a fault, which is reported.
    pub(super) fn initial(&mut self, value: Value) -> i64 {
        let first = value.first.index();
        let mut values: Vec<i64> = Vec::with_capacity(value.root.index() + 1 - first);
        for index in first..=value.root.index() {
            let node = &self.syntax.nodes[NodeId::from_index(index)];
            let of = |id: NodeId| values[id.index() - first];
            let computed = match &node.kind {
                NodeKind::Number(number) => Ok(*number),
                NodeKind::Paren(inner) => Ok(of(*inner)),
                NodeKind::Unary(operator, inner) => Ok(operator.apply(of(*inner))),
                NodeKind::Binary(operator, left, right) => {
                    let (left, right) = (of(*left), of(*right));
                    // What is left out is not computed: `0 && 1 / 0` is 0.
                    operator.apply(left, right).ok_or_else(|| {
                        Diagnostic::error(
                            node.span,
                            format!("{} by zero", name_of(*operator)),
                            "this has no value to start with",
                        )
                    })
                }
                NodeKind::Name | NodeKind::Index { .. } | NodeKind::Call { .. } => {
                    let error = Diagnostic::error(
                        node.span,
                        "what a shared variable holds at the start is a constant",
                        "this is no constant",
                    );
                    let foreign = elsewhere(self.text(node.span));
                    let usual = "assign it in `main`, which runs before the threads";
                    Err(error.help(foreign.unwrap_or(usual)))
                }
            };
            match computed {
                Ok(number) => values.push(number),
                Err(error) => {
                    self.report(error);
                    return 0;
                }
            }
        }
        values.last().copied().unwrap_or(0)
    }
}

/// What the operator does, as a noun.
pub(super) const fn name_of(operator: Binary) -> &'static str {
    if matches!(operator, Binary::Remainder) { "remainder" } else { "division" }
}
