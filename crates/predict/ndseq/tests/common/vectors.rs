//! The vectors of the corpus as traces: programs, schedules and expected answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;

use reweave_ndseq::Placement;
use reweave_testkit::corpus;
use reweave_trace::{
    AccessOp, EventId, Extent, Flow, Instance, InstanceId, Marker, MemoryOrder, Op, StaticBlock,
    StaticBlockId, Step, Trace, TraceBuilder,
};
use serde_json::Value;

/// One vector: its traces and all that is expected of them.
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) traces: Vec<Trace>,
    pub(crate) expected: Value,
}

pub(crate) const NAMES: [&str; 4] = ["fig1", "treiber", "lost_update", "serializable"];

pub(crate) fn load(name: &'static str) -> Vector {
    let path = corpus::folder().join(format!("vectors/ndseq_{name}.json"));
    let text = fs::read_to_string(&path).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let traces = list(&expected["traces"]).iter().map(|events| trace(events, &expected)).collect();
    Vector { name, traces, expected }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

pub(crate) fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

pub(crate) fn numbers(value: &Value) -> Vec<u32> {
    list(value).iter().map(number).collect()
}

/// `[object, field]`, or `[null, global]`.
fn location(value: &Value) -> String {
    let field = value[1].as_str().unwrap();
    value[0].as_str().map_or(field.to_owned(), |object| format!("{object}.{field}"))
}

/// `(None, 'x')` or `('A', 'next')`.
fn focus(text: &str) -> String {
    let parts: Vec<&str> = text.trim_matches(['(', ')']).split(", ").collect();
    let field = parts[1].trim_matches('\'');
    match parts[0] {
        "None" => field.to_owned(),
        object => format!("{}.{field}", object.trim_matches('\'')),
    }
}

fn trace(events: &Value, expected: &Value) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut flow = Flow::default();
    for block in list(&expected["constraints"]["blocks"]) {
        flow.add_block(static_block(block));
    }
    let site = builder.site("");
    let mut instances = BTreeMap::new();
    for event in list(events) {
        let thread = builder.thread(&format!("t{}", event["thread"]));
        let locals = |key: &str| -> Vec<String> {
            list(&event[key]).iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let uses: Vec<_> = locals("reads_local").iter().map(|name| builder.local(name)).collect();
        let defines = locals("writes_local").first().map(|name| builder.local(name));
        let mut access =
            |key: &str| (!event[key].is_null()).then(|| builder.var(&location(&event[key])));
        let op = match (access("read"), access("write")) {
            (Some(x), Some(_)) => Op::Access(AccessOp::AtomicUpdate(MemoryOrder::SeqCst), x),
            (Some(x), None) => Op::Access(AccessOp::Read, x),
            (None, Some(x)) => Op::Access(AccessOp::Write, x),
            (None, None) if event["kind"] == "branch" => Op::Marker(Marker::Branch),
            (None, None) => Op::Marker(Marker::Let(defines.unwrap())),
        };
        builder.push(thread, op, site);
        let control = event["cdep"].as_u64().and_then(|id| EventId::from_number(id as u32));
        let instance = Some(instance(&event["path"], &mut instances, &mut flow));
        let mut step = Step::default();
        (step.defines, step.control, step.instance) = (defines, control, instance);
        flow.push(step, &uses);
    }
    for text in list(&expected["focus_locations"]) {
        let var = builder.var(&focus(text.as_str().unwrap()));
        flow.add_focus(var);
    }
    builder.set_flow(flow);
    builder.finish().unwrap()
}

fn static_block(statements: &Value) -> StaticBlock {
    let extent = |statement: &Value| {
        let (first_line, last_line) = (number(&statement["first"]), number(&statement["last"]));
        Extent { start: first_line * 100, end: last_line * 100 + 99, first_line, last_line }
    };
    let statements = list(statements).iter().map(extent).collect();
    StaticBlock { inside: None, is_optional: false, statements }
}

type Key = (Option<InstanceId>, u32, u32, u32);

fn instance(path: &Value, known: &mut BTreeMap<Key, InstanceId>, flow: &mut Flow) -> InstanceId {
    let mut parent = None;
    for step in list(path) {
        let [block, execution, position] = numbers(step)[..] else { panic!("a path of triples") };
        let key = (parent, block, execution, position);
        let id = *known.entry(key).or_insert_with(|| {
            let block = StaticBlockId::from_number(block + 1).unwrap();
            flow.add_instance(Instance { parent, block, execution, position })
        });
        parent = Some(id);
    }
    parent.unwrap()
}

/// Placements as the lines of their first and last statement, sorted.
pub(crate) fn lines(placements: &[Placement], flow: &Flow) -> Vec<(u32, u32)> {
    let mut lines: Vec<_> =
        placements.iter().map(|placement| placement.lines(flow).unwrap()).collect();
    lines.sort_unstable();
    lines
}

/// Lists of `[first line, last line]`, each sorted, sorted.
pub(crate) fn all_lines(value: &Value) -> Vec<Vec<(u32, u32)>> {
    let set = |set: &Value| {
        let mut lines: Vec<_> =
            list(set).iter().map(|lines| (number(&lines[0]), number(&lines[1]))).collect();
        lines.sort_unstable();
        lines
    };
    let mut sets: Vec<_> = list(value).iter().map(set).collect();
    sets.sort_unstable();
    sets
}
