//! A resolved program in short lines, every name with its id.

use std::fmt::Write as _;

use reweave_lang::{
    BlockId, Capture, ExprId, ExprKind, LocalId, LockPlace, Place, Program, Range, StatementKind,
};

/// The whole program.
pub(crate) fn dump(program: &Program) -> String {
    let mut out = String::new();
    for global in program.globals.iter() {
        let length = global.length.map_or(String::new(), |length| format!("[{length}]"));
        _ = writeln!(out, "shared {}{length} = {}", global.name, global.initial);
    }
    for lock in program.locks.iter() {
        let length = lock.length.map_or(String::new(), |length| format!("[{length}]"));
        _ = writeln!(out, "lock {}{length}", lock.name);
    }
    for condition in program.conditions.iter() {
        _ = writeln!(out, "cond {}", condition.name);
    }
    let focus = program.focus.iter().map(|&id| program.globals[id].name.as_str());
    let focus: Vec<&str> = focus.collect();
    if !focus.is_empty() {
        _ = writeln!(out, "focus {}", focus.join(", "));
    }
    let mut dump = Dump { program, out };
    for function in program.functions.iter() {
        let parameters: Vec<String> =
            function.parameters.iter().map(|&local| dump.local(local)).collect();
        _ = writeln!(dump.out, "fn {}({})", function.name, parameters.join(", "));
        dump.block(function.body, 1);
    }
    for thread in &program.threads {
        _ = writeln!(dump.out, "thread {}", thread.name);
        dump.block(thread.body, 1);
    }
    if let Some(body) = program.main {
        _ = writeln!(dump.out, "main");
        dump.block(body, 1);
    }
    dump.out
}

struct Dump<'p> {
    program: &'p Program,
    out: String,
}

