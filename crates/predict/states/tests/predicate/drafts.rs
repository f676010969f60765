//! Predicates at random, and traces for them.

use proptest::prelude::*;
use reweave_trace::{Marker, Op, Trace, TraceBuilder};

/// The same events, with values that are few and a value for each local.
pub(crate) fn with_few_values(trace: &Trace) -> Trace {
    let mut builder = TraceBuilder::new();
    *builder.names() = trace.names().clone();
    builder.declare(trace.declared().clone());
    for (id, event) in trace.events() {
        builder.push(event.thread, event.op, event.site);
        let value = match event.op {
            Op::Marker(Marker::Let(_)) if id.number() % 4 != 0 => Some(i64::from(id.number() % 3)),
            _ => trace.value(id).map(|value| value % 3),
        };
        value.into_iter().for_each(|value| builder.value(value));
    }
    builder.finish().expect("only values changed")
}

/// An expression whose names are numbers yet, to be taken from whatever the trace has.
#[derive(Clone, Debug)]
pub(crate) enum Draft {
    Truth(u8, u8, u8),
    Number(u8, u8),
    Logic(u8, Vec<Draft>),
    Compare(u8, Box<[Draft; 2]>),
    Arithmetic(u8, Box<[Draft; 2]>),
    Quantified(u8, Box<Draft>),
}

fn numbers() -> impl Strategy<Value = Draft> {
    let leaf = (0..7_u8, any::<u8>()).prop_map(|(kind, which)| Draft::Number(kind, which));
    leaf.prop_recursive(2, 6, 2, |inner| {
        (0..7_u8, [inner.clone(), inner])
            .prop_map(|(kind, sides)| Draft::Arithmetic(kind, Box::new(sides)))
    })
}

pub(crate) fn truths() -> impl Strategy<Value = Draft> {
    let asked = (0..6_u8, any::<u8>(), any::<u8>())
        .prop_map(|(kind, thread, other)| Draft::Truth(kind, thread, other));
    let compared = (0..6_u8, [numbers(), numbers()])
        .prop_map(|(kind, sides)| Draft::Compare(kind, Box::new(sides)));
    // Comparisons of how far two threads are: linear, or sums if they go together.
    let raced = (0..6_u8, 0..3_u8, any::<[u8; 3]>()).prop_map(|(kind, arithmetic, which)| {
        let ahead = [Draft::Number(2, which[0]), Draft::Number(4, which[1])];
        let ahead = Draft::Arithmetic(arithmetic, Box::new(ahead));
        Draft::Compare(kind, Box::new([ahead, Draft::Number(2, which[2])]))
    });
    prop_oneof![2 => asked, 2 => compared, 1 => raced].prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (0..5_u8, prop::collection::vec(inner.clone(), 2..4))
                .prop_map(|(kind, parts)| Draft::Logic(kind, parts)),
            (0..7_u8, inner.clone())
                .prop_map(|(kind, part)| Draft::Quantified(kind, Box::new(part))),
            (0..2_u8, [inner.clone(), inner])
                .prop_map(|(kind, sides)| Draft::Compare(kind, Box::new(sides))),
        ]
    })
}

/// `draft` as a text over `trace`.
pub(crate) fn written(draft: &Draft, trace: &Trace) -> String {
    Writing { trace, bound: Vec::new() }.text(draft)
}

/// The same, where `name` stands for a thread.
pub(crate) fn quantified(name: &str, draft: &Draft, trace: &Trace) -> String {
    Writing { trace, bound: vec![name.to_owned()] }.text(draft)
}

/// Writes drafts as texts over a trace.
struct Writing<'t> {
    trace: &'t Trace,
    bound: Vec<String>,
}

impl Writing<'_> {
    fn thread(&self, which: u8) -> String {
        // Names that stand for threads are preferred, or they would hardly be used.
        let (real, bound) = (self.trace.names().threads.len(), self.bound.len());
        match which as usize % (real + 3 * bound) {
            at if at < real => format!("t{}", at + 1),
            at => self.bound[(at - real) % bound].clone(),
        }
    }

    fn text(&mut self, draft: &Draft) -> String {
        const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        match draft {
            Draft::Truth(kind, thread, other) => {
                let thread = self.thread(*thread);
                let place = *other as usize % self.trace.len().max(1) + 1;
                match kind {
                    0 if !self.trace.is_empty() => format!("at({thread}, {place})"),
                    1 if !self.trace.is_empty() => format!("next({thread}, \"{place}\")"),
                    2 => format!("done({thread})"),
                    3 => format!("started({thread})"),
                    _ => format!("holds({thread}, l{})", other % 2 + 1),
                }
            }
            Draft::Number(kind, which) => match kind {
                0 | 1 => format!("x{}", which % 2 + 1),
                2 => format!("position({})", self.thread(*which)),
                3 => format!("{}.v1", self.thread(*which)),
                _ => (which % 4).to_string(),
            },
            Draft::Logic(kind, parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.text(part)).collect();
                match kind {
                    0 => format!("({})", parts.join(" && ")),
                    1 => format!("({})", parts.join(" or ")),
                    2 => format!("!({})", parts.join(" || ")),
                    3 => format!("not ({})", parts.join(" and ")),
                    _ => format!("({})", parts.join(" => ")),
                }
            }
            Draft::Compare(kind, sides) => {
                let [left, right] = [self.text(&sides[0]), self.text(&sides[1])];
                format!("(({left}) {} ({right}))", COMPARISONS[*kind as usize])
            }
            Draft::Arithmetic(kind, sides) => {
                let [left, right] = [self.text(&sides[0]), self.text(&sides[1])];
                match kind {
                    0 | 1 => format!("{left} + {right}"),
                    2 => format!("({left} - ({right}))"),
                    3 => format!("-({left})"),
                    4 => format!("({left}) * ({right})"),
                    5 => format!("({left}) / ({right})"),
                    _ => format!("({left}) % ({right})"),
                }
            }
            Draft::Quantified(kind, part) => {
                let name = format!("u{}", self.bound.len());
                self.bound.push(name.clone());
                let inner = self.text(part);
                self.bound.pop();
                match kind {
                    0 => format!("exists({name}: {inner})"),
                    1 => format!("all({name}: {inner})"),
                    2 => format!("count({name}: {inner}) >= 2"),
                    3 => format!("count({name}: {inner}) == 1"),
                    4 => format!("count({name}: {inner}) <= 1"),
                    5 => format!("2 * count({name}: {inner}) != 2"),
                    _ => format!(
                        "sum({name}: {name}.v1 + position({name})) > count({name}: {inner})"
                    ),
                }
            }
        }
    }
}
