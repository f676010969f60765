//! Names: from addresses to what people read, legal in every text format.

use std::collections::BTreeMap;

use reweave_base::{FxHashMap, Id, Interner};
use reweave_trace::FRAME_SEPARATOR;

use crate::shadow::{WORD_BYTES, drop_within};
pub use crate::symbols::{Birth, Content};

/// What the code and data of a recorded program are called.
pub trait Symbols {
    /// Where in the source `code` is, reached through the calls at `stack`, the innermost first:
    /// the location, then a line for each frame behind it, as [`reweave_trace::Names::site`] joins
    /// them.
    fn site(&mut self, code: u64, stack: &[u64]) -> String;

    /// The global variable at `address`, and how many bytes into it; nothing for other memory.
    fn data(&mut self, address: u64) -> Option<(String, u64)>;

    /// What the `size` bytes at `address` are called, if they are of a global variable: with the member or element.
    fn member(&mut self, address: u64, size: u64) -> Option<String> {
        let (name, offset) = self.data(address)?;
        Some(of_cell(&name, offset, size))
    }

    /// What a lock or the like at `address` is called, if it is in a global variable.
    fn object(&mut self, address: u64) -> Option<String> {
        let (name, offset) = self.data(address)?;
        Some(at_offset(&name, offset))
    }

    /// What memory holds that was allocated so, if that is known, and the site that allocated it.
    fn born(&mut self, birth: &Birth<'_>) -> (Option<Content>, String) {
        let stack: Vec<u64> = birth.near.into_iter().chain(birth.calls.iter().copied()).collect();
        (None, self.site(birth.code, &stack))
    }

    /// What is behind the name of memory with this content, `offset` bytes into it: what the `size` bytes there are
    /// called, or a lock if there is no size.
    fn content_path(&mut self, content: &Content, offset: u64, size: Option<u64>) -> String {
        let _ = (content, offset, size);
        String::new()
    }

    /// The function that has the code at `code`, and what is called at `address` in its frame, which ends at `end`: the
    /// `size` bytes there, or a lock if there is no size.
    fn local(
        &mut self,
        code: u64,
        end: u64,
        (address, size): (u64, Option<u64>),
    ) -> Option<(String, Option<String>)> {
        let _ = (code, end, address, size);
        None
    }

    /// Whether `code` is in a library of the system of which no lines are known.
    fn is_of_system(&mut self, code: u64) -> bool {
        let _ = code;
        false
    }

    /// Whether the memory at `address` is zero when the program starts.
    fn is_zeroed(&mut self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// Whether `address` is in a global variable, though perhaps nobody knows its name.
    fn is_global(&mut self, address: u64) -> bool {
        self.data(address).is_some()
    }

    /// From here on addresses are those of the map `number`.
    fn maps(&mut self, number: u64);

    /// The file that `code` is in, and where in it.
    fn origin(&mut self, code: u64) -> Option<(String, u64)>;

    /// The library that has the function at `code`.
    fn library(&mut self, code: u64) -> Option<String> {
        let (path, _) = self.origin(code)?;
        path.rsplit('/').next().map(str::to_owned)
    }

    /// The name of the program's file.
    fn program(&mut self) -> Option<String> {
        None
    }

    /// The build id of the file at `path`, empty where there is none.
    fn build_id(&mut self, path: &str) -> String {
        let _ = path;
        String::new()
    }

    /// The names of the functions active at `code`, the innermost inlined one first.
    fn functions(&mut self, code: u64) -> Vec<String> {
        let _ = code;
        Vec::new()
    }
}

/// `name` without what a text format cannot carry in an operand.
pub fn legal(name: &str) -> String {
    let legal = |character: char| match character {
        '|' => '!',
        _ if character.is_whitespace() || character.is_control() => '_',
        _ => character,
    };
    if name.is_empty() { "_".into() } else { name.chars().map(legal).collect() }
}

/// The most bytes that the kernel keeps of the name of a thread.
const THREAD_NAME_BYTES: usize = 15;

/// The name of a thread, whose bytes end at the first zero, as text without control characters: the kernel allows
/// anything.
pub fn thread_name(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(THREAD_NAME_BYTES)];
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..length]);
    let legal = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().map(legal).collect::<String>().trim().to_owned()
}

