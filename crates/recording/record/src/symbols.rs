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
//! and replaced files never end a run.
//!
//! The cost: each module is opened when it is first asked for, its debug information is mapped
//! rather than read, and every code address is resolved once for each map.

mod data;

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use addr2line::Loader;
use object::read::{ReadCache, ReadRef};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags,
    RelocationTarget, SegmentFlags, SymbolKind, elf,
};
use reweave_base::{FxHashMap, IndexVec};

use crate::debug_info::DebugInfo;
use crate::shorten::clean;
pub use crate::shorten::demangle;
use crate::source_text::SourceTexts;
use crate::toolchain::STATIC_LIBRARY_SECTION;
pub use data::{Birth, Content};

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
    /// Whose `file` is.
    pub owner: Owner,
}

/// Whose a source file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The program's, as far as is known.
    Program,
    /// A crate's that Cargo fetched.
    Crate,
    /// The standard library's of Rust, or the system's, as its headers are.
    Library,
}

impl Frame {
    /// `bank.c:12`, if the line is known.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.file.as_ref()?, self.line?))
    }

    /// Which of `frames`, the innermost first, is the program's own line; else a crate's, or that of any library.
    fn own<'f>(frames: impl IntoIterator<Item = &'f Self, IntoIter: Clone>) -> Option<usize> {
        let frames = frames.into_iter();
        [Owner::Program, Owner::Crate, Owner::Library].into_iter().find_map(|owner| {
            frames.clone().position(|frame| frame.owner == owner && frame.place().is_some())
        })
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
    /// Whether it is in a library of the system, without lines.
    is_of_system: bool,
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
    sources: SourceTexts,
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
            sources: SourceTexts::new(base),
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

    /// The name of the program's file, which is mapped before all others.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let first = self.modules.iter().next()?;
        Some(first.path.rsplit('/').next().unwrap_or(&first.path))
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
        let place = Frame::own(&resolved.frames).and_then(|at| resolved.frames[at].place());
        place.unwrap_or_else(|| resolved.fallback.clone())
    }

    /// The text of the site `code` reached through the calls `stack`, the innermost first: its
    /// location, then a line for the function that this is in and for each frame behind it.
    ///
    /// Where `code` lies in a library altogether, the location is that of the innermost caller that
    /// does not: the line of a program that takes a lock, not the line of the lock's own code.
    /// A call that stands in the stack several times in a row, as in a recursion, is shown once. What
    /// the source line reads comes last.
    pub fn site(&mut self, code: u64, stack: &[u64]) -> String {
        self.site_behind(code, stack, 0)
    }

    /// The same without the first `left_out` functions, if the line of another is known.
    fn site_behind(&mut self, code: u64, stack: &[u64], left_out: usize) -> String {
        let calls = stack.chunk_by(PartialEq::eq).map(|same| same[0]);
        let ids: Vec<ResolvedId> =
            std::iter::once(code).chain(calls).map(|code| self.resolve(code)).collect();
        let all = || ids.iter().flat_map(|id| &self.resolved[*id].frames);
        let has_place = |frame: &Frame| frame.place().is_some();
        let left_out = if all().skip(left_out).any(has_place) { left_out } else { 0 };
        let frames = || all().skip(left_out);
        let first = &self.resolved[ids[0]];
        let is_unknown = !first.frames.iter().any(has_place) && !first.is_of_system;
        let (location, depth) = if is_unknown && left_out == 0 {
            (first.fallback.clone(), 0)
        } else {
            let depth = Frame::own(frames());
            let place = depth.and_then(|depth| frames().nth(depth)?.place());
            (place.unwrap_or_else(|| first.fallback.clone()), depth.unwrap_or(0))
        };
        let lines = frames().skip(depth).map(Frame::text);
        // Where only an address is known, it says no more the second time.
        let is_said = |(at, line): &(usize, String)| *at == 0 && *line == location;
        let lines = lines.enumerate().filter(|line| !is_said(line)).map(|(_, line)| line);
        // Where a library acts, the line of its caller says which fault it is.
        let caller = frames().filter(|frame| frame.owner == Owner::Program).find_map(Frame::place);
        let mut parts: Vec<String> = std::iter::once(location.clone()).chain(lines).collect();
        let text = self.sources.of(&location);
        parts.extend(text.or_else(|| self.sources.of(&caller?)));
        parts.join(reweave_trace::FRAME_SEPARATOR.encode_utf8(&mut [0; 4]))
    }

    /// The global variable at `address`, and how many bytes into it; nothing for the heap, stacks
    /// and thread-local variables.
    pub fn data(&mut self, address: u64) -> Option<(String, u64)> {
        let (segment, shown) = self.maps.get(&self.selected)?.find(address)?;
        let module = &mut self.modules[segment.module?];
        let bias = module.bias(&shown)?;
        let (name, offset) = module.globals()?.find(address.wrapping_sub(bias))?;
        Some((name.to_owned(), offset))
    }

    /// Whether `address` is of a global variable that is zero when its module is loaded.
    pub fn is_zeroed(&mut self, address: u64) -> bool {
        let found = self.maps.get(&self.selected).and_then(|map| map.find(address));
        let Some((segment, shown)) = found else { return false };
        let Some(module) = segment.module.map(|id| &self.modules[id]) else { return false };
        let Some(bias) = module.bias(&shown) else { return false };
        let address = address.wrapping_sub(bias);
        module.layout().is_some_and(|layout| layout.is_zeroed(address))
    }

    /// Whether `address` is in memory that belongs to a file and can be written.
    pub fn is_global(&self, address: u64) -> bool {
        let found = self.maps.get(&self.selected).and_then(|map| map.find(address));
        found.is_some_and(|(segment, _)| segment.module.is_some() && segment.is_writable)
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
        Some((&module.path, code.wrapping_sub(bias)))
    }

    /// The library that has the function at `code`: a static one, or its module.
    pub fn library(&mut self, code: u64) -> Option<&str> {
        let (segment, shown) = self.maps.get(&self.selected)?.find(code)?;
        let module = &self.modules[segment.module?];
        let address = module.bias(&shown).map(|bias| code.wrapping_sub(bias));
        let linked = address.and_then(|address| module.layout()?.static_library(address));
        Some(linked.unwrap_or_else(|| module.short_name()))
    }

    /// The build id of the module at `path`, in hexadecimal digits.
    pub fn build_id(&mut self, path: &str) -> Option<&str> {
        let id = *self.module_ids.get(path)?;
        self.modules[id].build_id()
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
            return Resolved::unknown(clean(&format!("{}+{place:#x}", module.short_name())));
        };
        let probe = call.wrapping_sub(bias);
        let function = module.function(probe);
        let fallback = match &function {
            // The call is named by where it returns to, as disassemblers show it.
            Some((name, offset)) => format!("{name}+{:#x}", offset.wrapping_add(1)),
            None => format!("{}+{:#x}", module.short_name(), probe.wrapping_add(1)),
        };
        let fallback = clean(&fallback);
        let symbol = function.map_or_else(|| fallback.clone(), |(name, _)| name);
        let frames = module.frames(probe, &symbol, &self.base);
        let has_lines = frames.iter().any(|frame| frame.line.is_some());
        let is_of_system = !has_lines && (module.is_of_system() || is_of_library(&symbol));
        if frames.is_empty() {
            return Resolved { fallback, is_of_system, ..Resolved::unknown(symbol) };
        }
        Resolved { frames, fallback, is_of_system }
    }
}

