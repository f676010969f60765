//! The program layer as an interpreter: a test oracle.
//!
//! Runs the transitions of a trace in observed order, from nothing but the initial values, and
//! compares every value that the trace says, every guard, and what flow says of locals.

use reweave_base::{FxHashMap, FxHashSet};
use reweave_trace::{
    AccessOp, EventId, Expr, ExprId, LocalId, Marker, Op, PointId, Program, ThreadId, ThreadOp,
    Trace, Transition, VarId,
};

#[derive(Default)]
struct Values {
    locals: FxHashMap<(ThreadId, LocalId), i64>,
    shared: FxHashMap<VarId, i64>,
}

impl Values {
    fn of(&self, program: &Program, thread: ThreadId, expr: ExprId) -> i64 {
        match program.expr(expr) {
            Expr::Constant(value) => value,
            Expr::Local(local) => self.locals.get(&(thread, local)).copied().unwrap_or(0),
            Expr::Shared(var) => self.shared(program, var),
            Expr::Unary(operator, of) => operator.apply(self.of(program, thread, of)),
            Expr::Binary(operator, left, right) => operator
                .apply(self.of(program, thread, left), self.of(program, thread, right))
                .expect("what ran did not divide by zero"),
        }
    }

    fn shared(&self, program: &Program, var: VarId) -> i64 {
        self.shared.get(&var).copied().unwrap_or_else(|| program.initial(var))
    }
}

/// Checks all three layers of `trace` against each other; what the variables hold at the end.
#[track_caller]
pub(crate) fn check(trace: &Trace) -> FxHashMap<String, i64> {
    let program = trace.program().expect("the run was recorded with it");
    let flow = trace.flow().expect("the run was recorded with it");
    let mut values = Values::default();
    let mut points: FxHashMap<ThreadId, PointId> = FxHashMap::default();
    assert_eq!(program.transitions().len(), trace.len());
    for ((event, what), (_, step)) in trace.events().zip(program.transitions()) {
        let context = format!("event {} {}", event.number(), trace.spell(event));
        assert_eq!(step.thread, what.thread, "{context}");
        assert_eq!(step.site, what.site, "{context}");
        let from = points.insert(what.thread, step.to).or(program.entry(what.thread));
        assert_eq!(from, Some(step.from), "{context}");
        assert!(
            step.guard.is_none_or(|guard| values.of(program, what.thread, guard) != 0),
            "{context}: the guard does not hold"
        );
        check_value(trace, event, step, &values, &context);
        check_flow(trace, event, step, &context);
        let define =
            step.define.map(|(local, value)| (local, values.of(program, what.thread, value)));
        let store = step.store.map(|(var, value)| (var, values.of(program, what.thread, value)));
        values.locals.extend(define.map(|(local, value)| ((what.thread, local), value)));
        values.shared.extend(store);
        if let Op::Thread(ThreadOp::Fork, child) = what.op {
            for &local in flow.uses(event) {
                let value = values.locals.get(&(what.thread, local)).copied().unwrap_or(0);
                values.locals.insert((child, local), value);
            }
        }
    }
    let vars = trace.names().vars.entries();
    vars.map(|(var, name)| (name.to_owned(), values.shared(program, var))).collect()
}

fn check_value(trace: &Trace, event: EventId, step: &Transition, values: &Values, context: &str) {
    let program = trace.program().expect("it was there before");
    let of = |expr| values.of(program, step.thread, expr);
    let expected = match trace.event(event).op {
        Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) => {
            Some(values.shared(program, var))
        }
        Op::Access(AccessOp::Write | AccessOp::AtomicUpdate(_), _) => {
            step.store.map(|(_, value)| of(value))
        }
        Op::Marker(Marker::Let(_)) => match step.assertion {
            Some(condition) => Some(i64::from(of(condition) != 0)),
            None => step.define.map(|(_, value)| of(value)),
        },
        // The guard has just been found to hold, whichever way it was written.
        Op::Marker(Marker::Branch) => return assert!(trace.value(event).is_some(), "{context}"),
        _ => None,
    };
    assert_eq!(trace.value(event), expected, "{context}");
}

/// What a transition reads of locals is what the flow says that the event uses.
fn check_flow(trace: &Trace, event: EventId, step: &Transition, context: &str) {
    let program = trace.program().expect("it was there before");
    let flow = trace.flow().expect("it was there before");
    let mut read: FxHashSet<LocalId> = FxHashSet::default();
    let (store, define) = (step.store.map(|(_, value)| value), step.define.map(|(_, value)| value));
    let mut open: Vec<ExprId> =
        [step.guard, step.assertion, store, define].into_iter().flatten().collect();
    while let Some(expr) = open.pop() {
        match program.expr(expr) {
            Expr::Local(local) => {
                read.insert(local);
            }
            Expr::Unary(_, of) => open.push(of),
            Expr::Binary(_, left, right) => open.extend([left, right]),
            Expr::Constant(_) | Expr::Shared(_) => {}
        }
    }
    let used: FxHashSet<LocalId> = flow.uses(event).iter().copied().collect();
    match trace.event(event).op {
        Op::Thread(ThreadOp::Fork, _) => {}
        // A swap that fails does not read the new value, though its outcome decides.
        Op::Access(AccessOp::AtomicRead(_), _) => assert!(read.is_subset(&used), "{context}"),
        _ => assert_eq!(read, used, "{context}"),
    }
    if let Some((local, _)) = step.define {
        assert_eq!(flow.step(event).defines, Some(local), "{context}");
    }
}
