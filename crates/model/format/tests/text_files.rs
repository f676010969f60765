//! Files as a whole: what they are taken for, compression, damage, size, replacement.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use expect_test::expect;
use reweave_format::{
    Compression, Format, ReadErrorKind, ReadOptions, Reading, read, read_from, write, write_to,
};
use reweave_trace::{AccessOp, Op, Trace, TraceBuilder};

const STD: &str = "T1|w(x)|a.c:1\nT2|r(x)|b.c:2|5\n";

fn take(bytes: &[u8]) -> Reading {
    read_from(bytes, "a", &ReadOptions::default()).unwrap()
}

fn repair(bytes: &[u8]) -> Reading {
    read_from(bytes, "a", &ReadOptions { repair: true, go_on: None }).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    read_from(bytes, "a", &ReadOptions::default()).unwrap_err().to_string()
}

fn written(trace: &Trace, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_to(trace, &mut bytes, format).unwrap();
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

/// More lines than one block of a compressed stream holds.
fn long_text() -> String {
    let mut rng = reweave_base::Rng::new(3);
    (0..20_000).map(|line| format!("T{}|w(x{})|{line}\n", rng.below(4), rng.next())).collect()
}

#[test]
fn the_format_is_told_from_the_content() {
    let events = take(STD.as_bytes()).trace;
    for format in [Format::Std, Format::Columns, Format::JsonLines, Format::Rwt] {
        let bytes = written(&events, format);
        let reading = take(&bytes);
        assert_eq!((reading.format, reading.compression), (format, None));
        assert!(reading.trace == events, "{format:?}");
        let packed = [(gzip(&bytes), Compression::Gzip), (zstd(&bytes), Compression::Zstd)];
        for (packed, compression) in packed {
            let reading = take(&packed);
            assert_eq!((reading.format, reading.compression), (format, Some(compression)));
            assert!(reading.trace == events, "{format:?} {compression:?}");
        }
    }
}

#[test]
fn comments_blank_lines_and_a_byte_order_mark_do_not_hide_the_format() {
    let heads = ["\n# a | b\n  # {\n", "\u{feff}", "\u{feff}# a\n\n", "\r\n"];
    for (text, format) in [
        ("T1|w(x)|1\n", Format::Std),
        ("T1  T2\nw(x)\n", Format::Columns),
        ("{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\"}\n", Format::JsonLines),
    ] {
        for head in heads {
            let reading = take(format!("{head}{text}").as_bytes());
            assert_eq!((reading.format, reading.trace.len()), (format, 1), "{head:?}");
            let first = reading.trace.spell(reading.trace.numbered(1).unwrap());
            assert_eq!(first, "T1|w(x)", "{head:?}");
        }
    }
    // A comment longer than any buffer.
    let comments = "# nothing to see here\n".repeat(100_000);
    assert_eq!(take(format!("{comments}{STD}").as_bytes()).trace.len(), 2);
}

#[test]
fn carriage_returns_before_line_feeds_are_no_part_of_the_text() {
    let reading = take(STD.replace('\n', "\r\n").as_bytes());
    assert_eq!(written(&reading.trace, Format::Std), STD.as_bytes());
}

#[test]
fn a_beginning_of_the_binary_format_is_a_file_that_was_cut() {
    let bytes = written(&take(STD.as_bytes()).trace, Format::Rwt);
    for length in 1..8 {
        let error = read_from(&bytes[..length], "a", &ReadOptions::default()).unwrap_err();
        assert!(!matches!(error.kind, ReadErrorKind::Unrecognised(_)), "{error}");
    }
}

#[test]
fn what_is_compressed_twice_is_read_and_what_is_thrice_is_not() {
    let twice = gzip(&zstd(STD.as_bytes()));
    let reading = take(&twice);
    assert_eq!((reading.trace.len(), reading.compression), (2, Some(Compression::Gzip)));
    expect!["a: not a trace in a known format: it is compressed more than 2 times over"]
        .assert_eq(&refusal(&zstd(&twice)));
    // Streams end to end are one file, as the tools that make them see it.
    let joined = [gzip(STD.as_bytes()), gzip(b"T1|w(y)|3\n")].concat();
    assert_eq!(take(&joined).trace.len(), 3);
    expect!["a: the file is empty: expected a trace"].assert_eq(&refusal(&gzip(b"")));
}

/// `text` with `N` for every number: where blocks end is the compressor's own affair.
fn without_numbers(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_digit());
    words
        .map(|word| match word.trim_start_matches(|c: char| c.is_ascii_digit()) {
            rest if rest.len() < word.len() => format!("N{rest}"),
            rest => rest.to_owned(),
        })
        .collect()
}