impl Resolved {
    /// An address of which only `text` is known.
    fn unknown(text: String) -> Self {
        let frame = Frame { function: text.clone(), file: None, line: None, owner: Owner::Program };
        Self { frames: vec![frame], fallback: text, is_of_system: false }
    }
}

// What was mapped where: the text of `/proc/PID/maps`, read into segments.
//
// The part of `.bss` beyond the last page of the file is an anonymous mapping of its own. It is
// counted to the module that ends where it starts, so that zeroed globals have names too.

reweave_base::id! {
    /// A line of a map.
    struct SegmentId;
}

/// One line of a map: some memory, and what file it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Its first address.
    start: u64,
    /// The address after its last.
    end: u64,
    /// The place in the file that `start` shows.
    offset: u64,
    /// Whether code may run in it.
    is_executable: bool,
    /// Whether it may be written.
    is_writable: bool,
    /// The file, or a thing such as `[vdso]`; nothing for anonymous memory.
    module: Option<ModuleId>,
    /// The segment that shows the file, where this one is its zeroed rest.
    rest_of: Option<SegmentId>,
}

/// The segments of one map, by rising address.
#[derive(Debug, Default)]
struct Map {
    segments: IndexVec<SegmentId, Segment>,
}

impl Map {
    /// Reads `text`; `module` gives the id of a path. Lines that are no mapping are skipped.
    fn parse(text: &str, mut module: impl FnMut(&str) -> ModuleId) -> Self {
        let mut found: Vec<Segment> =
            text.lines().filter_map(|line| parse_line(line, &mut module)).collect();
        found.sort_by_key(|segment| (segment.start, segment.end));
        let mut segments: IndexVec<SegmentId, Segment> = IndexVec::new();
        let mut last: Option<SegmentId> = None;
        for mut segment in found {
            let before = last.map(|id| (id, segments[id]));
            if let Some((id, before)) = before
                && segment.module.is_none()
                && segment.is_writable
                && before.end == segment.start
            {
                segment.module = before.module;
                segment.rest_of = before.module.map(|_| before.rest_of.unwrap_or(id));
            }
            last = Some(segments.push(segment));
        }
        Self { segments }
    }

