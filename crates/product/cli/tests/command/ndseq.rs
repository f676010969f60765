//! `ndseq`: specifications inferred, refused, validated and checked.

use serde_json::json;

use super::Folder;

/// The first figure of the paper, its lines where they are there.
const REDUCE: &str = "\
shared x; main { coforeach (i in 1..=2) {
    let done = 0;
    while (!done) {

        let prev = x;
        let curr = i * prev + i;
        let c = cas(x, prev, curr);
        if (c) {
            done = 1;
        }
} } }
";

const LOST: &str = "shared x;\nmain {\n    coforeach (i in 0..2) {\n        let t = x;\n        \
                    x = t + 1;\n    }\n}\n";

const IN_TURN: &str = "shared x;\nlock m;\nmain {\n    coforeach (i in 0..2) {\n        sync (m) { x = x + 1; }\n    }\n}\n";

#[test]
fn the_first_figure_needs_one_around_lines_5_to_10() {
    let folder = Folder::with("fig1.rw", REDUCE);
    let report = folder.run(&["ndseq", "infer", "--format", "json", "fig1.rw"]).expect(0).json();
    assert_eq!(report["satisfiable"], json!(true));
    assert_eq!(report["placements"], json!([{ "first": 5, "last": 10 }]));
    assert_eq!(report["cost"], json!(1));
    let out = folder.run(&["ndseq", "infer", "--validate", "fig1.rw"]).expect(0).out();
    let start = "// fig1.rw: 1 `if (*)` is needed: lines 5–10\n// validated: ";
    assert!(out.starts_with(start), "{out}");
    folder.put("printed.rw", out);
    folder.run(&["ndseq", "check", "printed.rw"]).expect(0);
}

#[test]
fn what_is_inferred_is_a_program_that_passes_the_check() {
    let folder = Folder::with("fig1.rw", REDUCE);
    let report = folder.run(&["ndseq", "infer", "--format", "json", "fig1.rw"]).expect(0).json();
    folder.put("spec.rw", report["specification"].as_str().unwrap());
    folder.run(&["ndseq", "check", "--runs", "20", "spec.rw"]).expect(0);
    folder.run(&["ndseq", "check", "--runs", "20", "fig1.rw"]).expect(66);
    let again = folder.run(&["ndseq", "infer", "--format", "json", "spec.rw"]).expect(0).json();
    assert_eq!((&again["cost"], &again["reason"]), (&json!(0), &json!("own-placements")));
}

#[test]
fn a_lost_update_has_none_and_the_cycle_says_why() {
    let folder = Folder::with("lost.rw", LOST);
    let report = folder.run(&["ndseq", "infer", "--format", "json", "lost.rw"]).expect(66).json();
    assert_eq!(report["satisfiable"], json!(false));
    assert_eq!(report["placements"], json!([]));
    let hops = report["cycle"]["hops"].as_array().unwrap();
    assert_eq!(hops.len(), 2);
    assert!(hops.iter().all(|hop| hop["variable"] == "x"));
}

#[test]
fn a_page_draws_the_cycle_or_shows_the_program() {
    let folder = Folder::with("lost.rw", LOST);
    folder.put("fig1.rw", REDUCE);
    for command in ["infer", "check"] {
        let page = folder.run(&["ndseq", command, "--format", "html", "lost.rw"]).expect(66).out();
        assert!(page.starts_with("<!doctype html>") && !page.contains("<script"), "{page}");
        assert_eq!(page.matches("<path class=\"hop\"").count(), 2, "{page}");
        assert!(page.contains("So no thread can come first"), "{page}");
    }
    let page = folder.run(&["ndseq", "infer", "--format", "html", "fig1.rw"]).expect(0).out();
    assert!(page.contains("<pre>") && page.contains("if (*) {"), "{page}");
}

