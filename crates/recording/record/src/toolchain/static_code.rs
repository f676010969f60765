//! Static libraries and object files that were not compiled for recording.
//!
//! Instrumented code calls them directly, so nothing sees the calls at run time, as it does those of
//! shared libraries. The linker can: it is made to send them through slots of an object file that is
//! made here, and to keep such code together, in a section for each library. The object file says to
//! the runtime what is where; the runtime points the slots to stubs of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use object::read::archive::ArchiveFile;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    SectionKind, SymbolKind, elf,
};
use reweave_base::FxHashSet;

use super::{Invocation, Linkage, Product, Unchanged, expanded, linked, product, starts_with};
use crate::install::Runtime;

/// The linker `program`, which sends calls of what was not compiled for recording through slots.
pub(super) fn link(
    program: &OsStr,
    arguments: &[OsString],
    linkage: Linkage,
    runtime: &Runtime,
) -> Invocation {
    let mut invocation = Invocation::new(program, linked(arguments, linkage, runtime));
    let arguments = expanded(arguments);
    let product = product(&arguments);
    let code = static_code(&arguments, product, runtime);
    if code.is_empty() {
        return invocation;
    }
    let names = code.names().collect::<Vec<_>>().join(", ");
    let warning = format!("not built for recording, so what it orders is not seen: {names}");
    if product == Product::Static || !takes_script(program, &arguments) {
        invocation.warnings.push(warning);
        return invocation;
    }
    let prepared = tempfile::tempdir().and_then(|folder| {
        let added = code.prepare(folder.path(), matches!(product, Product::Library { .. }))?;
        Ok((added, folder.keep()))
    });
    match prepared {
        Ok((added, scratch)) => {
            let unchanged = invocation.arguments.clone();
            // Where the functions are first asked for, so that the same libraries bring them.
            let is_asking = |argument: &OsString| code.first_asking.as_ref() == Some(argument);
            let place = unchanged.iter().position(is_asking).map_or(0, |place| place + 1);
            invocation.arguments.splice(place..place, added);
            invocation.unchanged = Some(Unchanged { arguments: unchanged, warning, scratch });
        }
        Err(error) => invocation.warnings.push(format!("{warning} ({error})")),
    }
    invocation
}

/// What the linker is given that was not compiled for recording.
fn static_code(arguments: &[OsString], product: Product, runtime: &Runtime) -> StaticCode {
    if product == Product::Partial {
        return StaticCode::default();
    }
    let intercepted: FxHashSet<&str> = runtime.wrapped().collect();
    StaticCode::new(arguments, |name| intercepted.contains(name))
}

/// Whether the linker can be given a script that adds to its own.
fn takes_script(program: &OsStr, arguments: &[OsString]) -> bool {
    let is_other = |path: &OsStr| {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        ["gold", "mold", "wild"].into_iter().any(|other| name.contains(other))
    };
    let has_own = |argument: &&OsString| {
        argument.as_encoded_bytes().starts_with(b"-T") || starts_with(argument, "--script")
    };
    let chooses = |argument: &&OsString| starts_with(argument, "-fuse-ld") && is_other(argument);
    !is_other(program) && !arguments.iter().any(|it| has_own(&it) || chooses(&it))
}

/// How the names of the sections with such code begin; the name of the library follows.
pub const STATIC_LIBRARY_SECTION: &str = ".reweave.";

/// What a linker is given that was not compiled for recording, and that instrumented code calls.
#[derive(Debug, Default)]
pub(super) struct StaticCode {
    parts: Vec<Part>,
    calls: BTreeSet<String>,
    /// The first input that is instrumented and calls such code.
    first_asking: Option<OsString>,
}

/// A static library or an object file.
#[derive(Debug)]
struct Part {
    /// The last part of its path.
    name: String,
    /// Patterns that linkers match with its object files.
    patterns: Vec<String>,
    orders_threads: bool,
}

