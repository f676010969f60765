//! The names of a trace, each interned once.
//!
//! Threads, variables, locks and the rest have name spaces of their own: a lock `m` and a
//! variable `m` have nothing to do with each other. A site is a location in the code and the
//! frames of the call stack behind it, joined by line feeds, which no text format can put into a
//! location.

use std::fmt::{self, Display, Formatter};

use reweave_base::{Id, Interner};

use crate::op::{
    BarrierId, BlockId, ConditionId, LocalId, LockId, ObjectId, Op, Operand, SemaphoreId, SiteId,
    ThreadId, VarId,
};

/// Between a location and each frame behind it, in the text of a site.
pub const FRAME_SEPARATOR: char = '\n';

/// The names of everything a trace speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Threads that run, fork, are forked or are joined.
    pub threads: Interner<ThreadId>,
    /// Shared variables.
    pub vars: Interner<VarId>,
    /// Locks.
    pub locks: Interner<LockId>,
    /// Condition variables.
    pub conditions: Interner<ConditionId>,
    /// Barriers.
    pub barriers: Interner<BarrierId>,
    /// Semaphores.
    pub semaphores: Interner<SemaphoreId>,
    /// Allocated objects.
    pub objects: Interner<ObjectId>,
    /// Blocks expected to be atomic.
    pub blocks: Interner<BlockId>,
    /// Thread-local variables.
    pub locals: Interner<LocalId>,
    /// Places in the code; see [`Names::site`] for those with a stack.
    pub sites: Interner<SiteId>,
}

impl Names {
    /// The site at `location` reached through `stack`, the innermost caller first.
    pub fn site<'a>(&mut self, location: &str, stack: impl IntoIterator<Item = &'a str>) -> SiteId {
        let mut text = String::from(location);
        for frame in stack {
            text.push(FRAME_SEPARATOR);
            text.push_str(frame);
        }
        self.sites.intern(&text)
    }

    /// The location of `site`, without its stack.
    #[must_use]
    pub fn location(&self, site: SiteId) -> &str {
        let text = self.sites.name(site);
        text.split(FRAME_SEPARATOR).next().unwrap_or(text)
    }

    /// The frames behind `site`, the innermost caller first; none where the stack is not known.
    pub fn stack(&self, site: SiteId) -> impl Iterator<Item = &str> {
        self.sites.name(site).split(FRAME_SEPARATOR).skip(1)
    }

    /// How many things of the kind `operand` have names; what has no operand counts as one.
    #[must_use]
    pub fn count(&self, operand: Operand) -> usize {
        match operand {
            Operand::None => 1,
            Operand::Thread => self.threads.len(),
            Operand::Var => self.vars.len(),
            Operand::Lock => self.locks.len(),
            Operand::Condition => self.conditions.len(),
            Operand::Barrier => self.barriers.len(),
            Operand::Semaphore => self.semaphores.len(),
            Operand::Object => self.objects.len(),
            Operand::Block => self.blocks.len(),
            Operand::Local => self.locals.len(),
        }
    }

    /// The index of `name` among the things of the kind `operand`, new if it was not there.
    ///
    /// # Errors
    /// If the bytes are not UTF-8.
    #[inline]
    pub fn intern(&mut self, operand: Operand, name: &[u8]) -> Result<u32, std::str::Utf8Error> {
        let index = match operand {
            Operand::None => 0,
            Operand::Thread => self.threads.intern_bytes(name)?.index(),
            Operand::Var => self.vars.intern_bytes(name)?.index(),
            Operand::Lock => self.locks.intern_bytes(name)?.index(),
            Operand::Condition => self.conditions.intern_bytes(name)?.index(),
            Operand::Barrier => self.barriers.intern_bytes(name)?.index(),
            Operand::Semaphore => self.semaphores.intern_bytes(name)?.index(),
            Operand::Object => self.objects.intern_bytes(name)?.index(),
            Operand::Block => self.blocks.intern_bytes(name)?.index(),
            Operand::Local => self.locals.intern_bytes(name)?.index(),
        };
        Ok(index as u32)
    }

    /// The name of the thing of the kind `operand` at `index`; empty where there is no operand.
    #[must_use]
    pub fn operand_name(&self, operand: Operand, index: u32) -> &str {
        let index = index as usize;
        match operand {
            Operand::None => "",
            Operand::Thread => self.threads.name(Id::from_index(index)),
            Operand::Var => self.vars.name(Id::from_index(index)),
            Operand::Lock => self.locks.name(Id::from_index(index)),
            Operand::Condition => self.conditions.name(Id::from_index(index)),
            Operand::Barrier => self.barriers.name(Id::from_index(index)),
            Operand::Semaphore => self.semaphores.name(Id::from_index(index)),
            Operand::Object => self.objects.name(Id::from_index(index)),
            Operand::Block => self.blocks.name(Id::from_index(index)),
            Operand::Local => self.locals.name(Id::from_index(index)),
        }
    }

    /// `op` as text formats spell it, such as `w(x)`, `ar.acquire(flag)`, `fence(seqcst)`.
    #[must_use]
    pub const fn spell(&self, op: Op) -> Spelled<'_> {
        Spelled { names: self, op }
    }
}

/// An operation that displays as text formats spell it.
#[derive(Clone, Copy, Debug)]
pub struct Spelled<'a> {
    names: &'a Names,
    op: Op,
}

impl Display for Spelled<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (code, index) = self.op.encode();
        let (kind, order) = (code.kind(), code.order());
        f.write_str(kind.word())?;
        match self.op {
            Op::Branch => return Ok(()),
            Op::Fence(_) => return write!(f, "({})", order.word()),
            _ => {}
        }
        if kind.has_order() && order != crate::MemoryOrder::default() {
            write!(f, ".{}", order.word())?;
        }
        write!(f, "({})", self.names.operand_name(kind.operand(), index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryOrder;

    #[test]
    fn operations_are_spelled_as_the_trace_model_says() {
        let mut names = Names::default();
        let x = names.vars.intern("x");
        let spelled = [
            Op::Write(x),
            Op::AtomicRead(x, MemoryOrder::Acquire),
            Op::AtomicUpdate(x, MemoryOrder::SeqCst),
            Op::Fence(MemoryOrder::SeqCst),
            Op::Branch,
        ]
        .map(|op| names.spell(op).to_string());
        assert_eq!(spelled, ["w(x)", "ar.acquire(x)", "arw(x)", "fence(seqcst)", "branch"]);
    }

    #[test]
    fn a_stack_makes_another_site_of_the_same_location() {
        let mut names = Names::default();
        let plain = names.site("a.c:1", []);
        let called = names.site("a.c:1", ["b.c:2", "main.c:3"]);
        assert_ne!(plain, called);
        assert_eq!((names.location(plain), names.location(called)), ("a.c:1", "a.c:1"));
        assert_eq!(names.stack(plain).count(), 0);
        assert_eq!(names.stack(called).collect::<Vec<_>>(), ["b.c:2", "main.c:3"]);
    }
}
