//! One file of code: where it is loaded, its debug information, its globals.
//!
//! Each part is read when it is first asked for and at most once. Debug information is mapped, not
//! copied; of the rest only headers and symbol tables are read. A file that is gone, damaged or no
//! object file has none of them.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind, elf};
use reweave_base::FxHashMap;

use super::maps::Segment;
use super::text;

/// The alignment with which files are mapped.
const PAGE: u64 = 4096;

/// How far back overlapping globals are looked for.
const OVERLAP_MAX: usize = 16;

/// A part of a module that has been looked for, or has not.
#[derive(Default)]
enum Lazily<T> {
    #[default]
    Unasked,
    Known(Option<T>),
}

impl<T> Lazily<T> {
    fn get(&mut self, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        if matches!(self, Self::Unasked) {
            *self = Self::Known(make());
        }
        match self {
            Self::Known(value) => value.as_ref(),
            Self::Unasked => None,
        }
    }
}

/// A file, or a thing such as `[vdso]`, that was mapped.
pub(super) struct Module {
    path: String,
    /// Whether the file at `path` is the one that was mapped, as far as the map tells.
    is_file: bool,
    layout: Lazily<Layout>,
    code: Lazily<Loader>,
    globals: Lazily<Globals>,
}

/// A frame as the debug information has it.
pub(super) struct RawFrame {
    pub(super) function: Option<String>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

impl Module {
    /// The module that a map calls `path`.
    pub(super) fn new(path: &str) -> Self {
        let kept = path.strip_suffix(" (deleted)");
        Self {
            path: kept.unwrap_or(path).to_owned(),
            is_file: kept.is_none() && path.starts_with('/'),
            layout: Lazily::Unasked,
            code: Lazily::Unasked,
            globals: Lazily::Unasked,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The file, if there is hope that it is still the one that ran.
    pub(super) fn file(&self) -> Option<&Path> {
        self.is_file.then(|| Path::new(&self.path))
    }

    /// The last part of the path.
    pub(super) fn short_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn layout(&mut self) -> Option<&Layout> {
        let path = self.is_file.then_some(self.path.as_str());
        self.layout.get(|| Layout::read(Path::new(path?)))
    }

    /// What is added to the addresses in the file where `segment` shows it.
    pub(super) fn bias(&mut self, segment: &Segment) -> Option<u64> {
        self.layout()?.bias(segment)
    }

    /// The build id, in hexadecimal digits.
    pub(super) fn build_id(&mut self) -> Option<&str> {
        self.layout()?.build_id.as_deref()
    }

    fn code(&mut self) -> Option<&Loader> {
        if matches!(self.code, Lazily::Unasked) {
            let separate = self.layout().and_then(Layout::separate_debug_file);
            let path = separate.or_else(|| self.file().map(Path::to_owned));
            self.code = Lazily::Known(path.and_then(|path| Loader::new(path).ok()));
        }
        self.code.get(|| None)
    }

    /// The chain of functions inlined at the address `probe` of the file, innermost first.
    pub(super) fn frames(&mut self, probe: u64) -> Vec<RawFrame> {
        let mut found = Vec::new();
        let Some(loader) = self.code() else { return found };
        let Ok(mut frames) = loader.find_frames(probe) else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let location = frame.location.as_ref();
            found.push(RawFrame {
                function: name.map(|name| text::demangle(&name)),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).filter(|line| *line != 0),
            });
        }
        found
    }

    /// The function whose symbol has the address `probe` of the file, and how far into it.
    pub(super) fn function(&mut self, probe: u64) -> Option<(String, u64)> {
        let symbol = self.code()?.find_symbol_info(probe)?;
        let offset = probe.checked_sub(symbol.address())?;
        (!symbol.name().is_empty()).then(|| (text::demangle(symbol.name()), offset))
    }

    /// The global that has the address `probe` of the file, and how far into it.
    pub(super) fn global(&mut self, probe: u64) -> Option<(&str, u64)> {
        let path = self.is_file.then_some(self.path.as_str());
        self.globals.get(|| Globals::read(Path::new(path?)))?.find(probe)
    }

    /// The address, in the file, of the global whose name without blanks is `name`.
    pub(super) fn address_of(&mut self, name: &str) -> Option<u64> {
        let path = self.is_file.then_some(self.path.as_str());
        let globals = self.globals.get(|| Globals::read(Path::new(path?)))?;
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
    is_executable: bool,
    is_writable: bool,
}

/// Which parts of a file are loaded where, and its build id.
struct Layout {
    loads: Vec<Load>,
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

    /// Where distributions keep the debug information of stripped files.
    fn separate_debug_file(&self) -> Option<PathBuf> {
        let build_id = self.build_id.as_deref().filter(|_| !self.has_debug_information)?;
        let (folder, name) = build_id.split_at_checked(2)?;
        let path = format!("/usr/lib/debug/.build-id/{folder}/{name}.debug");
        Some(PathBuf::from(path)).filter(|path| path.is_file())
    }
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
                        let entry = (symbol.address(), symbol.size(), text::demangle(name));
                        entries.push((entry, text::clean(source)));
                    }
                    _ => {}
                }
            }
            Some(Self { entries: distinct(entries) })
        })
    }

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
