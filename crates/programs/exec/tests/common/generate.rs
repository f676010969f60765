//! Random small programs, as text.
//!
//! A program is drawn from a list of numbers, so that what fails shrinks by shorter lists and smaller
//! numbers: a number that is missing is 0, and 0 is always the simplest choice.

use std::fmt::Write;

use proptest::prelude::*;

/// What programs may be made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// How many statements all threads have together, about.
    pub(crate) statements_max: usize,
    pub(crate) loops: bool,
    /// Loops that wait for others and may go on for ever.
    pub(crate) spins: bool,
    pub(crate) conditions: bool,
    pub(crate) faults: bool,
    /// Every other statement is a section of a lock.
    pub(crate) many_sections: bool,
    /// Locks that are taken and not given back, or given back and not taken.
    pub(crate) unpaired_locks: bool,
    pub(crate) assumptions: bool,
    pub(crate) threads_inside: bool,
    /// `fork` and `join`, which have no sequential meaning.
    pub(crate) forks: bool,
    /// `if (*)`.
    pub(crate) optional: bool,
}

impl Shape {
    /// Everything in a few statements.
    pub(crate) const SMALL: Self = Self {
        statements_max: 9,
        loops: true,
        spins: true,
        conditions: true,
        faults: true,
        many_sections: false,
        unpaired_locks: true,
        assumptions: true,
        threads_inside: true,
        forks: true,
        optional: true,
    };
}

/// A random program of `shape`.
pub(crate) fn programs(shape: Shape) -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<u16>(), 0..160)
        .prop_map(move |numbers| from_numbers(shape, &numbers))
}

/// The program of `shape` that `numbers` say.
pub(crate) fn from_numbers(shape: Shape, numbers: &[u16]) -> String {
    let mut drawer = Drawer {
        shape,
        numbers,
        text: String::new(),
        locals: Vec::new(),
        names_count: 0,
        statements_left: shape.statements_max,
        depth: 0,
        function: false,
    };
    drawer.program();
    drawer.text
}

struct Drawer<'a> {
    shape: Shape,
    numbers: &'a [u16],
    text: String,
    /// The integers in scope.
    locals: Vec<String>,
    names_count: u32,
    statements_left: usize,
    depth: usize,
    function: bool,
}

