//! Dense 32-bit ids, one type for each kind of thing.
//!
//! An id is a position in some table. It is stored as the position plus one, so that
//! `Option<Id>` is four bytes too and tables of optional ids cost nothing extra.

use std::fmt::Debug;
use std::hash::Hash;

/// A dense id: the position of something in the table that holds its kind.
///
/// Made by [`id!`](crate::id); a table indexed by it is an [`IndexVec`](crate::IndexVec).
pub trait Id: Copy + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// How many ids there can be at most.
    const COUNT_MAX: usize = u32::MAX as usize - 1;

    /// The id at `index`, counted from 0.
    ///
    /// # Panics
    /// If `index` is not below [`Self::COUNT_MAX`].
    fn from_index(index: usize) -> Self;

    /// The position this id stands for, counted from 0.
    fn index(self) -> usize;
}

/// Declares ids: `id! { /// A thread. pub struct ThreadId; }`.
#[macro_export]
macro_rules! id {
    ($($(#[$meta:meta])* $vis:vis struct $Name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $vis struct $Name(std::num::NonZeroU32);

        impl $crate::Id for $Name {
            #[inline]
            fn from_index(index: usize) -> Self {
                assert!(index < <Self as $crate::Id>::COUNT_MAX, "ids are 32 bits wide");
                match std::num::NonZeroU32::new(index as u32 + 1) {
                    Some(number) => Self(number),
                    None => unreachable!(),
                }
            }

            #[inline]
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        #[allow(dead_code, unreachable_pub, reason = "not every id is shown to people")]
        impl $Name {
            /// The position this id stands for, counted from 1, as people count.
            #[inline]
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0.get()
            }

            /// The id whose position, counted from 1, is `number`; none for 0.
            #[inline]
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match std::num::NonZeroU32::new(number) {
                    Some(number) if number.get() < u32::MAX => Some(Self(number)),
                    _ => None,
                }
            }
        }

        /// As people count: from 1.
        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($Name), "({})"), self.0)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::id! {
        /// A thing.
        struct ThingId;
    }

    const _: () = assert!(size_of::<Option<ThingId>>() == 4, "no id is the zero word");

    #[test]
    fn numbers_start_at_one_and_indexes_at_zero() {
        let first = ThingId::from_index(0);
        assert_eq!((first.index(), first.number()), (0, 1));
        assert_eq!(ThingId::from_number(1), Some(first));
        assert_eq!(ThingId::from_number(0), None);
        assert_eq!(ThingId::from_number(u32::MAX), None);
    }
}
