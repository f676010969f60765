//! Every way in which a text is refused, with the message that says so.

use expect_test::{Expect, expect};
use reweave_format::{ReadOptions, read_from};

/// What the reader says of `text`: its error, or how many events it found and its notes.
#[track_caller]
fn check(text: impl AsRef<[u8]>, expected: Expect) {
    check_with(text.as_ref(), false, expected);
}

#[track_caller]
fn check_with(text: &[u8], repair: bool, expected: Expect) {
    let said = match read_from(text, "a", &ReadOptions { repair, go_on: None }) {
        Err(error) => error.to_string(),
        Ok(reading) => {
            let counted = format!("{:?}, {} events", reading.format, reading.trace.len());
            [vec![counted], reading.notes].concat().join("\n")
        }
    };
    expected.assert_eq(&said);
}

#[test]
fn files_without_a_trace_are_named_for_what_they_are() {
    check("", expect!["a: the file is empty: expected a trace"]);
    check(" \n\t\n\r\n", expect!["a: the file is empty: expected a trace"]);
    check("# nothing\n", expect!["Std, 0 events"]);
    check(
        b"\x7fELF\x02\x01\0\0",
        expect![[
            r#"a: not a trace in a known format: it is binary; expected RAPID text, columns, JSON lines or `.rwt`, found `\u{7f}ELF\u{2}\u{1}\u{0}\u{0}`"#
        ]],
    );
    check(
        b"\x89PNG\r\n\x1a\n",
        expect![
            "a: not a trace in a known format: it is not UTF-8 text; expected RAPID text, columns, JSON lines or `.rwt`, found `�PNG`"
        ],
    );
    check(
        b"caf\xe9\n",
        expect![
            "a: not a trace in a known format: it is not UTF-8 text; expected RAPID text, columns, JSON lines or `.rwt`, found `caf�`"
        ],
    );
    check(
        b"\xff\xfeT\x001\0",
        expect![[
            r#"a: not a trace in a known format: it is UTF-16, and text must be UTF-8; expected RAPID text, columns, JSON lines or `.rwt`, found `��T\u{0}1\u{0}`"#
        ]],
    );
    check(
        "\u{1b}[31mred\n",
        expect![[
            r#"a: not a trace in a known format: it holds control characters; expected RAPID text, columns, JSON lines or `.rwt`, found `\u{1b}[31mred`"#
        ]],
    );
    check(
        "to whom it may concern,\nw(x)\nhello\n",
        expect!["a: line 3: expected an operation such as `w(x)` or `acq(m)`, found `hello`"],
    );
    check(
        "to whom it may concern",
        expect![
            "a: not a trace in a known format: no line is an event, a JSON object, or below a heading of columns"
        ],
    );
}

#[test]
fn rapid_text_needs_its_fields() {
    check(
        "T1|w(x)|1\nT1 w(x) 2\n",
        expect!["a: line 2: expected `thread|operation|location`, found `T1 w(x) 2`"],
    );
    check(
        "T1|w(x)\n",
        expect!["a: line 1: expected `|` and a location after the operation, found `T1|w(x)`"],
    );
    check(
        "|w(x)|1\n",
        expect!["a: line 1: expected the name of a thread before the first `|`, found `|w(x)|1`"],
    );
    check(
        "  |w(x)|1\n",
        expect!["a: line 1: expected the name of a thread before the first `|`, found `  |w(x)|1`"],
    );
    check(
        "T1|w(x)|1|5|6\n",
        expect![
            "a: line 1: expected at most four fields, `thread|operation|location|value`, found 5: `T1|w(x)|1|5|6`"
        ],
    );
    check(
        "T1|w(x)|1|five\n",
        expect![
            "a: line 1: expected a whole number such as `5` or `-3`, without leading zeros, as the value, found `five`"
        ],
    );
    check(
        "T1|w(x)|1|\n",
        expect![
            "a: line 1: expected a whole number such as `5` or `-3`, without leading zeros, as the value, found ``"
        ],
    );
    check(
        "T1|w(x)|1|9223372036854775808\n",
        expect![
            "a: line 1: expected a whole number such as `5` or `-3`, without leading zeros, as the value, found `9223372036854775808`"
        ],
    );
    check(b"T1|w(x)|1\n\xff|w(x)|2\n", expect!["a: line 2: expected UTF-8 text"]);
    check(b"T1|w(x)|1\nT1|w(\xff)|2\n", expect!["a: line 2: expected UTF-8 text"]);
    check(b"T1|w(x)|1\nT1|w(x)|\xff\n", expect!["a: line 2: expected UTF-8 text"]);
    check(
        b"T1|w(x)|1\nT1|w(x)\0\0\0\n",
        expect![
            "a: line 2: expected text, found a zero byte after `T1|w(x)`: the file is binary or damaged"
        ],
    );
}

