//! Which part of Rust's standard library a code address belongs to.
//!
//! The fast paths of its locks are inlined into programs, or called one by one in debug builds. So
//! the innermost function that is not one of the wrappers in `core::sync::atomic` decides: it is
//! among the inlined frames of the address itself, or in those of the calls behind it.

use reweave_base::FxHashMap;

use crate::symbols::Symbols;

/// How many calls behind an address are looked at: a debug build has four between a lock and the
/// instruction.
const CALLS_MAX: usize = 8;

/// What an atomic access means where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing of ours.
    Other,
    /// Takes the lock at the address.
    Take(How),
    /// Takes it in shared mode.
    TakeShared(How),
    /// Gives the lock back.
    Give,
    /// Gives back the shared mode.
    GiveShared,
    /// Turns the exclusive mode into the shared one.
    Downgrade,
    /// Book-keeping of a lock that takes and gives nothing.
    Inner,
    /// Looks whether a `Once` is done.
    OnceCheck,
    /// Gives a thread its parking token.
    Unpark,
    /// `thread::scope` looks whether its threads have ended.
    ScopeCheck,
    /// Within `Condvar::wait` and its kin.
    Condition,
}

/// How a function takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Tries, and calls another to wait if that fails.
    Fast,
    /// Waits.
    Slowly,
    /// Tries, and gives up if that fails.
    AtOnce,
}

/// What the frames of one address say.
#[derive(Clone, Copy)]
enum Scan {
    Found(Role),
    /// All are wrappers: ask the caller.
    Through,
}

/// The roles of addresses, each found once for each map.
#[derive(Default)]
pub(super) struct Roles {
    scans: FxHashMap<(u64, u64), Scan>,
}

impl Roles {
    /// The role of an access at `code` behind the calls `stack`, the innermost last.
    pub(super) fn find(&mut self, symbols: &mut Symbols, code: u64, stack: &[u64]) -> Role {
        let calls = stack.iter().rev().take(CALLS_MAX);
        for address in std::iter::once(&code).chain(calls) {
            if let Scan::Found(role) = self.scan(symbols, *address) {
                return role;
            }
        }
        Role::Other
    }

    fn scan(&mut self, symbols: &mut Symbols, address: u64) -> Scan {
        *self.scans.entry((symbols.selected(), address)).or_insert_with(|| {
            let frames = symbols.frames(address).iter().map(|frame| frame.function.as_str());
            let mut telling = frames.filter(|name| !is_wrapper(name));
            telling.next().map_or(Scan::Through, |name| Scan::Found(role_of(name)))
        })
    }
}

fn is_wrapper(function: &str) -> bool {
    function.starts_with("core::sync::atomic::")
}

fn role_of(function: &str) -> Role {
    if let Some(name) = function.strip_prefix("std::sys::sync::mutex::futex::Mutex::") {
        return match name {
            "lock" => Role::Take(How::Fast),
            "lock_contended" => Role::Take(How::Slowly),
            "try_lock" => Role::Take(How::AtOnce),
            "unlock" => Role::Give,
            _ => Role::Inner,
        };
    }
    if let Some(name) = function.strip_prefix("std::sys::sync::rwlock::futex::RwLock::") {
        return match name {
            "read" => Role::TakeShared(How::Fast),
            "read_contended" => Role::TakeShared(How::Slowly),
            "try_read" => Role::TakeShared(How::AtOnce),
            "write" => Role::Take(How::Fast),
            "write_contended" => Role::Take(How::Slowly),
            "try_write" => Role::Take(How::AtOnce),
            "read_unlock" => Role::GiveShared,
            "write_unlock" => Role::Give,
            "downgrade" => Role::Downgrade,
            _ => Role::Inner,
        };
    }
    let is_condition = |prefix: &str| function.starts_with(prefix);
    if is_condition("std::sync::poison::condvar::Condvar::")
        || is_condition("std::sync::nonpoison::condvar::Condvar::")
    {
        return Role::Condition;
    }
    // Generic functions carry their arguments behind the name, or in an older spelling do not.
    match function.split("::<").next().unwrap_or(function) {
        "std::sys::sync::once::futex::Once::is_completed" => Role::OnceCheck,
        "std::sys::sync::thread_parking::futex::Parker::unpark" => Role::Unpark,
        // Looks once more before it sleeps, and orders nothing.
        "std::sys::pal::unix::futex::futex_wait" => Role::Inner,
        "std::thread::scoped::scope" => Role::ScopeCheck,
        _ => Role::Other,
    }
}
