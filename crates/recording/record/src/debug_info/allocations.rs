//! What a piece of allocated memory holds, by the code that allocated it.
//!
//! Nobody says which type allocated memory gets. The function that allocates it tells: `std::allocator<T>` and
//! `Box<T>` by what they are instances of; other functions by the statement that allocates ([`statements`]); a
//! constructor that is the first to write there by its class. A type counts only if the memory has room for
//! it alone, or for a whole number of them. A function that only passes on what it got, as a `void *`, leaves it
//! to its caller.
//!
//! [`statements`]: super::statements

use gimli::constants as dw;

use super::statements::Said;
use super::{DebugInfo, Die};
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
    /// Where the first of them begins.
    pub start: u64,
}

/// What a function says of the memory that it allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Holds(Content),
    /// Unless a constructor says otherwise.
    SeemsToHold(Content),
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

    /// What the function at `probe` that is so many levels above the innermost inlined one says of the `size` bytes that
    /// it allocates in a statement of its source, which reads `text`.
    pub fn answer(&self, probe: u64, level: usize, size: u64, text: &str) -> Answer {
        self.ask(|| {
            let Some(&function) = self.functions_at(probe).get(level) else {
                return Answer::Passes;
            };
            if self.is_of_library(function) {
                let found = self.by_instance(function, size);
                return found.map_or(Answer::Passes, Answer::Holds);
            }
            // What a statement of Rust allocates is made by Rust's library.
            let said = (!self.is_rust(function.unit)).then(|| self.said(function, size, text));
            let said = said.flatten();
            if self.passes_on(function) {
                return match said {
                    Some(Said::Measures(content)) if content.size > 1 => Answer::Holds(content),
                    // Numbers may be what the function keeps for itself in front of the memory.
                    Some(Said::Receives(content)) if self.is_record(content.of) => {
                        Answer::SeemsToHold(content)
                    }
                    _ => Answer::Passes,
                };
            }
            match said {
                Some(Said::Measures(content) | Said::Begins(content)) => Answer::Holds(content),
                Some(Said::Receives(content)) => Answer::SeemsToHold(content),
                None => Answer::Unknown,
            }
        })
    }

    /// The class of a constructor at `probe`, if the class has `size` bytes. Functions that `maker` is in, too, have
    /// begun before the memory was allocated.
    pub fn constructed(&self, probe: u64, maker: Option<u64>, size: u64) -> Option<Content> {
        self.ask(|| {
            let around = maker.map_or_else(Vec::new, |maker| self.functions_at(maker));
            let mut functions = self.functions_at(probe);
            functions.retain(|function| !around.contains(function));
            let classes = functions.into_iter().filter_map(|function| {
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
    pub(super) fn class_of(&self, function: Die) -> Option<Die> {
        let declared = self.declared(function);
        let class = self.parent(declared)?;
        let tag = self.entry(class)?.tag();
        matches!(tag, dw::DW_TAG_class_type | dw::DW_TAG_structure_type).then_some(class)
    }

    /// Where a function was declared first.
    pub(super) fn declared(&self, function: Die) -> Die {
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
    pub(super) fn content(&self, of: Die, size: u64, may_repeat: bool) -> Option<Content> {
        let own = self.size(of, 0).filter(|&own| own > 0)?;
        let is_array = own < size;
        let fits = own == size || may_repeat && size.is_multiple_of(own);
        fits.then_some(())?;
        let name = self.type_name(of)?;
        Some(Content { of, name: content_name(&name), size: own, is_array, start: 0 })
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