#[test]
fn operations_need_their_form() {
    check("T1|write(x)|1\n", expect!["a: line 1: expected `w(name)`, found `write(x)`"]);
    check("T1|w|1\n", expect!["a: line 1: expected `w(name)`, found `w`"]);
    check("T1|w(x|1\n", expect!["a: line 1: expected `w(name)`, found `w(x`"]);
    check(
        "T1| w(x)|1\n",
        expect!["a: line 1: expected an operation such as `w(x)` or `acq(m)`, found ` w(x)`"],
    );
    check("T1|w()|1\n", expect!["a: line 1: expected a name between the parentheses, found `w()`"]);
    check(
        "T1|fork()|1\n",
        expect!["a: line 1: expected a name between the parentheses, found `fork()`"],
    );
    check(
        "T1|fence()|1\n",
        expect![
            "a: line 1: expected `fence(order)` with a memory order, one of `seqcst`, `relaxed`, `acquire`, `release`, `acqrel`, found `fence()`"
        ],
    );
    check(
        "T1|fence|1\n",
        expect![
            "a: line 1: expected `fence(order)` with a memory order, one of `seqcst`, `relaxed`, `acquire`, `release`, `acqrel`, found `fence`"
        ],
    );
    check(
        "T1|fence.acquire(x)|1\n",
        expect![
            "a: line 1: expected `fence(order)` with a memory order, one of `seqcst`, `relaxed`, `acquire`, `release`, `acqrel`, found `fence.acquire(x)`"
        ],
    );
    check(
        "T1|ar.consume(x)|1\n",
        expect![
            "a: line 1: expected a memory order, one of `seqcst`, `relaxed`, `acquire`, `release`, `acqrel`, found `consume`"
        ],
    );
    check(
        "T1|w.acquire(x)|1\n",
        expect!["a: line 1: expected `w(name)`, which has no memory order, found `w.acquire(x)`"],
    );
    check("T1|branch(x)|1\n", expect!["a: line 1: expected `branch` alone, found `branch(x)`"]);
    check("T1|branch()|1\nT1|branch|1\n", expect!["Std, 2 events"]);
    check(
        format!("T1|{}\u{7}(x)|1\n", "é".repeat(300)),
        expect![
            "a: line 1: expected an operation such as `w(x)` or `acq(m)`, found `éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…`"
        ],
    );
    check(
        "T1|\u{7}(x)|1\n",
        expect![[
            r#"a: line 1: expected an operation such as `w(x)` or `acq(m)`, found `\u{7}(x)`"#
        ]],
    );
}

#[test]
fn words_of_other_tools_are_understood_enough_to_say_ours() {
    check("T1|write(x)|1\n", expect!["a: line 1: expected `w(name)`, found `write(x)`"]);
    check("T1|Lock(m)|1\n", expect!["a: line 1: expected `acq(name)`, found `Lock(m)`"]);
    check("T1|W(x)|1\n", expect!["a: line 1: expected `w(name)`, found `W(x)`"]);
    check("T1|w(x|1\n", expect!["a: line 1: expected `w(name)`, found `w(x`"]);
    check(
        "[{\"thread\":\"T1\"}]\n",
        expect![[
            r#"a: not a trace in a known format: it starts with `[`, where JSON lines have an object a line; expected RAPID text, columns, JSON lines or `.rwt`, found `[{"thread":"T1"}]`"#
        ]],
    );
}

#[test]
fn columns_need_a_heading_and_one_operation_a_line() {
    check(
        "t1  t2\nw(x)  w(x)\n",
        expect!["a: line 2: expected one operation per line, since their order would be ambiguous"],
    );
    check(
        "t1  t2\nw(x)  here\n",
        expect!["a: line 2: expected `@location` or `= value` after the operation, found `here`"],
    );
    check(
        "t1  t2\nhere w(x)\n",
        expect!["a: line 2: expected an operation such as `w(x)` or `acq(m)`, found `here`"],
    );
    check(
        "t1  t2\n\tw(x)\n",
        expect![
            "a: line 2: expected blanks before the operation, found a tabulator, which does not say in which column it stands"
        ],
    );
    check(
        "t1  t1\nw(x)\n",
        expect!["a: line 1: expected a column for each thread, found two of `t1`"],
    );
    check(
        "w(x)\nw(x)\n",
        expect![
            "a: line 1: expected the names of the threads on the first line, found the operation `w(x)`"
        ],
    );
    check(
        "t1\nw(x) @a = b\n",
        expect![
            "a: line 2: expected a whole number such as `5` or `-3`, without leading zeros, as the value, found `b`"
        ],
    );
    check(
        "t1\nw(x) =\n",
        expect![
            "a: line 2: expected a whole number such as `5` or `-3`, without leading zeros, as the value, found ``"
        ],
    );
    check(b"t1\nw(\xff)\n", expect!["a: line 2: expected UTF-8 text"]);
    check(
        "t1\n",
        expect![
            "a: not a trace in a known format: no line is an event, a JSON object, or below a heading of columns"
        ],
    );
}