/// Libraries that interceptors stand before, and what comes with the compiler.
const SYSTEM: [&str; 22] = [
    "libc.a",
    "libc_nonshared.a",
    "libm.a",
    "libm-2",
    "libmvec.a",
    "libpthread",
    "libdl.a",
    "librt.a",
    "libutil.a",
    "libgcc",
    "libstdc++",
    "libsupc++",
    "libc++",
    "libunwind",
    "libatomic.a",
    "libgomp.a",
    "libomp.a",
    "libiomp5.a",
    "libclang_rt",
    "libtsan",
    "libssp",
    "reweave_rt",
];

/// Object files by which a compiler starts and ends a program, by how their names end.
const STARTS: [&str; 5] = ["crt1.o", "crti.o", "crtn.o", "crtfastmath.o", "crt0.o"];

/// Functions that the runtime itself provides, by how their names begin.
const OWN: [&str; 7] =
    ["__tsan_", "__reweave_", "reweave_", "Annotate", "GOMP_", "__kmpc_", "omp_"];

/// Functions by which code orders threads, by how their names begin.
const ORDERING: [&str; 9] =
    ["pthread_", "sem_", "mtx_", "cnd_", "thrd_", "call_once", "syscall", "futex", "__cxa_guard_"];

/// What an object file says of itself.
#[derive(Debug, Default)]
struct Symbols {
    is_instrumented: bool,
    has_code: bool,
    has_variables: bool,
    functions: Vec<String>,
    defined: Vec<String>,
    undefined: Vec<String>,
    /// What is named other than by a call: its address is taken.
    taken: FxHashSet<String>,
}

impl Symbols {
    /// Nothing for what cannot be read, and for what is compiled only while linking.
    fn new(file: &[u8]) -> Option<Self> {
        let file = object::File::parse(file).ok()?;
        if file.kind() != object::ObjectKind::Relocatable {
            return None;
        }
        let mut symbols = Self::default();
        for section in file.sections() {
            if section.name().is_ok_and(|name| name.starts_with(".gnu.lto_")) {
                return None;
            }
            symbols.has_code |= section.kind() == SectionKind::Text && section.size() > 0;
            let is_data =
                matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData);
            symbols.has_variables |= is_data && section.size() > 0;
        }
        symbols.note_taken(&file);
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            symbols.has_variables |= symbol.is_common();
            symbols.is_instrumented |= symbol.is_undefined() && name.starts_with("__tsan_");
            if symbol.is_local() || name.is_empty() {
                continue;
            }
            if symbol.is_undefined() {
                // What is only used if it is there brings no library in.
                if !symbol.is_weak() {
                    symbols.undefined.push(name.to_owned());
                }
            } else {
                symbols.defined.push(name.to_owned());
                if symbol.kind() == SymbolKind::Text {
                    symbols.functions.push(name.to_owned());
                }
            }
        }
        Some(symbols)
    }

    fn note_taken(&mut self, file: &object::File<'_>) {
        for section in file.sections() {
            // Descriptions of functions take no addresses.
            let is_described = section.name().is_ok_and(|name| name == ".eh_frame");
            let is_code_or_data = matches!(
                section.kind(),
                SectionKind::Text
                    | SectionKind::Data
                    | SectionKind::Tls
                    | SectionKind::ReadOnlyData
                    | SectionKind::ReadOnlyDataWithRel
            );
            if is_described || !is_code_or_data {
                continue;
            }
            let Ok(bytes) = section.data() else { continue };
            for (place, relocation) in section.relocations() {
                let RelocationTarget::Symbol(target) = relocation.target() else { continue };
                let name = file.symbol_by_index(target).ok().and_then(|symbol| symbol.name().ok());
                let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
                if !is_call(bytes, place as usize, relocation.flags()) {
                    self.taken.insert(name.to_owned());
                }
            }
        }
    }

    fn orders_threads(&self) -> bool {
        let orders = |name: &String| ORDERING.iter().any(|start| name.starts_with(start));
        // On this machine plain loads and stores of a variable can be enough.
        self.has_variables || self.undefined.iter().any(orders)
    }
}

