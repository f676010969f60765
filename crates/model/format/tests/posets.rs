//! Posets: told from traces, read whole, or refused with the place and the reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;

use expect_test::expect;
use proptest::prelude::*;
use reweave_format::{Input, RawPoset, ReadErrorKind, ReadOptions, read_from, read_input_from};

const CROSSED: &str = r#"{"n": 2, "events": [[0, [1, 0]], [1, [0, 1]], [0, [2, 1]], [1, [1, 2]]]}"#;

fn read(bytes: &[u8]) -> Result<Input, String> {
    read_input_from(bytes, "a", &ReadOptions::default()).map_err(|error| error.to_string())
}

#[track_caller]
fn poset(bytes: &[u8]) -> RawPoset {
    match read(bytes) {
        Ok(Input::Poset(poset)) => poset,
        other => panic!("expected a poset, found {other:?}"),
    }
}

#[test]
fn events_come_as_they_are_listed() {
    let poset = poset(CROSSED.as_bytes());
    let events: Vec<(usize, &[u32])> = poset.events().collect();
    let listed: [(usize, &[u32]); 4] = [(0, &[1, 0]), (1, &[0, 1]), (0, &[2, 1]), (1, &[1, 2])];
    assert_eq!((poset.chains_count(), poset.len()), (2, 4));
    assert_eq!(events, listed);
}

