//! The corpus and generated traces through every format.
#![allow(clippy::unwrap_used, reason = "these functions are tests too")]

use std::path::PathBuf;

use proptest::prelude::*;
use reweave_format::{Format, ReadOptions, read_from, rwt, write_to};
use reweave_testkit::generate::{Shape, random};
use reweave_trace::{EventId, Trace};

/// Every text of the corpus, with its path.
fn texts() -> Vec<(PathBuf, Vec<u8>)> {
    let cases = reweave_testkit::corpus::litmus().into_iter();
    let cases = cases.chain(reweave_testkit::corpus::traces());
    cases.map(|case| (case.path.clone(), std::fs::read(&case.path).unwrap())).collect()
}

fn read(bytes: &[u8]) -> Trace {
    read_from(bytes, "corpus", &ReadOptions::default()).unwrap().trace
}

fn written(trace: &Trace, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_to(trace, &mut bytes, format).unwrap();
    bytes
}

#[test]
fn text_to_binary_to_text_is_byte_for_byte_the_same() {
    let texts = texts();
    assert!(texts.len() >= 56, "the corpus has gone missing");
    for (path, text) in texts {
        let trace = read(&text);
        let again = read(&written(&trace, Format::Rwt));
        assert!(again == trace, "{}", path.display());
        assert!(written(&again, Format::Std) == text, "{}", path.display());
    }
}

#[test]
fn other_formats_give_back_the_text_too() {
    for (path, text) in texts() {
        for format in [Format::JsonLines, Format::Columns] {
            let again = read(&written(&read(&text), format));
            assert!(written(&again, Format::Std) == text, "{format:?} {}", path.display());
        }
    }
}

#[test]
fn binary_takes_at_most_a_fifth_of_a_large_text() {
    let large = texts().into_iter().filter(|(_, text)| text.len() > 100_000);
    let mut count = 0;
    for (path, text) in large {
        count += 1;
        let binary = written(&read(&text), Format::Rwt);
        assert!(5 * binary.len() <= text.len(), "{}: {}", path.display(), binary.len());
    }
    assert!(count >= 3, "the corpus has three files of that size");
}

/// A trace written by several blocks, cut where `cuts` say, as a recorder would.
fn in_blocks(trace: &Trace, cuts: &[usize]) -> Vec<u8> {
    let mut writer = rwt::Writer::new(Vec::new()).unwrap();
    let mut start = 0;
    for end in cuts.iter().copied().chain([trace.len()]) {
        let end = end.clamp(start, trace.len());
        let value = |place: usize| {
            let number = (start + place + 1) as u32;
            trace.value(EventId::from_number(number).unwrap())
        };
        let columns = trace.columns().copied(start..end);
        let (names, declared) = (trace.names(), trace.declared());
        writer.block_with_origins(names, declared, &columns, Some(&value), None).unwrap();
        start = end;
    }
    writer.finish(trace.names(), trace.declared()).unwrap()
}

proptest! {
    #![proptest_config(reweave_testkit::soak::config(200))]

    #[test]
    fn binary_carries_every_trace(shape in 0..Shape::ALL.len(), seed: u64) {
        let trace = random(Shape::ALL[shape].1, seed);
        prop_assert!(read(&written(&trace, Format::Rwt)) == trace);
    }

    #[test]
    fn blocks_may_end_anywhere(
        shape in 0..Shape::ALL.len(),
        seed: u64,
        mut cuts in prop::collection::vec(0..30_usize, 0..5),
    ) {
        let trace = random(Shape::ALL[shape].1, seed);
        cuts.sort_unstable();
        prop_assert!(read(&in_blocks(&trace, &cuts)) == trace);
    }

    #[test]
    fn text_formats_carry_every_event(shape in 0..Shape::ALL.len(), seed: u64) {
        let trace = random(Shape::ALL[shape].1, seed);
        for format in [Format::Std, Format::Columns, Format::JsonLines] {
            let bytes = written(&trace, format);
            let again = read(&bytes);
            prop_assert_eq!(again.len(), trace.len());
            prop_assert!(written(&again, format) == bytes);
            prop_assert!(written(&again, Format::Std) == written(&trace, Format::Std));
        }
    }
}
