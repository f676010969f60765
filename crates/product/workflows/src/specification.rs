//! The sequential program that a specification describes: the text with `if (*)` in place.
//!
//! A placement encloses consecutive statements of one block. Where one of them declares a local
//! that is used after the last, the declaration moves in front of the `if (*)` and what is inside
//! assigns; a local of statements that are left out is then 0, which nothing relevant reads. The
//! result is printed in the one layout, and is a program again.

use reweave_base::{FxHashSet, Id};
use reweave_lang::{
    BlockId, Capture, Diagnostic, ExprId, ExprKind, Local, LocalId, Program, Source, Span,
    Statement, StatementKind, format,
};
use reweave_ndseq::Placement;

/// The text of `source`, whose program is `program`, with an `if (*)` around each of `placements`.
///
/// # Errors
/// If the result is no program, which would be a fault of ours.
pub fn inferred(
    source: &Source,
    program: &Program,
    placements: &[Placement],
) -> Result<String, Vec<Diagnostic>> {
    let mut widest_first = placements.to_vec();
    widest_first
        .sort_unstable_by_key(|placement| (placement.block, placement.first, !placement.last));
    let mut text = Edits::default();
    for placement in &widest_first {
        text.enclose(source, program, placement);
    }
    let text = text.apply(source.text());
    format(&Source::new(source.name(), text))
}

/// Changes of a text.
#[derive(Default)]
struct Edits {
    edits: Vec<Edit>,
    /// The locals whose declarations have moved.
    moved: FxHashSet<LocalId>,
}

/// Puts `text` in place of the bytes from `start` to `end`.
struct Edit {
    start: u32,
    end: u32,
    kind: EditKind,
    text: String,
}

/// What comes first of edits at one place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EditKind {
    /// Ends of what is enclosed, the narrower first.
    Close(u32),
    /// Starts of what is enclosed, the wider first.
    Open(std::cmp::Reverse<u32>),
    /// What replaces a statement.
    Replace,
}

impl Edits {
    fn enclose(&mut self, source: &Source, program: &Program, placement: &Placement) {
        let block = BlockId::from_index(placement.block.index());
        let statements = &program.blocks[block].statements;
        let enclosed = &statements[placement.first as usize..=placement.last as usize];
        let used_after = used(program, &statements[placement.last as usize + 1..]);
        let mut declared = String::new();
        for statement in enclosed {
            let Some(local) = declares(program, statement) else { continue };
            if used_after.contains(&local) && self.moved.insert(local) {
                let name = &program.locals[local].name;
                declared.push_str(&format!("let {name} = 0; "));
                self.edits.push(assignment(source, program, statement, local));
            }
        }
        let (start, end) = (enclosed[0].span.start, enclosed[enclosed.len() - 1].span.end);
        let open = EditKind::Open(std::cmp::Reverse(end - start));
        let text = format!("{declared}if (*) {{ ");
        self.edits.push(Edit { start, end: start, kind: open, text });
        let close = EditKind::Close(end - start);
        self.edits.push(Edit { start: end, end, kind: close, text: " }".to_owned() });
    }

    fn apply(mut self, text: &str) -> String {
        self.edits.sort_by_key(|edit| (edit.start, edit.kind));
        let mut result = String::with_capacity(text.len() + 64);
        let mut at = 0;
        for edit in self.edits {
            result.push_str(&text[at..edit.start as usize]);
            result.push_str(&edit.text);
            at = edit.end as usize;
        }
        result.push_str(&text[at..]);
        result
    }
}

/// The local that `statement` declares.
fn declares(program: &Program, statement: &Statement) -> Option<LocalId> {
    let local = match statement.kind {
        StatementKind::Set { local, .. }
        | StatementKind::CompareAndSwap { local, .. }
        | StatementKind::FetchAdd { local, .. } => local,
        _ => return None,
    };
    // One that is only assigned was declared before.
    (program.locals[local].span.start >= statement.span.start).then_some(local)
}

/// What turns the declaration of `local` into an assignment.
fn assignment(source: &Source, program: &Program, statement: &Statement, local: LocalId) -> Edit {
    let Local { name, span } = &program.locals[local];
    let value = after_equals(source.slice(Span::new(span.end, statement.span.end)));
    let text = match statement.kind {
        StatementKind::Set { .. } => format!("{name} ={value}"),
        // These are words of a declaration only.
        _ => {
            let fresh = unused_name(program, name);
            format!("let {fresh} ={value} {name} = {fresh};")
        }
    };
    let (start, end) = (statement.span.start, statement.span.end);
    Edit { start, end, kind: EditKind::Replace, text }
}