    /// The segment with `address`, and the segment that shows its file.
    fn find(&self, address: u64) -> Option<(Segment, Segment)> {
        let segments = self.segments.as_slice();
        let count = segments.partition_point(|segment| segment.start <= address);
        let segment = segments[..count].last().filter(|segment| address < segment.end)?;
        Some((*segment, segment.rest_of.map_or(*segment, |id| self.segments[id])))
    }

    /// The segments of files that may be written: the module and the segment that shows it.
    fn writable(&self) -> Vec<(ModuleId, Segment)> {
        let segments = self.segments.as_slice().iter().filter(|segment| segment.is_writable);
        let shown = |segment: &Segment| {
            let shown = segment.rest_of.map_or(*segment, |id| self.segments[id]);
            segment.module.map(|module| (module, shown))
        };
        segments.filter_map(shown).collect()
    }
}

/// Reads `7f00-7f10 r-xp 00001000 08:01 1234   /path`, the path possibly missing.
fn parse_line(line: &str, module: &mut impl FnMut(&str) -> ModuleId) -> Option<Segment> {
    let mut rest = line;
    let mut field = || {
        let text = rest.trim_start_matches(' ');
        let end = text.find(' ').unwrap_or(text.len());
        rest = &text[end..];
        &text[..end]
    };
    let (start, end) = field().split_once('-')?;
    let (permissions, offset) = (field(), field());
    let (_device, _inode) = (field(), field());
    let path = rest.trim_start_matches(' ');
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    (start < end).then_some(())?;
    Some(Segment {
        start,
        end,
        offset: hexadecimal(offset)?,
        is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
        is_writable: permissions.as_bytes().get(1) == Some(&b'w'),
        module: (!path.is_empty()).then(|| module(path)),
        rest_of: None,
    })
}

// One file of code: where it is loaded, its debug information, its globals.
//
// Each part is read when it is first asked for and at most once. Debug information is mapped, not
// copied; of the rest only headers and symbol tables are read. A file that is gone, damaged or no
// object file has none of them.

/// The alignment with which files are mapped.
const PAGE: u64 = 4096;

/// How far back overlapping globals are looked for.
const OVERLAP_MAX: usize = 16;

/// A file, or a thing such as `[vdso]`, that was mapped.
struct Module {
    path: String,
    /// Whether the file at `path` is the one that was mapped, as far as the map reports.
    is_file: bool,
    layout: OnceCell<Option<Layout>>,
    code: OnceCell<Option<Loader>>,
    globals: OnceCell<Option<Globals>>,
    debug_info: OnceCell<Option<DebugInfo>>,
}

