//! Small random programs: a few threads that read, compute, retry, count and lock.

use reweave_base::Rng;

/// A program as text, drawn by `seed`.
pub(crate) fn program(seed: u64) -> String {
    let mut writer = Writer { rng: Rng::new(seed), text: String::new(), depth: 1, locals: 0 };
    writer.items();
    writer.main();
    writer.text
}

struct Writer {
    rng: Rng,
    text: String,
    depth: usize,
    locals: usize,
}

const GLOBALS: [&str; 3] = ["x", "y", "count"];

impl Writer {
    fn line(&mut self, text: &str) {
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn items(&mut self) {
        self.text.push_str("shared x;\nshared y = 1;\nshared count;\nlock m;\n");
        self.text.push_str(match self.rng.below(4) {
            0 => "focus x;\n",
            1 => "focus x, y;\n",
            2 => "focus y;\n",
            _ => "",
        });
        self.text.push_str("fn twice(n) {\n    return 2 * n;\n}\n");
    }

    fn main(&mut self) {
        self.text.push_str("main {\n");
        if self.rng.chance(60) {
            self.line("coforeach (i in 1..=2) {");
            self.body("i");
            self.line("}");
        } else {
            self.line("cobegin {");
            self.depth += 1;
            for _ in 0..2 {
                self.line("{");
                self.body("2");
                self.line("}");
            }
            self.depth -= 1;
            self.line("}");
        }
        self.text.push_str("}\n");
    }

    fn body(&mut self, number: &str) {
        self.depth += 1;
        for _ in 0..=self.rng.below(2) {
            self.statement(number, 0);
        }
        self.depth -= 1;
    }

    fn global(&mut self) -> &'static str {
        GLOBALS[self.rng.below(GLOBALS.len())]
    }

    fn local(&mut self) -> String {
        self.locals += 1;
        format!("t{}", self.locals)
    }

    fn statement(&mut self, number: &str, nesting: usize) {
        let choices = if nesting < 2 { 10 } else { 4 };
        match self.rng.below(choices) {
            0 => {
                let global = self.global();
                let line = format!("{global} = {global} + {number};");
                self.line(&line);
            }
            1 => {
                let (local, global) = (self.local(), self.global());
                let line = format!("let {local} = fetchadd({global}, {number});");
                self.line(&line);
            }
            2 => {
                let (local, from, to) = (self.local(), self.global(), self.global());
                self.line(&format!("let {local} = {from};"));
                self.line(&format!("{to} = twice({local}) + {number};"));
            }
            3 => self.line("count = count + 1;"),
            4 | 5 => self.retry(number),
            6 => {
                let global = self.global();
                self.line(&format!("if ({global} > {number}) {{"));
                self.nested(number, nesting);
                self.line("}");
            }
            7 => {
                self.line("sync (m) {");
                self.nested(number, nesting);
                self.line("}");
            }
            8 => {
                let local = self.local();
                self.line(&format!("for ({local} in 0..2) {{"));
                self.nested(number, nesting + 1);
                self.line("}");
            }
            _ => {
                let (local, global) = (self.local(), self.global());
                self.line("while (1) {");
                self.depth += 1;
                self.line(&format!("let {local} = {global};"));
                self.line(&format!("if ({local} >= 0) {{ break; }}"));
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    fn nested(&mut self, number: &str, nesting: usize) {
        self.depth += 1;
        self.statement(number, nesting + 1);
        self.depth -= 1;
    }

    /// Computes a new value from an old one, and tries again if another came first.
    fn retry(&mut self, number: &str) {
        let (done, old, ok) = (self.local(), self.local(), self.local());
        let global = self.global();
        self.line(&format!("let {done} = 0;"));
        self.line(&format!("while (!{done}) {{"));
        self.depth += 1;
        if self.rng.chance(30) {
            self.line("count = count + 1;");
        }
        self.line(&format!("let {old} = {global};"));
        self.line(&format!("let {ok} = cas({global}, {old}, {old} * 2 + {number});"));
        self.line(&format!("if ({ok}) {{ {done} = 1; }}"));
        self.depth -= 1;
        self.line("}");
    }
}
