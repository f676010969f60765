//! Names for addresses: maps, object files, symbols.

use std::fs;
use std::path::{Path, PathBuf};

use reweave_record::locks::LockRecognizer;
use reweave_record::symbols::{Symbols, demangle};
use reweave_record::wire::{Event, Kind};
use tempfile::TempDir;

/// How many addresses of an object file are looked up.
const PROBES: u64 = 24;

/// A symbol may be unpacked to so many times its length, and this many characters more.
const LENGTH_FACTOR: usize = 1 << 10;

/// Reads `bytes` as the text of a map behind a line that is one.
pub fn check_maps(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = format!("1000-2000 rw-p 00000000 08:01 1 /nowhere/at/all\n{text}");
    let mut symbols = Symbols::new(Path::new("/nowhere"));
    symbols.add_map(0, &text);
    symbols.add_map(1, &text);
    let mut addresses = vec![0, 1, 0x1000, 0x1fff, u64::MAX];
    for line in text.lines().take(64) {
        let bounds = line.trim_start().split([' ', '-']).take(2);
        let bounds = bounds.filter_map(|bound| u64::from_str_radix(bound, 16).ok());
        addresses.extend(bounds.flat_map(|bound| [bound, bound.wrapping_sub(1)]));
    }
    check_addresses(&mut symbols, &addresses);
    symbols.select(7);
    check_addresses(&mut symbols, &addresses);
}

/// Every address has some text, and nothing that is asked fails.
fn check_addresses(symbols: &mut Symbols, addresses: &[u64]) {
    for &address in addresses {
        assert!(!symbols.frames(address).is_empty());
        assert!(!symbols.location(address).is_empty());
        assert!(!symbols.site(address, addresses).is_empty());
        if let Some((name, offset)) = symbols.data(address)
            && let Some(start) = symbols.address_of(&name)
        {
            assert!(symbols.data(start).is_some(), "{name} is {offset} before {address}");
        }
        if let Some(path) = symbols.origin(address).map(|(path, _)| path.to_owned()) {
            symbols.build_id(&path);
        }
    }
}

thread_local! {
    /// A folder for files that are read back at once: making one each time takes longer.
    static FOLDER: TempDir = TempDir::new().expect("there is room for temporary files");
}

/// A file with `contents`, which are those of the last call.
pub(super) fn file_with(name: &str, contents: &[u8]) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    fs::write(&path, contents).expect("a temporary file can be written");
    path
}

/// Reads `bytes` as a file of code and data that was mapped.
pub fn check_object(bytes: &[u8]) {
    let path = file_with("object", bytes);
    let path = path.display();
    let text = format!(
        "10000-20000 r-xp 00000000 08:01 1 {path}\n\
         20000-30000 rw-p 00001000 08:01 1 {path}\n\
         30000-40000 rw-p 00000000 00:00 0\n"
    );
    let mut symbols = Symbols::new(Path::new("/nowhere"));
    symbols.add_map(0, &text);
    let step = (bytes.len() as u64 / PROBES).max(1);
    let mut addresses: Vec<u64> = (0..PROBES).map(|place| 0x10000 + place * step).collect();
    addresses.extend([0x11001, 0x12000, 0x20000, 0x21008, 0x30000, 0x30018]);
    check_addresses(&mut symbols, &addresses);
    let mut recognizer = LockRecognizer::default();
    for address in addresses {
        let event = Event::new(Kind::ReadRange, 0x20000, address);
        let mut count = 0;
        recognizer.rewrite(&mut symbols, 1, event, &mut |_, _| count += 1);
        assert_eq!(count, 1);
    }
}

/// Makes `bytes` readable as a symbol of C, C++ or Rust.
pub fn check_symbol(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for start in ["", "_ZN", "_R", "_ZN1aIXsr"] {
        let symbol = format!("{start}{text}");
        let readable = demangle(&symbol);
        assert!(!readable.contains(['|', '\n']), "{readable:?}");
        assert!(readable.len() <= LENGTH_FACTOR * (symbol.len() + 1), "{}", readable.len());
    }
}