impl Dump<'_> {
    fn local(&self, local: LocalId) -> String {
        format!("{}#{}", self.program.locals[local].name, local.number())
    }

    fn place(&self, place: &Place) -> String {
        let name = &self.program.globals[place.global].name;
        place.index.map_or(name.clone(), |index| format!("{name}[{}]", self.value(index)))
    }

    fn lock(&self, place: &LockPlace) -> String {
        let name = &self.program.locks[place.lock].name;
        place.index.map_or(name.clone(), |index| format!("{name}[{}]", self.value(index)))
    }

    fn values(&self, values: &[ExprId]) -> String {
        values.iter().map(|&value| self.value(value)).collect::<Vec<_>>().join(", ")
    }

    /// An expression with all its parentheses. Expressions of tests are not deep.
    fn value(&self, value: ExprId) -> String {
        match &self.program.expressions[value].kind {
            ExprKind::Number(number) => number.to_string(),
            ExprKind::Local(local) => self.local(*local),
            ExprKind::Shared(place) => self.place(place),
            ExprKind::Unary(operator, of) => format!("({operator:?} {})", self.value(*of)),
            ExprKind::Binary(operator, left, right) => {
                format!("({} {operator:?} {})", self.value(*left), self.value(*right))
            }
            ExprKind::Call(function, arguments) => {
                format!("{}({})", self.program.functions[*function].name, self.values(arguments))
            }
        }
    }

    fn range(&self, range: &Range) -> String {
        let dots = if range.is_inclusive { "..=" } else { ".." };
        let (from, to) = (self.value(range.from), self.value(range.to));
        format!("{} in {from}{dots}{to}", self.local(range.local))
    }

    fn captured(&self, capture: &Capture) -> String {
        let locals: Vec<String> = capture.locals.iter().map(|&local| self.local(local)).collect();
        format!("copies [{}]", locals.join(", "))
    }

    fn block(&mut self, block: BlockId, depth: usize) {
        for statement in &self.program.blocks[block].statements {
            let line = self.line(&statement.kind);
            _ = writeln!(self.out, "{}{line}", "  ".repeat(depth));
            self.bodies(&statement.kind, depth);
        }
    }

    fn line(&self, kind: &StatementKind) -> String {
        match kind {
            StatementKind::Set { local, value } => {
                format!("{} = {}", self.local(*local), self.value(*value))
            }
            StatementKind::Store { place, value } => {
                format!("{} = {}", self.place(place), self.value(*value))
            }
            StatementKind::If { condition, .. } => format!("if {}", self.value(*condition)),
            StatementKind::Optional { .. } => "if *".into(),
            StatementKind::While { condition, .. } => format!("while {}", self.value(*condition)),
            StatementKind::For { range, .. } => format!("for {}", self.range(range)),
            StatementKind::ForEachThread { range, body } => {
                format!("coforeach {} {}", self.range(range), self.captured(body))
            }
            StatementKind::Threads { .. } => "cobegin".into(),
            StatementKind::Atomic { .. } => "atomic".into(),
            StatementKind::Expect { .. } => "expect atomic".into(),
            StatementKind::Sync { lock, .. } => format!("sync {}", self.lock(lock)),
            StatementKind::Lock { lock } => format!("lock {}", self.lock(lock)),
            StatementKind::Unlock { lock } => format!("unlock {}", self.lock(lock)),
            StatementKind::Wait { condition, lock } => {
                let name = &self.program.conditions[*condition].name;
                format!("wait {name} {}", self.lock(lock))
            }
            StatementKind::Notify { condition } => {
                format!("notify {}", self.program.conditions[*condition].name)
            }
            StatementKind::NotifyAll { condition } => {
                format!("notifyall {}", self.program.conditions[*condition].name)
            }
            StatementKind::CompareAndSwap { local, place, old, new } => {
                let (local, place) = (self.local(*local), self.place(place));
                format!("{local} = cas {place} {} {}", self.value(*old), self.value(*new))
            }
            StatementKind::FetchAdd { local, place, amount } => {
                let (local, place) = (self.local(*local), self.place(place));
                format!("{local} = fetchadd {place} {}", self.value(*amount))
            }
            StatementKind::Fork { local, body } => {
                format!("{} = fork {}", self.local(*local), self.captured(body))
            }
            StatementKind::Join { local } => format!("join {}", self.local(*local)),
            StatementKind::Assert { condition } => format!("assert {}", self.value(*condition)),
            StatementKind::Assume { condition } => format!("assume {}", self.value(*condition)),
            StatementKind::Skip => "skip".into(),
            StatementKind::Return { value: None } => "return".into(),
            StatementKind::Return { value: Some(value) } => {
                format!("return {}", self.value(*value))
            }
            StatementKind::Break => "break".into(),
            StatementKind::Continue => "continue".into(),
            StatementKind::Call { function, arguments } => {
                format!("{}({})", self.program.functions[*function].name, self.values(arguments))
            }
        }
    }

    fn bodies(&mut self, kind: &StatementKind, depth: usize) {
        match kind {
            StatementKind::If { then, otherwise, .. } => {
                self.block(*then, depth + 1);
                if let Some(otherwise) = otherwise {
                    _ = writeln!(self.out, "{}else", "  ".repeat(depth));
                    self.block(*otherwise, depth + 1);
                }
            }
            StatementKind::Threads { bodies } => {
                for body in bodies {
                    _ = writeln!(
                        self.out,
                        "{}thread {}",
                        "  ".repeat(depth + 1),
                        self.captured(body)
                    );
                    self.block(body.body, depth + 2);
                }
            }
            StatementKind::Optional { body }
            | StatementKind::While { body, .. }
            | StatementKind::For { body, .. }
            | StatementKind::Atomic { body }
            | StatementKind::Expect { body }
            | StatementKind::Sync { body, .. } => self.block(*body, depth + 1),
            StatementKind::ForEachThread { body, .. } | StatementKind::Fork { body, .. } => {
                self.block(body.body, depth + 1);
            }
            _ => {}
        }
    }
}
