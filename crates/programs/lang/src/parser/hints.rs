//! What people who know other languages write, and what to write instead.

use crate::lexer::TokenKind;

/// Whether a statement can start with `kind`.
pub(super) const fn starts_statement(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Name
            | TokenKind::Let
            | TokenKind::If
            | TokenKind::While
            | TokenKind::For
            | TokenKind::Coforeach
            | TokenKind::Cobegin
            | TokenKind::Atomic
            | TokenKind::Expect
            | TokenKind::Sync
            | TokenKind::Lock
            | TokenKind::Unlock
            | TokenKind::Wait
            | TokenKind::Notify
            | TokenKind::NotifyAll
            | TokenKind::Join
            | TokenKind::Assert
            | TokenKind::Assume
            | TokenKind::Skip
            | TokenKind::Return
            | TokenKind::Break
            | TokenKind::Continue
    )
}

/// Whether `name` is a type, or a word before one, elsewhere.
fn is_type(name: &str) -> bool {
    matches!(
        name,
        "int"
            | "long"
            | "short"
            | "char"
            | "unsigned"
            | "signed"
            | "bool"
            | "float"
            | "double"
            | "size_t"
            | "void"
            | "i32"
            | "i64"
            | "u32"
            | "u64"
            | "usize"
            | "auto"
            | "var"
            | "const"
            | "static"
            | "volatile"
            | "local"
    )
}

/// For a name that a statement starts with and that another name or a block follows.
pub(super) fn of_statement_name(name: &str) -> Option<&'static str> {
    match name {
        "do" | "loop" | "repeat" | "forever" | "until" => {
            Some("loops are `while (…) { … }` and `for (i in a..b) { … }`")
        }
        "switch" | "match" | "case" => Some("use `if (…) { … } else if (…) { … }`"),
        "elif" | "elsif" | "elseif" | "elseIf" => Some("write `else if`"),
        "synchronized" | "with" => Some("write `sync (m) { … }`"),
        _ if is_fork(name) => Some("write `let t = fork { … };`"),
        "mutex" | "Mutex" => Some("a lock is declared outside of blocks: `lock m;`"),
        "parallel" | "cobeg" => Some("write `cobegin { { … } { … } }`"),
        "foreach" => Some("write `for (i in a..b) { … }`, or `coforeach` for a thread each"),
        "goto" => Some("there is no `goto`"),
        "unless" => Some("write `if (!(…))`"),
        "mut" => Some("every local may be assigned again; leave out `mut`"),
        _ if is_type(name) => Some("a local is declared by `let`: `let x = 0;`"),
        _ => None,
    }
}

/// For a name where a declaration should start.
pub(super) fn of_top_level_name(name: &str) -> Option<&'static str> {
    match name {
        "func" | "function" | "def" | "proc" => Some("a function starts with `fn`"),
        "include" | "import" | "use" => Some("a program is one file"),
        _ => match declaring_word(name)? {
            "lock" => Some("a mutex is declared by `lock m;`"),
            "cond" => Some("a condition is declared by `cond c;`"),
            _ => Some("a global is declared by `shared x = 0;`, a function by `fn f(a, b) { … }`"),
        },
    }
}

/// The word that declares what `name` declares elsewhere.
pub(super) fn declaring_word(name: &str) -> Option<&'static str> {
    match name {
        "mutex" | "Mutex" | "Lock" | "pthread_mutex_t" => Some("lock"),
        "condition" | "condvar" | "Condition" | "pthread_cond_t" => Some("cond"),
        "global" => Some("shared"),
        _ => is_type(name).then_some("shared"),
    }
}

/// Whether `name` starts a thread elsewhere.
pub(super) fn is_fork(name: &str) -> bool {
    matches!(name, "spawn" | "async" | "go" | "launch")
}

/// For a name behind a value that is an operator elsewhere.
pub(super) fn of_operator_word(name: &str) -> Option<&'static str> {
    match name {
        "and" | "AND" => Some("write `&&`"),
        "or" | "OR" => Some("write `||`"),
        "xor" => Some("write `^`"),
        "mod" | "rem" => Some("write `%`"),
        "div" => Some("write `/`"),
        "is" | "eq" | "equals" => Some("write `==`"),
        "shl" => Some("write `<<`"),
        "shr" => Some("write `>>`"),
        "then" => Some("leave out `then`; a block follows the condition"),
        _ => None,
    }
}

/// For a name before a value that is a sign elsewhere.
pub(super) fn of_sign_word(name: &str) -> Option<&'static str> {
    matches!(name, "not" | "NOT").then_some("write `!`")
}

/// For `kind` where a `;` should be.
pub(super) const fn instead_of_semicolon(kind: TokenKind) -> Option<&'static str> {
    match kind {
        TokenKind::Assign => Some("an assignment has no value: assign twice"),
        TokenKind::Comma => Some("there is no comma operator: one statement, one `;`"),
        TokenKind::Dots | TokenKind::DotsEqual => {
            Some("ranges stand in `for (i in a..b)` and `coforeach (i in a..b)` only")
        }
        TokenKind::RightParen => Some("this `)` has no `(`"),
        TokenKind::RightBracket => Some("this `]` has no `[`"),
        TokenKind::Not => Some("`!` stands before a value; to say unequal, write `!=`"),
        _ => None,
    }
}

/// For `kind`, behind `before`, where a value should start.
pub(super) const fn instead_of_value(
    before: Option<TokenKind>,
    kind: TokenKind,
) -> Option<&'static str> {
    match (before, kind) {
        (Some(TokenKind::Plus), TokenKind::Plus) => Some("there is no `++`; write `x = x + 1;`"),
        (Some(TokenKind::Minus), TokenKind::Greater) => Some("there are no pointers and no fields"),
        (Some(TokenKind::Less), TokenKind::Greater) => Some("to say unequal, write `!=`"),
        (Some(TokenKind::Equal | TokenKind::NotEqual), TokenKind::Assign) => {
            Some("write `==` or `!=`")
        }
        (_, TokenKind::Plus) => Some("there is no sign `+`; leave it out"),
        (_, TokenKind::And) => Some("there are no addresses"),
        (_, TokenKind::Star) => {
            Some("there are no pointers; a free choice is written `if (*) { … }`")
        }
        (_, TokenKind::LeftBrace) => Some("a value is an integer; there are no lists"),
        _ => None,
    }
}
