//! What is said of the program, site by site.

use std::fmt::Write;

use expect_test::{Expect, expect};
use reweave_base::Id;
use reweave_intervals::answers::{Answers, Verdict, answers};
use reweave_intervals::ctp::{Action, Ctp, Owner};
use reweave_intervals::domain::Interval;
use reweave_intervals::propagate::{Settings, propagate};
use reweave_intervals::terms::{Slot, Term, TermId};
use reweave_trace::{Binary, SiteId, VarId};

use crate::ranges::common::{Cut, Draft, Sketch};

/// A sketch with one shared variable `X` and a local of each of two threads.
struct Pen {
    sketch: Sketch,
}

impl Pen {
    fn new(locals: [i64; 2]) -> Self {
        let mut sketch = Sketch::default();
        sketch.shared.push(("X".into(), 0));
        sketch.locals = vec![vec![("p".into(), locals[0])], vec![("q".into(), locals[1])]];
        Self { sketch }
    }

    fn slot(&mut self, name: &str) -> TermId {
        let slot = self.sketch.slot(name);
        self.sketch.term(Term::Slot(slot))
    }

    fn number(&mut self, number: i64) -> TermId {
        self.sketch.term(Term::Constant(number))
    }

    fn binary(&mut self, operator: Binary, left: TermId, right: TermId) -> TermId {
        self.sketch.term(Term::Binary(operator, left, right))
    }

    fn read(&mut self, local: &str) -> Draft {
        let assigned = (self.sketch.slot(local), self.slot("X"));
        Draft { define: Some(assigned), ..Draft::new(0, 0, Action::Read(VarId::from_index(0))) }
    }

    fn write(&mut self, term: TermId) -> Draft {
        let assigned = (self.sketch.slot("X"), term);
        Draft { store: Some(assigned), ..Draft::new(0, 0, Action::Write(VarId::from_index(0))) }
    }

    /// The threads one after the other, each a chain of steps.
    fn finish(mut self, threads: [Vec<Draft>; 2]) -> Ctp {
        for steps in threads {
            let chain = steps.into_iter().zip(0..);
            let chain = chain.map(|(step, at)| Draft { from: at, to: at + 1, ..step });
            self.sketch.steps.push(chain.collect());
        }
        self.sketch.finish()
    }
}

fn check(ctp: &Ctp, expected: &Expect) {
    let graph = Cut::everywhere(ctp).graph(ctp);
    let values = propagate::<Interval>(ctp, &graph, &Settings::default());
    expected.assert_eq(&shown(ctp, &answers(ctp, &values)));
}

fn shown(ctp: &Ctp, answers: &Answers<Interval>) -> String {
    let site = |site: SiteId| ctp.names.location(site).to_owned();
    let slot = |slot: Slot| match ctp.slots[slot] {
        Owner::Shared(var) => ctp.names.vars.name(var).to_owned(),
        Owner::Local(_, local) => ctp.names.locals.name(local).to_owned(),
    };
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").expect("text takes everything");
    for (at, verdict) in &answers.assertions {
        let verdict = match verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::NotReached => "is not reached".to_owned(),
            Verdict::MayFail { ranges } => {
                let ranges = ranges.iter().map(|(at, range)| format!("{} {range}", slot(*at)));
                format!("may fail with {}", ranges.collect::<Vec<_>>().join(", "))
            }
        };
        line(format!("{} {verdict}", site(*at)));
    }
    for (what, ranges) in [("assigns", &answers.assigned), ("reads", &answers.read)] {
        for range in ranges {
            line(format!("{} {what} {} {}", site(range.site), slot(range.slot), range.value));
        }
    }
    for end in &answers.finals {
        let value = end.value.map_or("never".to_owned(), |value| value.to_string());
        line(format!("{} ends as {value}, {} bits", ctp.names.vars.name(end.var), end.bits));
    }
    let lists = [
        ("unreachable", &answers.unreachable),
        ("leaves", &answers.leaves),
        ("faults", &answers.faults),
        ("overflows", &answers.overflows),
    ];
    for (what, sites) in lists.into_iter().filter(|(_, sites)| !sites.is_empty()) {
        let sites: Vec<String> = sites.iter().map(|&at| site(at)).collect();
        line(format!("{what}: {}", sites.join(" ")));
    }
    line(format!("closed: {}", answers.closed));
    text
}

#[test]
fn a_lost_update_shows_in_the_final_range_and_in_an_assertion() {
    // t0: p = X; X = p + 1; assert p < 1      t1: q = X; X = q + 1
    let mut pen = Pen::new([0, 0]);
    let (p, q, one) = (pen.slot("p"), pen.slot("q"), pen.number(1));
    let (first, second) = (pen.binary(Binary::Add, p, one), pen.binary(Binary::Add, q, one));
    let test = pen.binary(Binary::Less, p, one);
    let assertion = Draft { assertion: Some(test), ..Draft::new(0, 0, Action::Local) };
    let threads =
        [vec![pen.read("p"), pen.write(first), assertion], vec![pen.read("q"), pen.write(second)]];
    check(
        &pen.finish(threads),
        &expect![[r#"
        t0:3 may fail with p [1, 1]
        t0:1 assigns p [0, 2]
        t0:2 assigns X [1, 2]
        t1:1 assigns q [0, 2]
        t1:2 assigns X [1, 2]
        t0:1 reads X [0, 2]
        t1:1 reads X [0, 2]
        X ends as [1, 2], 1 bits
        closed: true
    "#]],
    );
}

#[test]
fn what_a_false_guard_hides_is_unreachable_and_the_program_is_not_closed() {
    // t0: [p > 3]; X = p; assert 0            t1: q = q / 0
    let mut pen = Pen::new([1, 1]);
    let (p, q, three, zero) = (pen.slot("p"), pen.slot("q"), pen.number(3), pen.number(0));
    let open = pen.binary(Binary::Greater, p, three);
    let guard = Draft { guard: Some(open), ..Draft::new(0, 0, Action::Local) };
    let assertion = Draft { assertion: Some(zero), ..Draft::new(0, 0, Action::Local) };
    let quotient = pen.binary(Binary::Divide, q, zero);
    let define = Some((pen.sketch.slot("q"), quotient));
    let division = Draft { define, ..Draft::new(0, 0, Action::Local) };
    let threads = [vec![guard, pen.write(p), assertion], vec![division]];
    check(
        &pen.finish(threads),
        &expect![[r#"
        t0:3 is not reached
        X ends as never, 0 bits
        unreachable: t0:1 t0:2 t0:3
        leaves: t0:1
        faults: t1:1
        closed: false
    "#]],
    );
}

#[test]
fn a_number_that_may_wrap_is_told() {
    // t0: X = p * p                           t1: q = X; assert q >= 0
    let mut pen = Pen::new([1 << 40, 0]);
    let (p, q, zero) = (pen.slot("p"), pen.slot("q"), pen.number(0));
    let square = pen.binary(Binary::Multiply, p, p);
    let test = pen.binary(Binary::GreaterEqual, q, zero);
    let assertion = Draft { assertion: Some(test), ..Draft::new(0, 0, Action::Local) };
    let threads = [vec![pen.write(square)], vec![pen.read("q"), assertion]];
    check(
        &pen.finish(threads),
        &expect![[r#"
        t1:2 may fail with q [-oo, -1]
        t0:1 assigns X [-oo, +oo]
        t1:1 assigns q [-oo, +oo]
        t1:1 reads X [-oo, +oo]
        X ends as [-oo, +oo], 64 bits
        overflows: t0:1
        closed: true
    "#]],
    );
}
