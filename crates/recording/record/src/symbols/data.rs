//! Names of data by its types: members of globals, allocated memory, variables of functions.

use std::iter;

use super::{ModuleId, Symbols};
use crate::convert::{at_offset, of_cell};
use crate::debug_info::allocations::{self, Answer};
use crate::debug_info::{Die, Local, Variable};
use crate::shorten;

/// How many parts of a name are taken for those of a member.
const DEPTH_MAX: usize = 16;

/// How far into a variable a member is looked for by its name.
const MEMBER_BYTES_MAX: u64 = 1 << 16;

/// How some memory was allocated.
#[derive(Clone, Copy, Debug)]
pub struct Birth<'a> {
    /// The call of the allocator, or code of the library that calls it.
    pub code: u64,
    /// Code of the function that called the library, if `code` is in one.
    pub near: Option<u64>,
    /// Whether that is the call itself.
    pub is_call: bool,
    /// Where the memory was accessed first.
    pub touched: &'a [u64],
    /// The calls that led there, the innermost first.
    pub calls: &'a [u64],
    /// How many bytes it has.
    pub size: u64,
}

/// What some memory holds.
#[derive(Clone, Debug)]
pub struct Content {
    module: ModuleId,
    of: Die,
    name: String,
    size: u64,
    is_array: bool,
    start: u64,
}

impl Content {
    /// What the memory is called, without a number: `Item`, or `Item[]` for several.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_array { format!("{}[]", self.name) } else { self.name.clone() }
    }
}

/// Where some memory is in a global variable.
struct Global {
    name: String,
    /// The type, if that is known.
    of: Option<(ModuleId, Die)>,
    offset: u64,
}

impl Symbols {
    /// Whether `code` is in a library of the system of which no lines are known.
    pub fn is_of_system(&mut self, code: u64) -> bool {
        let id = self.resolve(code);
        self.resolved[id].is_of_system
    }

    /// What the trace calls the `size` bytes at `address`, if they are of a global variable.
    pub fn member(&mut self, address: u64, size: u64) -> Option<String> {
        let Global { name, of, offset } = self.global(address)?;
        Some(match of {
            Some((module, of)) => name + &self.modules[module].debug_info()?.path(of, offset, size),
            None => of_cell(&name, offset, size),
        })
    }

    /// Where the member of a global variable is that the trace calls `name`.
    pub fn address_of_member(&mut self, name: &str) -> Option<u64> {
        let ends = name.rmatch_indices(['.', '[', '+']).map(|(end, _)| end);
        let (base, start) = ends.take(DEPTH_MAX).find_map(|end| {
            let base = &name[..end];
            Some((base, self.address_of(base)?))
        })?;
        let whole = self.data(start)?.0;
        for address in start..start.saturating_add(MEMBER_BYTES_MAX) {
            let (own, _) = self.data(address).filter(|(own, _)| *own == whole)?;
            let member = self.member(address, 1)?;
            let path = member.strip_prefix(&own)?;
            if *path == name[base.len()..] {
                return Some(address);
            }
        }
        None
    }

    /// What the trace calls a lock or the like at `address`, if it is in a global variable.
    pub fn object(&mut self, address: u64) -> Option<String> {
        let Global { name, of, offset } = self.global(address)?;
        Some(match of {
            Some((module, of)) => {
                name + &self.modules[module].debug_info()?.object_path(of, offset)
            }
            None => at_offset(&name, offset),
        })
    }

