//! Programs with mistakes, by theme: each has the message that a reader would want, at the place.
//!
//! A file below `bad/` is a list of cases: a line `== what is wrong`, the program, a line `--`, and
//! what is drawn. `UPDATE_EXPECT=1` draws anew.

use std::path::Path;

use expect_test::expect_file;
use reweave_base::FxHashSet;
use reweave_lang::{Source, Style, check as check_program};

/// How many messages a case of a theme has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    One,
    Several,
}

struct Case<'t> {
    title: &'t str,
    program: &'t str,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let parts = text.strip_prefix("== ").expect("a file starts with a title").split("\n== ");
    let case = |part| {
        let (title, rest): (&str, &str) = str::split_once(part, '\n').expect("a title is a line");
        let program = rest.split("\n--\n").next().expect("there is always a first part");
        Case { title, program: program.trim_end_matches('\n') }
    };
    parts.map(case).collect()
}

fn text_of(theme: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/front/bad/{theme}.txt"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{theme}: {error}"))
}

#[track_caller]
fn check(theme: &str, messages: Messages) {
    let (mut drawn, mut wrong) = (String::new(), Vec::new());
    let text = text_of(theme);
    for case in cases(&text) {
        let source = Source::new(format!("{theme}.rw"), case.program);
        let checked = check_program(&source);
        let count = checked.diagnostics.len();
        let is_right = if messages == Messages::One { count == 1 } else { count > 1 };
        let rendered: Vec<String> =
            checked.diagnostics.iter().map(|found| found.render(&source, Style::Plain)).collect();
        drawn += &format!("== {}\n{}\n--\n{}\n\n", case.title, case.program, rendered.join("\n"));
        wrong.extend((!is_right).then_some((case.title, count)));
    }
    let path = format!("bad/{theme}.txt");
    expect_file![path].assert_eq(&format!("{}\n", drawn.trim_end()));
    assert!(wrong.is_empty(), "{theme}: another number of messages than expected: {wrong:?}");
}

/// One test a theme.
macro_rules! themes {
    ($($name:ident $messages:ident)*) => {
        const THEMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(stringify!($name), Messages::$messages);
            }
        )*
    };
}

themes! {
    tokens One
    declarations One
    braces One
    statements One
    expressions One
    habits One
    names One
    kinds One
    calls_and_arrays One
    control One
    locks_and_threads One
    several Several
}

#[test]
fn there_are_two_hundred_different_mistakes() {
    let texts: Vec<String> = THEMES.iter().map(|theme| text_of(theme)).collect();
    let cases: Vec<Case<'_>> = texts.iter().flat_map(|text| cases(text)).collect();
    let titles: FxHashSet<&str> = cases.iter().map(|case| case.title).collect();
    let programs: FxHashSet<&str> = cases.iter().map(|case| case.program).collect();
    assert_eq!((titles.len(), programs.len()), (cases.len(), cases.len()));
    assert!(cases.len() >= 200, "{}", cases.len());
}
