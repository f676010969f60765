//! Predicates over the global states of a trace: a small language.
//!
//! A text such as `possibly(count(t: holds(t, m)) >= 2)` is parsed, its names are looked up in the
//! trace, and every atom is tabulated by how many events the threads have run: where they are, what
//! they hold, what their locals are. The value of a shared variable is that of its last write, in
//! observed order, in a state.
//!
//! **Unknown values.** Not every value is in a trace. Logic is Kleene's, with three values; a truth
//! that is not known counts for 0 or 1; and a state *meets* a predicate only if it is certainly
//! true there.
//!
//! **Use.** [`Predicate::parse`], with errors that point at the place; [`Predicate::is_met`] at a
//! cut of the trace; [`Predicate::is_relevant`]: the events that can change the answer. A poset of
//! those alone gives all the answers, with far fewer states: [`Predicate::on`] translates the
//! predicate to its chains, where [`PosetPredicate`] is evaluated state by state and
//! [`PredicateFold`] chain by chain. [`Class`] says what can be decided without enumerating states.
//!
//! **Limits.** [`TEXT_MAX`] bytes, nested [`DEPTH_MAX`] deep, [`PARTS_MAX`] parts once quantifiers
//! are expanded. Parsing costs, for each atom, the events of its thread.
//!
//! Other predicates are closures over states, or implement [`mdd::Fold`](crate::mdd::Fold) if they
//! can be evaluated chain by chain.
//!
//! After Cooper and Marzullo, "Consistent detection of global predicates" (1991), for `possibly`
//! and `definitely`; classes after Chase and Garg, "Detection of global predicates: techniques and
//! their limitations" (1998).

mod classify;
mod error;
mod expression;
mod goal;
mod poset;
mod resolve;
pub mod running;
mod syntax;

use reweave_base::IndexVec;
use reweave_trace::{EventId, ThreadId, Trace};

use resolve::Atoms;
use syntax::Kind;

pub use classify::{Class, Conjunction, Order, Sum};
pub use error::{PredicateError, PredicateErrorKind, Type};
pub use expression::{
    Comparison, Expression, Leaf, LeafId, Local, Node, Operator, Shared, Steps, Term, Write, Writer,
};
pub use poset::{Accumulator, PosetPredicate, PredicateFold};
pub use reweave_analysis::Modality;

/// The most bytes of a predicate.
pub const TEXT_MAX: usize = 1 << 14;

/// The greatest depth of nesting.
pub const DEPTH_MAX: usize = 64;

/// The most parts of a predicate once quantifiers are expanded over the threads.
pub const PARTS_MAX: usize = 1 << 16;

/// A predicate over the states of a trace.
#[derive(Clone, Debug)]
pub struct Predicate {
    text: String,
    modality: Modality,
    expression: Expression,
    goal: Expression,
    class: Class<ThreadId>,
    is_stable: bool,
    threads: Vec<ThreadId>,
    relevant: Vec<EventId>,
    spelled: IndexVec<LeafId, (String, bool)>,
}

/// An atom of a predicate and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomValue<'p> {
    /// How it is written.
    pub text: &'p str,
    /// Whether it is true or false, rather than a number.
    pub is_truth: bool,
    /// Its value, 1 or 0 for a truth; none if it is not known.
    pub value: Option<i64>,
}

impl Predicate {
    /// The predicate that `text` says of the states of `trace`.
    ///
    /// # Errors
    /// If it is not one, or names what the trace does not have.
    pub fn parse(text: &str, trace: &Trace) -> Result<Self, PredicateError> {
        let (modality, syntax) = syntax::parse(text)?;
        if let Kind::Race = syntax.kind {
            return match modality {
                Modality::Possibly | Modality::Never => Ok(Self::race(text, modality, trace)),
                Modality::Definitely | Modality::Always => Err(PredicateError {
                    text: text.to_owned(),
                    span: syntax.span,
                    kind: PredicateErrorKind::InnerRace,
                }),
            };
        }
        let mut atoms = Atoms::new(trace);
        let root = resolve::resolve(text, &syntax, trace, &mut atoms)?;
        let spell = |leaf: LeafId| (atoms.spell(leaf), atoms.atoms[leaf].is_truth());
        let spelled = atoms.leaves.ids().map(spell).collect();
        let expression = Expression { root, leaves: atoms.leaves };
        let goal = goal::goal(&expression, modality != Modality::Always);
        let mut relevant: Vec<EventId> = Vec::new();
        for (thread, count) in goal.leaves.iter().flat_map(Leaf::changes) {
            relevant.extend(trace.thread_events(thread).get(count as usize - 1));
        }
        relevant.sort_unstable();
        relevant.dedup();
        Ok(Self {
            text: text.to_owned(),
            modality,
            class: classify::classify(&goal),
            is_stable: classify::is_stable(&goal),
            threads: goal.owners(),
            expression,
            goal,
            relevant,
            spelled,
        })
    }

