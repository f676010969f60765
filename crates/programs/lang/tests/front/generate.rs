//! Random programs that follow all rules, as lists of tokens, and random ways to lay them out.

use reweave_base::Rng;

/// What every program declares.
const HEAD: &str = "shared x ; shared y = - 1 ; shared a [ 4 ] ; lock m ; lock n [ 3 ] ; cond c ;";

/// The tokens of the program of that seed.
pub(crate) fn tokens(seed: u64) -> Vec<String> {
    let mut generator = Generator {
        rng: Rng::new(seed),
        tokens: Vec::new(),
        locals: Vec::new(),
        budget: 60,
        functions: 0,
        loops: 0,
        returns_value: false,
    };
    generator.push(HEAD);
    if generator.rng.chance(50) {
        generator.push("focus x , a ;");
    }
    for number in 0..generator.rng.below(3) {
        generator.function(number);
    }
    generator.push("main");
    generator.body(&[]);
    for number in 0..generator.rng.below(3) {
        generator.push(&format!("thread t{number}"));
        generator.body(&[]);
    }
    generator.tokens
}

/// `tokens` with random spaces, line breaks and comments between them.
pub(crate) fn scatter(tokens: &[String], seed: u64) -> String {
    const BETWEEN: [&str; 12] = [
        " ",
        " ",
        " ",
        " ",
        "\n",
        "\n\n",
        "\n\n\n",
        "\t",
        " /* b */ ",
        " // l\n",
        "\n// own\n",
        "\r\n  /* two \n lines */\n",
    ];
    let mut rng = Rng::new(seed);
    // Comments are rare in one program and everywhere in another.
    let kinds = if rng.chance(30) { BETWEEN.len() } else { 8 };
    let mut text = String::new();
    for token in tokens {
        text += BETWEEN[rng.below(kinds)];
        text += token;
    }
    text += BETWEEN[rng.below(kinds)];
    text
}

struct Generator {
    rng: Rng,
    tokens: Vec<String>,
    /// The names of the integers that live here.
    locals: Vec<String>,
    /// How many more statements there may be.
    budget: usize,
    /// How many functions are declared; the one with number n takes n arguments.
    functions: usize,
    /// How many loops of this thread are around.
    loops: usize,
    returns_value: bool,
}

impl Generator {
    fn push(&mut self, tokens: &str) {
        self.tokens.extend(tokens.split_whitespace().map(str::to_owned));
    }

    fn either(&mut self, one: &str, other: &str) {
        let picked = if self.rng.chance(50) { one } else { other };
        self.push(picked);
    }

    fn function(&mut self, number: usize) {
        let names: Vec<String> = (0..number).map(|parameter| format!("p{parameter}")).collect();
        self.push(&format!("fn f{number} ( {} )", names.join(" , ")));
        self.returns_value = true;
        self.body(&names);
        self.returns_value = false;
        self.functions = number + 1;
    }

    fn body(&mut self, parameters: &[String]) {
        self.locals = parameters.to_vec();
        self.budget = self.budget.max(12);
        self.block(3);
        self.locals.clear();
    }

