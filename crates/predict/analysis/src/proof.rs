//! A schedule that the checker accepted.

use reweave_trace::{Certificate, Checker, Goal, Refusal, Reordering};

/// A reordering, what its end shows, and the checker's word for both.
///
/// There is one way to get a proof, [`Subject::prove`](crate::Subject::prove), and it asks the
/// checker; so whoever holds a proof need not check it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    // Boxed, since a long list of findings has few with a proof and room in each for one.
    parts: Box<Parts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    reordering: Reordering,
    goal: Goal,
    certificate: Certificate,
}

impl Proof {
    pub(crate) fn new(
        checker: &Checker<'_>,
        reordering: Reordering,
        goal: Goal,
    ) -> Result<Self, Refusal> {
        let certificate = checker.check(&reordering, &goal)?;
        Ok(Self { parts: Box::new(Parts { reordering, goal, certificate }) })
    }

    /// The events that run, in this order.
    #[must_use]
    pub fn reordering(&self) -> &Reordering {
        &self.parts.reordering
    }

    /// What holds afterwards.
    #[must_use]
    pub fn goal(&self) -> &Goal {
        &self.parts.goal
    }

    /// How many of the events that run are reads whose writer was not observed. A proof with any
    /// takes for granted that they would have gone on as they did.
    #[must_use]
    pub fn unknown_reads_count(&self) -> usize {
        self.parts.certificate.unknown_reads_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;
    use reweave_trace::{AccessOp, Op, Trace, TraceBuilder};

    fn two_writes() -> Trace {
        let mut builder = TraceBuilder::new();
        let (var, site) = (builder.var("x"), builder.site("a.c:1"));
        for name in ["T1", "T2"] {
            let thread = builder.thread(name);
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn what_the_checker_refuses_is_not_proven() {
        let trace = two_writes();
        let subject = Subject::new(&trace);
        let race = |first, second| {
            let [first, second] = [first, second].map(|number| trace.numbered(number).unwrap());
            subject.prove(Reordering::default(), Goal::Race(first, second))
        };
        assert!(race(1, 4).is_err());
        let proof = race(1, 3).unwrap();
        let next: Vec<_> = proof.goal().next().iter().map(|event| event.number()).collect();
        assert_eq!((next, proof.unknown_reads_count()), (vec![1, 3], 0));
    }
}
