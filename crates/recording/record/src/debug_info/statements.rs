//! What a statement of C or C++ says of the memory that it allocates: `struct item *made = malloc(sizeof *made);`.
//!
//! The question: of which type is what the statement allocates?
//!
//! The idea: `sizeof` and `new` say it; else the pointer that gets the result, by its cast or its own type; else the
//! only type that the statement names and that has just this size, as in `NEW(struct item)`. Expressions are followed
//! from variables through members, elements and targets, as compilers do.
//!
//! Promised: what can be meant in two ways has no answer, and neither has what is not understood: macros, overloaded
//! operators, arithmetic of pointers.

use std::iter;

use gimli::constants as dw;

use super::allocations::Content;
use super::{DEPTH_MAX, DebugInfo, Die};

/// What a statement says of memory.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// What it measures or makes.
    Measures(Content),
    /// What it measures, with more behind that.
    Begins(Content),
    /// What gets the memory points to that.
    Receives(Content),
}

/// A piece of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Sign(&'t str),
    /// A number, a character or a text.
    Literal,
}

use Token::{Literal, Sign, Word};

/// What is made or measured, as the statement spells it.
struct Operand<'s, 't> {
    tokens: &'s [Token<'t>],
    is_made: bool,
    /// Whether there may be several.
    may_repeat: bool,
    /// Whether something else is added to its size.
    is_added: bool,
}

/// Functions whose result is new memory, whatever is called for their arguments.
const ALLOCATORS: [&str; 8] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
];

/// What looks like a call and allocates nothing.
const MEASURES: [&str; 5] = ["sizeof", "strlen", "alignof", "_Alignof", "wcslen"];

/// Words that may stand before the name of a type.
const QUALIFIERS: [&str; 7] = ["const", "volatile", "struct", "union", "class", "enum", "typename"];

/// What an array of objects with destructors begins with: how many there are.
const COUNT_BYTES: u64 = 8;

impl DebugInfo {
    /// What the statements in `text`, of `function`, say of `size` bytes that one of them allocates.
    pub(super) fn said(&self, function: Die, size: u64, text: &str) -> Option<Said> {
        let tokens = tokens(text);
        let statements = || tokens.split(|token| matches!(token, Sign(";" | "{" | "}")));
        let operands: Vec<Operand<'_, '_>> = statements().flat_map(operands).collect();
        let types: Vec<Vec<Die>> =
            operands.iter().map(|operand| self.types_of(function, operand)).collect();
        let is_understood = types.iter().all(|types| !types.is_empty());
        if is_understood && !operands.is_empty() {
            return self.measured(&operands, &types, size);
        }
        if operands.len() > 1 {
            return None;
        }
        let received: Vec<Die> = statements().flat_map(|it| self.received(function, it)).collect();
        let fits =
            |may_repeat| received.iter().filter_map(move |&of| self.content(of, size, may_repeat));
        if let Some(content) = only(fits(false)).or_else(|| only(fits(true))) {
            return Some(Said::Receives(content));
        }
        (received.is_empty() && operands.is_empty()).then_some(())?;
        // A type that is named elsewhere in the statement counts only if it can hardly be meant otherwise.
        let named = self.named_types(function, &tokens).into_iter();
        let contents = named.filter_map(|of| self.content(of, size, false));
        only(contents.filter(|content| content.size > 8)).map(Said::Receives)
    }

    /// The types that are named by words that are nothing else.
    fn named_types(&self, function: Die, tokens: &[Token<'_>]) -> Vec<Die> {
        let mut found = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let Word(word) = token else { continue };
            let before = at.checked_sub(1).map(|before| tokens[before]);
            let is_tag = matches!(before, Some(Word("struct" | "union" | "class")));
            let is_part = matches!(before, Some(Sign("." | "->")));
            let is_called = tokens.get(at + 1) == Some(&Sign("("));
            let is_type = is_tag || !is_part && !is_called;
            if is_type && (is_tag || self.variables_named(function, word).is_empty()) {
                found.extend(self.types_named(function.unit, word));
            }
        }
        found
    }

