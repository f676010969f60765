//! All tests of this package from outside, as one program: fewer programs link faster.

mod attempts;
mod convert;
mod convert_random;
mod convert_shadow;
mod convert_support;
mod event_log;
mod locks;
mod reference;
mod regressions;
mod robust;
mod symbols;
mod unseen;
mod word_locks;