/// Whether the operand at `place` of `bytes` is that of a call or a jump.
fn is_call(bytes: &[u8], place: usize, flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else { return false };
    let before = |count: usize| place.checked_sub(count).and_then(|at| bytes.get(at)).copied();
    match r_type {
        elf::R_X86_64_PLT32 => true,
        elf::R_X86_64_PC32 => matches!(before(1), Some(0xe8 | 0xe9)),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX => {
            before(2) == Some(0xff) && matches!(before(1), Some(0x15 | 0x25))
        }
        _ => false,
    }
}

/// `name` with `other` for what means something else in a script of a linker.
fn plain(name: &str, other: char) -> String {
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-' | '+' | '/')
    };
    let mut plain = String::new();
    for character in name.chars() {
        if is_plain(character) {
            plain.push(character);
        } else {
            // Linkers may match bytes.
            plain.extend(std::iter::repeat_n(other, character.len_utf8()));
        }
    }
    plain
}

/// What was found among the inputs of a linker.
#[derive(Debug, Default)]
struct Found {
    /// What is not instrumented, by path.
    parts: BTreeMap<PathBuf, Part>,
    /// The functions in it.
    functions: FxHashSet<String>,
    /// What instrumented code asks for, and what it defines itself.
    asked_for: FxHashSet<String>,
    defined: FxHashSet<String>,
    /// Who asked, in order.
    asking: Vec<(PathBuf, Vec<String>)>,
    /// Functions whose address is taken where they are not defined.
    taken: FxHashSet<String>,
}

impl Found {
    /// Takes note of an object file, which linkers find by one of `patterns`.
    fn add(
        &mut self,
        path: &Path,
        name: &str,
        patterns: impl IntoIterator<Item = String>,
        symbols: Symbols,
    ) {
        let is_elsewhere = |name: &&String| !symbols.defined.contains(*name);
        self.taken.extend(symbols.taken.iter().filter(is_elsewhere).cloned());
        if symbols.is_instrumented {
            self.asked_for.extend(symbols.undefined.iter().cloned());
            self.asking.push((path.to_owned(), symbols.undefined));
            self.defined.extend(symbols.defined);
            return;
        }
        if !symbols.has_code {
            return;
        }
        let new = || Part { name: name.to_owned(), patterns: Vec::new(), orders_threads: false };
        let part = self.parts.entry(path.to_owned()).or_insert_with(new);
        part.orders_threads |= symbols.orders_threads();
        part.patterns.extend(patterns);
        self.functions.extend(symbols.functions);
    }
}