    fn measured(
        &self,
        operands: &[Operand<'_, '_>],
        types: &[Vec<Die>],
        size: u64,
    ) -> Option<Said> {
        let all = || operands.iter().zip(types);
        let fits = all().filter(|(operand, _)| !operand.is_added).filter_map(|(operand, types)| {
            let content = |&of: &Die| match operand.is_made && operand.may_repeat {
                true => self.made_array(of, size),
                false => self.content(of, size, operand.may_repeat),
            };
            only(types.iter().filter_map(content))
        });
        let fits: Vec<Content> = fits.collect();
        if !fits.is_empty() {
            return only(fits.into_iter()).map(Said::Measures);
        }
        let added = all().filter(|(operand, _)| operand.is_added).flat_map(|(_, types)| types);
        let records = added.filter(|&&of| self.is_record(of)).filter_map(|&of| {
            let own = self.size(of, 0).filter(|&own| own <= size)?;
            self.content(of, own, false)
        });
        only(records).map(Said::Begins)
    }

    /// What `new` makes of several objects of type `of`. If they have destructors, their number stands before them.
    fn made_array(&self, of: Die, size: u64) -> Option<Content> {
        let own = self.size(of, 0).filter(|&own| own > 0)?;
        let start = match size % own {
            0 if COUNT_BYTES.is_multiple_of(own) && self.is_destroyed(of) => COUNT_BYTES,
            0 => 0,
            _ => COUNT_BYTES,
        };
        let array = self.content(of, size.checked_sub(start)?, true)?;
        Some(Content { start, is_array: true, ..array })
    }

    /// Whether the program says what is done when an object of type `of` is destroyed.
    fn is_destroyed(&self, of: Die) -> bool {
        let mut is_destroyed = false;
        let Some(class) = self.record_behind(of) else { return false };
        let _ = self.visit_within(class, |entry| {
            is_destroyed |= entry.tag() == dw::DW_TAG_subprogram
                && entry.attr(dw::DW_AT_defaulted).is_none()
                && self.name_in(class.unit, entry).is_some_and(|name| name.starts_with('~'));
            false
        });
        is_destroyed
    }

    /// The types that an operand may be; none if that is not understood.
    fn types_of(&self, function: Die, operand: &Operand<'_, '_>) -> Vec<Die> {
        let is_tag =
            operand.tokens.iter().any(|it| matches!(it, Word("struct" | "union" | "enum")));
        let expression = || self.expression(function, operand.tokens).unwrap_or_default();
        let named = || self.named_type(function, operand.tokens);
        match operand.is_made || is_tag {
            true => named(),
            false => Some(expression()).filter(|types| !types.is_empty()).unwrap_or_else(named),
        }
    }

