//! Names: from addresses to what people read, legal in every text format.

use std::collections::BTreeMap;

use reweave_base::{FxHashMap, Id, Interner};
use reweave_trace::FRAME_SEPARATOR;

use crate::shadow::{WORD_BYTES, drop_within};

/// What the code and data of a recorded program are called.
pub trait Symbols {
    /// Where in the source `code` is, reached through the calls at `stack`, the innermost first:
    /// the location, then a line for each frame behind it, as [`reweave_trace::Names::site`] joins
    /// them.
    fn site(&mut self, code: u64, stack: &[u64]) -> String;

    /// The global variable at `address`, and how many bytes into it; nothing for other memory.
    fn data(&mut self, address: u64) -> Option<(String, u64)>;

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

    /// What lives at `address`, and its number if it was set up and is used for the first time.
    pub fn id(
        &mut self,
        address: u64,
        names: &mut Interner<I>,
        symbols: &mut dyn Symbols,
    ) -> (I, Option<u64>) {
        let none = Thing { id: None, declared: None, flags: None };
        let thing = self.live.entry(address).or_insert(none);
        if let Some(id) = thing.id {
            return (id, None);
        }
        let base = match symbols.data(address) {
            Some((name, offset)) => at_offset(&critical_section(&name).unwrap_or(name), offset),
            None => {
                self.unnamed_count += 1;
                format!("{}#{}", self.word, self.unnamed_count)
            }
        };
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

/// The call stack of a thread.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    calls: Vec<u64>,
    /// The contexts of the first so many calls.
    contexts: Vec<Context>,
    excess: u64,
}

impl Stack {
    #[inline]
    pub fn enter(&mut self, call: u64) {
        if self.calls.len() < DEPTH_MAX {
            self.calls.push(call);
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

    /// The context that the thread is in.
    pub fn context(&mut self, contexts: &mut Contexts) -> Context {
        for &call in &self.calls[self.contexts.len()..] {
            let parent = self.contexts.last().copied().unwrap_or(START);
            self.contexts.push(contexts.child(parent, call));
        }
        self.contexts.last().copied().unwrap_or(START)
    }
}
