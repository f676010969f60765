//! Accesses by what they conflict with: plain or atomic, read or write.

use reweave_trace::Op;

/// How many classes there are.
pub const CLASSES: usize = 4;

/// The class of `op`, an access: those of one class conflict with the same others.
#[inline]
#[must_use]
pub const fn class(op: Op) -> usize {
    op.is_write() as usize + 2 * (op.is_atomic() as usize)
}

/// The classes that each class conflicts with.
pub const CONFLICTS: [&[usize]; CLASSES] = [&[1, 3], &[0, 1, 2, 3], &[1], &[0, 1]];

/// Whether accesses of these classes to one variable conflict.
#[inline]
#[must_use]
pub fn conflict(left: usize, right: usize) -> bool {
    CONFLICTS[left].contains(&right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::{AccessOp, MemoryOrder, VarId};

    #[test]
    fn classes_conflict_as_their_operations_do() {
        let var = VarId::from_number(1).unwrap();
        let order = MemoryOrder::SeqCst;
        let ops = [
            Op::Access(AccessOp::Read, var),
            Op::Access(AccessOp::Write, var),
            Op::Access(AccessOp::UnknownRead, var),
            Op::Access(AccessOp::AtomicRead(order), var),
            Op::Access(AccessOp::AtomicWrite(order), var),
            Op::Access(AccessOp::AtomicUpdate(order), var),
        ];
        for left in ops {
            for right in ops {
                let conflict = conflict(class(left), class(right));
                assert_eq!(conflict, left.conflicts_with(right), "{left:?} and {right:?}");
            }
        }
    }
}
