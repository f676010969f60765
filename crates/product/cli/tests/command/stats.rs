//! `stats`: the numbers of the corpus.

use expect_test::expect;
use reweave_testkit::corpus;

use super::{CLEAN, Folder, name_of};

#[test]
fn the_recorded_traces_have_the_numbers_listed_for_them() {
    let folder = Folder::new();
    for case in corpus::traces() {
        let ran = folder.run(&["stats", "--format", "json", &name_of(&case.path)]).expect(0);
        let stats = ran.json();
        let expected = &case.expected["stats"];
        assert_eq!(&stats["stats"], expected, "{}", case.name);
        for key in ["events", "threads", "locks", "vars", "ops"] {
            assert_eq!(stats[key], expected[key], "{}: {key}", case.name);
        }
    }
}

#[test]
fn the_litmus_cases_have_the_numbers_listed_for_them() {
    let cases = corpus::litmus();
    let paths: Vec<String> = cases.iter().map(|case| name_of(&case.path)).collect();
    let mut arguments = vec!["stats", "--format", "json"];
    arguments.extend(paths.iter().map(String::as_str));
    let all = Folder::new().run(&arguments).expect(0).json();
    for (case, stats) in cases.iter().zip(all.as_array().unwrap()) {
        for key in ["events", "threads"] {
            assert_eq!(stats[key], case.expected[key], "{}: {key}", case.name);
        }
    }
}

#[test]
fn text_lists_what_there_is() {
    let folder = Folder::with("run.std", CLEAN);
    expect![[r#"
        run.std: std
          events     5
          threads    2
          locks      1
          variables  1
          conditions 0
          barriers   0
          semaphores 0
          objects    0
          blocks     0
          locations  5
          values     no
          sections   2, 1 open at the end, nested 1 deep
          operations acq 2, r 1, rel 1, w 1
          thread T1: 3 events, 1 to 3
          thread T2: 2 events, 4 to 5
    "#]]
    .assert_eq(&folder.run(&["stats", "run.std"]).expect(0).out());
}

#[test]
fn standard_input_is_read_too() {
    let ran = Folder::new().run_with(CLEAN.as_bytes(), &["stats", "-", "--format", "json"]);
    assert_eq!(ran.expect(0).json()["trace"]["path"], "-");
}