/// The text of a site without what a text format cannot carry in a location.
pub fn legal_site(text: &str) -> String {
    let legal = |character: char| match character {
        '|' => '!',
        FRAME_SEPARATOR => character,
        _ if character.is_control() => ' ',
        _ => character,
    };
    let text: String = text.chars().map(legal).collect();
    let (location, stack) = match text.split_once(FRAME_SEPARATOR) {
        Some((location, stack)) => (location, Some(stack)),
        None => (&text[..], None),
    };
    // An equals sign between blanks would start a value.
    let location = location.trim_ascii().replace('=', ":");
    match stack {
        Some(stack) => format!("{location}{FRAME_SEPARATOR}{stack}"),
        None => location,
    }
}

/// `name`, or `name+offset`.
pub(crate) fn at_offset(name: &str, offset: u64) -> String {
    match offset {
        0 => legal(name),
        _ => format!("{}+{offset}", legal(name)),
    }
}

/// The name of the cell of `bytes` bytes that is `offset` bytes into `name`.
pub fn of_cell(name: &str, offset: u64, bytes: u64) -> String {
    match bytes {
        0..=WORD_BYTES => at_offset(name, offset),
        _ => format!("{}[{offset}..{}]", legal(name), offset + bytes),
    }
}

/// What the program calls the lock that compilers call `symbol`.
pub fn lock_name(symbol: &str) -> String {
    legal(&critical_section(symbol).unwrap_or_else(|| symbol.to_owned()))
}

/// What the program calls the critical section of OpenMP whose lock compilers call `symbol`.
fn critical_section(symbol: &str) -> Option<String> {
    let name = symbol.trim_start_matches('.').strip_prefix("gomp_critical_user_")?;
    let name = name.trim_end_matches("var").trim_end_matches('.');
    Some(if name.is_empty() { "critical".to_owned() } else { format!("critical({name})") })
}

/// A name that `names` does not have yet: `base`, or `base'2` and so on.
pub fn fresh<I: Id>(names: &mut Interner<I>, uses: &mut FxHashMap<String, u32>, base: &str) -> I {
    let count = uses.entry(base.to_owned()).or_insert(0);
    loop {
        *count += 1;
        let name = match *count {
            1 => base.to_owned(),
            number => format!("{base}'{number}"),
        };
        if names.get(&name).is_none() {
            return names.intern(&name);
        }
    }
}

/// Things of one kind that live at addresses: locks, condition variables and the like.
pub struct Things<I> {
    word: &'static str,
    live: BTreeMap<u64, Thing<I>>,
    uses: FxHashMap<String, u32>,
    unnamed_count: u32,
}

/// One life of a thing.
#[derive(Clone, Copy, Debug)]
pub struct Thing<I> {
    /// Its id, once it was used.
    id: Option<I>,
    /// The number it was set up with.
    pub declared: Option<u64>,
    /// The flags it was set up with, if it was.
    pub flags: Option<u16>,
}

impl<I: Id> Things<I> {
    /// Things that are called `word#1` and so on where nothing names them.
    pub fn new(word: &'static str) -> Self {
        Self { word, live: BTreeMap::new(), uses: FxHashMap::default(), unnamed_count: 0 }
    }

    /// A new life begins at `address`.
    pub fn begin(&mut self, address: u64, declared: Option<u64>, flags: Option<u16>) {
        self.live.insert(address, Thing { id: None, declared, flags });
    }

    /// What lives at `address`, if it was used.
    pub fn used_at(&self, address: u64) -> Option<I> {
        self.live.get(&address)?.id
    }

    /// What lives at `address`.
    pub fn at(&mut self, address: u64) -> Option<&mut Thing<I>> {
        self.live.get_mut(&address)
    }

    /// The life at `address` is over.
    pub fn end(&mut self, address: u64) {
        self.live.remove(&address);
    }

