//! Hooks: what compilers call before every access to memory, and instead of every atomic one.

mod access;
pub(crate) mod atomic;