impl Module {
    /// The module that a map calls `path`.
    fn new(path: &str) -> Self {
        let kept = path.strip_suffix(" (deleted)");
        Self {
            path: kept.unwrap_or(path).to_owned(),
            is_file: kept.is_none() && path.starts_with('/'),
            layout: OnceCell::new(),
            code: OnceCell::new(),
            globals: OnceCell::new(),
            debug_info: OnceCell::new(),
        }
    }

    /// The file, if there is hope that it is still the one that ran.
    fn file(&self) -> Option<&Path> {
        self.is_file.then(|| Path::new(&self.path))
    }

    /// Whether it is a library where systems keep theirs.
    fn is_of_system(&self) -> bool {
        ["/usr/lib/", "/lib/", "/usr/lib64/", "/lib64/"].iter().any(|at| self.path.starts_with(at))
    }

    /// The last part of the path.
    fn short_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn layout(&self) -> Option<&Layout> {
        self.layout.get_or_init(|| Layout::read(self.file()?)).as_ref()
    }

    /// What is added to the addresses in the file where `segment` shows it.
    fn bias(&self, segment: &Segment) -> Option<u64> {
        self.layout()?.bias(segment)
    }

    /// The build id, in hexadecimal digits.
    fn build_id(&self) -> Option<&str> {
        self.layout()?.build_id.as_deref()
    }

    /// The file that has the debug information.
    fn debug_file(&self) -> Option<PathBuf> {
        // Threads start and end in the C library, so every run asks for it; its exported names say
        // enough, and its debug information takes longer to load than a short run takes.
        let is_c_library = self.short_name() == "libc.so.6";
        let layout = self.layout().filter(|_| !is_c_library);
        let separate = layout.and_then(Layout::separate_debug_file);
        separate.or_else(|| self.file().map(Path::to_owned))
    }

    fn code(&self) -> Option<&Loader> {
        self.code.get_or_init(|| Loader::new(self.debug_file()?).ok()).as_ref()
    }

    fn debug_info(&self) -> Option<&DebugInfo> {
        let read = || with_object(&self.debug_file()?, |object| DebugInfo::read(object));
        self.debug_info.get_or_init(read).as_ref()
    }

    fn globals(&self) -> Option<&Globals> {
        self.globals.get_or_init(|| Globals::read(self.file()?)).as_ref()
    }

    /// The chain of functions inlined at the address `probe` of the file, innermost first; `symbol`
    /// is the name of one that has none, and files below `base` are named relative to it.
    fn frames(&self, probe: u64, symbol: &str, base: &Path) -> Vec<Frame> {
        let mut found = Vec::new();
        let Some(loader) = self.code() else { return found };
        let Ok(mut frames) = loader.find_frames(probe) else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            let file = file.map(|file| source_file(file, base));
            found.push(Frame {
                function: name.map_or_else(|| symbol.to_owned(), |name| demangle(&name)),
                owner: file.as_ref().map_or(Owner::Program, |(_, owner)| *owner),
                file: file.map(|(file, _)| file),
                line: location.and_then(|location| location.line).filter(|line| *line != 0),
            });
        }
        found
    }

    /// The function whose symbol has the address `probe` of the file, and how far into it.
    fn function(&self, probe: u64) -> Option<(String, u64)> {
        let symbol = self.code()?.find_symbol_info(probe)?;
        let offset = probe.checked_sub(symbol.address())?;
        (!symbol.name().is_empty()).then(|| (demangle(symbol.name()), offset))
    }

    /// The address, in the file, of the global whose name without blanks is `name`.
    fn address_of(&self, name: &str) -> Option<u64> {
        let globals = self.globals()?;
        let is_it = |own: &str| own == name || own.replace(char::is_whitespace, "_") == name;
        globals.entries.iter().find(|(_, _, own)| is_it(own)).map(|(address, ..)| *address)
    }
}