    /// The memory from `start` to `end` is another now.
    pub fn end_within(&mut self, start: u64, end: u64) {
        drop_within(&mut self.live, start, end);
    }

    /// What lives at `address` and is used for the first time, which is called `name` if it has one, and its number if it
    /// was set up.
    pub fn first_used(
        &mut self,
        address: u64,
        names: &mut Interner<I>,
        name: Option<String>,
    ) -> (I, Option<u64>) {
        let none = Thing { id: None, declared: None, flags: None };
        let thing = self.live.entry(address).or_insert(none);
        let base = name.unwrap_or_else(|| {
            self.unnamed_count += 1;
            format!("{}#{}", self.word, self.unnamed_count)
        });
        let id = fresh(names, &mut self.uses, &base);
        thing.id = Some(id);
        (id, thing.declared)
    }
}

// Call stacks, as a tree of calling contexts that grows only where events are.

/// The most frames that a site shows.
const FRAMES_MAX: usize = 16;

/// Calls nested deeper than this are counted, not kept.
const DEPTH_MAX: usize = 1 << 16;

/// Contexts beyond this many are taken for the one around them.
const CONTEXTS_MAX: usize = 1 << 22;

/// A calling context; the first is that of a thread's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(u32);

const START: Context = Context(0);

/// All contexts in which something happened.
pub struct Contexts {
    parents: Vec<(Context, u64)>,
    known: FxHashMap<(Context, u64), Context>,
}

