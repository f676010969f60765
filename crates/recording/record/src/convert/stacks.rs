//! Call stacks, as a tree of calling contexts that grows only where events are.

use reweave_base::FxHashMap;

/// The most frames that a site shows.
pub(super) const FRAMES_MAX: usize = 16;

/// Calls nested deeper than this are counted, not kept.
const DEPTH_MAX: usize = 1 << 16;
/// Contexts beyond this many are taken for the one around them.
const CONTEXTS_MAX: usize = 1 << 22;

/// A calling context; the first is that of a thread's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Context(u32);

const START: Context = Context(0);

/// All contexts in which something happened.
pub(super) struct Contexts {
    parents: Vec<(Context, u64)>,
    known: FxHashMap<(Context, u64), Context>,
}

impl Contexts {
    pub(super) fn new() -> Self {
        Self { parents: vec![(START, 0)], known: FxHashMap::default() }
    }

    fn child(&mut self, parent: Context, call: u64) -> Context {
        let next = Context(self.parents.len() as u32);
        if self.parents.len() >= CONTEXTS_MAX {
            return self.known.get(&(parent, call)).copied().unwrap_or(parent);
        }
        let child = *self.known.entry((parent, call)).or_insert(next);
        if child == next {
            self.parents.push((parent, call));
        }
        child
    }

    /// Where the calls of `context` are, the innermost first, as many as a site shows.
    pub(super) fn calls(&self, context: Context) -> Vec<u64> {
        let mut calls = Vec::new();
        let mut at = context;
        while at != START && calls.len() < FRAMES_MAX {
            let (parent, call) = self.parents[at.0 as usize];
            calls.push(call);
            at = parent;
        }
        calls
    }
}

/// The call stack of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    calls: Vec<u64>,
    /// The contexts of the first so many calls.
    contexts: Vec<Context>,
    excess: u64,
}

impl Stack {
    #[inline]
    pub(super) fn enter(&mut self, call: u64) {
        if self.calls.len() < DEPTH_MAX {
            self.calls.push(call);
        } else {
            self.excess += 1;
        }
    }

    /// A return without a call is ignored.
    #[inline]
    pub(super) fn leave(&mut self) {
        if self.excess > 0 {
            self.excess -= 1;
            return;
        }
        self.calls.pop();
        self.contexts.truncate(self.calls.len());
    }

    /// The context that the thread is in.
    pub(super) fn context(&mut self, contexts: &mut Contexts) -> Context {
        for &call in &self.calls[self.contexts.len()..] {
            let parent = self.contexts.last().copied().unwrap_or(START);
            self.contexts.push(contexts.child(parent, call));
        }
        self.contexts.last().copied().unwrap_or(START)
    }
}