impl StaticCode {
    /// What a linker with these arguments is given. `is_intercepted` says which functions the runtime
    /// stands before.
    pub(super) fn new(arguments: &[OsString], is_intercepted: impl Fn(&str) -> bool) -> Self {
        let found = Self::search(arguments);
        let is_plain = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
        };
        let calls = found.asked_for.iter().filter(|&name| {
            found.functions.contains(name)
                && !found.defined.contains(name)
                // A function has one address for all, which must not be that of the slot.
                && !found.taken.contains(name)
                && is_plain(name)
                && !OWN.iter().any(|start| name.starts_with(start))
                && !is_intercepted(name)
                && !is_wrapped(arguments, name)
        });
        let calls: BTreeSet<String> = calls.cloned().collect();
        let parts = if calls.is_empty() { Vec::new() } else { found.parts.into_values().collect() };
        let asks = |(_, names): &&(PathBuf, Vec<String>)| names.iter().any(|it| calls.contains(it));
        let first_asking = found.asking.iter().find(asks).map(|(path, _)| path.into());
        Self { parts, calls, first_asking }
    }

    fn search(arguments: &[OsString]) -> Found {
        let mut found = Found::default();
        for path in inputs(arguments) {
            let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
            let Some(given) = path.to_str() else { continue };
            // A linker that searched for it may write its folder in another way.
            let is_given = arguments.iter().any(|argument| argument == given);
            let shown =
                if is_given { plain(given, '?') } else { format!("*/{}", plain(name, '?')) };
            let is_start = STARTS.iter().any(|end| name.ends_with(end));
            let comes_along = name.starts_with("crtbegin") || name.starts_with("crtend");
            let is_system = SYSTEM.iter().any(|start| name.starts_with(start));
            if is_start || comes_along || is_system {
                continue;
            }
            let Ok(file) = fs::read(&path) else { continue };
            if let Ok(archive) = ArchiveFile::parse(&*file) {
                for member in archive.members().filter_map(Result::ok) {
                    let Ok(member_name) = str::from_utf8(member.name()) else { continue };
                    // A thin archive only names the files that lie beside it.
                    let symbols = if member.is_thin() {
                        let beside = path.with_file_name("").join(member_name);
                        fs::read(beside).ok().and_then(|file| Symbols::new(&file))
                    } else {
                        member.data(&*file).ok().and_then(Symbols::new)
                    };
                    let Some(symbols) = symbols else { continue };
                    let last = plain(member_name.rsplit('/').next().unwrap_or_default(), '?');
                    let mut patterns = vec![format!("{shown}:{last}")];
                    // Linkers show where such a file lies.
                    patterns.extend(member.is_thin().then(|| format!("{shown}:*/{last}")));
                    found.add(&path, name, patterns, symbols);
                }
            } else if let Some(symbols) = Symbols::new(&file) {
                // What is named without a wildcard would be linked before all others.
                let (start, last) = shown.split_at(shown.len() - 1);
                found.add(&path, name, [format!("{start}[{last}]")], symbols);
            }
        }
        found
    }

    /// Whether a linker with these arguments may be given such code, as far as files are there now.
    pub(super) fn may_be_in(arguments: &[OsString]) -> bool {
        !Self::search(arguments).parts.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The names of what is not instrumented.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &*part.name)
    }

    /// Makes in `folder` what a linker needs to send calls through slots; says its arguments.
    pub(super) fn prepare(&self, folder: &Path, is_library: bool) -> io::Result<Vec<OsString>> {
        let [source, file, script] =
            ["slots.s", "slots.o", "sections.ld"].map(|name| folder.join(name));
        fs::write(&source, self.assembly(is_library))?;
        fs::write(&script, self.script())?;
        let mut assembler = Command::new("as");
        assembler.arg("--64").arg("-o").arg(&file).arg(&source).stdin(Stdio::null());
        let output = assembler.output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        // Names may be more than a command line can have.
        let wrapped: Vec<String> = self.calls.iter().map(|it| format!("--wrap={it}\n")).collect();
        let list = folder.join("wrapped");
        fs::write(&list, wrapped.concat())?;
        let mut response = OsString::from("@");
        response.push(list);
        Ok(vec![file.into(), "-T".into(), script.into(), response])
    }

    /// Keeps the code of each part together.
    fn script(&self) -> String {
        let mut sections = String::new();
        for (number, part) in self.parts.iter().enumerate() {
            let patterns = part.patterns.iter();
            let patterns: Vec<String> =
                patterns.map(|pattern| format!("{pattern}(.text .text.*)")).collect();
            _ = writeln!(
                sections,
                "  {STATIC_LIBRARY_SECTION}{} : {{\n    HIDDEN(__reweave_part{number} = .);\n    {}\n    HIDDEN(__reweave_part{number}_end = .);\n  }}",
                plain(&part.name, '_'),
                patterns.join("\n    "),
            );
        }
        format!("SECTIONS {{\n{sections}}}\nINSERT AFTER .text;\n")
    }

    /// A stub for each call, that goes where its slot says, and the tables for the runtime.
    fn assembly(&self, is_library: bool) -> String {
        let mut code = String::from("\t.text\n");
        let mut slots =
            String::from("\t.section .data.reweave_slots,\"aw\"\n\t.balign 8\n.Lcalls:\n");
        let mut names = String::from("\t.section .rodata.reweave_names,\"a\"\n");
        for (number, name) in self.calls.iter().enumerate() {
            _ = write!(
                code,
                "\t.globl \"__wrap_{name}\"\n\t.hidden \"__wrap_{name}\"\n\t.type \"__wrap_{name}\",@function\n\"__wrap_{name}\":\n\t.cfi_startproc\n\tendbr64\n\tjmp *.Lslot{number}(%rip)\n\t.cfi_endproc\n\t.size \"__wrap_{name}\",.-\"__wrap_{name}\"\n"
            );
            _ = write!(slots, ".Lslot{number}:\n\t.quad \"__real_{name}\", .Lname{number}\n");
            _ = write!(names, ".Lname{number}:\n\t.string \"{name}\"\n");
        }
        slots.push_str(".Lcalls_end:\n.Lparts:\n");
        for (number, part) in self.parts.iter().enumerate() {
            let orders = u8::from(part.orders_threads);
            _ = write!(
                slots,
                "\t.hidden __reweave_part{number}, __reweave_part{number}_end\n\t.quad __reweave_part{number}, __reweave_part{number}_end, .Lpart{number}, {orders}\n"
            );
            let name = plain(&part.name, '_');
            _ = write!(names, ".Lpart{number}:\n\t.string \"{name}\"\n");
        }
        slots.push_str(
            ".Lparts_end:\n.Ltables:\n\t.quad 0, .Lparts, .Lparts_end, .Lcalls, .Lcalls_end\n",
        );
        for (label, function) in
            [("start", "__reweave_static_code"), ("end", "__reweave_static_code_gone")]
        {
            _ = write!(
                code,
                ".L{label}:\n\tendbr64\n\tleaq .Ltables(%rip), %rdi\n\tjmp *{function}@GOTPCREL(%rip)\n"
            );
        }
        // The runtime should know before any other constructor runs.
        let arrays = if is_library {
            "\t.section .fini_array,\"aw\",@fini_array\n\t.balign 8\n\t.quad .Lend\n\t.section .init_array.00001,\"aw\",@init_array\n"
        } else {
            "\t.section .preinit_array,\"aw\",@preinit_array\n"
        };
        format!(
            "{code}{slots}{names}{arrays}\t.balign 8\n\t.quad .Lstart\n\t.section .note.GNU-stack,\"\",@progbits\n"
        )
    }
}