    /// The global variable at `address`.
    fn global(&mut self, address: u64) -> Option<Global> {
        let (name, offset) = self.data(address)?;
        let whole = |name: &str| {
            let own = name.split('@').next().unwrap_or(name);
            let number = own
                .rfind('.')
                .filter(|&at| own[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
            own[..number.unwrap_or(own.len())].to_owned()
        };
        Some(match self.variable(address.wrapping_sub(offset)) {
            // The symbol is that of a piece.
            Some((module, Variable { of, within: Some(within) })) => {
                let offset = within.saturating_add(offset);
                Global { name: whole(&name), of: Some((module, of)), offset }
            }
            Some((module, Variable { of, within: None })) => {
                Global { name, of: Some((module, of)), offset }
            }
            None => Global { name, of: None, offset },
        })
    }

    /// The global variable, or piece of one, that begins at `start`, and its module.
    fn variable(&mut self, start: u64) -> Option<(ModuleId, Variable)> {
        let (segment, shown) = self.maps.get(&self.selected)?.find(start)?;
        let id = segment.module?;
        let start = start.wrapping_sub(self.modules[id].bias(&shown)?);
        Some((id, self.modules[id].debug_info()?.variable_at(start)?))
    }

    /// The module that has the code at `code`, and where in its file the call before that is.
    fn probe(&self, code: u64) -> Option<(ModuleId, u64)> {
        let call = code.wrapping_sub(1);
        let (segment, shown) = self.maps.get(&self.selected)?.find(call)?;
        let id = segment.module?;
        Some((id, call.wrapping_sub(self.modules[id].bias(&shown)?)))
    }

    /// What memory holds that was allocated so, as far as its allocation tells, and the text of the site that did: of
    /// functions that only pass on what they allocate, their caller's.
    pub fn born(&mut self, birth: &Birth<'_>) -> (Option<Content>, String) {
        let (frames_before, module, answer) = self.maker(birth);
        let content = match answer {
            Answer::Holds(content) => module.map(|module| Content::new(module, content)),
            Answer::SeemsToHold(_) | Answer::Passes | Answer::Unknown if birth.size == 0 => None,
            Answer::SeemsToHold(content) => {
                let constructed = self.constructed(birth);
                constructed.or_else(|| Some(Content::new(module?, content)))
            }
            Answer::Passes | Answer::Unknown => self.constructed(birth),
        };
        let stack: Vec<u64> = birth.near.into_iter().chain(birth.calls.iter().copied()).collect();
        (content, self.site_behind(birth.code, &stack, frames_before))
    }

    /// By the class of the constructor that is the first to write there.
    fn constructed(&mut self, birth: &Birth<'_>) -> Option<Content> {
        let near = birth.near.filter(|_| !birth.is_call);
        let maker = birth.near.filter(|_| birth.is_call).unwrap_or(birth.code);
        let maker = self.probe(maker);
        birth.touched.iter().copied().chain(near).find_map(|code| {
            let (id, probe) = self.probe(code)?;
            let maker = maker.filter(|&(module, _)| module == id).map(|(_, probe)| probe);
            let content = self.modules[id].debug_info()?.constructed(probe, maker, birth.size)?;
            Some(Content::new(id, content))
        })
    }

    /// How many of the functions that are active pass on what they allocate, the innermost first, and what the one says
    /// that called them.
    fn maker(&mut self, birth: &Birth<'_>) -> (usize, Option<ModuleId>, Answer) {
        let calls = birth.calls.chunk_by(PartialEq::eq).map(|same| same[0]);
        let codes: Vec<u64> = iter::once(birth.code).chain(birth.near).chain(calls).collect();
        let mut frames_before = 0;
        for code in codes {
            let frames = self.frames(code).to_vec();
            let Some((id, probe)) = self.probe(code) else { break };
            let depth = self.modules[id].debug_info().map_or(0, |it| it.depth_at(probe));
            for level in 0..depth {
                let frame = frames.get(level).filter(|_| frames.len() == depth);
                let place = frame.and_then(|frame| Some((frame.file.as_ref()?, frame.line?)));
                let text = place.map(|(file, line)| self.sources.statement(file, line));
                let Some(debug_info) = self.modules[id].debug_info() else { break };
                let text = text.flatten().unwrap_or_default();
                let answer = debug_info.answer(probe, level, birth.size, &text);
                if answer != Answer::Passes {
                    return (frames_before + level.min(frames.len()), Some(id), answer);
                }
            }
            frames_before += frames.len();
        }
        (0, None, Answer::Passes)
    }

    /// What is behind the name of memory with this content, `offset` bytes into it: what the `size` bytes there are
    /// called, or a lock if there is no size.
    pub fn content_path(&mut self, content: &Content, offset: u64, size: Option<u64>) -> String {
        let Some(debug_info) = self.modules[content.module].debug_info() else {
            return String::new();
        };
        let path = |offset| match size {
            Some(size) => debug_info.path(content.of, offset, size),
            None => debug_info.object_path(content.of, offset),
        };
        if !content.is_array {
            return path(offset);
        }
        let Some(offset) = offset.checked_sub(content.start) else { return String::new() };
        let (index, rest) = (offset / content.size, offset % content.size);
        let end = rest.saturating_add(size.unwrap_or(0));
        if end > content.size {
            return format!("[{index}..{}]", index + end.div_ceil(content.size));
        }
        format!("[{index}]{}", path(rest))
    }

    /// The function that has the code at `code`, shortened, and what in its frame, which ends at `end`, is at `address`:
    /// the name of a variable, with what is behind it for `size` bytes, or for a lock if there is no size.
    pub fn local(
        &mut self,
        code: u64,
        end: u64,
        (address, size): (u64, Option<u64>),
    ) -> Option<(String, Option<String>)> {
        let (id, probe) = self.probe(code)?;
        let label = self.modules[id].debug_info().and_then(|it| it.function_label(probe));
        let function = match label {
            Some(label) => label,
            None => shorten::without_arguments(&self.frames(code).last()?.function),
        };
        // Of the recorder's own functions nothing is known, not even where their frames end.
        if function.starts_with("reweave_rt::") {
            return None;
        }
        let found = self.modules[id].debug_info().and_then(|debug_info| {
            let below = i64::try_from(end.checked_sub(address)?).ok()?;
            let Local { name, of, offset } = debug_info.local(probe, -below)?;
            let path = match size {
                Some(size) => debug_info.path(of, offset, size),
                None => debug_info.object_path(of, offset),
            };
            Some(name + &path)
        });
        Some((function, found))
    }
}

impl Content {
    fn new(module: ModuleId, content: allocations::Content) -> Self {
        let allocations::Content { of, name, size, is_array, start } = content;
        Self { module, of, name, size, is_array, start }
    }
}
