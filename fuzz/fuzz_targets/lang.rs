//! Texts of any kind as programs: a program or a reason with a place within the text, drawn without
//! trouble; and a layout that keeps every token and comment, is its own layout, and means the same.
#![no_main]

use reweave_lang::{Severity, Source, Style, check, format};

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source::new("a.rw", text);
    let checked = check(&source);
    let has_error = checked.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(checked.program.is_none(), has_error);
    for found in &checked.diagnostics {
        for label in found.secondary.iter().chain([&found.primary]) {
            assert!(text.get(label.span.range()).is_some(), "{found:?}");
        }
        assert!(!found.render(&source, Style::Plain).is_empty());
    }
    let Ok(laid_out) = format(&source) else {
        assert!(has_error);
        return;
    };
    // A mark of the byte order at the start is no part of the program.
    assert_eq!(dense(&laid_out), dense(text.strip_prefix('\u{feff}').unwrap_or(text)));
    let again = Source::new("a.rw", &*laid_out);
    assert_eq!(format(&again).as_ref(), Ok(&laid_out));
    assert_eq!(check(&again).program.is_none(), has_error);
});
