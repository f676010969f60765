//! The edges of rule (b): passes over the skeleton until one finds nothing new.
//!
//! At the end of a section, the clock says which acquires come before it by CP. Of each user of
//! the lock the latest such section that has ended before this one began gives an edge. Along the
//! releases of a lock that is only ever held alone clocks grow, so the place of that section in
//! its user's list moves forward only, and what an earlier release has found need not be found
//! again: it has come along with the lock.

use reweave_base::IndexVec;
use reweave_trace::views::SectionId;

use super::edges::{Edge, Edges, Locks, Source, UserId};
use super::shelf::Shelf;
use super::skeleton::{Action, Section, Skeleton};
use super::sweep::Sweep;

/// All edges, given those of rule (a), without needless ones; and how many passes it took.
pub(super) fn close(skeleton: &Skeleton, locks: &Locks, edges: Vec<Edge>) -> (Edges, usize) {
    let mut edges = Edges::new(skeleton, edges);
    let mut passes_count = 0;
    loop {
        passes_count += 1;
        let mut pass = Pass::new(skeleton, locks, &edges);
        pass.run();
        let Pass { found, sweep, .. } = pass;
        let Sweep { mut needed, .. } = sweep;
        let is_closed = found.is_empty();
        needed.extend(found);
        edges = Edges::new(skeleton, needed);
        if is_closed {
            return (edges, passes_count);
        }
    }
}

/// One pass.
struct Pass<'a> {
    skeleton: &'a Skeleton,
    locks: &'a Locks,
    sweep: Sweep<'a>,
    /// What came by CP before the acquires of sections that are open.
    acquires: Shelf<SectionId>,
    cursors: IndexVec<UserId, Cursor>,
    found: Vec<Edge>,
}

/// How far a user's list of sections has been gone through.
#[derive(Clone, Copy)]
struct Cursor {
    count: u32,
    /// The number of the next section's acquire in its thread; the greatest number if none is left.
    acquired: u32,
}

impl<'a> Pass<'a> {
    fn new(skeleton: &'a Skeleton, locks: &'a Locks, edges: &'a Edges) -> Self {
        let cursors = (0..locks.users_count()).map(|_| Cursor { count: 0, acquired: 0 });
        Self {
            skeleton,
            locks,
            sweep: Sweep::new(skeleton, edges),
            acquires: Shelf::new(skeleton.sections.len()),
            cursors: cursors.collect(),
            found: Vec::new(),
        }
    }

    fn run(&mut self) {
        while let Some(step) = self.sweep.next() {
            self.sweep.advance();
            match step.action {
                Action::Enter(section) => {
                    self.acquires.put(section, self.sweep.causal(step.thread));
                }
                Action::Leave(section) => {
                    self.end(section);
                    self.acquires.remove(section);
                }
                _ => {}
            }
        }
        // Those that stay open end with their threads.
        for (id, section) in self.skeleton.sections.entries() {
            if section.release.is_none() {
                self.end(id);
            }
        }
    }

    /// Looks for edges into a section, at its end.
    fn end(&mut self, id: SectionId) {
        let section = &self.skeleton.sections[id];
        let clock = self.sweep.causal(section.thread);
        let before = self.acquires.get(id).expect("a section is entered before it ends");
        let is_plain = !self.locks.is_shared(section.lock);
        for user in self.locks.users(section.lock) {
            let who = self.locks.user(user);
            let seen = clock.get(who.thread);
            let cursor = &mut self.cursors[user];
            if is_plain && seen < cursor.acquired || section.is_shared && who.is_shared {
                continue;
            }
            let sources = self.locks.sources(user);
            if !is_plain {
                cursor.count = retreat(sources, section, seen, cursor.count);
            }
            *cursor = proceed(sources, section, seen, cursor.count);
            if cursor.count == 0 {
                continue;
            }
            let Source { section: source, released, .. } = sources[cursor.count as usize - 1];
            if before.get(who.thread) < released {
                self.found.push(Edge { target: id, source });
            }
        }
    }
}

/// Whether rule (b) gives an edge from `source` into `target`, at whose end the acquires up to the
/// number `seen` are known. If it does, so it does for all before it of the same user.
fn is_source(source: &Source, target: &Section, seen: u32) -> bool {
    source.acquired <= seen && source.release < target.acquire
}

/// Goes on from the first `count` of `sources` as far as there are edges into `target`.
fn proceed(sources: &[Source], target: &Section, seen: u32, mut count: u32) -> Cursor {
    while let Some(next) = sources.get(count as usize) {
        if !is_source(next, target, seen) {
            return Cursor { count, acquired: next.acquired };
        }
        count += 1;
    }
    Cursor { count, acquired: u32::MAX }
}

/// Goes back from the first `count` of `sources` to those from which there are edges into `target`.
fn retreat(sources: &[Source], target: &Section, seen: u32, mut count: u32) -> u32 {
    while count > 0 && !is_source(&sources[count as usize - 1], target, seen) {
        count -= 1;
    }
    count
}
