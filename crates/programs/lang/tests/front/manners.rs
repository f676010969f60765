//! Texts that are cut, damaged or huge: always an answer, and soon.

use reweave_lang::{Source, Style, check, format};

use super::generate::{scatter, tokens};
use super::properties::check_text;

const PROGRAM: &str = "\
shared x = 1; // counts
shared a[4];
lock m; lock n[2]; cond c;
focus x, a;
fn f(p, q) { if (p < q) { return -p; } else if (p == q) { return 0; } return q; }
main {
    let y = f(1, 2) + a[3];
    coforeach (i in 0..=3) { a[i] = y; cobegin { { skip; } { } } }
    let h = fork { sync (m) { wait(c, m); } notifyall(c); };
    join(h); /* done */
    let k = cas(x, 1, 2); let o = fetchadd(a[2], k);
    if (*) { atomic { x = !o || -y; } }
    while (1) { expect atomic { break; } }
    for (i in 0..3) { lock(n[i]); unlock(n[i]); continue; }
    assert(x >= 0); assume(y != 3); f(1, 2);
}
thread t { notify(c); return; }
";

#[test]
fn every_prefix_has_an_answer() {
    for end in 0..=PROGRAM.len() {
        check_text(&PROGRAM[..end]);
    }
    for seed in 0..5 {
        let text = scatter(&tokens(seed), seed);
        for (end, _) in text.char_indices() {
            check_text(&text[..end]);
        }
    }
}

#[test]
fn every_text_with_one_byte_left_out_has_an_answer() {
    for at in 0..PROGRAM.len() {
        check_text(&format!("{}{}", &PROGRAM[..at], &PROGRAM[at + 1..]));
    }
}

#[test]
fn every_text_with_one_byte_replaced_has_an_answer() {
    for at in 0..PROGRAM.len() {
        for other in ["{", "}", "(", ";", "\"", "*"] {
            check_text(&format!("{}{other}{}", &PROGRAM[..at], &PROGRAM[at + 1..]));
        }
    }
}

/// A megabyte of `piece`, behind `before`.
fn megabyte(before: &str, piece: &str) -> String {
    let mut text = before.to_owned();
    text += &piece.repeat((1 << 20) / piece.len());
    text
}

#[test]
fn a_megabyte_of_one_thing_has_an_answer() {
    let body = "shared x; main { x = ";
    for (before, piece) in [
        (body, "("),
        (body, "-"),
        (body, "!("),
        (body, "a+"),
        (body, "x["),
        (body, "f("),
        (body, "1 "),
        ("", "{"),
        ("", "}"),
        ("main ", "{"),
        ("main { ", "if (1) { "),
        ("main { ", "cobegin {{ "),
        ("main { ", "while (1) "),
        ("main { if (1) {} ", "else if (1) {} "),
        ("main { ", "let t = fork { "),
        ("", "@ "),
        ("", "\""),
        ("", "/*"),
        ("", "/**/"),
        ("", "//\n"),
        ("shared ", "x"),
        ("shared x = ", "9"),
        ("", "shared x; "),
        ("", "ö"),
        ("", "\n"),
        ("main { ", "y = 1; "),
        ("main { ", "let y = 1; "),
        ("", "fn f() { f(); } "),
        ("", "# "),
        ("", "#if\n"),
        ("main { ", "m.lock() "),
        ("main { ", "{}\n}\n{ "),
        ("main { ", "notify_all(c); "),
        ("main { assert(", "\"\" "),
    ] {
        check_text(&megabyte(before, piece));
    }
}

#[test]
fn a_long_chain_of_operators_is_a_program() {
    let text = format!(
        "shared x = 0{}; main {{ x = x{}; }}",
        "+1".repeat(100_000),
        " + x".repeat(100_000)
    );
    let checked = check(&Source::new("a.rw", &*text));
    let program = checked.program.expect("a chain of operators is no nesting");
    assert_eq!(program.globals.iter().next().map(|global| global.initial), Some(100_000));
    assert_eq!(program.expressions.len(), 200_001);
    assert!(format(&Source::new("a.rw", text)).is_ok());
}

#[test]
fn a_hundred_thousand_lines_are_a_program() {
    let mut text = String::from("shared x;\n\nmain {\n");
    for line in 0..100_000 {
        text += &format!("    let v{line} = x + {line};\n");
    }
    text += "}\n";
    let checked = check(&Source::new("a.rw", &*text));
    assert_eq!(checked.program.map(|program| program.locals.len()), Some(100_000));
    assert_eq!(format(&Source::new("a.rw", &*text)), Ok(text));
}