#[test]
fn a_broken_stream_is_refused_and_its_whole_lines_are_kept_in_repair() {
    let text = long_text();
    for (packed, ends_early, damaged) in [
        (
            gzip(text.as_bytes()),
            expect![
                "a: line N: the gzip stream ends early; N events before it are whole: `--repair` keeps them"
            ],
            expect![
                "a: line N: the gzip stream is damaged (corrupt gzip stream does not have a matching checksum); N events before it are whole: `--repair` keeps them"
            ],
        ),
        (
            zstd(text.as_bytes()),
            expect![
                "a: line N: the zstd stream ends early; N events before it are whole: `--repair` keeps them"
            ],
            expect![
                "a: line N: the zstd stream is damaged (Data corruption detected); N events before it are whole: `--repair` keeps them"
            ],
        ),
    ] {
        let cut = &packed[..packed.len() - 3];
        ends_early.assert_eq(&without_numbers(&refusal(cut)));
        let kept = repair(cut);
        assert!(text.as_bytes().starts_with(&written(&kept.trace, Format::Std)));
        assert_eq!(kept.notes.len(), 1, "{:?}", kept.notes);
        // The checksum of the one, a block of the other.
        let mut changed = packed.clone();
        let length = changed.len();
        changed[length - 8..].fill(0xff);
        damaged.assert_eq(&without_numbers(&refusal(&changed)));
    }
}

#[test]
fn no_cut_of_a_compressed_text_makes_it_panic() {
    for packed in [gzip(STD.as_bytes()), zstd(STD.as_bytes())] {
        // A single byte can be the start of anything.
        for length in 2..packed.len() {
            let refused = read_from(&packed[..length], "a", &ReadOptions::default()).is_err();
            assert!(refused, "{length} of {} bytes", packed.len());
            let options = ReadOptions { repair: true, go_on: None };
            if let Ok(reading) = read_from(&packed[..length], "a", &options) {
                assert!(STD.as_bytes().starts_with(&written(&reading.trace, Format::Std)));
            }
        }
    }
}

/// Gives `remaining` bytes and counts those that were asked for.
struct Endless<'a> {
    byte: u8,
    remaining: u64,
    given: &'a Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.remaining.min(buffer.len() as u64) as usize;
        buffer[..count].fill(self.byte);
        self.remaining -= count as u64;
        self.given.set(self.given.get() + count as u64);
        Ok(count)
    }
}

#[test]
fn a_line_of_a_gibibyte_is_refused_without_reading_it() {
    for (head, byte, message) in [
        ("", b'a', expect!["a: line 1: the line is longer than 1048576 bytes"]),
        ("T1|w(x)|1\n", b' ', expect!["a: line 2: the line is longer than 1048576 bytes"]),
        (
            "T1|w(x)|1\n",
            0,
            expect!["a: line 2: expected text, found a zero byte: the file is binary or damaged"],
        ),
    ] {
        let given = Cell::new(0);
        let endless = Endless { byte, remaining: 1 << 30, given: &given };
        let source = head.as_bytes().chain(endless);
        let error = read_from(source, "a", &ReadOptions::default()).unwrap_err();
        message.assert_eq(&error.to_string());
        assert!(given.get() < 8 << 20, "{} bytes were read", given.get());
    }
}

#[test]
fn a_line_of_the_greatest_length_is_read_and_written() {
    let longest = format!("T1|w(x)|{}", "a".repeat((1 << 20) - "T1|w(x)|".len()));
    for end in ["", "\n", "\r\n", "\nT1|w(x)|2\n"] {
        assert!(!take(format!("{longest}{end}").as_bytes()).trace.is_empty());
    }
    expect!["a: line 1: the line is longer than 1048576 bytes"]
        .assert_eq(&refusal(format!("{longest}a\n").as_bytes()));
    let mut builder = TraceBuilder::new();
    let (thread, var) = (builder.thread("T1"), builder.var("x"));
    let site = builder.site(&"a".repeat(1 << 20));
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    let trace = builder.finish().unwrap();
    for format in [Format::Std, Format::Columns, Format::JsonLines] {
        let error = write_to(&trace, &mut Vec::new(), format).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{format:?}");
    }
}