impl Contexts {
    pub fn new() -> Self {
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
    pub fn calls(&self, context: Context) -> Vec<u64> {
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

/// A function that a thread is in.
#[derive(Clone, Copy, Debug, Default)]
struct Entered {
    /// Where it was called.
    call: u64,
    /// Where its frame ends; 0 where that is not known.
    frame_end: u64,
    /// Where it was last seen to be; 0 before that.
    inside: u64,
    outer: Outer,
}

/// Which frames further out end further out than one. Others are not looked for: they were left by jumps, or are on
/// another stack.
///
/// Frames are counted from 1, the outermost, and 0 is none. Which frames these are does not change while the function
/// runs. `far` leads past many of them, so that any is reached in few steps (Myers, "An applicative random-access
/// stack", 1983).
#[derive(Clone, Copy, Debug, Default)]
struct Outer {
    next: u32,
    far: u32,
    /// How many there are, and the frame itself.
    count: u32,
}

/// The call stack of a thread.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    calls: Vec<Entered>,
    /// The contexts of the first so many calls.
    contexts: Vec<Context>,
    excess: u64,
}

impl Stack {
    #[inline]
    pub fn enter(&mut self, call: u64, frame_end: u64) {
        self.pass(call);
        if self.calls.len() < DEPTH_MAX {
            let outer = self.outer(frame_end);
            self.calls.push(Entered { call, frame_end, inside: 0, outer });
        } else {
            self.excess += 1;
        }
    }

    /// A return without a call is ignored.
    #[inline]
    pub fn leave(&mut self) {
        if self.excess > 0 {
            self.excess -= 1;
            return;
        }
        self.calls.pop();
        self.contexts.truncate(self.calls.len());
    }

    /// The innermost function is at `code`.
    #[inline]
    pub fn pass(&mut self, code: u64) {
        if self.excess == 0
            && let Some(innermost) = self.calls.last_mut()
        {
            innermost.inside = code;
        }
    }

    /// Where the innermost function was last seen to be.
    pub fn inside(&self) -> Option<u64> {
        let innermost = self.calls.last().filter(|_| self.excess == 0)?;
        Some(innermost.inside).filter(|&code| code != 0)
    }

    /// The innermost frame that ends above `address`: some code of its function, and where it ends.
    pub fn frame_around(&self, address: u64) -> Option<(u64, u64)> {
        let found = self.numbered(self.ending_above(address))?;
        (found.inside != 0).then_some((found.inside, found.frame_end))
    }

    /// The call with this number.
    fn numbered(&self, number: u32) -> Option<&Entered> {
        self.calls.get((number as usize).checked_sub(1)?)
    }

    /// The number of the innermost frame that ends above `address`, leaving out frames that were left by jumps; 0 if there
    /// is none.
    fn ending_above(&self, address: u64) -> u32 {
        let ends_below = |number| self.numbered(number).filter(|it| it.frame_end <= address);
        let mut at = self.calls.len() as u32;
        while let Some(below) = ends_below(at) {
            let Outer { next, far, .. } = below.outer;
            at = if ends_below(far).is_some() { far } else { next };
        }
        at
    }

    /// What is known of the frames around one that is entered now.
    fn outer(&self, frame_end: u64) -> Outer {
        let next = self.ending_above(frame_end);
        let of = |number| self.numbered(number).map_or(Outer::default(), |it| it.outer);
        let around = of(next);
        let farther = of(around.far);
        // Two leaps of the same length are one.
        let is_leap = around.count - farther.count == farther.count - of(farther.far).count;
        Outer { next, far: if is_leap { farther.far } else { next }, count: around.count + 1 }
    }

    /// The context that the thread is in.
    pub fn context(&mut self, contexts: &mut Contexts) -> Context {
        for entered in &self.calls[self.contexts.len()..] {
            let parent = self.contexts.last().copied().unwrap_or(START);
            self.contexts.push(contexts.child(parent, entered.call));
        }
        self.contexts.last().copied().unwrap_or(START)
    }
}

#[cfg(test)]
mod tests {
    use reweave_base::Rng;

    use super::*;

    /// The innermost frame of `ends` that ends above `address`, and above all further in.
    fn by_definition(ends: &[u64], address: u64) -> Option<u64> {
        let mut live = ends
            .iter()
            .enumerate()
            .filter(|&(at, &end)| end > address && ends[at + 1..].iter().all(|&inner| inner < end));
        live.next_back().map(|(_, &end)| end)
    }

    #[test]
    fn frames_are_those_of_the_definition_whatever_was_jumped_over() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let (mut stack, mut ends) = (Stack::default(), Vec::new());
            for _ in 0..100 {
                // Most frames are within the last one, some are elsewhere, and of some it is not known.
                let last: u64 = ends.last().copied().unwrap_or(0).max(20);
                match rng.below(10) {
                    0 | 1 => {
                        stack.leave();
                        ends.pop();
                    }
                    choice => {
                        let end = match choice {
                            2 => 0,
                            3 | 4 => rng.below(100) as u64,
                            _ => last - 1 - rng.below(3) as u64,
                        };
                        stack.enter(1, end);
                        stack.pass(1);
                        ends.push(end);
                    }
                }
                let address = rng.below(100) as u64;
                let found = stack.frame_around(address).map(|(_, end)| end);
                assert_eq!(found, by_definition(&ends, address), "{ends:?} at {address}");
            }
        }
    }

    #[test]
    fn of_many_frames_few_are_looked_at() {
        let mut stack = Stack::default();
        (0..50_000).for_each(|depth| stack.enter(1, 1_000_000 - depth));
        let (mut at, mut steps) = (stack.calls.len() as u32, 0);
        while at > 0 {
            let Outer { next, far, .. } = stack.calls[at as usize - 1].outer;
            at = if far > 0 { far } else { next };
            steps += 1;
        }
        assert!(steps < 40, "{steps}");
    }

    #[test]
    fn names_of_threads_are_text_without_control_characters() {
        let cases: [(&[u8], &str); 6] = [
            (b"reader\0rest\0\0\0\0\0", "reader"),
            (b"fifteen bytes..\0", "fifteen bytes.."),
            (b"sixteen bytes...", "sixteen bytes.."),
            (b"a\nb\x1b[31m\0\0\0\0\0\0\0\0", "a b [31m"),
            (b"gr\xc3\xb6\xc3\0", "gr\u{f6}\u{fffd}"),
            (b" \t \0", ""),
        ];
        for (bytes, expected) in cases {
            assert_eq!(thread_name(bytes), expected, "{bytes:?}");
        }
    }
}
