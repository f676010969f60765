//! What memory is called: members of globals, of allocated blocks and of functions' variables.
//!
//! A block is called by what it holds, and numbered: `Item#2`, with `Item#2.refs` in it; where that is not known, by
//! where it was allocated: `block@items.c:214#1+8`. The frame of a function is called `main()`, a variable in it
//! `main().done`. Names are given when they are first needed, in the order of the trace.

use std::io;
use std::rc::Rc;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};
use reweave_trace::{FRAME_SEPARATOR, NAMELESS, SiteId};

use super::names::{Birth, Content, Context, legal, legal_site, lock_name, of_cell};
use super::scan::Ahead;
use super::{Current, Pass};
use crate::event_log::Stream;
use crate::shadow::{Access, Block, Cell, WORD_BYTES};

/// No variable is further from the end of its frame, for all that we look at.
const FRAME_BYTES_MAX: u64 = 32 << 10;

/// How many places that touch new memory are looked at.
const TOUCHED_MAX: usize = 6;

/// How live blocks were allocated.
#[derive(Default)]
pub struct Births {
    noted: FxHashMap<u64, Noted>,
    named: FxHashMap<u64, Rc<Named>>,
    known: FxHashMap<Noted, Known>,
    counts: FxHashMap<String, u64>,
}

/// What is kept of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Noted {
    code: u64,
    near: Option<u64>,
    is_call: bool,
    touched: [u64; TOUCHED_MAX],
    context: Context,
    size: u64,
}

/// What follows from how a block was allocated.
#[derive(Clone)]
struct Known {
    content: Option<Content>,
    /// What it is called without a number.
    base: String,
    site: SiteId,
}

/// A block that has a name.
pub struct Named {
    pub name: String,
    content: Option<Content>,
    /// Who allocated it, if that is known.
    pub site: Option<SiteId>,
}

impl Births {
    /// The block that was allocated at `time` is gone.
    pub fn end(&mut self, time: u64) {
        self.noted.remove(&time);
        self.named.remove(&time);
    }

    /// The same address may be other code now.
    pub fn forget_code(&mut self) {
        self.known.clear();
    }

    /// `base` with a number that it did not have yet.
    fn numbered(&mut self, base: &str) -> String {
        let count = self.counts.entry(base.to_owned()).or_default();
        *count += 1;
        format!("{base}#{count}")
    }
}

