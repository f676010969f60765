//! The names of a trace, each interned once.
//!
//! Threads, variables, locks and the rest have name spaces of their own: a lock `m` and a
//! variable `m` have nothing to do with each other. A site is a location in the code and the
//! frames of the call stack behind it, joined by line feeds, which no text format can put into a
//! location.

use std::fmt::{self, Display, Formatter};

use reweave_base::{FxHashMap, Id, IndexVec, Interner};

use crate::op::{
    BarrierId, BlockId, ConditionId, LocalId, LockId, NameKind, ObjectId, Op, SemaphoreId, SiteId,
    ThreadId, VarId,
};

/// Between a location and each frame behind it, in the text of a site.
pub const FRAME_SEPARATOR: char = '\n';

/// How the frame begins that is none but says what the line of a site reads: `source#` and a hash of its text, as the
/// last frame of the stack. Lines move when others are added above them, texts do not.
pub const SOURCE_TEXT: &str = "source#";

/// How variables are called that stand for what a library may have ordered out of sight:
/// `assumed(libz.so.1)#1` and so on.
pub const ASSUMED: &str = "assumed";

/// What stands in place of a library where the numbers of file descriptors may have ordered.
pub const ASSUMED_DESCRIPTORS: &str = "file_descriptors";

/// What stands in place of a library where nobody saw who wrote what was read.
pub const ASSUMED_UNSEEN: &str = "unseen_code";

/// Between a lock and a thread, in the name of the variable that stands for the sections of that thread:
/// `m.taken_by_T1`. Who finds the lock taken reads it.
pub const TAKEN_BY: &str = ".taken_by_";

/// After a semaphore, in the name of the variable that stands for its value: `s.value`. Who looks at it, or
/// finds it empty, reads that.
pub const VALUE: &str = ".value";

/// How many ends of a name are tried as that of an object.
const PARTS_MAX: usize = 64;

/// How the lives of file descriptors are called, as objects and as variables: `descriptor(3)#1`.
pub const DESCRIPTOR: &str = "descriptor";

/// The same of libraries that are loaded while the program runs: `library(plugin.so)#1`.
pub const LIBRARY: &str = "library";

/// What else has lives that are counted: timers, and streams that lead to no descriptor.
const COUNTED: [&str; 4] = [DESCRIPTOR, LIBRARY, "timer", "stream"];

/// What recorders call things that nothing names, before a number or the place that allocated them: no object of a type
/// is called so.
pub const NAMELESS: [&str; 7] =
    ["lock", "condition", "barrier", "semaphore", "memory", "block", "frame"];

/// How objects are called that stand for the lives of locks, conditions, barriers, semaphores and the handles of threads: `lock(m)`.
const HANDLES: [(NameKind, &str); 5] = [
    (NameKind::Lock, "lock"),
    (NameKind::Condition, "condition"),
    (NameKind::Barrier, "barrier"),
    (NameKind::Semaphore, "semaphore"),
    (NameKind::Thread, "thread"),
];

/// The names of everything a trace speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Threads that run, fork, are forked or are joined.
    pub threads: Interner<ThreadId>,
    /// Shared variables.
    pub vars: Interner<VarId>,
    /// Locks.
    pub locks: Interner<LockId>,
    /// Condition variables.
    pub conditions: Interner<ConditionId>,
    /// Barriers.
    pub barriers: Interner<BarrierId>,
    /// Semaphores.
    pub semaphores: Interner<SemaphoreId>,
    /// Allocated objects.
    pub objects: Interner<ObjectId>,
    /// Blocks expected to be atomic.
    pub blocks: Interner<BlockId>,
    /// Thread-local variables.
    pub locals: Interner<LocalId>,
    /// Places in the code; see [`Names::site`] for those with a stack.
    pub sites: Interner<SiteId>,
    /// What the program calls its threads, up to the last one that it gives a name.
    given: IndexVec<ThreadId, Option<Box<str>>>,
}

/// Calls something of the names of a kind that is known only at run time; `$none` stands for nothing.
macro_rules! of_kind {
    ($names:ident, $kind:expr, $none:expr, $($call:tt)+) => {
        match $kind {
            NameKind::None => $none,
            NameKind::Thread => $names.threads $($call)+,
            NameKind::Var => $names.vars $($call)+,
            NameKind::Lock => $names.locks $($call)+,
            NameKind::Condition => $names.conditions $($call)+,
            NameKind::Barrier => $names.barriers $($call)+,
            NameKind::Semaphore => $names.semaphores $($call)+,
            NameKind::Object => $names.objects $($call)+,
            NameKind::Block => $names.blocks $($call)+,
            NameKind::Local => $names.locals $($call)+,
            NameKind::Site => $names.sites $($call)+,
        }
    };
}