#[test]
fn json_needs_its_keys() {
    check(
        "{\"thread\":\"T1\"\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: EOF while parsing an object, at character 14 of `{"thread":"T1"`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"var\":\"x\"}\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: unknown field `var`, expected one of `thread`, `op`, `on`, `order`, `location`, `stack`, `value`, `semaphore`, `start`, `barrier`, `parties`, `variable`, `initial`, `waits_are_requested`, `events`, `ended`, `text`, `threads`, `misuses`, `started`, `name`, at character 29 of `{"thread":"T1","op":"w","var":"x"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"thread\":\"T2\"}\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: duplicate field `thread`, at character 23 of `{"thread":"T1","thread":"T2"}`"#
        ]],
    );
    check(
        "{\"op\":\"w\",\"on\":\"x\"}\n",
        expect![[r#"a: line 1: expected the key `thread`, found `{"op":"w","on":"x"}`"#]],
    );
    check(
        "{\"thread\":\"T1\",\"on\":\"x\"}\n",
        expect![[r#"a: line 1: expected the key `op`, found `{"thread":"T1","on":"x"}`"#]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\"}\n",
        expect![[r#"a: line 1: expected the key `on` for `w`, found `{"thread":"T1","op":"w"}`"#]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"branch\",\"on\":\"x\"}\n",
        expect![[
            r#"a: line 1: expected no key `on` for `branch`, found `{"thread":"T1","op":"branch","on":"x"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"write\",\"on\":\"x\"}\n",
        expect![
            "a: line 1: expected an operation's word such as `w` or `acq` as `op`, found `write`"
        ],
    );
}

#[test]
fn json_keys_must_fit_the_operation() {
    check(
        "{\"thread\":\"T1\",\"op\":\"fence\"}\n",
        expect![[
            r#"a: line 1: expected the key `order` for `fence`, found `{"thread":"T1","op":"fence"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"ar\",\"on\":\"x\",\"order\":\"weak\"}\n",
        expect![
            "a: line 1: expected a memory order, one of `seqcst`, `relaxed`, `acquire`, `release`, `acqrel`, found `weak`"
        ],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\",\"order\":\"relaxed\"}\n",
        expect![[
            r#"a: line 1: expected no key `order` for `w`, found `{"thread":"T1","op":"w","on":"x","order":"relaxed"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\",\"location\":\"a\\nb\"}\n",
        expect![[
            r#"a: line 1: expected no line end in `location` and `stack`, where it would be lost, found `{"thread":"T1","op":"w","on":"x","location":"a\nb"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\",\"stack\":[\"a\\n\"]}\n",
        expect![[
            r#"a: line 1: expected no line end in `location` and `stack`, where it would be lost, found `{"thread":"T1","op":"w","on":"x","stack":["a\n"]}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\",\"value\":1.5}\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: invalid type: floating point `1.5`, expected i64, at character 44 of `{"thread":"T1","op":"w","on":"x","value":1.5}`"#
        ]],
    );
}

#[test]
fn other_json_lines_are_declarations() {
    check(
        "{\"semaphore\":\"s\"}\n",
        expect![[
            r#"a: line 1: expected the keys of one event, or `semaphore` and `start`, or `barrier` and `parties`, or `variable` and `initial`, or `waits_are_requested` with true, or `events` with 0, or `ended`, `text` and `threads`, or `started`, or `thread` and a `name`, found `{"semaphore":"s"}`"#
        ]],
    );
    check(
        "{\"barrier\":\"b\",\"start\":2}\n",
        expect![[
            r#"a: line 1: expected the keys of one event, or `semaphore` and `start`, or `barrier` and `parties`, or `variable` and `initial`, or `waits_are_requested` with true, or `events` with 0, or `ended`, `text` and `threads`, or `started`, or `thread` and a `name`, found `{"barrier":"b","start":2}`"#
        ]],
    );
    check(
        "{\"semaphore\":\"s\",\"start\":-2}\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: invalid value: integer `-2`, expected u32, at character 27 of `{"semaphore":"s","start":-2}`"#
        ]],
    );
    check(
        "{\"events\":3}\n",
        expect![[
            r#"a: line 1: expected the keys of one event, or `semaphore` and `start`, or `barrier` and `parties`, or `variable` and `initial`, or `waits_are_requested` with true, or `events` with 0, or `ended`, `text` and `threads`, or `started`, or `thread` and a `name`, found `{"events":3}`"#
        ]],
    );
    check(
        b"{\"thread\":\"\xff\"}\n",
        expect![[
            r#"a: line 1: expected the JSON object of an event: invalid unicode code point, at character 12 of `{"thread":"�"}`"#
        ]],
    );
    check(
        "{\"thread\":\"T1\",\"op\":\"w\",\"on\":\"x\"}\n[1]\n",
        expect!["a: line 2: expected the JSON object of an event, found `[1]`"],
    );
}

#[test]
fn events_that_cannot_have_happened_are_refused_with_their_line() {
    check(
        "T1|acq(m)|1\nT2|acq(m)|2\n",
        expect!["a: line 2: acquires lock `m`, which thread `T1` holds; try `--repair`"],
    );
    check(
        "# a comment\n\nT1|acq(m)|1\n\nT1|w(x)|1\nT2|acq(m)|2\n",
        expect!["a: line 6: event 3: acquires lock `m`, which thread `T1` holds; try `--repair`"],
    );
    check(
        "t1  t2\nacq(m)\n    acq(m)\n",
        expect!["a: line 3: event 2: acquires lock `m`, which thread `t1` holds; try `--repair`"],
    );
    let json =
        "{\"semaphore\":\"s\",\"start\":0}\n{\"thread\":\"T1\",\"op\":\"take\",\"on\":\"s\"}\n";
    check(
        json,
        expect!["a: line 2: event 1: takes from semaphore `s`, which is at zero; try `--repair`"],
    );
}

#[test]
fn a_thread_under_two_spellings_is_noted() {
    check(
        "T1|fork(2)|1\nT2|w(x)|2\nT1|join(2)|3\n",
        expect![[r#"
        Std, 3 events
        `fork(2)` and thread `T2` are different names: `2` never runs, `T2` is never forked; `--repair` takes them as one"#]],
    );
    check(
        "2|w(x)|1\n1|join(T2)|2\n",
        expect![[r#"
        Std, 2 events
        `join(T2)` and thread `2` are different names: `T2` never runs, `2` is never forked; `--repair` takes them as one"#]],
    );
    check("T1|fork(T2)|1\nT2|w(x)|2\n", expect!["Std, 2 events"]);
    check_with(
        b"T1|fork(2)|1\nT2|w(x)|2\n",
        true,
        expect![[r#"
        Std, 2 events
        took threads `2` and `T2` as one"#]],
    );
}

#[test]
fn a_last_line_that_is_cut_can_be_left_out() {
    let cut = b"T1|w(x)|1\nT1|w(x)|2\nT1|r(";
    check(
        cut,
        expect![
            "a: line 3: the last line is cut: expected `|` and a location after the operation, found `T1|r(`; 2 events before it are whole: `--repair` keeps them"
        ],
    );
    check_with(
        cut,
        true,
        expect![[r#"
        Std, 2 events
        line 3, the last, is cut and was left out: expected `|` and a location after the operation, found `T1|r(`"#]],
    );
    check_with(
        b"T1|w(x)|1\nT2|w(y)|caf\xc3",
        true,
        expect![[r#"
        Std, 1 events
        line 2, the last, is cut and was left out: expected UTF-8 text"#]],
    );
    check_with(
        b"T1|w(x)|1\n\0\0\0\0",
        true,
        expect![[r#"
        Std, 1 events
        line 2, the last, is cut and was left out: expected text, found a zero byte: the file is binary or damaged"#]],
    );
    check_with(
        b"T1|w(x)|1\nT1|r(\n",
        true,
        expect!["a: line 2: expected `|` and a location after the operation, found `T1|r(`"],
    );
    check_with(
        b"T1|w(x)|1\nT1|r(\nT1|w(x)|3",
        true,
        expect!["a: line 2: expected `|` and a location after the operation, found `T1|r(`"],
    );
    check_with(
        b"T1|w(",
        true,
        expect!["a: line 1: expected `|` and a location after the operation, found `T1|w(`"],
    );
}
