//! Names for code and data of a program that has ended, from what was mapped while it ran.
//!
//! The question: which function, file and line is a code address, and which global a data address?
//!
//! The idea: the recorder keeps the text of `/proc/PID/maps` at the start and after each change.
//! The map that holds at an event says which place of which file an address shows; the headers of
//! that file say which address this has in the file; its debug information and symbol tables name
//! it. A code address is the one to which a call returns, so the call is looked up one byte before.
//!
//! Promised: every address has some text. Where there is no debug information it is
//! `function+0x12`, without symbols `module+0x1234`, outside of any file `0x1234`. Damaged, missing
//! and replaced files never end a run; [`Symbols::changed_modules`] tells which names to doubt.
//!
//! The cost: each module is opened when it is first asked for, its debug information is mapped
//! rather than read, and every code address is resolved once for each map.

mod maps;
mod module;
mod text;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use reweave_base::{FxHashMap, FxHashSet, IndexVec};

use maps::Map;
use module::Module;

/// The readable form of the mangled name `symbol`; itself if it is not mangled.
#[must_use]
pub fn readable(symbol: &str) -> String {
    text::demangle(symbol)
}

/// The build id of the program or library at `path`, in hexadecimal digits; none if it has none.
#[must_use]
pub fn build_id_of(path: &Path) -> Option<String> {
    Module::new(path.to_str()?).build_id().map(str::to_owned)
}

reweave_base::id! {
    /// A file, or a thing such as `[vdso]`, that was mapped.
    struct ModuleId;
}

reweave_base::id! {
    /// A code address of a map that was resolved.
    struct ResolvedId;
}

/// A function that was active at a code address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its readable name; `module+0x1234` where nothing is known.
    pub function: String,
    /// The source file: relative to the base directory when below it.
    pub file: Option<String>,
    /// The line of `file`.
    pub line: Option<u32>,
    /// Whether `file` belongs to the standard library of Rust or to the headers of the system.
    pub is_library: bool,
}

impl Frame {
    /// `bank.c:12`, if the line is known.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.file.as_ref()?, self.line?))
    }

    /// `transfer (bank.c:12)`, as it stands in the stack of a site.
    fn text(&self) -> String {
        match (self.place(), &self.file) {
            (Some(place), _) => format!("{} ({place})", self.function),
            (None, Some(file)) => format!("{} ({file})", self.function),
            (None, None) => self.function.clone(),
        }
    }
}

/// What a code address means.
struct Resolved {
    /// The inlined chain, innermost first; never empty.
    frames: Vec<Frame>,
    /// What stands for the address where no frame has a line.
    fallback: String,
}

/// The names of a recorded program. See the [module](self).
pub struct Symbols {
    base: PathBuf,
    modules: IndexVec<ModuleId, Module>,
    module_ids: FxHashMap<String, ModuleId>,
    maps: FxHashMap<u64, Map>,
    selected: u64,
    resolved_ids: FxHashMap<(u64, u64), ResolvedId>,
    resolved: IndexVec<ResolvedId, Resolved>,
}