/// Calls `then` with the object file at `path`.
fn with_object<T>(
    path: &Path,
    then: impl FnOnce(&object::File<'_, &ReadCache<File>>) -> Option<T>,
) -> Option<T> {
    let file = File::open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(())?;
    let cache = ReadCache::new(file);
    // Only the headers are read here; a file that is no object file ends it.
    (&cache).len().ok()?;
    then(&object::File::parse(&cache).ok()?)
}

/// A part of a file that is loaded.
struct Load {
    address: u64,
    offset: u64,
    size: u64,
    /// The bytes that it takes in memory; those after the file's are zero.
    memory_size: u64,
    is_executable: bool,
    is_writable: bool,
}

/// Which parts of a file are loaded where, and its build id.
struct Layout {
    loads: Vec<Load>,
    /// Variables of libraries that the loader copies into this file's memory: where each begins and
    /// ends.
    copied: Vec<Range<u64>>,
    /// Code that was linked without being instrumented, and the names of the libraries.
    static_libraries: Vec<(Range<u64>, String)>,
    build_id: Option<String>,
    has_debug_information: bool,
}

impl Layout {
    fn read(path: &Path) -> Option<Self> {
        with_object(path, |object| {
            let loads = object.segments().map(|segment| {
                let (offset, size) = segment.file_range();
                let flags = match segment.flags() {
                    SegmentFlags::Elf { p_flags, .. } => p_flags,
                    _ => elf::PF_X,
                };
                Load {
                    address: segment.address(),
                    offset,
                    size,
                    memory_size: segment.size(),
                    is_executable: flags & elf::PF_X == elf::PF_X,
                    is_writable: flags & elf::PF_W == elf::PF_W,
                }
            });
            let digits = |bytes: &[u8]| {
                bytes.iter().fold(String::new(), |mut digits, byte| {
                    let _ = write!(digits, "{byte:02x}");
                    digits
                })
            };
            Some(Self {
                loads: loads.collect(),
                copied: copied(object),
                static_libraries: static_libraries(object),
                build_id: object.build_id().ok().flatten().map(digits),
                has_debug_information: object.has_debug_symbols(),
            })
        })
    }

    /// Two parts may share a page of the file; the one with the permissions of `segment` is meant.
    fn bias(&self, segment: &Segment) -> Option<u64> {
        let shown = |load: &&Load| {
            let end = load.offset.saturating_add(load.size);
            load.size > 0 && load.offset & !(PAGE - 1) <= segment.offset && segment.offset < end
        };
        let fit = |load: &&Load| {
            let executable = load.is_executable == segment.is_executable;
            (executable, load.is_writable == segment.is_writable)
        };
        let load = self.loads.iter().filter(shown).max_by_key(fit)?;
        let address = segment.offset.wrapping_sub(load.offset).wrapping_add(load.address);
        Some(segment.start.wrapping_sub(address))
    }

    /// Whether the file has nothing for `address`, which is zero when the file is loaded.
    fn is_zeroed(&self, address: u64) -> bool {
        let is_beyond_file = self.loads.iter().any(|load| {
            let file_end = load.address.saturating_add(load.size);
            (file_end..load.address.saturating_add(load.memory_size)).contains(&address)
        });
        is_beyond_file && !self.copied.iter().any(|copied| copied.contains(&address))
    }

    /// The static library that the code at `address` is from.
    fn static_library(&self, address: u64) -> Option<&str> {
        let found = self.static_libraries.iter().find(|(extent, _)| extent.contains(&address));
        found.map(|(_, name)| &**name)
    }

    /// Where distributions keep the debug information of stripped files.
    fn separate_debug_file(&self) -> Option<PathBuf> {
        let build_id = self.build_id.as_deref().filter(|_| !self.has_debug_information)?;
        let (folder, name) = build_id.split_at_checked(2)?;
        let path = format!("/usr/lib/debug/.build-id/{folder}/{name}.debug");
        Some(PathBuf::from(path)).filter(|path| path.is_file())
    }
}

/// Where the static libraries are whose code the linker was made to keep apart.
fn static_libraries<'a>(
    object: &object::File<'a, &'a ReadCache<File>>,
) -> Vec<(Range<u64>, String)> {
    let found = object.sections().filter_map(|section| {
        let name = section.name().ok()?.strip_prefix(STATIC_LIBRARY_SECTION)?.to_owned();
        let start = section.address();
        Some((start..start.saturating_add(section.size()), name))
    });
    found.collect()
}

