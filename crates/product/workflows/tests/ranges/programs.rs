//! Random small programs: two or three threads, locks, branches, assertions, forks.

use proptest::prelude::*;

/// A statement, at a depth of branches.
fn statement(depth: u32) -> BoxedStrategy<String> {
    let var = prop::sample::select(vec!["x", "y", "z[0]", "z[1]"]);
    let local = prop::sample::select(vec!["p", "q"]);
    let number = -2..4_i64;
    let expression = prop_oneof![
        number.prop_map(|number| number.to_string()),
        local.clone().prop_map(str::to_owned),
        var.clone().prop_map(str::to_owned),
        (local.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%", "&", "<<"]), 1..4_i64)
            .prop_map(|(local, operator, number)| format!("{local} {operator} {number}")),
    ];
    let condition = (
        prop_oneof![local.clone(), var.clone()],
        prop::sample::select(vec!["==", "!=", "<", "<=", ">"]),
        -1..4_i64,
    )
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    let simple = prop_oneof![
        4 => (var.clone(), expression.clone()).prop_map(|(var, value)| format!("{var} = {value};")),
        4 => (local.clone(), expression).prop_map(|(local, value)| format!("{local} = {value};")),
        1 => (local.clone(), var.clone()).prop_map(|(local, var)| format!("{local} = {var};")),
        2 => condition.clone().prop_map(|condition| format!("assert({condition});")),
        1 => local.clone().prop_map(|local| format!("z[{local} & 1] = {local};")),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let block = prop::collection::vec(statement(depth - 1), 1..3)
        .prop_map(|statements| statements.join("\n"));
    let lock = prop::sample::select(vec!["m", "n", "k[0]", "k[p & 1]"]);
    prop_oneof![
        5 => simple,
        2 => (lock, block.clone()).prop_map(|(lock, body)| format!("sync ({lock}) {{\n{body}\n}}")),
        2 => (condition.clone(), block.clone(), block.clone())
            .prop_map(|(test, yes, no)| format!("if ({test}) {{\n{yes}\n}} else {{\n{no}\n}}")),
        1 => (condition, block.clone()).prop_map(|(test, yes)| format!("if ({test}) {{\n{yes}\n}}")),
        1 => block.prop_map(|body| format!("for (j in 0..2) {{\n{body}\n}}")),
    ]
    .boxed()
}

fn body() -> impl Strategy<Value = String> {
    prop::collection::vec(statement(1), 1..4)
        .prop_map(|body| format!("let p = 0;\nlet q = 1;\n{}", body.join("\n")))
}

/// The text of a program.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let threads = prop_oneof![
        3 => prop::collection::vec(body(), 2..3),
        1 => prop::collection::vec(body(), 3..4),
    ];
    (threads, any::<bool>(), -1..3_i64).prop_map(|(bodies, is_forked, start)| {
        let globals = format!("shared x = {start};\nshared y;\nshared z[2];\nlock m;\nlock n;\nlock k[2];\n");
        if is_forked {
            let blocks: Vec<String> =
                bodies.iter().map(|body| format!("{{\n{}\n}}", rebased(body))).collect();
            return format!(
                "{globals}main {{\nlet base = x;\ncobegin {{\n{}\n}}\nlet last = y;\nassert(last != 5);\n}}\n",
                blocks.join("\n")
            );
        }
        let threads = bodies.iter().enumerate();
        let threads: Vec<String> =
            threads.map(|(index, body)| format!("thread t{index} {{\n{body}\n}}")).collect();
        format!("{globals}{}\n", threads.join("\n"))
    })
}

/// A body that starts from what its parent knows.
fn rebased(body: &str) -> String {
    body.replacen("let p = 0;", "let p = base;", 1)
}
