//! Which atomic writes and fences does an atomic read or fence synchronize with?
//!
//! By C++20: an atomic read that acquires comes after the releases of the write that it saw,
//! and so does an acquire fence after a read that does not. A write releases if its memory order does,
//! or by the last release fence of its thread before it. A read-modify-write passes on what the write
//! that it saw released (a release sequence). A store also passes on what its own thread released by the
//! same variable before: C++20 does not say so, but C11 does. A plain write releases nothing.
//!
//! Of several releases of one thread the last says it for all, and one that acquired others says it
//! for these.

use reweave_base::{FxHashMap, IndexVec};

use crate::op::{AccessOp, EventId, MemoryOrder, Op, ThreadId, VarId};
use crate::trace::Trace;

/// Who synchronizes with whom by atomics and fences.
#[derive(Debug, Default)]
pub struct Synchronization {
    releases: Vec<EventId>,
    /// Events that acquire, in order, with where in `releases` those end that each does.
    rows: Vec<(EventId, u32)>,
    /// Each release, in order, with the last event that acquires it.
    last_uses: Vec<(EventId, EventId)>,
    is_weak: bool,
}

impl Synchronization {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut sweep = Sweep::default();
        for (id, event) in trace.events() {
            match event.op {
                Op::Access(access, var) => sweep.access(id, event.thread, access, var),
                Op::Fence(order) => sweep.fence(id, event.thread, order),
                _ => {}
            }
        }
        let Sweep { mut found, .. } = sweep;
        found.last_uses.sort_unstable();
        // Of each release the last use comes last.
        found.last_uses.reverse();
        found.last_uses.dedup_by_key(|&mut (release, _)| release);
        found.last_uses.reverse();
        found
    }

    /// The releases that `event`, an atomic read or a fence, comes after: of each thread the last, and
    /// not where its own thread has come after that before.
    #[inline]
    #[must_use]
    pub fn acquired(&self, event: EventId) -> &[EventId] {
        let Ok(at) = self.rows.binary_search_by_key(&event, |&(acquires, _)| acquires) else {
            return &[];
        };
        let from = at.checked_sub(1).map_or(0, |before| self.rows[before].1);
        &self.releases[from as usize..self.rows[at].1 as usize]
    }

    /// The last event that acquires `release`, if any does.
    #[inline]
    #[must_use]
    pub fn last_use(&self, release: EventId) -> Option<EventId> {
        let at = self.last_uses.binary_search_by_key(&release, |&(released, _)| released).ok()?;
        Some(self.last_uses[at].1)
    }

    /// Whether some atomic read sees an atomic write of another thread without coming after it by their
    /// memory orders alone.
    #[must_use]
    pub const fn is_weak(&self) -> bool {
        self.is_weak
    }
}

/// Releases, of each thread the last, by thread.
type Releases = Vec<(ThreadId, EventId)>;

/// Adds `others` to `releases`.
fn add(releases: &mut Releases, others: &[(ThreadId, EventId)]) {
    match others {
        [] => {}
        &[(thread, event)] => match releases.binary_search_by_key(&thread, |&(of, _)| of) {
            Ok(at) => releases[at].1 = event.max(releases[at].1),
            Err(at) => releases.insert(at, (thread, event)),
        },
        _ => {
            releases.extend_from_slice(others);
            // Two sorted lists in a row are merged in linear time.
            releases.sort_by_key(|&(thread, event)| (thread, std::cmp::Reverse(event)));
            releases.dedup_by_key(|&mut (thread, _)| thread);
        }
    }
}

/// What the last write of a variable passes on.
#[derive(Clone, Debug, Default)]
struct Value {
    /// Who wrote it, if by an atomic write, and whether that releases by itself.
    writer: Option<(ThreadId, bool)>,
    releases: Releases,
}

#[derive(Debug, Default)]
struct Sweep {
    found: Synchronization,
    values: IndexVec<VarId, Value>,
    /// The last release fence of each thread.
    fences: IndexVec<ThreadId, Option<EventId>>,
    /// What each thread has seen and not acquired.
    unacquired: IndexVec<ThreadId, Releases>,
    /// The last write of each thread to each variable that releases.
    own_releases: FxHashMap<(ThreadId, VarId), EventId>,
    /// The last release of another thread that a thread has acquired.
    acquired: FxHashMap<(ThreadId, ThreadId), EventId>,
}

impl Sweep {
    fn access(&mut self, id: EventId, thread: ThreadId, access: AccessOp, var: VarId) {
        match access {
            AccessOp::Read | AccessOp::UnknownRead => {}
            AccessOp::Write => *self.values.get_or_default(var) = Value::default(),
            AccessOp::AtomicRead(order) => {
                let value = std::mem::take(self.values.get_or_default(var));
                self.read(id, thread, order, &value);
                self.values[var] = value;
            }
            AccessOp::AtomicWrite(order) => {
                let own = self.own_release(id, thread, order, var);
                let value = self.values.get_or_default(var);
                value.releases.clear();
                value.writer = Some((thread, order.releases()));
                add(&mut value.releases, own.as_slice());
            }
            AccessOp::AtomicUpdate(order) => {
                let mut value = std::mem::take(self.values.get_or_default(var));
                self.read(id, thread, order, &value);
                if order.acquires() && order.releases() {
                    value.releases.clear();
                }
                add(&mut value.releases, self.own_release(id, thread, order, var).as_slice());
                value.writer = Some((thread, order.releases()));
                self.values[var] = value;
            }
        }
    }

    fn read(&mut self, id: EventId, thread: ThreadId, order: MemoryOrder, value: &Value) {
        if order.acquires() {
            self.acquire(id, thread, &value.releases);
        } else {
            add(self.unacquired.get_or_default(thread), &value.releases);
        }
        let is_weak = |(by, releases)| by != thread && !(releases && order.acquires());
        self.found.is_weak |= value.writer.is_some_and(is_weak);
    }

    fn acquire(&mut self, id: EventId, thread: ThreadId, releases: &[(ThreadId, EventId)]) {
        let Synchronization { releases: all, rows, last_uses, .. } = &mut self.found;
        let from = all.len();
        for &(by, release) in releases.iter().filter(|(by, _)| *by != thread) {
            // Who has acquired a release before comes after it already.
            let known = self.acquired.get(&(thread, by));
            if known.is_none_or(|&known| known < release) {
                self.acquired.insert((thread, by), release);
                all.push(release);
                last_uses.push((release, id));
            }
        }
        if from < all.len() {
            rows.push((id, all.len() as u32));
        }
    }

    /// What a write of `order` releases of its own thread: itself, or the last fence or write of the same
    /// variable that did.
    fn own_release(
        &mut self,
        id: EventId,
        thread: ThreadId,
        order: MemoryOrder,
        var: VarId,
    ) -> Option<(ThreadId, EventId)> {
        if order.releases() {
            self.own_releases.insert((thread, var), id);
        }
        let fence = *self.fences.get_or_default(thread);
        let release = self.own_releases.get(&(thread, var)).copied().max(fence);
        release.map(|release| (thread, release))
    }

    fn fence(&mut self, id: EventId, thread: ThreadId, order: MemoryOrder) {
        if order.acquires() {
            let seen = std::mem::take(self.unacquired.get_or_default(thread));
            self.acquire(id, thread, &seen);
        }
        if order.releases() {
            *self.fences.get_or_default(thread) = Some(id);
        }
    }
}
