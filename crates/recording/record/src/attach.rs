//! How the runtime gets into a program.
//!
//! A program that was built with `reweave cc` brings it. One that was built with `-fsanitize=thread`
//! and finds the sanitizer's own library when it is loaded is given ours under that name. Any other
//! is made to load ours first: its accesses to memory are not seen then, its locks and threads are.
//! So is a script, or whatever else starts the program in the end: each of these ways does no harm
//! where another one applies.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _, elf};

use crate::install::Runtime;
use crate::toolchain::found;

/// How the runtime gets into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// It was built with it.
    Linked,
    /// It stands in for the sanitizer's library.
    Swapped,
    /// It is loaded before everything else.
    Preloaded,
    /// It cannot: the program is static and was built without it.
    None,
    /// It cannot: the program has the sanitizer's own runtime inside.
    Occupied,
}

/// A symbol that only our runtime defines.
const MARK: &[u8] = b"reweave_atomic_begin";
/// A symbol that every runtime of the sanitizer defines.
const SANITIZER_MARK: &[u8] = b"__tsan_init";

/// Makes `command` load the runtime, and says how.
pub fn attach(command: &mut Command, runtime: &Runtime) -> Attachment {
    let program = found(Path::new(command.get_program()));
    let attachment = program.as_deref().map_or(Attachment::Preloaded, of_file);
    match attachment {
        Attachment::Linked | Attachment::None | Attachment::Occupied => {}
        Attachment::Swapped => prepend(command, "LD_LIBRARY_PATH", &runtime.swap()),
        Attachment::Preloaded => {
            prepend(command, "LD_LIBRARY_PATH", &runtime.swap());
            prepend(command, "LD_PRELOAD", &runtime.shared());
        }
    }
    attachment
}

fn prepend(command: &mut Command, variable: &str, path: &Path) {
    let mut value = OsString::from(path);
    if let Some(before) = env::var_os(variable).filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    command.env(variable, value);
}

/// How the runtime gets into the program in the file `path`.
#[must_use]
pub fn of_file(path: &Path) -> Attachment {
    let Ok(bytes) = fs::read(path) else { return Attachment::Preloaded };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return Attachment::Preloaded };
    let needed = needed(&file);
    let needs = |name: &str| needed.iter().any(|it| it.starts_with(name.as_bytes()));
    let defines = |mark: &[u8]| {
        file.dynamic_symbols().chain(file.symbols()).any(|symbol| {
            symbol.is_definition() && symbol.name_bytes().is_ok_and(|name| name == mark)
        })
    };
    if needs("libreweave_rt.so") || defines(MARK) {
        Attachment::Linked
    } else if defines(SANITIZER_MARK) {
        Attachment::Occupied
    } else if needs("libtsan.so") {
        Attachment::Swapped
    } else if needed.is_empty() && file.elf_program_headers().iter().all(is_not_interpreter) {
        Attachment::None
    } else {
        Attachment::Preloaded
    }
}

fn is_not_interpreter(header: &elf::ProgramHeader64<Endianness>) -> bool {
    header.p_type.get(Endianness::Little) != elf::PT_INTERP
}

/// The libraries that a program asks for.
fn needed<'a>(file: &ElfFile64<'a, Endianness>) -> Vec<&'a [u8]> {
    let (header, data, endian) = (file.elf_header(), file.data(), file.endian());
    let Ok(sections) = header.sections(endian, data) else { return Vec::new() };
    let Ok(Some((entries, link))) = sections.dynamic(endian, data) else { return Vec::new() };
    let Ok(strings) = sections.strings(endian, data, link) else { return Vec::new() };
    let names = entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    names.filter_map(|entry| entry.string(endian, strings).ok()).collect()
}