impl Pass<'_> {
    /// Keeps what the name of the block may need that was just allocated.
    pub fn note_birth<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
        block: Block,
    ) -> io::Result<()> {
        let event = current.event;
        if event.flags & flag::STACK != 0 {
            return Ok(());
        }
        let context = self.threads[current.thread].stack.context(&mut self.contexts);
        let (code, size) = (event.code, block.end - block.start);
        let touched = [0; TOUCHED_MAX];
        let mut noted = Noted { code, near: None, is_call: false, touched, context, size };
        // The program's own call is all that is needed.
        if self.symbols.is_of_system(event.code) {
            let next = ahead.next_of_thread(current.number, |events| look(events, block))?;
            let near = next.0.or(current.near);
            let call = event.value.filter(|&call| self.is_same_function(call, near));
            (noted.near, noted.is_call, noted.touched) = (call.or(near), call.is_some(), next.1);
            current.near = noted.near;
        }
        self.memory.births.noted.insert(block.time, noted);
        Ok(())
    }

    /// Whether `code` is in the function that `other` is in, as far as that is known.
    fn is_same_function(&mut self, code: u64, other: Option<u64>) -> bool {
        let mut function = |code| self.symbols.functions(code).pop();
        other.is_none_or(|other| function(code) == function(other))
    }

    /// The name of the block that was allocated at `time` and lives.
    pub fn block_name(&mut self, time: u64) -> Rc<Named> {
        if let Some(named) = self.memory.births.named.get(&time) {
            return Rc::clone(named);
        }
        let Some(&noted) = self.memory.births.noted.get(&time) else {
            let name = self.memory.births.numbered("block");
            return Rc::new(Named { name, content: None, site: None });
        };
        let Known { content, base, site } = match self.memory.births.known.get(&noted) {
            Some(known) => known.clone(),
            None => {
                let found = self.known_of(noted);
                self.memory.births.known.insert(noted, found.clone());
                found
            }
        };
        let name = self.memory.births.numbered(&base);
        let named = Rc::new(Named { name, content, site: Some(site) });
        self.memory.births.named.insert(time, Rc::clone(&named));
        named
    }

    /// What follows from how a block was allocated.
    fn known_of(&mut self, noted: Noted) -> Known {
        let calls = self.contexts.calls(noted.context);
        let count = noted.touched.iter().position(|&code| code == 0).unwrap_or(TOUCHED_MAX);
        let Noted { code, near, is_call, size, .. } = noted;
        let touched = &noted.touched[..count];
        let birth = Birth { code, near, is_call, touched, calls: &calls, size };
        let (content, site) = self.symbols.born(&birth);
        let base = match &content {
            Some(content) => of_type(&content.name()),
            None => unknown_block(&site),
        };
        Known { content, base, site: self.sink.names().sites.intern(&legal_site(&site)) }
    }

    /// What `offset` bytes into a block are called: `size` bytes, or a lock if there is no size.
    fn in_block(&mut self, named: &Named, offset: u64, size: Option<u64>) -> String {
        match &named.content {
            Some(content) => {
                let path = self.symbols.content_path(content, offset, size);
                format!("{}{}", named.name, legal_path(&path))
            }
            None => of_cell(&named.name, offset, size.unwrap_or(0)),
        }
    }

    /// The name of a cell that is kept.
    pub fn name_of(&mut self, cell: Cell) -> String {
        let (address, bytes) = (cell.begin, cell.end - cell.begin);
        if let Some((end, start)) = self.first_pass.frame_end(cell) {
            return self.in_frame(end, start, cell);
        }
        let known = self.first_pass.shared_frame(cell);
        if let Some(block) = self.memory.blocks.holding(address)
            && let Some(&object) = self.memory.objects.get(&block.time)
        {
            if self.memory.births.noted.contains_key(&block.time) {
                let named = self.block_name(block.time);
                return self.in_block(&named, address - block.base, Some(bytes));
            }
            // The stack of a thread.
            let name = self.sink.names().objects.name(object).to_owned();
            return match self.local(known, address, Some(bytes)) {
                Some((function, Some(local))) => format!("{name}.{function}.{local}"),
                _ => of_cell(&name, address - block.base, bytes),
            };
        }
        if let Some(name) = self.symbols.member(address, bytes) {
            return legal(&name);
        }
        if let Some((function, Some(local))) = self.local(known, address, Some(bytes)) {
            return format!("{function}.{local}");
        }
        let next = self.memory.unnamed.len() + 1;
        let number = *self.memory.unnamed.entry(cell.lifetime).or_insert(next);
        of_cell(&format!("memory#{number}"), address % WORD_BYTES, bytes)
    }

    /// The name of a cell in a frame that ends at the time `end`, of which what is kept begins at `start`.
    fn in_frame(&mut self, end: u64, start: u64, cell: Cell) -> String {
        let (address, bytes) = (cell.begin, cell.end - cell.begin);
        let known = self.first_pass.shared_frame(cell);
        let local = self.local(known, address, Some(bytes));
        let object = match self.memory.frames.get(&end) {
            Some(&object) => object,
            None => {
                let next = self.memory.frames.len() + 1;
                let name = match &local {
                    Some((function, _)) => match self.memory.births.numbered(function) {
                        first if first.ends_with("#1") => function.clone(),
                        other => other,
                    },
                    None => format!("frame#{next}"),
                };
                let object = self.sink.names().objects.intern(&name);
                self.memory.frames.insert(end, object);
                object
            }
        };
        let name = self.sink.names().objects.name(object);
        match local {
            Some((_, Some(local))) => format!("{name}.{local}"),
            _ => of_cell(name, address.saturating_sub(start), bytes),
        }
    }

    /// What a lock or the like, a `word`, is called that is at `address`, if it has a name.
    pub fn object_name(&mut self, address: u64, word: &str) -> Option<String> {
        if let Some(block) = self.memory.blocks.holding(address) {
            if self.memory.births.noted.contains_key(&block.time) {
                let named = self.block_name(block.time);
                return Some(match &named.content {
                    Some(_) => self.in_block(&named, address - block.base, None),
                    // What is known of the place is what it holds. The bytes there have the name of their offset.
                    None => format!("{}.{word}", named.name),
                });
            }
        } else if let Some(name) = self.symbols.object(address) {
            return Some(lock_name(&name));
        }
        let (function, local) = self.local(None, address, None)?;
        Some(format!("{function}.{}", local?))
    }

    /// The function whose frame holds `address`, as `main()`, and what is called there: the variable with what is behind it
    /// for `size` bytes, or for a lock if there is no size. If it is not `known` in which frame it is, the frames of now
    /// are looked at.
    fn local(
        &mut self,
        known: Option<(u64, u64)>,
        address: u64,
        size: Option<u64>,
    ) -> Option<(String, Option<String>)> {
        let around = self.threads.iter().filter_map(|thread| thread.stack.frame_around(address));
        let (code, end) = known.or_else(|| around.min_by_key(|&(_, end)| end))?;
        (address < end).then_some(())?;
        (end - address <= FRAME_BYTES_MAX).then_some(())?;
        let (function, local) = self.symbols.local(code, end, (address, size))?;
        Some((format!("{}()", legal(&function)), local.map(|local| legal(&local))))
    }
}

