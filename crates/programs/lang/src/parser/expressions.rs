//! Expressions, by the precedence of C.

use reweave_base::Id as _;
use reweave_trace::{Binary, Unary};

use super::{Parsed, Parser, Reported, hints};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Magnitude, TokenKind, magnitude, too_large};
use crate::source::Span;
use crate::syntax::{Node, NodeId, NodeKind, Place, Value};

/// The operator that a token stands for between two operands, and how tightly it binds.
const fn operator(kind: TokenKind) -> Option<(Binary, u8)> {
    Some(match kind {
        TokenKind::OrOr => (Binary::Or, 1),
        TokenKind::AndAnd => (Binary::And, 2),
        TokenKind::Or => (Binary::BitOr, 3),
        TokenKind::Xor => (Binary::BitXor, 4),
        TokenKind::And => (Binary::BitAnd, 5),
        TokenKind::Equal => (Binary::Equal, 6),
        TokenKind::NotEqual => (Binary::NotEqual, 6),
        TokenKind::Less => (Binary::Less, 7),
        TokenKind::LessEqual => (Binary::LessEqual, 7),
        TokenKind::Greater => (Binary::Greater, 7),
        TokenKind::GreaterEqual => (Binary::GreaterEqual, 7),
        TokenKind::ShiftLeft => (Binary::ShiftLeft, 8),
        TokenKind::ShiftRight => (Binary::ShiftRight, 8),
        TokenKind::Plus => (Binary::Add, 9),
        TokenKind::Minus => (Binary::Subtract, 9),
        TokenKind::Star => (Binary::Multiply, 10),
        TokenKind::Slash => (Binary::Divide, 10),
        TokenKind::Percent => (Binary::Remainder, 10),
        _ => return None,
    })
}

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let first = NodeId::from_index(self.nodes.len());
        let root = self.binary(0)?;
        Ok(Value { first, root })
    }

    /// Operands joined by operators that bind more tightly than `least`.
    fn binary(&mut self, least: u8) -> Parsed<NodeId> {
        let mut left = self.unary()?;
        while let Some((operator, tightness)) = operator(self.kind()) {
            if tightness <= least {
                break;
            }
            self.bump();
            let right = self.binary(tightness)?;
            let span = self.nodes[left].span.to(self.nodes[right].span);
            left = self.node(span, NodeKind::Binary(operator, left, right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<NodeId> {
        let operator = match self.kind() {
            TokenKind::Minus => Unary::Negate,
            TokenKind::Not => Unary::Not,
            _ => return self.primary(),
        };
        self.nested(|parser| {
            let sign = parser.bump();
            let is_negated = operator == Unary::Negate && parser.kind() == TokenKind::Number;
            let of = if is_negated { parser.number(true) } else { parser.unary()? };
            let span = sign.to(parser.nodes[of].span);
            Ok(parser.node(span, NodeKind::Unary(operator, of)))
        })
    }

    fn primary(&mut self) -> Parsed<NodeId> {
        match (self.kind(), self.next_kind()) {
            (TokenKind::Number, _) => Ok(self.number(false)),
            (TokenKind::Name, TokenKind::LeftParen) => self.call(),
            (TokenKind::Name, TokenKind::LeftBracket) => {
                let name = self.bump();
                self.bump();
                let index = self.nested(|parser| parser.binary(0))?;
                let close = self.close(TokenKind::RightBracket, "after the index")?;
                self.no_second_index()?;
                Ok(self.node(name.to(close), NodeKind::Index { name, index }))
            }
            (TokenKind::Name, _) => {
                let name = self.bump();
                Ok(self.node(name, NodeKind::Name))
            }
            (TokenKind::LeftParen, _) => {
                let open = self.bump();
                let inner = self.nested(|parser| parser.binary(0))?;
                if self.kind() == TokenKind::Assign {
                    return Err(self.assignment_inside());
                }
                let close = self.close(TokenKind::RightParen, "after the value")?;
                Ok(self.node(open.to(close), NodeKind::Paren(inner)))
            }
            _ => Err(self.no_value()),
        }
    }

    /// The number here. With a minus before it, it may be the smallest one.
    fn number(&mut self, is_negated: bool) -> NodeId {
        let value = match magnitude(self.text()) {
            Magnitude::Is(value) => value,
            Magnitude::TooLarge | Magnitude::NotANumber => 0,
        };
        if value > i64::MAX as u64 && !is_negated {
            self.report(too_large(self.span()));
        }
        let span = self.bump();
        // 2⁶³ becomes the smallest number, which is its own negation.
        self.node(span, NodeKind::Number(value as i64))
    }

    fn call(&mut self) -> Parsed<NodeId> {
        let name = self.bump();
        self.bump();
        let mut arguments = Vec::new();
        if self.kind() != TokenKind::RightParen {
            arguments.push(self.nested(|parser| parser.binary(0))?);
            while self.eat(TokenKind::Comma) {
                arguments.push(self.nested(|parser| parser.binary(0))?);
            }
        }
        let close = self.close_arguments()?;
        Ok(self.node(name.to(close), NodeKind::Call { name, arguments }))
    }

    fn node(&mut self, span: Span, kind: NodeKind) -> NodeId {
        self.nodes.push(Node { span, kind })
    }

    /// The arguments of a call, from its `(` to its `)`.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Value>> {
        self.expect(TokenKind::LeftParen, "before the arguments")?;
        let mut arguments = Vec::new();
        if self.kind() != TokenKind::RightParen {
            arguments.push(self.value()?);
            while self.eat(TokenKind::Comma) {
                arguments.push(self.value()?);
            }
        }
        self.close_arguments()?;
        Ok(arguments)
    }

    /// The `)` behind arguments.
    fn close_arguments(&mut self) -> Parsed<Span> {
        if self.kind() == TokenKind::RightParen {
            return Ok(self.bump());
        }
        let help = self.operator_word();
        let reported = self.unexpected_with("`,` or `)`", "after the argument", help);
        if self.kind() == TokenKind::Semicolon { Ok(self.assume_mark()) } else { Err(reported) }
    }

    /// A name, or an element of what `what` names.
    pub(super) fn place(&mut self, what: &str, context: &str) -> Parsed<Place> {
        let name = self.name(what, context)?;
        if !self.eat(TokenKind::LeftBracket) {
            return Ok(Place { name, index: None, span: name });
        }
        let index = self.value()?;
        let close = self.close(TokenKind::RightBracket, "after the index")?;
        self.no_second_index()?;
        Ok(Place { name, index: Some(index), span: name.to(close) })
    }

    fn no_second_index(&mut self) -> Parsed<()> {
        if self.kind() != TokenKind::LeftBracket {
            return Ok(());
        }
        let error =
            Diagnostic::error(self.span(), "arrays have one dimension", "unexpected second index");
        Err(self.report(error.help("compute one index: `a[row * columns + column]`")))
    }

    /// An `=` where a value goes on.
    pub(super) fn assignment_inside(&mut self) -> Reported {
        let is_swapped = self.is_joined(TokenKind::Assign, TokenKind::Less)
            || self.is_joined(TokenKind::Assign, TokenKind::Greater);
        let help = if is_swapped {
            "write `<=` or `>=`, the `=` last"
        } else {
            "to compare, write `==`; an assignment is a statement and has no value"
        };
        self.unexpected_with("`)`", "after the value", Some(help))
    }

    /// `cas`, `fetchadd` or `fork` where it is not the value of a `let`.
    pub(super) fn needs_name(&mut self) -> Reported {
        let word = self.found();
        let message = format!("the result of {word} needs a name");
        let label = format!("{word} stands only behind `let name =`");
        let help = match self.kind() {
            TokenKind::Cas => "write `let ok = cas(…);`, and then use `ok`",
            TokenKind::FetchAdd => "write `let old = fetchadd(…);`, and then use `old`",
            _ => "write `let t = fork { … };`",
        };
        self.report(Diagnostic::error(self.span(), message, label).help(help))
    }

    fn no_value(&mut self) -> Reported {
        let word = self.found();
        match self.kind() {
            TokenKind::Cas | TokenKind::FetchAdd | TokenKind::Fork => self.needs_name(),
            TokenKind::Thread => {
                let help = Some("to start a thread here, write `let t = fork { … };`");
                self.unexpected_with("a value", "", help)
            }
            kind if kind.is_word() => {
                let message = format!("expected a value, found the word {word}");
                let error = Diagnostic::error(self.span(), message, "expected a value");
                self.report(error.help("a word of the language cannot be a name"))
            }
            kind => {
                let before = self.at.checked_sub(1).map(|at| self.tokens[at].kind);
                self.unexpected_with("a value", "", hints::instead_of_value(before, kind))
            }
        }
    }
}