impl Symbols {
    /// No names yet; source files below `base` are shown relative to it.
    #[must_use]
    pub fn new(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
            modules: IndexVec::new(),
            module_ids: FxHashMap::default(),
            maps: FxHashMap::default(),
            selected: 0,
            resolved_ids: FxHashMap::default(),
            resolved: IndexVec::new(),
        }
    }

    /// Adds the map `number`, in the words of `/proc/PID/maps`.
    pub fn add_map(&mut self, number: u64, text: &str) {
        let (modules, ids) = (&mut self.modules, &mut self.module_ids);
        let map = Map::parse(text, |path| match ids.get(path) {
            Some(id) => *id,
            None => {
                let id = modules.push(Module::new(path));
                ids.insert(path.to_owned(), id);
                id
            }
        });
        self.maps.insert(number, map);
        self.resolved_ids.retain(|(map, _), _| *map != number);
    }

    /// From here on addresses are those of the map `number`.
    pub const fn select(&mut self, number: u64) {
        self.selected = number;
    }

    /// The map that addresses are looked up in.
    #[must_use]
    pub const fn selected(&self) -> u64 {
        self.selected
    }

    /// The functions active at the code address `code`, the innermost inlined one first; at least
    /// one.
    pub fn frames(&mut self, code: u64) -> &[Frame] {
        let id = self.resolve(code);
        &self.resolved[id].frames
    }

    /// Where `code` is: `bank.c:12` of the innermost frame that is not in a library, else of the
    /// innermost with a line, else `function+0x12` or `module+0x1234`.
    pub fn location(&mut self, code: u64) -> String {
        let id = self.resolve(code);
        let resolved = &self.resolved[id];
        let own = resolved.frames.iter().filter(|frame| !frame.is_library);
        let place = own.chain(&resolved.frames).find_map(Frame::place);
        place.unwrap_or_else(|| resolved.fallback.clone())
    }

    /// The text of the site `code` reached through the calls `stack`, the innermost first: its
    /// location, then a line for the function that this is in and for each frame behind it.
    ///
    /// Where `code` lies in a library altogether, the location is that of the innermost caller that
    /// does not: the line of a program that takes a lock, not the line of the lock's own code.
    /// A call that stands in the stack several times in a row, as in a recursion, is shown once.
    pub fn site(&mut self, code: u64, stack: &[u64]) -> String {
        let calls = stack.chunk_by(PartialEq::eq).map(|same| same[0]);
        let ids: Vec<ResolvedId> =
            std::iter::once(code).chain(calls).map(|code| self.resolve(code)).collect();
        let frames = || ids.iter().flat_map(|id| &self.resolved[*id].frames);
        let first = &self.resolved[ids[0]];
        let (location, depth) = if first.frames.iter().all(|frame| frame.place().is_none()) {
            (first.fallback.clone(), 0)
        } else {
            let own = frames().position(|frame| !frame.is_library && frame.place().is_some());
            let depth = own.or_else(|| frames().position(|frame| frame.place().is_some()));
            let place = depth.and_then(|depth| frames().nth(depth)?.place());
            (place.unwrap_or_else(|| first.fallback.clone()), depth.unwrap_or(0))
        };
        let lines = frames().skip(depth).map(Frame::text);
        // Where only an address is known, it says no more the second time.
        let is_said = |(at, line): &(usize, String)| *at == 0 && *line == location;
        let lines = lines.enumerate().filter(|line| !is_said(line)).map(|(_, line)| line);
        let parts: Vec<String> = std::iter::once(location.clone()).chain(lines).collect();
        parts.join(reweave_trace::FRAME_SEPARATOR.encode_utf8(&mut [0; 4]))
    }

    /// The global variable at `address`, and how many bytes into it; nothing for the heap, stacks
    /// and thread-local variables.
    pub fn data(&mut self, address: u64) -> Option<(String, u64)> {
        let (segment, shown) = self.maps.get(&self.selected)?.find(address)?;
        let module = &mut self.modules[segment.module?];
        let bias = module.bias(&shown)?;
        let (name, offset) = module.global(address.wrapping_sub(bias))?;
        Some((name.to_owned(), offset))
    }

    /// Where the global variable is that the trace calls `name`.
    pub fn address_of(&mut self, name: &str) -> Option<u64> {
        let segments = self.maps.get(&self.selected)?.writable();
        for (module, shown) in segments {
            let module = &mut self.modules[module];
            let Some(bias) = module.bias(&shown) else { continue };
            let Some(address) = module.address_of(name) else { continue };
            let address = address.wrapping_add(bias);
            let is_it = |(_, offset): (String, u64)| offset == 0;
            if self.data(address).is_some_and(is_it) {
                return Some(address);
            }
        }
        None
    }

    /// The module of `code` and the address that `code` has in its file: the same in every run of
    /// the same file, wherever it is loaded.
    pub fn origin(&mut self, code: u64) -> Option<(&str, u64)> {
        let (segment, shown) = self.maps.get(&self.selected)?.find(code.wrapping_sub(1))?;
        let module = &mut self.modules[segment.module?];
        let bias = module.bias(&shown).unwrap_or_else(|| shown.start.wrapping_sub(shown.offset));
        Some((module.path(), code.wrapping_sub(bias)))
    }

    /// The build id of the module at `path`, in hexadecimal digits.
    pub fn build_id(&mut self, path: &str) -> Option<&str> {
        let id = *self.module_ids.get(path)?;
        self.modules[id].build_id()
    }

    /// The modules with code whose files are gone or were written after `recorded`, sorted: their
    /// names may be wrong.
    #[must_use]
    pub fn changed_modules(&self, recorded: SystemTime) -> Vec<&str> {
        let ids: FxHashSet<ModuleId> = self.maps.values().flat_map(Map::code_modules).collect();
        let is_changed = |module: &&Module| {
            module.path().starts_with('/')
                && module
                    .file()
                    .and_then(|file| file.metadata().ok()?.modified().ok())
                    .is_none_or(|written| written > recorded)
        };
        let modules = ids.into_iter().map(|id| &self.modules[id]).filter(is_changed);
        let mut changed: Vec<&str> = modules.map(Module::path).collect();
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn resolve(&mut self, code: u64) -> ResolvedId {
        if let Some(id) = self.resolved_ids.get(&(self.selected, code)) {
            return *id;
        }
        let resolved = self.resolve_anew(code);
        let id = self.resolved.push(resolved);
        self.resolved_ids.insert((self.selected, code), id);
        id
    }

    fn resolve_anew(&mut self, code: u64) -> Resolved {
        let call = code.wrapping_sub(1);
        let found = self.maps.get(&self.selected).and_then(|map| map.find(call));
        let Some((shown, module)) =
            found.and_then(|(segment, shown)| Some((shown, segment.module?)))
        else {
            return Resolved::unknown(format!("{code:#x}"));
        };
        let module = &mut self.modules[module];
        let Some(bias) = module.bias(&shown) else {
            let place = code.wrapping_sub(shown.start).wrapping_add(shown.offset);
            return Resolved::unknown(text::clean(&format!("{}+{place:#x}", module.short_name())));
        };
        let probe = call.wrapping_sub(bias);
        let function = module.function(probe);
        let fallback = match &function {
            // The call is named by where it returns to, as disassemblers show it.
            Some((name, offset)) => format!("{name}+{:#x}", offset.wrapping_add(1)),
            None => format!("{}+{:#x}", module.short_name(), probe.wrapping_add(1)),
        };
        let fallback = text::clean(&fallback);
        let symbol = function.map(|(name, _)| name);
        let frames: Vec<Frame> = module
            .frames(probe)
            .into_iter()
            .map(|raw| {
                let file = raw.file.map(|file| text::source_file(&file, &self.base));
                let (file, is_library) = file.map_or((None, false), |(file, is)| (Some(file), is));
                let function = raw.function.or_else(|| symbol.clone());
                let function = function.unwrap_or_else(|| fallback.clone());
                Frame { function, file, line: raw.line, is_library }
            })
            .collect();
        if frames.is_empty() {
            let function = symbol.unwrap_or_else(|| fallback.clone());
            let frame = Frame { function, file: None, line: None, is_library: false };
            return Resolved { frames: vec![frame], fallback };
        }
        Resolved { frames, fallback }
    }
}

impl Resolved {
    /// An address of which only `text` is known.
    fn unknown(text: String) -> Self {
        let frame = Frame { function: text.clone(), file: None, line: None, is_library: false };
        Self { frames: vec![frame], fallback: text }
    }
}