/// Whether the user has the linker wrap the function `name`.
fn is_wrapped(arguments: &[OsString], name: &str) -> bool {
    let wraps = |at: usize| match arguments[at].to_str() {
        Some("--wrap" | "-wrap") => arguments.get(at + 1).is_some_and(|next| next == name),
        Some(word) => word.trim_start_matches('-').strip_prefix("wrap=") == Some(name),
        None => false,
    };
    (0..arguments.len()).any(wraps)
}

/// Options of linkers that take the next argument.
const WITH_ARGUMENT: [&str; 20] = [
    "-o",
    "-m",
    "-z",
    "-e",
    "-u",
    "-y",
    "-h",
    "-T",
    "-R",
    "-rpath",
    "--rpath",
    "-rpath-link",
    "-soname",
    "-dynamic-linker",
    "--dynamic-linker",
    "-plugin",
    "-Map",
    "--version-script",
    "-f",
    "--wrap",
];

/// The object files and static libraries among what a linker with these arguments is given.
fn inputs(arguments: &[OsString]) -> Vec<PathBuf> {
    let folders = folders(arguments);
    let mut inputs = Vec::new();
    let mut is_static = vec![false];
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_encoded_bytes();
        let current = is_static.len() - 1;
        match bytes {
            b"-Bstatic" | b"-dn" | b"-non_shared" | b"-static" => is_static[current] = true,
            b"-Bdynamic" | b"-dy" | b"-call_shared" => is_static[current] = false,
            b"--push-state" => is_static.push(is_static[current]),
            b"--pop-state" if current > 0 => _ = is_static.pop(),
            b"-l" | b"-L" => {
                let next = rest.next();
                if let Some(name) = next.filter(|_| bytes == b"-l") {
                    inputs.extend(library(name.as_encoded_bytes(), &folders, is_static[current]));
                }
            }
            [b'-', b'l', name @ ..] => inputs.extend(library(name, &folders, is_static[current])),
            [b'-', ..] => {
                if WITH_ARGUMENT.iter().any(|option| argument == option) {
                    rest.next();
                }
            }
            _ => inputs.push(PathBuf::from(argument)),
        }
    }
    inputs
}

