//! What a piece of allocated memory holds, by the code that allocated it.
//!
//! Nobody says which type allocated memory gets. The function that allocates it tells: `std::allocator<T>` and
//! `Box<T>` by what they are instances of; a constructor that is the first to write there by its class; other functions
//! by the line that allocates, its types and the targets of its pointers. A type counts only if the memory has room for
//! it alone, or for a whole number of them. A function of C that only passes on what it got, as a `void *`, leaves it
//! to its caller.

use gimli::constants as dw;

use super::{DebugInfo, Die, Place};
use crate::shorten;

/// What memory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The type of what is there, or of each of them.
    pub of: Die,
    /// What that is called.
    pub name: String,
    /// How many bytes one has.
    pub size: u64,
    /// Whether there are several.
    pub is_array: bool,
}

/// What a function says of the memory that it allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Holds(Content),
    /// Its caller may know.
    Passes,
    /// Nobody knows.
    Unknown,
}

/// Functions of C++ that allocate for the class that they are in, by how the names of such classes begin.
const CPP_ALLOCATORS: [&str; 7] = [
    "vector<",
    "allocator<",
    "new_allocator<",
    "__new_allocator<",
    "allocator_traits<",
    "_Vector_base<",
    "_Base_manager<",
];

/// Functions that allocate what they are a template of.
const CPP_MAKERS: [&str; 3] = ["make_unique<", "make_shared<", "allocate_shared<"];

/// Names of what memory holds that are longer are shown without arguments.
const NAME_MAX: usize = 48;

/// The modules of Rust's library that allocate for others.
const RUST_MODULES: [&str; 7] = ["boxed", "sync", "rc", "vec", "raw_vec", "slice", "alloc"];

/// The modules whose blocks hold several of what they are generic of.
const RUST_ARRAYS: [&str; 3] = ["vec", "raw_vec", "slice"];

impl DebugInfo {
    /// How many functions are active at `probe`, inlined ones included.
    pub fn depth_at(&self, probe: u64) -> usize {
        self.ask(|| self.functions_at(probe).len())
    }

    /// What the function at `probe`, or the one that is `inlined` so many levels below the outermost, says of the `size`
    /// bytes that it allocates at the line `line` of its source, which reads `text`.
    pub fn answer(&self, probe: u64, level: usize, size: u64, (line, text): (u64, &str)) -> Answer {
        self.ask(|| {
            let Some(&function) = self.functions_at(probe).get(level) else {
                return Answer::Passes;
            };
            if self.is_of_library(function) {
                let found = self.by_instance(function, size);
                return found.map_or(Answer::Passes, Answer::Holds);
            }
            if self.passes_on(function) {
                return Answer::Passes;
            }
            let found = self.by_line(function, size, line, text);
            let found = found.or_else(|| self.by_result(function, size));
            found.map_or(Answer::Unknown, Answer::Holds)
        })
    }

    /// The class of a constructor at `probe`, if the class has `size` bytes.
    pub fn constructed(&self, probe: u64, size: u64) -> Option<Content> {
        self.ask(|| {
            let classes = self.functions_at(probe).into_iter().filter_map(|function| {
                let class = self.class_of(function)?;
                let (own, class_name) = (self.name(function)?, self.name(class)?);
                let is_constructor = class_name.split('<').next() == own.split('<').next();
                (is_constructor && self.size(class, 0) == Some(size)).then_some(class)
            });
            // The constructor of a base class comes first.
            let class = classes.reduce(
                |inner, outer| {
                    if self.is_base(inner, outer) { outer } else { inner }
                },
            )?;
            self.content(class, size, false)
        })
    }

    /// Whether `inner` is the first base class of `outer`.
    fn is_base(&self, inner: Die, outer: Die) -> bool {
        let mut is_base = false;
        let _ = self.visit_within(outer, |entry| {
            is_base |= entry.tag() == dw::DW_TAG_inheritance
                && self.reference(outer.unit, entry, dw::DW_AT_type) == Some(inner);
            false
        });
        is_base
    }

