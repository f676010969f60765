//! Expressions.

use reweave_base::Id as _;
use reweave_trace::Binary;

use super::constants::name_of;
use super::suggest::Wanted;
use super::{Entity, Resolver};
use crate::diagnostic::Diagnostic;
use crate::program::{Expr, ExprId, ExprKind, FunctionId};
use crate::source::Span;
use crate::syntax::{NodeId, NodeKind, Value};

impl Resolver<'_> {
    /// Resolves a whole expression.
    pub(super) fn expression(&mut self, value: Value) -> ExprId {
        for index in value.first.index()..=value.root.index() {
            let id = NodeId::from_index(index);
            let resolved = self.node(id);
            self.values[id] = Some(resolved);
        }
        self.value_of(value.root)
    }

    /// What became of a node that was gone through.
    fn value_of(&self, id: NodeId) -> ExprId {
        self.values[id].expect("operands come before their operator")
    }

    fn node(&mut self, id: NodeId) -> ExprId {
        let syntax = self.syntax;
        let span = syntax.nodes[id].span;
        let (kind, constant) = match &syntax.nodes[id].kind {
            NodeKind::Paren(inner) => return self.value_of(*inner),
            NodeKind::Number(number) => (ExprKind::Number(*number), Some(*number)),
            NodeKind::Name => (self.read(span, None, span), None),
            NodeKind::Index { name, index } => {
                let index = self.value_of(*index);
                (self.read(*name, Some(index), span), None)
            }
            NodeKind::Unary(operator, of) => {
                let of = self.value_of(*of);
                let constant = self.constants[of].map(|of| operator.apply(of));
                (ExprKind::Unary(*operator, of), constant)
            }
            NodeKind::Binary(operator, left, right) => {
                let (left, right) = (self.value_of(*left), self.value_of(*right));
                self.warn_of_zero(*operator, right, span);
                let (one, other) = (self.constants[left], self.constants[right]);
                let constant = known(*operator, one, other);
                (ExprKind::Binary(*operator, left, right), constant)
            }
            NodeKind::Call { name, arguments } => {
                let arguments: Vec<ExprId> =
                    arguments.iter().map(|&argument| self.value_of(argument)).collect();
                let call = self.callee(*name, span, &arguments);
                (call.map_or(ExprKind::Number(0), |id| ExprKind::Call(id, arguments)), None)
            }
        };
        self.constants.push(constant);
        self.program.expressions.push(Expr { span, kind })
    }

    /// What the name at `name`, with an index or without, is worth; 0 if it has a fault.
    fn read(&mut self, name: Span, index: Option<ExprId>, span: Span) -> ExprKind {
        match self.entity(name) {
            Some(Entity::Local(local)) => {
                if index.is_some() {
                    self.no_array(name, Entity::Local(local), span);
                }
                self.capture(local);
                ExprKind::Local(local)
            }
            Some(Entity::Global(global)) => self
                .shared_place(global, name, index, span)
                .map_or(ExprKind::Number(0), ExprKind::Shared),
            Some(other) => {
                self.wrong_kind(name, other, Wanted::Value);
                ExprKind::Number(0)
            }
            None => {
                self.undeclared(name, Wanted::Value);
                ExprKind::Number(0)
            }
        }
    }

    fn warn_of_zero(&mut self, operator: Binary, right: ExprId, span: Span) {
        let divides = matches!(operator, Binary::Divide | Binary::Remainder);
        if divides && self.constants[right] == Some(0) {
            let message = format!("{} by zero", name_of(operator));
            self.report(Diagnostic::warning(span, message, "this ends the thread with a fault"));
        }
    }

    /// The function that the name of a call means, if it takes these arguments.
    pub(super) fn callee(
        &mut self,
        name: Span,
        span: Span,
        arguments: &[ExprId],
    ) -> Option<FunctionId> {
        let function = match self.entity(name) {
            Some(Entity::Function(function)) => function,
            Some(other) => {
                self.wrong_kind(name, other, Wanted::Function);
                return None;
            }
            None => {
                self.undeclared(name, Wanted::Function);
                return None;
            }
        };
        self.calls.push(super::Call { from: self.body.function, to: function, span: name });
        // The function may give back what is held.
        self.body.held.clear();
        let (wanted, given) = (self.arities[function], arguments.len());
        if wanted == given {
            return Some(function);
        }
        let message =
            format!("{} takes {}, found {given}", self.shown(name), plural(wanted, "argument"));
        // The first argument that is too many, or where the first that is missing would stand.
        let (place, label) = match arguments.get(wanted) {
            Some(&surplus) => (self.program.expressions[surplus].span, "not expected".to_owned()),
            None => (
                Span::new(span.end - 1, span.end),
                format!("{} missing", plural(wanted - given, "argument")),
            ),
        };
        let declared = self.program.functions[function].span;
        self.report(Diagnostic::error(place, message, label).and(declared, "declared here"));
        None
    }
}

/// `count` of what `noun` names.
fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    let count = if count == 0 { "no".to_owned() } else { count.to_string() };
    format!("{count} {noun}{ending}")
}

/// The result where each operand may be unknown; none where it is unknown too, or there is none.
fn known(operator: Binary, left: Option<i64>, right: Option<i64>) -> Option<i64> {
    match (operator, left?) {
        (Binary::And, 0) => Some(0),
        (Binary::Or, decided) if decided != 0 => Some(1),
        (_, left) => operator.apply(left, right?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deciding_first_operand_leaves_out_the_second() {
        assert_eq!(known(Binary::And, Some(0), None), Some(0));
        assert_eq!(known(Binary::Or, Some(5), None), Some(1));
        assert_eq!(known(Binary::And, Some(1), None), None);
        assert_eq!(known(Binary::And, None, Some(0)), None);
    }
}