/// Where libraries are looked for.
fn folders(arguments: &[OsString]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_encoded_bytes() {
            b"-L" => folders.extend(rest.next().map(PathBuf::from)),
            [b'-', b'L', path @ ..] => folders.push(PathBuf::from(OsStr::from_bytes(path))),
            _ => {}
        }
    }
    folders.extend(["/lib", "/usr/lib"].map(PathBuf::from));
    folders
}

/// The static library that `-l` with `name` leads to, if it is one.
fn library(name: &[u8], folders: &[PathBuf], is_static: bool) -> Option<PathBuf> {
    let name = OsStr::from_bytes(name).to_str()?;
    if let Some(file) = name.strip_prefix(':') {
        let found = folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file());
        return found.filter(|path| path.extension().is_some_and(|extension| extension == "a"));
    }
    for folder in folders {
        if !is_static && folder.join(format!("lib{name}.so")).is_file() {
            return None;
        }
        let path = folder.join(format!("lib{name}.a"));
        if path.is_file() {
            return Some(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_inputs(folder: &Path, line: &str, expected: &[&str]) {
        let line = line.replace("DIR", &folder.display().to_string());
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let expected: Vec<PathBuf> = expected
            .iter()
            .map(|path| PathBuf::from(path.replace("DIR", &folder.display().to_string())))
            .collect();
        assert_eq!(inputs(&arguments), expected, "{line}");
    }

    #[test]
    fn inputs_are_found_as_linkers_find_them() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libboth.a", "libboth.so", "libonly.a", "named.a"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let check = |line: &str, expected: &[&str]| check_inputs(folder.path(), line, expected);
        check("-o out a.o x/b.a -z now", &["a.o", "x/b.a"]);
        check("-LDIR -lonly -lboth -lmissing", &["DIR/libonly.a"]);
        check("-lonly -L DIR", &["DIR/libonly.a"]);
        check("-LDIR -l both -Bstatic -lboth -Bdynamic -lboth", &["DIR/libboth.a"]);
        check(
            "-LDIR --push-state -Bstatic -l both --pop-state -lboth -l:named.a -l:libboth.so",
            &["DIR/libboth.a", "DIR/named.a"],
        );
        check("--pop-state -dynamic-linker /lib/ld.so -rpath a.o -plugin p.so", &[]);
    }

    #[test]
    fn what_the_user_wraps_is_the_users() {
        let arguments = ["--wrap", "a", "-wrap=b", "--wrap=c"].map(OsString::from);
        for (name, expected) in [("a", true), ("b", true), ("c", true), ("d", false)] {
            assert_eq!(is_wrapped(&arguments, name), expected, "{name}");
        }
    }

    #[test]
    fn calls_are_told_from_addresses() {
        let flags = |r_type| RelocationFlags::Elf { r_type };
        let bytes = [0xe8, 0, 0, 0, 0, 0xff, 0x15, 0, 0, 0, 0, 0x48, 0x8d, 0x05, 0, 0, 0, 0];
        assert!(is_call(&bytes, 1, flags(elf::R_X86_64_PLT32)));
        assert!(is_call(&bytes, 1, flags(elf::R_X86_64_PC32)));
        assert!(is_call(&bytes, 7, flags(elf::R_X86_64_GOTPCRELX)));
        assert!(!is_call(&bytes, 14, flags(elf::R_X86_64_PC32)));
        assert!(!is_call(&bytes, 14, flags(elf::R_X86_64_REX_GOTPCRELX)));
        assert!(!is_call(&bytes, 0, flags(elf::R_X86_64_64)));
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path.into_os_string()
        };
        let arguments = [
            file("empty.o", b""),
            file("text.o", b"INPUT(libc.so.6)"),
            file("cut.a", b"!<arch>\nnot an archive"),
            file("cut.o", &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]),
            folder.path().join("missing.o").into_os_string(),
        ];
        assert!(StaticCode::new(&arguments, |_| false).is_empty());
        assert!(!StaticCode::may_be_in(&arguments));
    }
}