    /// What the function at `probe` that is not inlined is called in front of its variables.
    pub fn function_label(&self, probe: u64) -> Option<String> {
        self.ask(|| {
            let function = *self.functions_at(probe).last()?;
            let declared = self.declared(function);
            let mut at = declared;
            let name = self.name(declared)?;
            if name != "operator()" {
                return None;
            }
            // A lambda is within the function that makes it.
            for _ in 0..4 {
                at = self.parent(at)?;
                if self.entry(at)?.tag() == dw::DW_TAG_subprogram {
                    return Some(format!("{}::lambda", self.name(at)?));
                }
            }
            None
        })
    }

    /// The class that a function is a member of.
    fn class_of(&self, function: Die) -> Option<Die> {
        let declared = self.declared(function);
        let class = self.parent(declared)?;
        let tag = self.entry(class)?.tag();
        matches!(tag, dw::DW_TAG_class_type | dw::DW_TAG_structure_type).then_some(class)
    }

    /// Where a function was declared first.
    fn declared(&self, function: Die) -> Die {
        let mut at = function;
        for _ in 0..4 {
            let Some(entry) = self.entry(at) else { break };
            let origin = self.reference(at.unit, &entry, dw::DW_AT_abstract_origin);
            match origin.or_else(|| self.reference(at.unit, &entry, dw::DW_AT_specification)) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    fn is_of_library(&self, function: Die) -> bool {
        let scopes = self.scopes(self.declared(function));
        let first = scopes.first().map_or("", String::as_str);
        matches!(first, "std" | "__gnu_cxx" | "core" | "alloc")
    }

    /// By what a function of a library, or its class, is a template of.
    fn by_instance(&self, function: Die, size: u64) -> Option<Content> {
        let declared = self.declared(function);
        let name = self.name(declared)?;
        if self.is_rust(function.unit) {
            let scopes = self.scopes(declared);
            let is_in = |modules: &[&str]| scopes.iter().any(|scope| modules.contains(&&**scope));
            is_in(&RUST_MODULES).then_some(())?;
            let may_repeat = is_in(&RUST_ARRAYS);
            return self.parameters(function).find_map(|of| self.content(of, size, may_repeat));
        }
        if CPP_MAKERS.iter().any(|maker| name.starts_with(maker)) {
            return self.parameters(function).find_map(|of| self.content(of, size, false));
        }
        let class = self.class_of(function)?;
        let class_name = self.name(class)?;
        if name == "allocate" {
            let of = self.type_of(function).and_then(|result| self.target(result))?;
            return self.content(of, size, true);
        }
        CPP_ALLOCATORS.iter().any(|start| class_name.starts_with(start)).then_some(())?;
        let mut of = self.parameters(class).next()?;
        if self.name(of).is_some_and(|name| name.starts_with("allocator<")) {
            of = self.parameters(of).next()?;
        }
        self.content(of, size, !class_name.starts_with("_Base_manager<"))
    }

    /// The types that a function or class is a template of.
    fn parameters(&self, of: Die) -> std::vec::IntoIter<Die> {
        let mut found = Vec::new();
        let mut at = of;
        for _ in 0..4 {
            let _ = self.visit_within(at, |entry| {
                if entry.tag() == dw::DW_TAG_template_type_parameter {
                    found.extend(self.reference(at.unit, entry, dw::DW_AT_type));
                }
                false
            });
            let Some(entry) = self.entry(at).filter(|_| found.is_empty()) else { break };
            let origin = self.reference(at.unit, &entry, dw::DW_AT_abstract_origin);
            let Some(next) =
                origin.or_else(|| self.reference(at.unit, &entry, dw::DW_AT_specification))
            else {
                break;
            };
            at = next;
        }
        found.into_iter()
    }

    /// Something of type `of` in `size` bytes; several, if there `may` be.
    fn content(&self, of: Die, size: u64, may_repeat: bool) -> Option<Content> {
        let own = self.size(of, 0).filter(|&own| own > 0)?;
        let is_array = own < size;
        let fits = own == size || may_repeat && size.is_multiple_of(own);
        fits.then_some(())?;
        let name = self.type_name(of)?;
        Some(Content { of, name: content_name(&name), size: own, is_array })
    }

    /// By the words in the line that allocates: types, and variables that point to some.
    fn by_line(&self, function: Die, size: u64, line: u64, text: &str) -> Option<Content> {
        let text = text.split("//").next().unwrap_or("");
        let (pointers, declared) = self.pointers(function, line);
        let targets = |word: &str| {
            let named = pointers.iter().filter(move |(name, _)| name == word);
            named.map(|&(_, of)| of).collect::<Vec<Die>>()
        };
        let types = |word: &str| self.types_named(function.unit, word);
        // What the line measures or makes comes first, then where it puts that.
        let measured: Vec<Die> =
            measured(text).flat_map(|word| types(word).into_iter().chain(targets(word))).collect();
        let globals = |word: &str| self.globals_named(function.unit, word);
        let assigned = words(text).flat_map(|word| targets(word).into_iter().chain(globals(word)));
        let assigned: Vec<Die> = assigned.chain(declared).collect();
        for may_repeat in [false, true] {
            let content = |&of: &Die| self.content(of, size, may_repeat);
            let found = measured.iter().chain(&assigned).find_map(content);
            if found.is_some() {
                return found;
            }
            // Of other types that are named there, only one that can hardly be meant otherwise.
            let is_rare = |content: &Content| !may_repeat && content.size > 8;
            let mut others = words(text).flat_map(types).filter_map(|of| content(&of));
            if let Some(found) = others.find(is_rare) {
                return Some(found);
            }
        }
        self.by_member(function, size, &words(text).collect::<Vec<&str>>())
    }

    /// What the global variables of `unit` that are called `name` point to.
    fn globals_named(&self, unit: u32, name: &str) -> Vec<Die> {
        let variables = self.index(unit).map_or(&[][..], |index| &index.variables);
        let target = |&(place, offset): &(Place, usize)| {
            place.within.is_none().then_some(())?;
            let variable = Die { unit, offset };
            (self.name(variable)? == name).then_some(())?;
            self.target(self.type_of(variable)?)
        };
        variables.iter().filter_map(target).collect()
    }

    /// By a member that the line names, of one of the types that the function's pointers lead to.
    fn by_member(&self, function: Die, size: u64, words: &[&str]) -> Option<Content> {
        let (pointers, _) = self.pointers(function, 0);
        let owners = pointers.iter().filter(|(name, _)| words.contains(&&**name) || name == "this");
        let members: Vec<(String, Die)> =
            owners.flat_map(|&(_, of)| self.pointers_of_record(of)).collect();
        for may_repeat in [false, true] {
            for (name, of) in &members {
                let content = self.content(*of, size, may_repeat);
                if let Some(content) = content.filter(|_| words.contains(&&**name)) {
                    return Some(content);
                }
            }
        }
        None
    }

    /// By what the function returns, or the only type of this size that its pointers lead to.
    fn by_result(&self, function: Die, size: u64) -> Option<Content> {
        let result = self.type_of(function).and_then(|result| self.target(result));
        let content = result.and_then(|of| self.content(of, size, false));
        if content.as_ref().is_some_and(|content| content.size > 1) {
            return content;
        }
        let (pointers, _) = self.pointers(function, 0);
        let mut found: Vec<Content> =
            pointers.iter().filter_map(|&(_, of)| self.content(of, size, false)).collect();
        found.dedup_by(|second, first| second.name == first.name);
        match &found[..] {
            [content] if content.size > 1 => Some(content.clone()),
            _ => None,
        }
    }

    /// Whether a function returns memory of no type, of a size that it was given.
    fn passes_on(&self, function: Die) -> bool {
        let mut is_given_size = false;
        let declared = self.declared(function);
        let _ = self.visit_within(declared, |entry| {
            let of = self.reference(declared.unit, entry, dw::DW_AT_type);
            let is_parameter = entry.tag() == dw::DW_TAG_formal_parameter;
            is_given_size |= is_parameter && of.is_some_and(|of| !self.is_address(of));
            false
        });
        let Some(result) = self.type_of(function).filter(|_| is_given_size) else { return false };
        let Some(target) = self.target(result) else { return self.is_pointer(result) };
        self.size(target, 0).is_none_or(|size| size <= 1)
    }

    /// Whether a type is that of a pointer, whatever it points to.
    fn is_address(&self, of: Die) -> bool {
        self.target(of).is_some() || self.is_pointer(of)
    }

    fn is_pointer(&self, of: Die) -> bool {
        self.entry(of).is_some_and(|entry| entry.tag() == dw::DW_TAG_pointer_type)
    }

    /// The variables of a function that are pointers to something, and what those point to that are declared at `line`.
    fn pointers(&self, function: Die, line: u64) -> (Vec<(String, Die)>, Vec<Die>) {
        let (mut named, mut declared) = (Vec::new(), Vec::new());
        let origin = self.declared(function);
        for at in [function, origin] {
            let _ = self.visit_within(at, |entry| {
                let is_variable =
                    matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
                let of = is_variable.then(|| self.reference(at.unit, entry, dw::DW_AT_type));
                if let Some(of) = of.flatten()
                    && let Some(name) = self.name_in(at.unit, entry)
                    && let Some(target) = self.target(of)
                {
                    let declared_at = entry.attr_value(dw::DW_AT_decl_line);
                    if line != 0 && declared_at.and_then(|at| at.udata_value()) == Some(line) {
                        declared.push(target);
                    }
                    named.push((name, target));
                }
                // What other functions declare that are inlined here is theirs.
                entry.tag() == dw::DW_TAG_lexical_block
            });
            if at == origin {
                break;
            }
        }
        (named, declared)
    }
}

/// What memory is called that holds something of the type `name`: of what containers wrap only that.
fn content_name(name: &str) -> String {
    const COUNTED: &str = "std::_Sp_counted_ptr_inplace<";
    const NODES: [&str; 5] = [
        "std::_Rb_tree_node<",
        "std::_List_node<",
        "std::__detail::_Hash_node<",
        "std::_Fwd_list_node<",
        "std::__detail::_Hash_node_value<",
    ];
    if let Some(inner) = name.strip_prefix(COUNTED) {
        return content_name(first_argument(inner));
    }
    if name == "std::__detail::_Hash_node_base*" {
        return "bucket".to_owned();
    }
    let Some(inner) = NODES.iter().find_map(|node| name.strip_prefix(node)) else {
        let name = name.replace(", ", ",");
        return if name.len() > NAME_MAX { shorten::without_arguments(&name) } else { name };
    };
    let held = first_argument(inner);
    let pair = held.strip_prefix("std::pair<").and_then(|pair| pair.strip_suffix('>'));
    let held = pair.unwrap_or(held).replace("const ", "").replace(" const", "");
    format!("node<{}>", held.replace(", ", ","))
}

/// The first of the arguments that `text` starts with, up to the comma or bracket behind it.
fn first_argument(text: &str) -> &str {
    let mut depth = 0_usize;
    for (place, character) in text.char_indices() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' | ',' if depth == 0 => return &text[..place],
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text
}

/// The identifiers in a line of source.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with(|first: char| first.is_alphabetic() || first == '_'))
}

/// The identifiers in a line of source that follow on `sizeof` or `new`.
fn measured(text: &str) -> impl Iterator<Item = &str> {
    let ends =
        |word: &str| text.match_indices(word).map(|(at, _)| at + word.len()).collect::<Vec<_>>();
    let starts = [ends("sizeof"), ends("new ")].concat();
    starts.into_iter().flat_map(|start| {
        let rest = &text[start..];
        let length = rest.find([')', ';', '{', '[']).unwrap_or(rest.len());
        words(&rest[..length])
    })
}