impl Drawer<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((&first, rest)) = self.numbers.split_first() else { return 0 };
        self.numbers = rest;
        first as usize % bound
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    fn line(&mut self, text: &str) {
        let indent = "    ".repeat(self.depth);
        writeln!(self.text, "{indent}{text}").expect("a string takes everything");
    }

    fn fresh(&mut self) -> String {
        self.names_count += 1;
        format!("v{}", self.names_count)
    }

    fn program(&mut self) {
        self.line("shared x; shared y = 1; shared a[2]; lock m; lock n; lock p[2]; cond c;");
        // An unlock of what nothing takes is an error of the text.
        self.line("fn never() { lock(m); lock(n); lock(p[0]); }");
        if self.one_in(4) {
            self.line("focus x, a;");
        }
        if self.one_in(3) {
            self.line("fn f(q) {");
            self.block(&["q".to_owned()], 2);
            let value = self.expr();
            self.line(&format!("    return {value};"));
            self.line("}");
            self.function = true;
        }
        let kind = self.below(3);
        if kind > 0 {
            self.line("main {");
            self.block(&[], 2);
            if kind == 2 {
                self.depth += 1;
                self.parallel();
                self.depth -= 1;
                self.block(&[], 1);
            }
            self.line("}");
        }
        if kind < 2 {
            for number in 0..2 + usize::from(self.one_in(3)) {
                self.line(&format!("thread t{number} {{"));
                self.statements_left = self.statements_left.max(1);
                self.block(&[], 4);
                self.line("}");
            }
        }
    }

    /// Statements, with `locals` declared around them.
    fn block(&mut self, locals: &[String], count_max: usize) {
        let scope = self.locals.len();
        self.locals.extend_from_slice(locals);
        self.depth += 1;
        for _ in 0..1 + self.below(count_max) {
            if self.statements_left == 0 {
                break;
            }
            self.statements_left -= 1;
            self.statement();
        }
        self.depth -= 1;
        self.locals.truncate(scope);
    }

    fn braced(&mut self, head: &str, locals: &[String], count_max: usize) {
        self.line(&format!("{head} {{"));
        self.block(locals, count_max);
        self.line("}");
    }

    fn place(&mut self) -> String {
        match self.below(6) {
            0..=2 => "x".to_owned(),
            3 | 4 => "y".to_owned(),
            _ => format!("a[{}]", self.index()),
        }
    }

    fn index(&mut self) -> String {
        match self.below(4) {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            _ if self.shape.faults && self.one_in(4) => format!("x + {}", self.operand()),
            _ => format!("({} & 1)", self.operand()),
        }
    }

    fn operand(&mut self) -> String {
        match self.below(6) {
            0 => "1".to_owned(),
            1 => "x".to_owned(),
            2 if !self.locals.is_empty() => {
                let place = self.below(self.locals.len());
                self.locals[place].clone()
            }
            3 => "y".to_owned(),
            4 => format!("a[{}]", self.below(2)),
            5 if self.function => "f(1)".to_owned(),
            _ => "0".to_owned(),
        }
    }

    fn expr(&mut self) -> String {
        let left = self.operand();
        match self.below(8) {
            0 | 1 => left,
            2 => format!("{left} + {}", self.operand()),
            3 => format!("{left} == {}", self.operand()),
            4 => format!("!{left}"),
            5 => format!("{left} && {}", self.operand()),
            6 if self.shape.faults => format!("2 / {left}"),
            _ => format!("{left} - {}", self.operand()),
        }
    }

    fn lock(&mut self) -> &'static str {
        ["m", "n", "p[0]", "p[x & 1]"][self.below(4)]
    }

    fn statement(&mut self) {
        if self.shape.many_sections && self.depth < 4 && self.below(2) == 1 {
            let lock = ["m", "n", "p[0]"][self.below(3)];
            return self.braced(&format!("sync ({lock})"), &[], 2);
        }
        let is_deep = self.depth > 3;
        match self.below(if is_deep { 8 } else { 20 }) {
            0 | 1 => {
                let (place, value) = (self.place(), self.expr());
                self.line(&format!("{place} = {value};"));
            }
            2 | 3 => {
                let (name, value) = (self.fresh(), self.expr());
                self.line(&format!("let {name} = {value};"));
                self.locals.push(name);
            }
            4 => {
                let (name, place) = (self.fresh(), self.place());
                let (old, new) = (self.operand(), self.operand());
                self.line(&format!("let {name} = cas({place}, {old}, {new});"));
                self.locals.push(name);
            }
            5 => {
                let (name, place, amount) = (self.fresh(), self.place(), self.operand());
                self.line(&format!("let {name} = fetchadd({place}, {amount});"));
                self.locals.push(name);
            }
            6 => self.test(),
            7 => self.wake_up(),
            8 | 9 => {
                let condition = self.expr();
                self.braced(&format!("if ({condition})"), &[], 2);
                if self.one_in(2) {
                    self.text.pop();
                    self.text.push_str(" else {\n");
                    self.block(&[], 2);
                    self.line("}");
                }
            }
            10 => self.repeat(),
            11..=13 => {
                let lock = self.lock();
                self.braced(&format!("sync ({lock})"), &[], 2);
            }
            14 => self.braced("atomic", &[], 2),
            15 => self.braced("expect atomic", &[], 2),
            16 => self.wait(),
            17 if self.shape.threads_inside => self.parallel(),
            18 if self.shape.forks => self.fork(),
            19 if self.shape.optional => self.braced("if (*)", &[], 2),
            _ => self.line("skip;"),
        }
    }

    fn test(&mut self) {
        let condition = self.expr();
        match self.below(3) {
            0 if self.shape.faults => self.line(&format!("assert({condition});")),
            1 if self.shape.assumptions => self.line(&format!("assume({condition});")),
            2 if self.shape.unpaired_locks && self.one_in(2) => {
                let lock = self.lock();
                self.line(&format!("lock({lock});"));
                if self.one_in(2) {
                    let lock = self.lock();
                    self.line(&format!("unlock({lock});"));
                }
            }
            _ => self.line("return;"),
        }
    }

    fn wake_up(&mut self) {
        match self.below(2) {
            0 if self.shape.conditions => self.line("notify(c);"),
            1 if self.shape.conditions => self.line("notifyall(c);"),
            _ => self.line("skip;"),
        }
    }

    fn wait(&mut self) {
        if !self.shape.conditions {
            return self.line("skip;");
        }
        let lock = self.lock();
        let condition = self.expr();
        self.line(&format!("sync ({lock}) {{"));
        if self.shape.spins {
            self.line(&format!("    while ({condition}) {{ wait(c, {lock}); }}"));
        } else {
            self.line(&format!("    if ({condition}) {{ wait(c, {lock}); }}"));
        }
        self.line("}");
    }

    fn repeat(&mut self) {
        let name = self.fresh();
        match self.below(4) {
            0 | 1 if self.shape.loops => {
                self.braced(&format!("for ({name} in 0..2)"), std::slice::from_ref(&name), 2);
            }
            2 if self.shape.loops => {
                self.line(&format!("let {name} = 0;"));
                self.line(&format!("while ({name} < 2) {{"));
                self.line(&format!("    {name} = {name} + 1;"));
                let leaves = ["skip;", "if (x) { break; }", "if (x == y) { continue; }"];
                let leave = leaves[self.below(3)];
                self.line(&format!("    {leave}"));
                self.block(&[name], 2);
                self.line("}");
            }
            3 if self.shape.spins => {
                let condition = self.expr();
                self.braced(&format!("while ({condition})"), &[], 1);
            }
            _ => self.line("skip;"),
        }
    }

    fn parallel(&mut self) {
        if self.one_in(2) {
            let name = self.fresh();
            self.statements_left += 1;
            self.braced(&format!("coforeach ({name} in 0..2)"), std::slice::from_ref(&name), 3);
            return;
        }
        self.line("cobegin {");
        self.depth += 1;
        for _ in 0..2 + usize::from(self.one_in(3)) {
            self.statements_left += 1;
            self.braced("", &[], 3);
        }
        self.depth -= 1;
        self.line("}");
    }

    fn fork(&mut self) {
        let name = self.fresh();
        self.statements_left += 1;
        self.line(&format!("let {name} = fork {{"));
        self.block(&[], 2);
        self.line("};");
        self.block_without_scope(2);
        if !self.one_in(4) {
            self.line(&format!("join({name});"));
        }
    }

    fn block_without_scope(&mut self, count_max: usize) {
        for _ in 0..self.below(count_max) {
            if self.statements_left > 0 {
                self.statements_left -= 1;
                self.statement();
            }
        }
    }
}
