//! Programs whose atomics hand something over: too weak orders are races, and right ones are none.

use super::harness::{Workshop, compilers};

const WAYS: [&str; 6] = ["flag", "fence", "references", "spin", "counter", "sequence"];

#[test]
fn orders_that_are_too_weak_are_races_and_others_are_none() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["memory_orders.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("memory_orders.c", compiler, &[level]);
            for how in WAYS {
                for seed in ["1", "2", "3"] {
                    let case = format!("{compiler} {level} {how} {seed}");
                    folder.record(&["--seed", seed], &["memory_orders", how]).must_be_whole();
                    assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                    folder.record(&["--seed", seed], &["memory_orders", how, "weak"]);
                    let found = folder.findings();
                    assert!(
                        !found.is_empty() && found.iter().all(|it| it == "race"),
                        "{case}: {found:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_finding_names_the_orders_that_repair_it() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = Workshop::with(&["memory_orders.c"]);
    folder.build("memory_orders.c", compiler, &["-O1"]);
    folder.record(&[], &["memory_orders", "flag", "weak"]).must_be_whole();
    let said = folder.reweave(&["explain", "run.rwt", "R1"]).stdout;
    let said = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
    let repair = "The usual fix is `memory_order_release` on the store at \
                  memory_orders.c:16.";
    assert!(said.contains(repair), "{said}");
    let output =
        folder.reweave(&["confirm", "run.rwt", "R1", "--", "./memory_orders", "flag", "weak"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("that nothing orders them is proven"), "{said}");
    // What all atomics as sequentially consistent order is ordered.
    let output = folder.reweave(&["check", "run.rwt", "--seqcst"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("all atomics were treated as sequentially consistent"), "{said}");
}
