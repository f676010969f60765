//! Misuse of locks that can be seen in the text.
//!
//! A lock counts as surely held from where it is taken to the end of the statements that surely
//! follow. Locks are re-entrant, so taking one that is held is no fault; it is rarely meant.
//!
//! No more than [`HELD_MAX`] locks are known to be held at a time, so that the cost is linear in the
//! text; what is taken beyond them counts as not surely held, which loses a warning and makes none.

use super::Resolver;
use crate::diagnostic::Diagnostic;
use crate::program::{LockId, LockPlace};
use crate::source::Span;

/// How many locks are known to be held at a time.
const HELD_MAX: usize = 64;

/// A lock that is surely held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    lock: LockId,
    /// The element; none for a single lock.
    element: Option<i64>,
    /// Where it was taken.
    span: Span,
}

/// A place that is right only where the lock is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    lock: LockId,
    span: Span,
    does: &'static str,
}

impl Resolver<'_> {
    /// Which lock this is, if that is known: not if the element is computed.
    fn identity(&self, place: LockPlace) -> Option<(LockId, Option<i64>)> {
        match place.index {
            None => Some((place.lock, None)),
            Some(index) => Some((place.lock, Some(self.constants[index]?))),
        }
    }

    /// Notes that a lock is taken.
    pub(super) fn take(&mut self, place: LockPlace) {
        self.is_taken[place.lock] = true;
        let Some((lock, element)) = self.identity(place) else { return };
        let is_same = |held: &&Held| held.lock == lock && held.element == element;
        if let Some(held) = self.body.held.iter().find(is_same).copied() {
            let shown = self.shown(place.span);
            let warning = Diagnostic::warning(
                place.span,
                format!("{shown} is taken while it is held"),
                "taken again here",
            )
            .and(held.span, "taken here")
            .help("locks are re-entrant: it is free after as many releases");
            self.report(warning);
        }
        if self.body.held.len() < HELD_MAX {
            self.body.held.push(Held { lock, element, span: place.span });
        }
    }

    /// Notes that a lock is given back.
    pub(super) fn release(&mut self, place: LockPlace) {
        match self.identity(place) {
            Some((lock, element)) => {
                let is_same = |held: &Held| held.lock == lock && held.element == element;
                if let Some(position) = self.body.held.iter().rposition(is_same) {
                    self.body.held.remove(position);
                }
            }
            // It may be any of them.
            None => self.body.held.retain(|held| held.lock != place.lock),
        }
    }

    /// Notes that the place is right only where something takes the lock.
    pub(super) fn needs(&mut self, place: LockPlace, does: &'static str) {
        self.releases.push(Release { lock: place.lock, span: place.span, does });
    }

    /// Resolves a part that may be left out or repeated: what it takes or gives back is not sure
    /// behind it.
    pub(super) fn unsure<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.body.held.clone();
        let result = part(self);
        let after = std::mem::replace(&mut self.body.held, before);
        let held = &mut self.body.held;
        // Most parts give back what they take, and then the two are the same.
        let same = held.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let changed = held.split_off(same);
        held.extend(changed.into_iter().filter(|held| after[same..].contains(held)));
        result
    }

    /// Reports what releases locks that nothing takes.
    pub(super) fn check_releases(&mut self) {
        // What should take a lock but has a fault may have meant any.
        if self.has_bad_lock {
            return;
        }
        for release in std::mem::take(&mut self.releases) {
            if self.is_taken[release.lock] {
                continue;
            }
            let shown = self.shown(release.span);
            let lock = &self.program.locks[release.lock];
            let name = crate::diagnostic::short(&lock.name);
            let index = if lock.length.is_some() { "[i]" } else { "" };
            let message = format!("this {} {shown}, but nothing takes it", release.does);
            let label = format!("`{name}` is never held");
            let error = Diagnostic::error(release.span, message, label)
                .and(lock.span, "declared here")
                .help(format!(
                    "take it before: `lock({name}{index});` or `sync ({name}{index}) {{ … }}`"
                ));
            self.report(error);
        }
    }
}