impl Names {
    /// The site at `location` reached through `stack`, the innermost caller first.
    pub fn site<'a>(&mut self, location: &str, stack: impl IntoIterator<Item = &'a str>) -> SiteId {
        let mut text = String::from(location);
        for frame in stack {
            text.push(FRAME_SEPARATOR);
            text.push_str(frame);
        }
        self.sites.intern(&text)
    }

    /// The location of `site`, without its stack.
    #[must_use]
    pub fn location(&self, site: SiteId) -> &str {
        let text = self.sites.name(site);
        text.split(FRAME_SEPARATOR).next().unwrap_or(text)
    }

    /// The line of `site`, if its location ends in one, as `bank.c:12` does.
    #[must_use]
    pub fn line(&self, site: SiteId) -> Option<u32> {
        self.location(site).rsplit(':').next()?.parse().ok()
    }

    /// The library whose ordering `var` stands for, if that is assumed; see [`ASSUMED`].
    #[must_use]
    pub fn assumed_library(&self, var: VarId) -> Option<&str> {
        let rest = self.vars.name(var).strip_prefix(ASSUMED)?.strip_prefix('(')?;
        Some(rest.rsplit_once(")#")?.0)
    }

    /// The object that `var` is a part of: it has the object's name, perhaps with an offset, a range or
    /// the name of a field behind it, as `Item#2.refs` and `block@a.c:3#1+8` have.
    #[must_use]
    pub fn object_of(&self, var: VarId) -> Option<ObjectId> {
        self.object_around(self.vars.name(var))
    }

    /// The object that the variable, lock or the like called `name` is a part of.
    #[must_use]
    pub fn object_around(&self, name: &str) -> Option<ObjectId> {
        let ends = name.match_indices(['+', '[', '.', '\'']).map(|(at, _)| at);
        // No name that a recorder gives has more of them.
        ends.take(PARTS_MAX).chain([name.len()]).find_map(|end| self.objects.get(&name[..end]))
    }

    /// What the object is called that stands for the life of the thing of `kind` with `name`, if such things
    /// have lives: locks, conditions, barriers, semaphores and threads.
    #[must_use]
    pub fn handle_name(kind: NameKind, name: &str) -> Option<String> {
        let (_, word) = HANDLES.into_iter().find(|&(of, _)| of == kind)?;
        Some(format!("{word}({name})"))
    }

    /// The object that stands for the life of the thing of `kind` at `index`.
    #[must_use]
    pub fn handle(&self, kind: NameKind, index: u32) -> Option<ObjectId> {
        self.objects.get(&Self::handle_name(kind, self.name(kind, index))?)
    }

    /// Whether `object` is no memory but stands for the life of something else: a [`Names::handle`], a file descriptor, a
    /// library and so on.
    #[must_use]
    pub fn is_handle(&self, object: ObjectId) -> bool {
        let name = self.objects.name(object);
        // The frame of a function may be called `lock()`.
        let is_called = |word: &str| {
            let rest = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('('));
            rest.is_some_and(|rest| !rest.starts_with(')'))
        };
        counted_life(name).is_some() || HANDLES.iter().any(|(_, word)| is_called(word))
    }

    /// Whether `object` is the frame of a function, as a recorder calls it: `main()`, `main()#2`, or `frame#1` where the
    /// function is not known.
    #[must_use]
    pub fn is_frame(&self, object: ObjectId) -> bool {
        let name = self.objects.name(object);
        let unnumbered = match name.rsplit_once('#') {
            Some((rest, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => name,
        };
        name.starts_with("frame#") || unnumbered.ends_with("()")
    }

    /// Whether `object` is the stack of a thread with its thread-local storage, as a recorder calls it: `stack(T1)`.
    #[must_use]
    pub fn is_stack(&self, object: ObjectId) -> bool {
        let name = self.objects.name(object);
        // The frame of a function of that name is `stack()`.
        name.starts_with("stack(") && !name.starts_with("stack()")
    }

    /// The lock that is found taken by who reads `var`, if it stands for that; see [`TAKEN_BY`].
    #[must_use]
    pub fn tried_lock(&self, var: VarId) -> Option<&str> {
        let (lock, _) = self.vars.name(var).rsplit_once(TAKEN_BY)?;
        self.locks.get(lock).map(|_| lock)
    }

    /// Whether `var` is none of the program's: the recorder added it, so that reorderings keep an order.
    #[must_use]
    pub fn is_added(&self, var: VarId) -> bool {
        let semaphore = self.vars.name(var).strip_suffix(VALUE);
        self.assumed_library(var).is_some()
            || self.tried_lock(var).is_some()
            || semaphore.is_some_and(|name| self.semaphores.get(name).is_some())
    }

    /// What the program calls `thread`, if it gives it a name, as by `pthread_setname_np`: for people to read. Several
    /// threads may have one name, so nothing goes by it.
    #[must_use]
    pub fn given_name(&self, thread: ThreadId) -> Option<&str> {
        self.given.get(thread)?.as_deref()
    }

    /// The threads that the program gives names, with these.
    pub fn given_names(&self) -> impl Iterator<Item = (ThreadId, &str)> {
        self.given.entries().filter_map(|(thread, name)| Some((thread, name.as_deref()?)))
    }

    /// Says that the program calls `thread` so; an empty name is none.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn give_name(&mut self, thread: ThreadId, name: &str) {
        assert!(thread.index() < self.threads.len(), "a thread that is there");
        *self.given.get_or_default(thread) = (!name.is_empty()).then(|| name.into());
        self.trim_given();
    }

    /// Forgets what was said of threads that are not there. Equal names have equal tables, so none ends with nothing.
    fn trim_given(&mut self) {
        let given = self.given.as_mut_vec();
        given.truncate(self.threads.len());
        while given.last().is_some_and(Option::is_none) {
            given.pop();
        }
    }

    /// For each site the first one with the same location.
    #[must_use]
    pub fn first_sites(&self) -> IndexVec<SiteId, SiteId> {
        let mut first: FxHashMap<&str, SiteId> = FxHashMap::default();
        let sites = self.sites.entries();
        sites.map(|(id, _)| *first.entry(self.location(id)).or_insert(id)).collect()
    }

    /// The frames behind `site`, the innermost caller first; none where the stack is not known.
    pub fn stack(&self, site: SiteId) -> impl Iterator<Item = &str> {
        self.lines(site).filter(|line| !is_source_text(line))
    }

    /// What stands for the text of the source line of `site`, where a recorder has looked; see
    /// [`SOURCE_TEXT`].
    #[must_use]
    pub fn source_text(&self, site: SiteId) -> Option<&str> {
        self.lines(site).find(|line| is_source_text(line))
    }

    /// The lines behind the location of `site`.
    fn lines(&self, site: SiteId) -> impl Iterator<Item = &str> {
        self.sites.name(site).split(FRAME_SEPARATOR).skip(1)
    }

    /// How many things of `kind` have names; nothing counts as one, so that the operand 0 of an
    /// operation that has none is in range.
    #[must_use]
    pub fn count(&self, kind: NameKind) -> usize {
        of_kind!(self, kind, 1, .len())
    }

    /// The index of `name` among the things of `kind`, new if it was not there.
    ///
    /// # Errors
    /// If the bytes are not UTF-8.
    #[inline]
    pub fn intern(&mut self, kind: NameKind, name: &[u8]) -> Result<u32, std::str::Utf8Error> {
        Ok(of_kind!(self, kind, 0, .intern_bytes(name)?.index()) as u32)
    }

    /// The name of the thing of `kind` at `index`; empty for nothing.
    #[must_use]
    pub fn name(&self, kind: NameKind, index: u32) -> &str {
        of_kind!(self, kind, "", .name(Id::from_index(index as usize)))
    }

    /// Forgets all but the first `count` names of `kind`.
    pub fn truncate(&mut self, kind: NameKind, count: usize) {
        of_kind!(self, kind, (), .truncate(count));
        self.trim_given();
    }

    /// `op` as text formats spell it, such as `w(x)`, `ar.acquire(flag)`, `fence(seqcst)`.
    #[must_use]
    pub const fn spell(&self, op: Op) -> Spelled<'_> {
        Spelled { names: self, op }
    }
}