#[test]
fn keys_come_in_any_order_and_others_are_passed_over() {
    let expected = poset(CROSSED.as_bytes());
    let events = "[[0,[1,0]],[1,[0,1]],[0,[2,1]],[1,[1,2]]]";
    for text in [
        format!(r#"{{"events":{events},"n":2}}"#),
        format!(r#"{{"name":"a, \"b\" {{","n":2,"events":{events}}}"#),
        format!(
            "\u{feff} \n {{\n\"states\": [[{{\"n\":[7]}}]] ,\n\"events\"\n:\n{events},\"n\":2}}\n"
        ),
        format!(r#"{{"value":null,"events":{events},"start":1.5e9,"n":2,"x":-1}}"#),
    ] {
        assert_eq!(poset(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn a_poset_may_be_empty_or_have_no_threads() {
    let idle = poset(br#"{"n":7,"events":[]}"#);
    assert_eq!((idle.chains_count(), idle.events().len()), (7, 0));
    assert!(poset(br#"{"n":0,"events":[]}"#).is_empty());
}

#[test]
fn a_compressed_poset_is_read_as_it_is() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CROSSED.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(CROSSED.as_bytes(), 1).unwrap();
    assert_eq!(poset(&gzip), poset(&zstd));
    let cut = read(&gzip[..gzip.len() - 9]).unwrap_err();
    assert!(cut.contains("the gzip stream ends early"), "{cut}");
}

#[test]
fn an_object_with_the_keys_of_a_trace_starts_one() {
    for text in [
        r#"{"thread":"n","op":"w","on":"events"}"#,
        r#"{"location":"1","thread":"T1","op":"r","on":"x"}"#,
        r#"{"semaphore":"s","start":2}"#,
        r#"{"events":0}"#,
        "# a comment\n{\"events\":0}",
        "",
        "{",
        r#"{"m":1}"#,
        "{}",
    ] {
        assert!(!matches!(read(text.as_bytes()), Ok(Input::Poset(_))), "{text}");
        let plain = read_from(text.as_bytes(), "a", &ReadOptions::default());
        assert_eq!(plain.is_ok(), read(text.as_bytes()).is_ok(), "{text}");
    }
    assert!(matches!(read(b"T1|w(x)|1\n"), Ok(Input::Trace(_))));
}

#[test]
fn whoever_wants_a_trace_is_told_that_it_is_a_poset() {
    let error = read_from(CROSSED.as_bytes(), "a", &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.kind, ReadErrorKind::Poset));
    assert_eq!(
        error.to_string(),
        "a: expected a trace, found a poset, which has an order of events and no more: `reweave \
         states count` takes it"
    );
}

#[test]
fn what_has_not_the_shape_of_a_poset_is_refused_with_the_place() {
    let cases = [
        r#"{"n":2}"#,
        r#"{"events":[]}"#,
        r#"{"n":2,"n":2,"events":[]}"#,
        r#"{"n":2,"events":[],"events":[]}"#,
        r#"{"n":2,"events":[]} x"#,
        r#"{"n":2,"events":{}}"#,
        r#"{"n":-1,"events":[]}"#,
        r#"{"n":2.0,"events":[]}"#,
        r#"{"n":4294967296,"events":[]}"#,
        "{\"n\":2,\n\"events\":[[0,[1,0]],\n[1,[0]]]}",
        r#"{"events":[[0,[1]],[0,[2,1]]],"n":1}"#,
        r#"{"events":[[0,[1]]],"n":1000000}"#,
        r#"{"n":1,"events":[[]]}"#,
        r#"{"n":1,"events":[[0]]}"#,
        r#"{"n":1,"events":[[0,[1],5]]}"#,
        r#"{"n":1,"events":[[0,[-1]]]}"#,
        r#"{"n":1,"events":[[0,[1]],["a",[1]]]}"#,
        r#"{"n":1,"events":[[0,[1]],"#,
        r#"{"n":1,"#,
    ];
    let reasons: Vec<String> =
        cases.iter().map(|text| read(text.as_bytes()).unwrap_err() + "\n").collect();
    expect![[r#"
        a: line 1, column 7: missing field `events`
        a: line 1, column 13: missing field `n`
        a: line 1, column 11: duplicate field `n`
        a: line 1, column 28: duplicate field `events`
        a: line 1, column 21: trailing characters
        a: line 1, column 17: invalid type: map, expected a sequence
        a: line 1, column 8: invalid value: integer `-1`, expected a number from 0 to 4294967295
        a: line 1, column 9: invalid type: floating point `2.0`, expected a number from 0 to 4294967295
        a: line 1, column 16: invalid value: integer `4294967296`, expected a number from 0 to 4294967295
        a: event 2: expected a clock of 2 numbers, one per thread, found 1
        a: event 2: expected a clock of 1 numbers, one per thread, found 2
        a: event 1: expected a clock of 1000000 numbers, one per thread, found 1
        a: line 1, column 19: invalid length 0, expected an event: a list of a thread and a clock
        a: line 1, column 20: invalid length 1, expected an event: a list of a thread and a clock
        a: line 1, column 25: trailing characters
        a: line 1, column 24: invalid value: integer `-1`, expected a number from 0 to 4294967295
        a: line 1, column 29: invalid type: string "a", expected a number from 0 to 4294967295
        a: line 1, column 25: the text ends early, in a value
        a: line 1, column 7: the text ends early, in a value
    "#]]
    .assert_eq(&reasons.concat());
}

#[test]
fn deep_nesting_neither_overflows_the_stack_nor_is_believed() {
    let deep = "[".repeat(1 << 20);
    for text in [
        format!(r#"{{"n":1,"name":{deep}"#),
        format!(r#"{{"n":1,"events":{deep}"#),
        format!(r#"{{"n":{deep}"#),
        format!(r#"{{"n":1,"events":[],"name":{deep}{}}}"#, "]".repeat(1 << 20)),
    ] {
        // What is passed over may be of any depth.
        _ = read(text.as_bytes());
    }
}

#[test]
fn a_poset_longer_than_any_line_of_a_trace_is_read() {
    let count = 100_000;
    let events: Vec<String> = (1..=count).map(|index| format!("[0,[{index},0,0]]")).collect();
    let text = format!(r#"{{"name":"long","n":3,"events":[{}]}}"#, events.join(","));
    assert_eq!(poset(text.as_bytes()).len(), count);
}

#[test]
fn whoever_asked_can_stop_the_reading() {
    let events = vec!["[0,[1]]"; 1 << 19].join(",");
    let text = format!(r#"{{"n":1,"events":[{events}]}}"#);
    let options = ReadOptions { repair: false, go_on: Some(&|_| false) };
    let error = read_input_from(text.as_bytes(), "a", &options).unwrap_err();
    assert!(matches!(error.kind, ReadErrorKind::Interrupted), "{error}");
}

proptest! {
    #![proptest_config(reweave_testkit::soak::config(60))]

    #[test]
    fn a_file_cut_or_changed_anywhere_is_read_or_refused(at in 0..CROSSED.len(), byte: u8) {
        let mut bytes = CROSSED.as_bytes().to_vec();
        prop_assert!(read(&bytes[..at]).is_err());
        bytes[at] = byte;
        if let Ok(Input::Poset(poset)) = read(&bytes) {
            prop_assert!(poset.events().all(|(_, clock)| clock.len() == poset.chains_count()));
        }
    }
}