/// What stands behind the `=` that `text` starts with, but for spaces and comments.
fn after_equals(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return rest.strip_prefix('=').unwrap_or(rest);
        }
    }
}

/// A name like `name` that nothing has.
fn unused_name(program: &Program, name: &str) -> String {
    let is_taken = |candidate: &str| {
        program.locals.iter().any(|local| local.name == candidate)
            || program.globals.iter().any(|global| global.name == candidate)
            || program.locks.iter().any(|lock| lock.name == candidate)
            || program.conditions.iter().any(|condition| condition.name == candidate)
            || program.functions.iter().any(|function| function.name == candidate)
            || program.threads.iter().any(|thread| thread.name == candidate)
    };
    let mut candidate = format!("{name}_result");
    while is_taken(&candidate) {
        candidate.push('_');
    }
    candidate
}

/// The locals that `statements` use.
fn used(program: &Program, statements: &[Statement]) -> FxHashSet<LocalId> {
    let mut locals = FxHashSet::default();
    let mut open: Vec<&Statement> = statements.iter().collect();
    while let Some(statement) = open.pop() {
        let (expressions, blocks) = parts(&statement.kind, &mut locals);
        for expr in expressions {
            used_by_expression(program, expr, &mut locals);
        }
        for block in blocks {
            open.extend(&program.blocks[block].statements);
        }
    }
    locals
}

/// The expressions and blocks of a statement; locals that it names itself are noted.
fn parts(kind: &StatementKind, locals: &mut FxHashSet<LocalId>) -> (Vec<ExprId>, Vec<BlockId>) {
    let mut capture = |body: &Capture| {
        locals.extend(body.locals.iter().copied());
        body.body
    };
    match kind {
        StatementKind::Set { local, value } => {
            locals.insert(*local);
            (vec![*value], Vec::new())
        }
        StatementKind::Store { place, value } => {
            (place.index.into_iter().chain([*value]).collect(), Vec::new())
        }
        StatementKind::If { condition, then, otherwise } => {
            (vec![*condition], [*then].into_iter().chain(*otherwise).collect())
        }
        StatementKind::While { condition, body } => (vec![*condition], vec![*body]),
        StatementKind::For { range, body } => (vec![range.from, range.to], vec![*body]),
        StatementKind::ForEachThread { range, body } => {
            (vec![range.from, range.to], vec![capture(body)])
        }
        StatementKind::Threads { bodies } => (Vec::new(), bodies.iter().map(capture).collect()),
        StatementKind::Fork { body, .. } => (Vec::new(), vec![capture(body)]),
        StatementKind::Optional { body }
        | StatementKind::Atomic { body }
        | StatementKind::Expect { body } => (Vec::new(), vec![*body]),
        StatementKind::Sync { lock, body } => (lock.index.into_iter().collect(), vec![*body]),
        StatementKind::Lock { lock }
        | StatementKind::Unlock { lock }
        | StatementKind::Wait { lock, .. } => (lock.index.into_iter().collect(), Vec::new()),
        StatementKind::CompareAndSwap { place, old, new, .. } => {
            (place.index.into_iter().chain([*old, *new]).collect(), Vec::new())
        }
        StatementKind::FetchAdd { place, amount, .. } => {
            (place.index.into_iter().chain([*amount]).collect(), Vec::new())
        }
        StatementKind::Join { local } => {
            locals.insert(*local);
            (Vec::new(), Vec::new())
        }
        StatementKind::Assert { condition } | StatementKind::Assume { condition } => {
            (vec![*condition], Vec::new())
        }
        StatementKind::Return { value } => (value.iter().copied().collect(), Vec::new()),
        StatementKind::Call { arguments, .. } => (arguments.clone(), Vec::new()),
        StatementKind::Notify { .. }
        | StatementKind::NotifyAll { .. }
        | StatementKind::Skip
        | StatementKind::Break
        | StatementKind::Continue => (Vec::new(), Vec::new()),
    }
}

fn used_by_expression(program: &Program, expr: ExprId, locals: &mut FxHashSet<LocalId>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match &program.expressions[expr].kind {
            ExprKind::Number(_) => {}
            ExprKind::Local(local) => {
                locals.insert(*local);
            }
            ExprKind::Shared(place) => open.extend(place.index),
            ExprKind::Unary(_, operand) => open.push(*operand),
            ExprKind::Binary(_, left, right) => open.extend([*left, *right]),
            ExprKind::Call(_, arguments) => open.extend(arguments),
        }
    }
}