    /// The definitions that `tokens` may name, which are a type without stars.
    fn named_type(&self, function: Die, tokens: &[Token<'_>]) -> Vec<Die> {
        let is_qualifier =
            |token: &Token<'_>| matches!(token, Word(word) if QUALIFIERS.contains(word));
        let mut rest = tokens;
        while rest.first().is_some_and(is_qualifier) {
            rest = &rest[1..];
        }
        while rest.last().is_some_and(is_qualifier) {
            rest = &rest[..rest.len() - 1];
        }
        let mut scopes = Vec::new();
        if let [Sign("::"), inner @ ..] = rest {
            rest = inner;
        }
        while let [Word(scope), Sign("::"), inner @ ..] = rest {
            scopes.push(*scope);
            rest = inner;
        }
        let [Word(name), arguments @ ..] = rest else { return Vec::new() };
        let found = match arguments {
            [] => {
                let parameter = self.parameter_named(function, name).filter(|_| scopes.is_empty());
                match parameter {
                    Some(of) => return vec![of],
                    None => self.types_named(function.unit, name),
                }
            }
            [Sign("<"), .., Sign(">")] => self.instances(function.unit, name, arguments),
            _ => Vec::new(),
        };
        let is_in = |&of: &Die| {
            let own = self.scopes(of);
            own.len() >= scopes.len()
                && own[own.len() - scopes.len()..].iter().zip(&scopes).all(|(own, it)| own == it)
        };
        found.into_iter().filter(is_in).collect()
    }

    /// The instances of the template `name`, those with just these arguments if there are some.
    fn instances(&self, unit: u32, name: &str, arguments: &[Token<'_>]) -> Vec<Die> {
        let spelled: String = iter::once(name)
            .chain(arguments.iter().map(|token| match token {
                Word(text) | Sign(text) => text,
                Literal => "0",
            }))
            .collect();
        let all = self.types_starting(unit, &format!("{name}<"));
        let is_it = |of: &&Die| {
            let own = self.name(**of).unwrap_or_default();
            own.chars().filter(|it| !it.is_whitespace()).eq(spelled.chars())
        };
        let same: Vec<Die> = all.iter().filter(is_it).copied().collect();
        if same.is_empty() { all } else { same }
    }

    /// What `name` stands for in the template that `function` or its class is an instance of.
    fn parameter_named(&self, function: Die, name: &str) -> Option<Die> {
        let class = self.class_of(function);
        [Some(function), Some(self.declared(function)), class].into_iter().flatten().find_map(
            |at| {
                let mut found = None;
                let _ = self.visit_within(at, |entry| {
                    if entry.tag() == dw::DW_TAG_template_type_parameter
                        && self.name_in(at.unit, entry).is_some_and(|own| own == name)
                    {
                        found = found.or(self.reference(at.unit, entry, dw::DW_AT_type));
                    }
                    false
                });
                found
            },
        )
    }

    /// The types that an expression may have: `*table->rows[i]`.
    fn expression(&self, function: Die, tokens: &[Token<'_>]) -> Option<Vec<Die>> {
        let stars = tokens.iter().take_while(|token| **token == Sign("*")).count();
        let mut rest = &tokens[stars..];
        let mut types = match rest {
            [Sign("("), ..] => {
                let end = closing(rest)?;
                let inner = self.expression(function, &rest[1..end])?;
                rest = &rest[end + 1..];
                inner
            }
            [Word("this"), Sign("->"), Word(member), after @ ..] => {
                rest = after;
                self.members_named(self.class_of(function)?, member, 0)
            }
            [Word(name), after @ ..] => {
                rest = after;
                self.variables_named(function, name)
            }
            _ => return None,
        };
        while !rest.is_empty() {
            let targets = |of: Vec<Die>| of.into_iter().filter_map(|of| self.element(of)).collect();
            let members = |of: Vec<Die>, name: &str| {
                of.into_iter().flat_map(|of| self.members_named(of, name, 0)).collect()
            };
            (types, rest) = match rest {
                [Sign("."), Word(name), after @ ..] => (members(types, name), after),
                [Sign("->"), Word(name), after @ ..] => (members(targets(types), name), after),
                [Sign("["), ..] => {
                    let end = closing(rest)?;
                    (targets(types), &rest[end + 1..])
                }
                _ => return None,
            };
        }
        for _ in 0..stars {
            types = types.into_iter().filter_map(|of| self.element(of)).collect();
        }
        Some(types)
    }

    /// What a pointer points to, or an array holds.
    fn element(&self, of: Die) -> Option<Die> {
        self.target(of).or_else(|| self.element_of_array(of))
    }

    /// The types of the variables that `name` may mean in `function`: its own, members of its class, global ones.
    fn variables_named(&self, function: Die, name: &str) -> Vec<Die> {
        let mut found = Vec::new();
        for at in [function, self.declared(function)] {
            let _ = self.visit_within(at, |entry| {
                let is_variable =
                    matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
                if is_variable && self.name_in(at.unit, entry).is_some_and(|own| own == name) {
                    found.extend(self.reference(at.unit, entry, dw::DW_AT_type));
                }
                // What other functions declare that are inlined here is theirs.
                entry.tag() == dw::DW_TAG_lexical_block
            });
        }
        if found.is_empty() {
            let class = self.class_of(function);
            found = class.map_or_else(Vec::new, |class| self.members_named(class, name, 0));
        }
        if found.is_empty() {
            found = self.globals_named(function.unit, name);
        }
        found
    }

    /// The types of the global variables of `unit` that are called `name`.
    fn globals_named(&self, unit: u32, name: &str) -> Vec<Die> {
        let variables = self.index(unit).map_or(&[][..], |index| &index.variables);
        let of = |&(place, offset): &(super::Place, usize)| {
            place.within.is_none().then_some(())?;
            let variable = Die { unit, offset };
            (self.name(variable)? == name).then_some(())?;
            self.type_of(variable)
        };
        variables.iter().filter_map(of).collect()
    }

    /// The types of the members `name` of a struct, of its base classes too.
    fn members_named(&self, of: Die, name: &str, depth: usize) -> Vec<Die> {
        let mut found = Vec::new();
        let Some(record) = self.record_behind(of).filter(|_| depth < DEPTH_MAX) else {
            return found;
        };
        let mut inner = Vec::new();
        let _ = self.visit_within(record, |entry| {
            let of = self.reference(record.unit, entry, dw::DW_AT_type);
            match (entry.tag(), self.name_in(record.unit, entry)) {
                (dw::DW_TAG_member, Some(own)) if own == name => found.extend(of),
                (dw::DW_TAG_member, None) | (dw::DW_TAG_inheritance, _) => inner.extend(of),
                _ => {}
            }
            false
        });
        if found.is_empty() {
            found =
                inner.into_iter().flat_map(|of| self.members_named(of, name, depth + 1)).collect();
        }
        found
    }

    /// What gets the memory that `statement` allocates points to.
    fn received(&self, function: Die, statement: &[Token<'_>]) -> Vec<Die> {
        let assigned = statement.iter().enumerate().filter(|(_, token)| **token == Sign("="));
        let mut found = Vec::new();
        for (at, _) in assigned {
            let Some(cast) = self.cast(function, &statement[at + 1..]) else { continue };
            let variables =
                || self.expression(function, before(&statement[..at])).unwrap_or_default();
            let targets = || variables().into_iter().filter_map(|of| self.target(of)).collect();
            found.extend(if cast.is_empty() { targets() } else { cast });
        }
        if let [Word("return"), rest @ ..] = statement
            && let Some(cast) = self.cast(function, rest)
        {
            let result = || self.type_of(function).and_then(|result| self.target(result));
            found.extend(if cast.is_empty() { result().into_iter().collect() } else { cast });
        }
        found
    }

    /// What the result of an allocation is cast to a pointer to, if `tokens` are one and nothing else.
    fn cast(&self, function: Die, tokens: &[Token<'_>]) -> Option<Vec<Die>> {
        let mut rest = tokens;
        let mut found = Vec::new();
        loop {
            let (inner, after) = match rest {
                [Sign("("), ..] => {
                    let end = closing(rest)?;
                    (&rest[1..end], &rest[end + 1..])
                }
                [Word("static_cast" | "reinterpret_cast"), Sign("<"), ..] => {
                    let end = rest.iter().position(|token| *token == Sign(">"))?;
                    let after = &rest[end + 1..];
                    let call_end = closing(after)?;
                    (&rest[2..end], &after[1..call_end])
                }
                _ => break,
            };
            let [target @ .., Sign("*")] = inner else { return None };
            if found.is_empty() {
                found = self.named_type(function, target);
            }
            rest = after;
        }
        is_allocation(rest).then_some(found)
    }
}

/// The one of them, if all are of one kind.
fn only(mut contents: impl Iterator<Item = Content>) -> Option<Content> {
    let first = contents.next()?;
    let is_same = |other: Content| other.name == first.name && other.is_array == first.is_array;
    contents.all(is_same).then_some(first)
}

/// Where the bracket closes that `tokens` begin with.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Sign("(" | "[") => depth += 1,
            Sign(")" | "]") => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Where the bracket opens that `tokens` end with.
fn opening(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token {
            Sign(")" | "]") => depth += 1,
            Sign("(" | "[") => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The expression that `tokens` end with.
fn before<'s, 't>(tokens: &'s [Token<'t>]) -> &'s [Token<'t>] {
    let mut start = tokens.len();
    loop {
        match tokens[..start].last() {
            Some(Sign("]")) => match opening(&tokens[..start]) {
                Some(at) => start = at,
                None => return &[],
            },
            Some(Sign(")")) => {
                start = opening(&tokens[..start]).unwrap_or(start);
                break;
            }
            Some(Word(_)) => {
                start -= 1;
                match tokens[..start].last() {
                    Some(Sign("." | "->")) => start -= 1,
                    _ => break,
                }
            }
            _ => break,
        }
    }
    let stars = tokens[..start].iter().rev().take_while(|token| **token == Sign("*")).count();
    // Behind the name of a type they are part of a declaration.
    let is_declared = matches!(tokens[..start - stars].last(), Some(Word(_) | Sign(">")));
    if is_declared { &tokens[start..] } else { &tokens[start - stars..] }
}

/// Whether `tokens` begin with a call, whose result nothing else is done to, and that alone may allocate.
fn is_allocation(tokens: &[Token<'_>]) -> bool {
    let is_path = |token: &&Token<'_>| matches!(token, Word(_) | Sign("::" | "." | "->"));
    let path = tokens.iter().take_while(is_path).count();
    let Some(Word(name)) = path.checked_sub(1).map(|last| tokens[last]) else { return false };
    let call = &tokens[path..];
    let Some(end) = closing(call).filter(|_| call[0] == Sign("(")) else { return false };
    let has_call = call[1..end].windows(2).any(|pair| match pair {
        [Word("new"), _] => true,
        [Word(word), Sign("(")] => !MEASURES.contains(word),
        _ => false,
    });
    let is_alone = matches!(call.get(end + 1), None | Some(Sign(")" | ",")));
    is_alone && (!has_call || ALLOCATORS.contains(&name))
}

/// What `statement` measures and makes.
fn operands<'s, 't>(statement: &'s [Token<'t>]) -> Vec<Operand<'s, 't>> {
    let mut found = Vec::new();
    for (at, token) in statement.iter().enumerate() {
        let rest = &statement[at + 1..];
        match token {
            Word("sizeof") => found.extend(measured(statement, at)),
            Word("new") => found.extend(made(rest)),
            _ => {}
        }
    }
    found
}

/// What follows on the `sizeof` at `at`.
fn measured<'s, 't>(statement: &'s [Token<'t>], at: usize) -> Option<Operand<'s, 't>> {
    let rest = &statement[at + 1..];
    let (tokens, length) = match rest {
        [Sign("("), ..] => {
            let end = closing(rest)?;
            (&rest[1..end], end + 1)
        }
        _ => {
            let stars = rest.iter().take_while(|token| **token == Sign("*")).count();
            let mut end = stars + 1;
            loop {
                match rest.get(end) {
                    Some(Sign("." | "->")) => end += 2,
                    Some(Sign("[")) => end += closing(&rest[end..])? + 1,
                    _ => break,
                }
            }
            (rest.get(..end)?, end)
        }
    };
    let around = [at.checked_sub(1).and_then(|at| statement.get(at)), rest.get(length)];
    let has = |sign: &str| around.contains(&Some(&Sign(sign)));
    let (is_made, is_added) = (false, has("+"));
    Some(Operand { tokens, is_made, may_repeat: has("*") || has(","), is_added })
}

/// The type behind a `new`.
fn made<'s, 't>(tokens: &'s [Token<'t>]) -> Option<Operand<'s, 't>> {
    let mut rest = tokens;
    if let [Sign("("), ..] = rest {
        rest = &rest[closing(rest)? + 1..];
    }
    let (mut end, mut depth) = (0, 0_usize);
    while let Some(token) = rest.get(end) {
        match token {
            Sign("<") => depth += 1,
            Sign(">") if depth > 0 => depth -= 1,
            Word(_) | Sign("::") => {}
            Sign("," | "*" | "&") | Literal if depth > 0 => {}
            _ => break,
        }
        end += 1;
    }
    let may_repeat = rest.get(end) == Some(&Sign("["));
    // What is made is a pointer.
    let is_pointer = rest.get(end) == Some(&Sign("*"));
    let tokens = if is_pointer { &[] } else { &rest[..end] };
    Some(Operand { tokens, is_made: true, may_repeat, is_added: false })
}

/// The pieces of `text`, without comments.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, token) = token(rest, first);
        found.extend(token);
        rest = &rest[length..];
    }
    found
}

/// How long the piece is that `rest` begins with, and what it is, if it is not to be left out.
fn token(rest: &str, first: char) -> (usize, Option<Token<'_>>) {
    const PAIRS: [&str; 12] =
        ["->", "::", "==", "!=", "<=", ">=", "+=", "-=", "*=", "&&", "||", "++"];
    let until = |end: Option<usize>| end.unwrap_or(rest.len());
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    if rest.starts_with("//") {
        return (until(rest.find('\n')), None);
    }
    if rest.starts_with("/*") {
        return (until(rest.find("*/").map(|end| end + 2)), None);
    }
    if let Some(pair) = PAIRS.iter().find(|pair| rest.starts_with(**pair)) {
        return (pair.len(), Some(Sign(&rest[..pair.len()])));
    }
    match first {
        _ if first.is_whitespace() => (first.len_utf8(), None),
        '"' | '\'' => {
            let mut is_escaped = false;
            let end = rest[1..].find(|it: char| {
                let is_end = it == first && !is_escaped;
                is_escaped = it == '\\' && !is_escaped;
                is_end
            });
            (until(end.map(|end| end + 2)), Some(Literal))
        }
        _ if first.is_ascii_digit() => {
            (until(rest.find(|it: char| !is_part(it) && it != '.')), Some(Literal))
        }
        _ if is_part(first) => {
            let end = until(rest.find(|it: char| !is_part(it)));
            (end, Some(Word(&rest[..end])))
        }
        _ => (first.len_utf8(), Some(Sign(&rest[..first.len_utf8()]))),
    }
}