#[test]
fn a_long_chain_of_calls_is_looked_through() {
    let mut text = String::from("main { f0(); }\n");
    for number in 0..20_000 {
        text += &format!("fn f{number}() {{ f{}(); }}\n", number + 1);
    }
    let right = format!("{text}fn f20000() {{ skip; }}\n");
    assert!(check(&Source::new("a.rw", right)).program.is_some());
    let wrong = check(&Source::new("a.rw", format!("{text}fn f20000() {{ f0(); }}\n")));
    assert_eq!(wrong.diagnostics.len(), 1);
    assert!(wrong.diagnostics[0].message.contains("f0 → f1 → f2"));
}

#[test]
fn many_held_locks_are_looked_through() {
    let mut held = String::from("lock p[20000]; shared x;\nmain {\n");
    for element in 0..10_000 {
        held += &format!("lock(p[{element}]);\n");
    }
    for (rest, warnings) in [
        ("if (x) {}\n".repeat(20_000), 0),
        ("if (x) { unlock(p[0]); lock(p[0]); }\n".repeat(10_000), 0),
        // The second taking is not noted, so that giving it back ends what was noted of the first.
        ("while (x) { lock(p[0]); unlock(p[0]); }\n".repeat(40), 1),
        ("if (x) {}\n".repeat(10_000) + "lock(p[63]); unlock(p[1]); lock(p[0]); lock(p[1]);", 2),
        ("lock(p[9999]);\n".repeat(10_000), 0),
    ] {
        let checked = check(&Source::new("a.rw", format!("{held}{rest}}}\n")));
        assert!(checked.program.is_some());
        assert_eq!(checked.diagnostics.len(), warnings);
    }
}

#[test]
fn every_call_that_closes_a_circle_is_counted() {
    let count = 20_000;
    let mut text = String::from("main { f0(); }\n");
    for number in 0..count {
        text += &format!("fn f{number}() {{ f{}(); f{number}(); }}\n", number + 1);
    }
    text += &format!("fn f{count}() {{ skip; }}\n");
    let found = check(&Source::new("a.rw", text)).diagnostics;
    assert_eq!(found.len(), 51);
    assert_eq!(found[0].message, "`f0` calls itself: f0 → f0");
    assert_eq!(found[50].message, format!("… and {} more errors", count - 50));
}

#[test]
fn a_long_indentation_is_measured_once() {
    let opened = format!("main {{\n{}{}", " ".repeat(1 << 19), "if (1) { ".repeat(100));
    check_text(&format!("{opened}{}", "if (1) { }\n".repeat(1 << 15)));
    check_text(&format!("{opened}{}", "{\n}\n".repeat(1 << 15)));
}

#[test]
fn at_most_fifty_errors_are_listed_and_the_others_counted() {
    let text = format!("main {{\n{}}}\n", "    y = 1;\n".repeat(1000));
    let source = Source::new("a.rw", text);
    let found = check(&source).diagnostics;
    assert_eq!(found.len(), 51);
    assert_eq!(found[50].message, "… and 950 more errors");
    assert_eq!(found[49].line(&source), 51);
}

#[test]
fn errors_come_in_the_order_of_the_text() {
    let text =
        "thread t { y = 1; break; }\nshared x = z;\nlock m;\nthread u { unlock(m); u = 1; }\n";
    let source = Source::new("a.rw", text);
    let lines: Vec<u32> =
        check(&source).diagnostics.iter().map(|found| found.line(&source)).collect();
    assert_eq!(lines, [1, 1, 2, 4, 4]);
}

#[test]
fn long_lines_and_tabs_are_drawn_in_a_terminals_width() {
    let long = format!("shared x; main {{ x = {}y; }}", "1 + ".repeat(50_000));
    let tabs = "shared x;\nmain {\n\t\t\tx =\t\ty;\n}\n";
    for text in [&*long, tabs] {
        let source = Source::new("a.rw", text);
        let found = check(&source).diagnostics;
        let drawn = found[0].render(&source, Style::Plain);
        assert!(drawn.contains("`y` is not declared here"));
        assert!(drawn.lines().all(|line| line.chars().count() <= 160), "{drawn}");
        assert!(drawn.contains("^ expected a value"));
    }
}

#[test]
fn what_a_terminal_would_obey_is_not_printed() {
    let source = Source::new("a.rw", "main { \u{1b}[31m \u{202e} skip; }");
    for found in check(&source).diagnostics {
        let drawn = found.render(&source, Style::Plain);
        assert!(!drawn.contains(['\u{1b}', '\u{202e}']), "{drawn:?}");
    }
}