    /// That two threads are at accesses that race.
    fn race(text: &str, modality: Modality, trace: &Trace) -> Self {
        let accesses = trace.events().filter(|(_, event)| event.op.var().is_some());
        let relevant: Vec<EventId> = accesses.map(|(id, _)| id).collect();
        let mut threads: Vec<ThreadId> =
            relevant.iter().map(|&access| trace.event(access).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let unknown = Expression { root: Node::Constant(None), leaves: IndexVec::new() };
        Self {
            text: text.to_owned(),
            modality,
            expression: unknown.clone(),
            goal: unknown,
            class: Class::Pairwise,
            is_stable: false,
            threads,
            relevant,
            spelled: IndexVec::new(),
        }
    }

    /// Whether it is about two accesses that race, which no state has by itself.
    #[must_use]
    pub const fn is_race(&self) -> bool {
        matches!(self.class, Class::Pairwise)
    }

    /// The text it was made of.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is asked about it.
    #[must_use]
    pub const fn modality(&self) -> Modality {
        self.modality
    }

    /// The expression over the atoms of the trace. Unknown for `race`, which the clocks of two
    /// events decide and not the numbers of events.
    #[must_use]
    pub const fn expression(&self) -> &Expression {
        &self.expression
    }

    /// What a state is searched for: the expression, or its negation under `always`.
    #[must_use]
    pub const fn goal(&self) -> &Expression {
        &self.goal
    }

    /// The class of the goal. For a search among the states of a poset see
    /// [`PosetPredicate::class`].
    #[must_use]
    pub const fn class(&self) -> &Class<ThreadId> {
        &self.class
    }

    /// Whether every state after one that meets the goal is known to meet it too.
    #[must_use]
    pub const fn is_stable(&self) -> bool {
        self.is_stable
    }

    /// The threads that the goal depends on, in order.
    #[must_use]
    pub fn threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// The events that can change whether a state meets the goal, in observed order; of `race`, the
    /// accesses.
    #[must_use]
    pub fn relevant_events(&self) -> &[EventId] {
        &self.relevant
    }

    /// Whether `event` can change whether a state meets the goal. Two states that differ in other
    /// events alone are equivalent.
    #[must_use]
    pub fn is_relevant(&self, event: EventId) -> bool {
        self.relevant.binary_search(&event).is_ok()
    }

    /// Whether the expression is true at `cut`, the number of events that each thread has run; none
    /// if that is not known.
    #[must_use]
    pub fn truth(&self, cut: &IndexVec<ThreadId, u32>) -> Option<bool> {
        self.expression.value(|thread| held(cut, thread)).map(|truth| truth == 1)
    }

    /// Whether `cut` meets the goal.
    #[must_use]
    pub fn is_met(&self, cut: &IndexVec<ThreadId, u32>) -> bool {
        self.goal.value(|thread| held(cut, thread)) == Some(1)
    }

    /// Its atoms, in the order of the text, and their values at `cut`.
    pub fn values<'p>(
        &'p self,
        cut: &IndexVec<ThreadId, u32>,
    ) -> impl Iterator<Item = AtomValue<'p>> {
        let leaves = self.expression.leaves.iter().zip(self.spelled.iter());
        leaves.map(|(leaf, (text, is_truth))| AtomValue {
            text,
            is_truth: *is_truth,
            value: leaf.value(|thread| held(cut, thread)),
        })
    }

    /// The atoms whose value the trace does not have at every cut. If there are any, that no state
    /// meets the predicate does not mean that none would.
    pub fn unknowns(&self) -> impl Iterator<Item = &str> {
        let leaves = self.expression.leaves.iter().zip(self.spelled.iter());
        leaves.filter(|(leaf, _)| !leaf.is_known()).map(|(_, (text, _))| text.as_str())
    }

    /// The atoms whose value the trace has at no cut at all, so that they never decide anything.
    pub fn never_known(&self) -> impl Iterator<Item = &str> {
        let leaves = self.expression.leaves.iter().zip(self.spelled.iter());
        leaves.filter(|(leaf, _)| !leaf.is_ever_known()).map(|(_, (text, _))| text.as_str())
    }
}

/// How many events of `thread` are in `cut`; none if it does not reach that far.
fn held(cut: &IndexVec<ThreadId, u32>, thread: ThreadId) -> u32 {
    cut.get(thread).copied().unwrap_or(0)
}