/// Of the `events` of a thread that follow an allocation: where the function was next that made it, and where the block is
/// accessed first or what the function called next is at.
fn look<'a>(
    events: impl Iterator<Item = &'a Event>,
    block: Block,
) -> (Option<u64>, [u64; TOUCHED_MAX]) {
    let (mut near, mut touched, mut count) = (None, [0; TOUCHED_MAX], 0);
    let mut depth = 0_u32;
    for event in events {
        let touching = match event.kind {
            Kind::Enter => {
                near = near.or_else(|| (depth == 0).then_some(event.address));
                depth += 1;
                (depth == 2).then_some(event.address)
            }
            Kind::Leave if depth == 0 => break,
            Kind::Leave => {
                depth -= 1;
                None
            }
            Kind::Alloc => break,
            _ => Access::new(event).and_then(|access| {
                near = near.or_else(|| (depth == 0).then_some(event.code));
                (block.start..block.end).contains(&access.start).then_some(event.code)
            }),
        };
        if let Some(code) = touching.filter(|code| !touched.contains(code)) {
            touched[count] = code;
            count += 1;
        }
        if count == TOUCHED_MAX {
            break;
        }
    }
    (near, touched)
}

/// What a block is called, without a number, that holds a `type_name`. What stands for a name is none of a type.
fn of_type(type_name: &str) -> String {
    let name = legal(type_name);
    if NAMELESS.contains(&name.as_str()) { format!("struct_{name}") } else { name }
}

/// What a block of which nothing is known is called, without a number, by the text of the site that allocated it.
fn unknown_block(site: &str) -> String {
    let location = site.split(FRAME_SEPARATOR).next().unwrap_or("");
    let name = match location.rsplit_once(':') {
        Some((file, line))
            if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
        // An address in a function is another in each build.
        _ => match location.split_once("+0x") {
            Some((function, _)) => function.to_owned(),
            None if location.starts_with("0x") => String::new(),
            None => location.to_owned(),
        },
    };
    if name.is_empty() { "block".to_owned() } else { format!("block@{}", legal(&name)) }
}

/// A path behind a name; nothing is nothing.
fn legal_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { legal(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_is_called_what_stands_for_a_name() {
        let names = ["block", "frame", "lock[]", "stack", "Item", "unsigned long"].map(of_type);
        let expected = ["struct_block", "struct_frame", "lock[]", "stack", "Item", "unsigned_long"];
        assert_eq!(names, expected);
    }
}
