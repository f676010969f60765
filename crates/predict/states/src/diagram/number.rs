//! Numbers of states, of any size.
//!
//! Most counts fit 128 bits, and adding those costs next to nothing. So a count is made with them
//! first, checked, and made again with numbers of any size if one did not fit.

use std::fmt::{self, Debug, Display, Formatter};

use num_bigint::BigUint;

/// How many there are, exactly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(BigUint);

impl Count {
    /// As a number of any size.
    #[must_use]
    pub const fn as_biguint(&self) -> &BigUint {
        &self.0
    }

    /// As 128 bits, if it fits.
    #[must_use]
    pub fn to_u128(&self) -> Option<u128> {
        u128::try_from(&self.0).ok()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.bits() == 0
    }
}

impl From<BigUint> for Count {
    fn from(count: BigUint) -> Self {
        Self(count)
    }
}

impl From<Count> for BigUint {
    fn from(count: Count) -> Self {
        count.0
    }
}

impl From<u128> for Count {
    fn from(count: u128) -> Self {
        Self(BigUint::from(count))
    }
}

impl std::ops::AddAssign<&Self> for Count {
    fn add_assign(&mut self, other: &Self) {
        self.0 += &other.0;
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

impl Debug for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// A number did not fit: the count is to be made again with [`BigUint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Narrow;

/// What counts are made with.
pub(super) trait Number: Clone + Ord + Send + Sync {
    /// Nothing.
    fn zero() -> Self;
    /// One.
    fn one() -> Self;
    /// From the number it is known to be.
    fn new(number: &BigUint) -> Result<Self, Narrow>;
    /// Adds `factor` times `other`.
    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), Narrow>;
    /// Adds the product of the two.
    fn add_product(&mut self, one: &Self, other: &Self) -> Result<(), Narrow>;
    /// Takes away `other`, which is not more.
    fn take(&mut self, other: &Self);
    /// As 64 bits, if it fits.
    fn to_u64(&self) -> Option<u64>;
    /// As a number of any size.
    fn big(&self) -> BigUint;
    /// About how many bytes it takes.
    fn bytes(&self) -> usize;
}

impl Number for u128 {
    fn zero() -> Self {
        0
    }

    fn one() -> Self {
        1
    }

    fn new(number: &BigUint) -> Result<Self, Narrow> {
        Self::try_from(number).map_err(|_| Narrow)
    }

    #[inline]
    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), Narrow> {
        let product = other.checked_mul(Self::from(factor)).ok_or(Narrow)?;
        *self = self.checked_add(product).ok_or(Narrow)?;
        Ok(())
    }

    #[inline]
    fn add_product(&mut self, one: &Self, other: &Self) -> Result<(), Narrow> {
        let product = one.checked_mul(*other).ok_or(Narrow)?;
        *self = self.checked_add(product).ok_or(Narrow)?;
        Ok(())
    }

    #[inline]
    fn take(&mut self, other: &Self) {
        *self -= other;
    }

    fn to_u64(&self) -> Option<u64> {
        u64::try_from(*self).ok()
    }

    fn big(&self) -> BigUint {
        BigUint::from(*self)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl Number for BigUint {
    fn zero() -> Self {
        Self::default()
    }

    fn one() -> Self {
        Self::from(1_u8)
    }

    fn new(number: &BigUint) -> Result<Self, Narrow> {
        Ok(number.clone())
    }

    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), Narrow> {
        match factor {
            1 => *self += other,
            _ => *self += other * factor,
        }
        Ok(())
    }

    fn add_product(&mut self, one: &Self, other: &Self) -> Result<(), Narrow> {
        *self += one * other;
        Ok(())
    }

    fn take(&mut self, other: &Self) {
        *self -= other;
    }

    fn to_u64(&self) -> Option<u64> {
        u64::try_from(self).ok()
    }

    fn big(&self) -> BigUint {
        self.clone()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<u64>() + (self.bits() / 8) as usize
    }
}