/// The variables that the loader copies from libraries when it loads `object`.
fn copied<'a>(object: &object::File<'a, &'a ReadCache<File>>) -> Vec<Range<u64>> {
    let symbols = object.dynamic_symbol_table();
    let copies =
        object.dynamic_relocations().into_iter().flatten().filter_map(|(at, relocation)| {
            let RelocationFlags::Elf { r_type: elf::R_X86_64_COPY } = relocation.flags() else {
                return None;
            };
            let RelocationTarget::Symbol(symbol) = relocation.target() else { return None };
            let size = symbols.as_ref()?.symbol_by_index(symbol).ok()?.size();
            Some(at..at.saturating_add(size))
        });
    copies.collect()
}

/// The global variables of a file, by address.
struct Globals {
    /// Address, size and name, sorted.
    entries: Vec<(u64, u64, String)>,
}

impl Globals {
    fn read(path: &Path) -> Option<Self> {
        with_object(path, |object| {
            let mut entries = Vec::new();
            let mut file = String::new();
            for symbol in object.symbols().chain(object.dynamic_symbols()) {
                let Ok(name) = symbol.name() else { continue };
                match symbol.kind() {
                    SymbolKind::File => name.clone_into(&mut file),
                    SymbolKind::Data if symbol.is_definition() && symbol.size() > 0 => {
                        let source = if symbol.is_local() { file.as_str() } else { "" };
                        let entry = (symbol.address(), symbol.size(), demangle(name));
                        entries.push((entry, clean(source)));
                    }
                    _ => {}
                }
            }
            Some(Self { entries: distinct(entries) })
        })
    }

    /// The global that has the address `address` of the file, and how far into it.
    fn find(&self, address: u64) -> Option<(&str, u64)> {
        let count = self.entries.partition_point(|(start, ..)| *start <= address);
        let before = self.entries[..count].iter().rev().take(OVERLAP_MAX);
        let mut holding = before.filter(|(start, size, _)| address - start < *size);
        holding.next().map(|(start, _, name)| (name.as_str(), address - start))
    }
}

/// Sorts the entries and makes their names different: `count@bank.c` where several files have a
/// `count` of their own, `count@0x4010` where that is not enough.
fn distinct(mut entries: Vec<((u64, u64, String), String)>) -> Vec<(u64, u64, String)> {
    entries.sort();
    entries.dedup_by(|second, first| second.0 == first.0);
    let mut counts: FxHashMap<String, u32> = FxHashMap::default();
    let mut count =
        |name: &str| *counts.entry(name.to_owned()).and_modify(|n| *n += 1).or_insert(1);
    entries.iter().for_each(|((_, _, name), _)| {
        count(name);
    });
    let mut named: Vec<(u64, u64, String)> = Vec::with_capacity(entries.len());
    for ((address, size, name), file) in entries {
        let is_ambiguous = counts.get(&name).is_some_and(|count| *count > 1);
        let with_file = format!("{name}@{file}");
        let name = match (is_ambiguous, file.is_empty()) {
            (false, _) => name,
            (true, false) if !counts.contains_key(&with_file) => with_file,
            (true, _) => format!("{name}@{address:#x}"),
        };
        counts.entry(name.clone()).or_insert(1);
        named.push((address, size, name));
    }
    named
}

// Paths as people read them.

/// Whether a function without lines is one of the C or C++ library, which may be part of the program.
fn is_of_library(function: &str) -> bool {
    const NAMES: [&str; 8] = [
        "std::",
        "__gnu_cxx::",
        "operator new",
        "operator delete",
        "pthread_",
        "__pthread_",
        "__gthread_",
        "thrd_",
    ];
    NAMES.iter().any(|name| function.starts_with(name))
}