/// Whether `line` of a site is no frame but stands for the text of its source line.
fn is_source_text(line: &str) -> bool {
    line.strip_prefix(SOURCE_TEXT)
        .is_some_and(|hash| !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What has the life that is called `name`, if such lives are counted: its word, and its own name. That of `library(a.so)#1` is
/// `a.so`.
#[must_use]
pub fn counted_life(name: &str) -> Option<(&'static str, &str)> {
    let (word, rest) = name.split_once('(')?;
    let (own, _) = rest.rsplit_once(")#").filter(|(own, _)| !own.is_empty())?;
    COUNTED.into_iter().find(|&counted| counted == word).map(|word| (word, own))
}

/// An operation that displays as text formats spell it.
#[derive(Clone, Copy, Debug)]
pub struct Spelled<'a> {
    names: &'a Names,
    op: Op,
}

impl Display for Spelled<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (code, index) = self.op.encode();
        let (kind, order) = (code.kind(), code.order());
        f.write_str(kind.as_str())?;
        match (kind.operand(), kind.has_order()) {
            (NameKind::None, false) => return Ok(()),
            (NameKind::None, true) => return write!(f, "({})", order.as_str()),
            _ => {}
        }
        if kind.has_order() && order != crate::MemoryOrder::default() {
            write!(f, ".{}", order.as_str())?;
        }
        write!(f, "({})", self.names.name(kind.operand(), index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryOrder;
    use crate::op::{AccessOp, Marker};

    #[test]
    fn operations_are_spelled_as_the_trace_model_says() {
        let mut names = Names::default();
        let x = names.vars.intern("x");
        let spelled = [
            Op::Access(AccessOp::Write, x),
            Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), x),
            Op::Access(AccessOp::AtomicUpdate(MemoryOrder::SeqCst), x),
            Op::Fence(MemoryOrder::SeqCst),
            Op::Marker(Marker::Branch),
        ]
        .map(|op| names.spell(op).to_string());
        assert_eq!(spelled, ["w(x)", "ar.acquire(x)", "arw(x)", "fence(seqcst)", "branch"]);
    }

    #[test]
    fn frames_of_functions_are_no_handles() {
        let mut names = Names::default();
        let is_handle = ["descriptor(3)#1", "library(a.so)#2", "lock(m)", "timer(1)#1"]
            .map(|name| (names.objects.intern(name), true));
        let is_memory = ["lock()", "timer()#2", "stack(T1)", "library#1", "main()"]
            .map(|name| (names.objects.intern(name), false));
        for (object, expected) in is_handle.into_iter().chain(is_memory) {
            assert_eq!(names.is_handle(object), expected, "{}", names.objects.name(object));
        }
        assert_eq!(counted_life("library(a.so)#2"), Some((LIBRARY, "a.so")));
    }

    #[test]
    fn a_stack_makes_another_site_of_the_same_location() {
        let mut names = Names::default();
        let plain = names.site("a.c:1", []);
        let called = names.site("a.c:1", ["b.c:2", "main.c:3"]);
        assert_ne!(plain, called);
        assert_eq!((names.location(plain), names.location(called)), ("a.c:1", "a.c:1"));
        assert_eq!(names.stack(plain).count(), 0);
        assert_eq!(names.stack(called).collect::<Vec<_>>(), ["b.c:2", "main.c:3"]);
    }

    #[test]
    fn threads_have_the_names_that_they_were_given_last() {
        let mut names = Names::default();
        let threads = ["main", "T1", "T2"].map(|name| names.threads.intern(name));
        names.give_name(threads[2], "writer");
        names.give_name(threads[1], "reader");
        names.give_name(threads[2], "reader");
        let given = |names: &Names| threads.map(|it| names.given_name(it).map(str::to_owned));
        assert_eq!(given(&names), [None, Some("reader".into()), Some("reader".into())]);
        names.give_name(threads[2], "");
        assert_eq!(names.given_names().collect::<Vec<_>>(), [(threads[1], "reader")]);
        names.truncate(NameKind::Thread, 1);
        let mut same = Names::default();
        same.threads.intern("main");
        assert_eq!(names, same);
    }

    #[test]
    fn the_text_of_a_line_is_no_frame() {
        let mut names = Names::default();
        let site = names.site("a.c:1", ["main (a.c:1)", "source#12ab"]);
        assert_eq!(names.stack(site).collect::<Vec<_>>(), ["main (a.c:1)"]);
        assert_eq!(names.source_text(site), Some("source#12ab"));
        let other = names.site("a.c:1", ["source#", "source#main"]);
        assert_eq!((names.stack(other).count(), names.source_text(other)), (2, None));
    }
}