#[test]
fn reading_stops_when_told_and_counts_the_bytes_of_the_file() {
    let text = "T1|w(x)|1\n".repeat(1 << 20);
    let packed = gzip(text.as_bytes());
    for bytes in [text.as_bytes(), &packed] {
        let file_length = bytes.len() as u64;
        let stop = |taken: u64| {
            assert!(taken <= file_length);
            false
        };
        let options = ReadOptions { repair: true, go_on: Some(&stop) };
        let error = read_from(bytes, "a", &options).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::Interrupted), "{error}");
    }
}

#[test]
fn an_error_of_the_system_is_not_repaired_away() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let options = ReadOptions { repair: true, go_on: None };
    let plain = read_from(STD.as_bytes().chain(Failing), "a", &options).unwrap_err();
    assert!(matches!(plain.kind, ReadErrorKind::Io(_)), "{plain}");
    let packed = gzip(long_text().as_bytes());
    let packed = read_from(packed[..4_000].chain(Failing), "a", &options).unwrap_err();
    assert!(matches!(packed.kind, ReadErrorKind::Io(_)), "{packed}");
}

#[test]
fn a_missing_file_and_a_directory_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let said = |path: &Path| {
        let error = read(path, &ReadOptions::default()).unwrap_err().to_string();
        error.replace(&directory.path().display().to_string(), "DIR")
    };
    expect!["DIR/none.std: No such file or directory (os error 2)"]
        .assert_eq(&said(&directory.path().join("none.std")));
    expect!["DIR: expected a file with a trace, found a directory"]
        .assert_eq(&said(directory.path()));
}

#[test]
fn a_file_is_written_whole_with_its_compression() {
    let directory = tempfile::tempdir().unwrap();
    let trace = take(STD.as_bytes()).trace;
    for compression in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
        let path = directory.path().join("a.std");
        write(&trace, &path, Format::Std, compression).unwrap();
        let reading = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!(reading.compression, compression);
        assert!(reading.trace == trace);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.std");
    fs::write(&path, "as it was").unwrap();
    let mut builder = TraceBuilder::new();
    let (thread, odd, var) = (builder.thread("T1"), builder.thread("a|b"), builder.var("x"));
    let site = builder.site("1");
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    builder.push(odd, Op::Access(AccessOp::Write, var), site);
    let trace = builder.finish().unwrap();
    for compression in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
        let error = write(&trace, &path, Format::Std, compression).unwrap_err();
        let said = error.to_string().replace(&directory.path().display().to_string(), "DIR");
        let expected = "DIR/a.std: event 2: RAPID text cannot carry the thread `a|b`: it holds `|`";
        assert_eq!(said, expected);
    }
    assert_eq!(fs::read(&path).unwrap(), b"as it was");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let said = |path: &Path| {
        let error = write(&take(STD.as_bytes()).trace, path, Format::Std, None).unwrap_err();
        error.to_string().replace(&directory.path().display().to_string(), "DIR")
    };
    expect!["DIR: expected a file, found a directory"].assert_eq(&said(directory.path()));
    expect!["DIR/none/a.std: there is no folder `DIR/none`"]
        .assert_eq(&said(&directory.path().join("none").join("a.std")));
}

#[cfg(unix)]
#[test]
fn permissions_links_and_devices_stay_what_they_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let trace = take(STD.as_bytes()).trace;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let ordinary = directory.path().join("ordinary");
    fs::write(&ordinary, "").unwrap();
    let path = directory.path().join("a.std");
    write(&trace, &path, Format::Std, None).unwrap();
    assert_eq!(mode(&path), mode(&ordinary));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = directory.path().join("link.std");
    symlink(&path, &link).unwrap();
    write(&trace, &link, Format::JsonLines, None).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(mode(&path), 0o640);
    assert_eq!(read(&path, &ReadOptions::default()).unwrap().format, Format::JsonLines);
    write(&trace, Path::new("/dev/null"), Format::Std, None).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}
