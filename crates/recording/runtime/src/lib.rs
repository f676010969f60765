//! What is linked into a recorded program.
//!
//! The compiler's thread-sanitizer interface calls us before every access to memory (`hooks`),
//! and we stand in front of the C library's threads, locks, memory and blocking calls
//! (`interceptors`).
//! What happens is written to rings in memory that the recorder shares ([`shared`], [`wire`]) and
//! drains while the program runs; nothing is lost when the program dies, since the pages are not
//! its own. By default one thread runs at a time and passes the token on at random moments
//! (`scheduler`); a plan can decide instead who runs until when (`replay`).
//!
//! The crate is built twice. As an ordinary library, with no symbol exported, it gives the recorder
//! [`wire`], [`plan`] and [`session`]. With `--cfg reweave_export` it is what goes into programs: no
//! standard library, no allocation, no call to the C library that is not made on the program's
//! behalf. With `--cfg reweave_static` besides, the interceptors are named `__wrap_NAME` for linkers that
//! redirect calls, since a static program has no second definition to look up at run time.
//!
//! This is the one place for `unsafe`. Functions that the program calls are unsafe as a whole: they
//! are handed the program's own pointers and trust them as much as the function that they stand for.

#![cfg_attr(reweave_export, no_std)]
#![allow(unsafe_code, reason = "the runtime stands between a program and its C library")]
#![allow(unsafe_op_in_unsafe_fn, reason = "hooks and interceptors are unsafe as a whole")]
#![allow(
    clippy::too_many_arguments,
    reason = "functions have the arguments of those they stand for"
)]
#![allow(unreachable_pub, reason = "in private modules, `pub` means used by other modules")]
#![cfg_attr(not(reweave_export), allow(dead_code, reason = "nothing is exported to call it"))]

pub mod plan;
pub mod predict;
#[cfg(not(reweave_export))]
pub mod session;
pub mod shared;
pub mod std_events;
pub mod wire;

mod hooks;
mod interceptors;
mod log;
mod process;
mod replay;
mod scheduler;
mod sys;
mod thread;

/// There is nothing to unwind to and nobody to report to: the program ends.
#[cfg(reweave_export)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit_group(70)
}

// Code that came precompiled with the compiler names what would clean up after a panic. Nothing
// does here, and a program in Rust brings its own.
#[cfg(reweave_export)]
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "ud2",
);