#[test]
fn a_serializable_program_needs_none() {
    let folder = Folder::with("turns.rw", IN_TURN);
    let report = folder.run(&["ndseq", "infer", "--format", "json", "turns.rw"]).expect(0).json();
    assert_eq!((&report["cost"], &report["reason"]), (&json!(0), &json!("serializable")));
}

#[test]
fn rejected_placements_do_not_come_back() {
    let folder = Folder::with("fig1.rw", REDUCE);
    let mut arguments = vec!["ndseq", "infer", "--format", "json", "fig1.rw"];
    for (rejected, next) in [("5-10", 6), ("6-10", 7), ("7-10", 8)] {
        arguments.extend(["--reject", rejected]);
        let report = folder.run(&arguments).expect(0).json();
        assert_eq!(report["placements"], json!([{ "first": next, "last": 10 }]));
    }
    arguments.extend(["--reject", "8-10"]);
    assert_eq!(folder.run(&arguments).expect(66).json()["satisfiable"], json!(false));
    for wrong in ["4-10", "x", "5-", "10-5"] {
        let ran = folder.run(&["ndseq", "infer", "fig1.rw", "--reject", wrong]).expect(2);
        assert!(ran.err().contains(&format!("--reject {wrong}")), "{}", ran.err());
    }
}

#[test]
fn several_programs_are_a_list() {
    let folder = Folder::with("lost.rw", LOST);
    folder.put("turns.rw", IN_TURN);
    let arguments = ["ndseq", "infer", "--format", "json", "turns.rw", "lost.rw"];
    let report = folder.run(&arguments).expect(66).json();
    assert_eq!(report.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_fork_is_refused_at_its_line() {
    let program = "shared x;\nmain {\n    let t = fork { x = 1; };\n    join(t);\n}\n";
    let folder = Folder::with("fork.rw", program);
    for command in ["infer", "check"] {
        let ran = folder.run(&["ndseq", command, "fork.rw"]).expect(2);
        assert!(ran.err().contains("fork.rw: line 3: `fork` has no sequential"), "{}", ran.err());
    }
}

#[test]
fn a_program_at_fault_is_not_validated() {
    // Only a run in which both read before either writes fails.
    let program = LOST.replace("    }\n}\n", "    }\n    assert(x == 2);\n}\n");
    let folder = Folder::with("wrong.rw", program);
    let arguments =
        ["ndseq", "infer", "--validate", "--runs", "1", "--scheduler", "random", "wrong.rw"];
    let ran = folder.run(&arguments).expect(66);
    assert!(ran.out().contains("the program itself is at fault"), "{}{}", ran.out(), ran.err());
}

#[test]
fn a_failing_run_is_told_of_and_explained() {
    let program = LOST.replace("    }\n}\n", "    }\n    assert(x == 2);\n}\n");
    let folder = Folder::with("wrong.rw", program);
    let ran = folder.run(&["ndseq", "infer", "wrong.rw"]).expect(66);
    assert!(ran.out().contains("fails at line 7: the assertion does not hold"), "{}", ran.out());
    assert!(ran.out().contains("no `if (*)` removes this cycle of conflicts"), "{}", ran.out());
}

#[test]
fn results_that_are_sequential_all_the_same_are_told_of() {
    // The flag takes what the swap gives, so what is retried seems to matter.
    let program = REDUCE.replace("if (c) {\n            done = 1;\n        }", "done = c;");
    let folder = Folder::with("flag.rw", program.replace("i * prev + i", "prev + 1"));
    let ran = folder.run(&["ndseq", "infer", "--validate", "flag.rw"]).expect(66);
    assert!(ran.out().contains("yet every result of the program (1)"), "{}", ran.out());
}

#[test]
fn a_run_without_a_result_is_left_out() {
    let folder = Folder::with("spin.rw", "shared x;\nmain { while (1) { x = x + 1; } }\n");
    for command in ["infer", "check"] {
        let ran = folder.run(&["ndseq", command, "--steps", "100", "spin.rw"]).expect(3);
        assert!(ran.err().contains("no run came to its end"), "{}", ran.err());
    }
}
