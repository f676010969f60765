//! Which code of a program came compiled with the standard library.
//!
//! That code is not instrumented, and neither is what orders its threads. But it calls functions of
//! the C library, which are seen: to copy memory, to read and write files. What these access for it
//! would look unordered, so it must be told apart. Debug information has a unit for everything that
//! was compiled together. Those of the standard library have paths of the machine that it was built
//! on; of the rest of a Rust program every unit is there, since it was built to be recorded, so what
//! is in none is not the program's own either.
//!
//! The units of a file are read when one of its addresses is first asked for.

use std::fs;
use std::ops::Range;
use std::path::Path;

use addr2line::gimli::{self, AttributeValue, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use reweave_base::FxHashMap;

use crate::symbols::Symbols;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// What is known of the code of all files.
#[derive(Default)]
pub(super) struct Prebuilt {
    files: FxHashMap<String, Own>,
    known: FxHashMap<(u64, u64), bool>,
}

impl Prebuilt {
    /// Whether the call that returns to `code` is in code that came compiled.
    pub(super) fn holds(&mut self, symbols: &mut Symbols, code: u64) -> bool {
        let key = (symbols.selected(), code);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let answer = symbols.origin(code).is_some_and(|(path, offset)| {
            let own = match self.files.get(path) {
                Some(own) => own,
                None => {
                    let own = Own::read(Path::new(path)).unwrap_or_default();
                    self.files.entry(path.to_owned()).or_insert(own)
                }
            };
            own.is_rust && !own.contains(offset.saturating_sub(1))
        });
        self.known.insert(key, answer);
        answer
    }
}

/// The code of a file that is its own.
#[derive(Debug, Default)]
struct Own {
    is_rust: bool,
    /// Sorted by where they start.
    ranges: Vec<Range<u64>>,
}

impl Own {
    fn read(path: &Path) -> Option<Self> {
        // Devices can be mapped too, and some of them have no end.
        fs::metadata(path).ok()?.is_file().then_some(())?;
        let bytes = fs::read(path).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let section = |id: gimli::SectionId| {
            let section = object.section_by_name(id.name());
            let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok::<_, gimli::Error>(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        let mut own = Self::default();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = dwarf.unit(header) {
                own.add(&dwarf, &unit);
            }
        }
        own.ranges.sort_unstable_by_key(|range| range.start);
        Some(own)
    }

    fn add(&mut self, dwarf: &gimli::Dwarf<Slice<'_>>, unit: &gimli::Unit<Slice<'_>>) {
        let is_rust = is_rust(unit);
        self.is_rust |= is_rust;
        let name = unit.name.map(|name| name.to_string_lossy()).unwrap_or_default();
        if is_rust && came_compiled(&name) {
            return;
        }
        let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return };
        while let Ok(Some(range)) = ranges.next() {
            self.ranges.push(range.begin..range.end);
        }
    }

    fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= address);
        after > 0 && address < self.ranges[after - 1].end
    }
}

fn is_rust(unit: &gimli::Unit<Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else { return false };
    let language = root.attr_value(gimli::DW_AT_language);
    matches!(language, Some(AttributeValue::Language(gimli::DW_LANG_Rust)))
}

/// Whether a unit of this name is of the standard library as it comes. Where it is built with the
/// program its source is below `rustlib`.
fn came_compiled(unit: &str) -> bool {
    let is_of_project = ["/rustc/", "/rust/deps/"].iter().any(|start| unit.starts_with(start));
    let is_library = ["/library/std/", "/library/core/", "/library/alloc/"]
        .iter()
        .any(|part| unit.contains(part));
    is_of_project || is_library && !unit.contains("/rustlib/src/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_standard_library_are_known_by_their_names() {
        let check =
            |unit: &str, expected: bool| assert_eq!(came_compiled(unit), expected, "{unit}");
        check("/rustc/5980/library/std/src/lib.rs/@/std.e282-cgu.0", true);
        check("/rust/deps/memchr-2.7.6/src/lib.rs/@/memchr.9642-cgu.0", true);
        check("/usr/src/rustc-1.95/library/alloc/src/lib.rs/@/alloc.1-cgu.0", true);
        check("/src/me/lib/rustlib/src/rust/library/std/src/lib.rs/@/std.1-cgu.0", false);
        check("src/bin/library/main.rs/@/e3ool0vg3sqbvmw", false);
    }

    #[test]
    fn what_is_in_no_range_is_not_contained() {
        let own = Own { is_rust: true, ranges: vec![2..4, 4..6, 9..10] };
        let inside: Vec<u64> = (0..12).filter(|&address| own.contains(address)).collect();
        assert_eq!(inside, [2, 3, 4, 5, 9]);
        assert!(!Own::default().contains(0));
    }

    #[test]
    fn a_file_that_cannot_be_read_has_no_units() {
        assert!(Own::read(Path::new("/nowhere/at/all")).is_none());
    }

    #[test]
    fn a_device_without_an_end_is_not_read() {
        assert!(Own::read(Path::new("/dev/zero")).is_none());
    }
}