    fn block(&mut self, depth: usize) {
        let live = self.locals.len();
        self.push("{");
        for _ in 0..self.rng.below(5) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.statement(depth);
        }
        self.push("}");
        self.locals.truncate(live);
    }

    /// A block that is a thread of its own.
    fn thread(&mut self, depth: usize) {
        let outer = (std::mem::take(&mut self.loops), self.returns_value);
        self.returns_value = false;
        self.block(depth);
        (self.loops, self.returns_value) = outer;
    }

    fn statement(&mut self, depth: usize) {
        match self.rng.below(if depth == 0 { 15 } else { 26 }) {
            0 | 1 => self.assign(),
            2..=4 => {
                let name = self.fresh();
                self.push(&format!("let {name} ="));
                self.value(3);
                self.push(";");
                self.locals.push(name);
            }
            5 => self.on_value("assert"),
            6 => self.on_value("assume"),
            7 => self.push("skip ;"),
            8 if self.loops > 0 => self.push("break ;"),
            9 if self.loops > 0 => self.push("continue ;"),
            10 if self.returns_value => {
                self.push("return");
                self.value(2);
                self.push(";");
            }
            10 => self.push("return ;"),
            11 => {
                let locked = if self.rng.chance(50) { "m" } else { "n [ 1 ]" };
                self.push(&format!(
                    "lock ( {locked} ) ; wait ( c , {locked} ) ; unlock ( {locked} ) ;"
                ));
            }
            12 => self.push("notify ( c ) ; notifyall ( c ) ;"),
            13 => self.single_event(),
            14 if self.functions > 0 => {
                self.call();
                self.push(";");
            }
            other => self.with_block(other, depth.saturating_sub(1)),
        }
    }

    fn with_block(&mut self, kind: usize, depth: usize) {
        match kind {
            15 | 16 => {
                self.condition("if");
                self.block(depth);
                while self.rng.chance(25) {
                    self.condition("else if");
                    self.block(depth);
                }
                if self.rng.chance(50) {
                    self.push("else");
                    self.block(depth);
                }
            }
            17 => {
                self.push("if ( * )");
                self.block(depth);
            }
            18 => {
                self.condition("while");
                self.repeated(depth);
            }
            19 => self.counted("for", depth),
            20 => self.counted("coforeach", depth),
            21 => {
                self.push("cobegin {");
                for _ in 0..self.rng.below(3) {
                    self.thread(depth);
                }
                self.push("}");
            }
            22 => {
                self.either("atomic", "expect atomic");
                self.block(depth);
            }
            23 => {
                self.either("sync ( m )", "sync ( n [ x ] )");
                self.block(depth);
            }
            24 => {
                // Handles are no integers and go by other names; each is joined at once.
                self.push(&format!("let h{} = fork", self.tokens.len()));
                let name = self.tokens[self.tokens.len() - 3].clone();
                self.thread(depth);
                self.push(&format!("; join ( {name} ) ;"));
            }
            _ => self.push("skip ;"),
        }
    }

    fn repeated(&mut self, depth: usize) {
        self.loops += 1;
        self.block(depth);
        self.loops -= 1;
    }

    fn counted(&mut self, word: &str, depth: usize) {
        let name = self.fresh();
        self.push(&format!("{word} ( {name} in"));
        self.value(1);
        self.either("..", "..=");
        self.value(1);
        self.push(")");
        self.locals.push(name);
        if word == "for" {
            self.repeated(depth);
        } else {
            self.thread(depth);
        }
        self.locals.pop();
    }

    fn condition(&mut self, words: &str) {
        self.push(words);
        self.push("(");
        self.value(2);
        self.push(")");
    }

    fn on_value(&mut self, word: &str) {
        self.condition(word);
        self.push(";");
    }

    /// A name that no local here has; blocks beside each other get the same.
    fn fresh(&self) -> String {
        format!("v{}", self.locals.len())
    }

    fn assign(&mut self) {
        match self.rng.below(3) {
            0 => self.push("x ="),
            1 => {
                self.push("a [");
                self.index();
                self.push("] =");
            }
            _ => {
                let name = self.rng.pick(&self.locals).cloned();
                self.push(&format!("{} =", name.unwrap_or("y".into())));
            }
        }
        self.value(3);
        self.push(";");
    }

    fn single_event(&mut self) {
        let name = self.fresh();
        self.push(&format!("let {name} ="));
        if self.rng.chance(50) {
            self.push("cas ( x ,");
            self.value(1);
            self.push(",");
            self.value(1);
        } else {
            self.push("fetchadd ( a [ 2 ] ,");
            self.value(2);
        }
        self.push(") ;");
        self.locals.push(name);
    }

    fn call(&mut self) {
        let number = self.rng.below(self.functions);
        self.push(&format!("f{number} ("));
        for argument in 0..number {
            if argument > 0 {
                self.push(",");
            }
            self.value(1);
        }
        self.push(")");
    }

    /// An index that is within bounds where it is constant.
    fn index(&mut self) {
        if self.rng.chance(50) {
            self.push("3");
        } else {
            self.push("x &");
            self.operand(1);
        }
    }

    fn value(&mut self, depth: usize) {
        const OPERATORS: [&str; 18] = [
            "||", "&&", "|", "^", "&", "==", "!=", "<", "<=", ">", ">=", "<<", ">>", "+", "-", "*",
            "/", "%",
        ];
        self.operand(depth);
        for _ in 0..self.rng.below(depth + 1) {
            let operator = OPERATORS[self.rng.below(OPERATORS.len())];
            self.push(operator);
            self.operand(depth);
        }
    }

    fn operand(&mut self, depth: usize) {
        match self.rng.below(if depth == 0 { 4 } else { 9 }) {
            0 => self.push("x"),
            1 => {
                let number = self.rng.next() >> self.rng.below(64).max(1);
                self.push(&number.to_string());
            }
            2 | 3 => {
                let name = self.rng.pick(&self.locals).cloned();
                self.push(&name.unwrap_or("0x1F".into()));
            }
            4 => {
                self.push("a [");
                self.index();
                self.push("]");
            }
            5 => {
                self.push("(");
                self.value(depth - 1);
                self.push(")");
            }
            6 => {
                self.either("-", "!");
                self.operand(depth - 1);
            }
            7 if self.functions > 0 => self.call(),
            _ => self.push("- 9223372036854775808"),
        }
    }
}