/// How a source file is called, and whose it is.
fn source_file(raw: &str, base: &Path) -> (String, Owner) {
    let path = normal(Path::new(raw));
    if let Some(inner) = rust_library_file(&path) {
        return (clean(&inner), Owner::Library);
    }
    // Who works on such a crate wants to see it.
    if let Some(inner) = crate_file(&path).filter(|_| !path.starts_with(base) || !is_crate(base)) {
        return (clean(&inner), Owner::Crate);
    }
    let is_library = path.starts_with("/usr/include") || path.starts_with("/usr/lib");
    let shown = match path.strip_prefix(base) {
        Ok(inner) if !base.as_os_str().is_empty() => inner,
        _ => &path,
    };
    let owner = if is_library { Owner::Library } else { Owner::Program };
    (clean(&shown.to_string_lossy()), owner)
}

/// `std/src/..` for files of Rust's library, wherever its compiler says that they are.
fn rust_library_file(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if let Some(rest) = text.strip_prefix("/rustc/") {
        let (_, inner) = rest.split_once('/')?;
        return Some(inner.strip_prefix("library/").unwrap_or(inner).to_owned());
    }
    text.split_once("/rustlib/src/rust/library/").map(|(_, inner)| inner.to_owned())
}

/// `parking_lot-0.12.5/src/..` for files of crates that Cargo fetched.
fn crate_file(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if let Some((_, inner)) = text.split_once("/git/checkouts/") {
        return Some(inner.to_owned());
    }
    let (_, inner) = text.split_once("/registry/src/")?;
    let (index, inner) = inner.split_once('/')?;
    index.contains('-').then(|| inner.to_owned())
}

/// Whether the folder `base` is in such a crate.
fn is_crate(base: &Path) -> bool {
    crate_file(&base.join("Cargo.toml")).is_some()
}

/// `path` without `.` and `..`, as far as the text alone reports.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(normal.components().next_back(), Some(Component::Normal(_))) =>
            {
                normal.pop();
            }
            _ => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(raw: &str, expected: &str, owner: Owner) {
        assert_eq!(source_file(raw, Path::new("/src/me/bank")), (expected.to_owned(), owner));
    }

    #[test]
    fn files_below_the_base_are_relative_to_it() {
        check_file("/src/me/bank/src/./main.c", "src/main.c", Owner::Program);
        check_file("/src/me/bank/build/../src/main.c", "src/main.c", Owner::Program);
        check_file("/src/me/banks/main.c", "/src/me/banks/main.c", Owner::Program);
        check_file("main.c", "main.c", Owner::Program);
    }

    #[test]
    fn files_of_the_language_are_told_apart() {
        let hash = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        check_file(
            &format!("/rustc/{hash}/library/std/src/sys/sync/mutex/futex.rs"),
            "std/src/sys/sync/mutex/futex.rs",
            Owner::Library,
        );
        check_file(
            "/opt/r/lib/rustlib/src/rust/library/core/src/a.rs",
            "core/src/a.rs",
            Owner::Library,
        );
        check_file("/usr/include/c++/12/mutex", "/usr/include/c++/12/mutex", Owner::Library);
        check_file("/src/me/bank/core/src/a.rs", "core/src/a.rs", Owner::Program);
    }

    #[test]
    fn files_of_fetched_crates_are_short_and_no_part_of_the_program() {
        let index = "/srv/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let raw = format!("{index}/parking_lot-0.12.5/src/raw_mutex.rs");
        check_file(&raw, "parking_lot-0.12.5/src/raw_mutex.rs", Owner::Crate);
        let checkout = "/srv/me/.cargo/git/checkouts/queue-5d1c7a/9f8e7d6/src/lib.rs";
        check_file(checkout, "queue-5d1c7a/9f8e7d6/src/lib.rs", Owner::Crate);
        check_file("/src/me/registry/src/main.rs", "/src/me/registry/src/main.rs", Owner::Program);
        let base = format!("{index}/parking_lot-0.12.5");
        assert_eq!(
            source_file(&raw, Path::new(&base)),
            ("src/raw_mutex.rs".to_owned(), Owner::Program)
        );
    }
}
