//! Pages of `states`, `ndseq` and `intervals`, and that of `demo`, in a real browser: that they load without a
//! fault, ask nothing of the network, and can be read on wide and narrow screens in any light.
//!
//! Needs Chromium and its driver; where they are missing, the test says that it was skipped. Pages and
//! pictures of them are kept in the folder `tmp/browser` of the build.

#[path = "../../../report/tests/browser/driver.rs"]
#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "pages of findings are pressed and clicked, these are only looked at; a browser that fails \
              says why"
)]
mod driver;

use std::fs;
use std::path::Path;

use serde_json::Value;

use self::driver::Browser;
use super::Folder;

/// What is hard to read on a page.
const AUDIT: &str = include_str!("../../../report/tests/browser/audit.js");

/// What goes on beyond an edge without a sign, or is cut.
const NARROW: &str = include_str!("../../../report/tests/browser/narrow.js");

/// Pages, the commands that write them, and what they must say.
const PAGES: [(&str, &[&str], &str); 8] = [
    ("check", &["check", "hidden_race.rwt"], "What to do next"),
    ("states-count", &["states", "count", "hidden_race.rwt"], "18 global states"),
    (
        "states-find",
        &["states", "find", "--predicate", "possibly(done(T1))", "hidden_race.rwt"],
        "a state can be reached",
    ),
    ("ndseq-check", &["ndseq", "check", "raytracer.rw"], "cannot be serialized"),
    ("ndseq-infer", &["ndseq", "infer", "fig1.rw"], "is needed: lines 5–10"),
    ("intervals-proved", &["intervals", "bank1.rw"], "line 23: proved"),
    ("intervals-broken", &["intervals", "atom2.rw"], "Line by line"),
    ("explain", &["explain", "hidden_race.rwt", "R1"], "How to fix it"),
];

/// A folder with what the commands read.
fn folder() -> Folder {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus");
    let folder = Folder::new();
    for name in [
        "recorded/hidden_race.rwt",
        "programs/raytracer.rw",
        "programs/fig1.rw",
        "programs/intervals/bank1.rw",
        "programs/intervals/atom2.rw",
    ] {
        let bytes = fs::read(corpus.join(name)).expect("the corpus is there");
        folder.put(name.rsplit('/').next().expect("it has a name"), bytes);
    }
    folder
}

#[test]
fn pages_of_every_command_can_be_read_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let folder = folder();
    // Some of these say little, and a program is one text.
    let audit = AUDIT.replace("count < 10", "count < 5");
    for (name, command, part) in PAGES {
        let page = format!("{name}.html");
        let status = folder.run(&[command, &["--format", "html", "-o", &page]].concat()).code();
        assert!([0, 66].contains(&status), "{name}: {status}");
        let path = driver::artefacts().join(&page);
        fs::write(&path, folder.read(&page)).expect("there is room for a page");
        for (width, height) in [(1280, 900), (390, 844)] {
            for scheme in ["light", "dark"] {
                browser.look(width, height, scheme);
                browser.open(&path);
                for faults in [browser.text(&audit), browser.text(NARROW)] {
                    assert_eq!(faults, "", "{name} at {width} in the {scheme}");
                }
                browser.screenshot(&format!("{name}-{width}-{scheme}"));
            }
        }
        let said = browser.text("return document.body.innerText");
        for part in [part, "reweave", env!("CARGO_PKG_VERSION")] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let prose = browser.text(
            "return [...document.querySelectorAll('p, li')].map((it) => it.innerText).join('\\n')",
        );
        assert!(!prose.contains('`'), "{prose}");
    }
    assert_eq!(browser.log("browser"), [""; 0]);
    for message in browser.log("performance") {
        let message: Value = serde_json::from_str(&message).expect("it is JSON");
        let url = message["message"]["params"]["request"]["url"].as_str().unwrap_or("file:");
        let local = ["file:", "chrome:", "about:", "data:"];
        assert!(local.iter().any(|scheme| url.starts_with(scheme)), "it asked for {url}");
    }
}
