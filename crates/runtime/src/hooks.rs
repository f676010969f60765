//! Hooks: what compilers call before every access to memory and instead of every atomic one, and
//! what programs call to tell of synchronisation that compilers do not see.

mod access;
mod annotations;
pub(crate) mod atomic;
