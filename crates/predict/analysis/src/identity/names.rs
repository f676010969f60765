//! What things are called for as long as the program has them.

use reweave_trace::{DESCRIPTOR, Frame, LIBRARY, NAMELESS, Names, ObjectId, Place, counted_life};

use super::Reach;

/// What something is called for as long as the program has it.
pub(super) struct Name {
    pub(super) text: String,
    /// Whether nothing else has this name.
    pub(super) is_known: bool,
    /// Whether several things of one run may have it: elements, objects of a type.
    pub(super) is_folded: bool,
}

impl Name {
    /// What goes without saying, such as a thread, which has a number.
    pub(super) const EMPTY: Self = Self { text: String::new(), is_known: true, is_folded: false };

    /// This, at `place`.
    pub(super) fn with(&self, place: &str) -> String {
        format!("{}\n{place}", self.text)
    }

    /// Its text, if that is all that has to be said.
    pub(super) fn if_known(&self) -> &str {
        if self.is_known { &self.text } else { "" }
    }
}

/// What an object is, as its name says.
pub(super) enum Made<'t> {
    /// The stack of a thread.
    Stack,
    /// Memory of which nobody knows what it holds, or a file; by its word.
    Anonymous(&'static str),
    /// What stands for the life of a thing: the thing's word, and its name.
    Handle(&'t str, &'t str),
    /// An object of a type, or a variable.
    Typed,
}

impl<'t> Made<'t> {
    /// Recorders keep the names that are none of a type for what they stand for.
    pub(super) fn new(names: &'t Names, object: ObjectId) -> Self {
        let name = names.objects.name(object);
        match counted_life(name) {
            Some((LIBRARY, own)) => return Self::Handle(LIBRARY, own),
            Some((word, _)) => return Self::Anonymous(word),
            None => {}
        }
        if names.is_handle(object) {
            let inner = name.strip_suffix(')').and_then(|name| name.split_once('('));
            return inner.map_or(Self::Anonymous(DESCRIPTOR), |(word, it)| Self::Handle(word, it));
        }
        match nameless_word(name) {
            Some(word @ ("block" | "frame")) => Self::Anonymous(word),
            Some("stack") => Self::Stack,
            _ => Self::Typed,
        }
    }
}

/// The word that stands in `name` for a name: `block` in `block#1`, `block@a.c:3#1` and `block#1+8`; none if it is a name.
fn nameless_word(name: &str) -> Option<&'static str> {
    if name.starts_with("stack(") {
        return Some("stack");
    }
    let has_number = |word: &&'static str| {
        let rest = name.strip_prefix(*word).unwrap_or("");
        (*word == "block" && rest.starts_with('@'))
            || rest.strip_prefix('#').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    };
    NAMELESS.into_iter().find(has_number)
}

/// What something that is no part of an object is called.
pub(super) fn plain(name: &str, reach: Reach) -> Name {
    let word = nameless_word(name);
    let is_address = name.starts_with("0x");
    if is_address || word.is_some() {
        let text = match (reach, word) {
            (_, None) => String::new(),
            (Reach::Trace, Some(word)) if !matches!(word, "memory" | "stack") => name.to_owned(),
            (_, Some(word)) => word.to_owned(),
        };
        return Name { text, is_known: false, is_folded: true };
    }
    let folded = folded(name);
    let is_folded = folded != name;
    let text = if reach == Reach::Traces { without_file(&folded) } else { folded };
    Name { text, is_known: true, is_folded }
}

/// `names`, each once.
pub(super) fn joined(names: impl Iterator<Item = Name>) -> Name {
    let (mut texts, all) = gathered(names);
    texts.sort_unstable();
    texts.dedup();
    Name { text: texts.join("\n"), ..all }
}

/// `names`, which follow each other in a cycle, from wherever it is read.
pub(super) fn cycle(names: impl Iterator<Item = Name>) -> Name {
    let (mut texts, all) = gathered(names);
    turn(&mut texts);
    Name { text: texts.join("\n"), ..all }
}

/// The texts of `names`, and what holds of all together.
fn gathered(names: impl Iterator<Item = Name>) -> (Vec<String>, Name) {
    let (mut texts, mut all) = (Vec::new(), Name::EMPTY);
    for name in names {
        all.is_known &= name.is_known;
        all.is_folded |= name.is_folded;
        texts.push(name.text);
    }
    (texts, all)
}

/// Reads `cycle` from the place that gives the least.
pub(super) fn turn<T: Ord>(cycle: &mut [T]) {
    let turned = |by: &usize| cycle[*by..].iter().chain(&cycle[..*by]);
    let least = (0..cycle.len()).min_by(|one, other| turned(one).cmp(turned(other)));
    cycle.rotate_left(least.unwrap_or(0));
}

/// `name` without what tells equals apart: numbers of objects and of lives, indices of elements, addresses; members of libraries.
pub(super) fn folded(name: &str) -> String {
    // What is inside of an object of GNU's C++ library is not the program's.
    let name = name.split("._M_").next().unwrap_or(name);
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(['#', '\'', '[', '@']) {
        let (before, mark) = rest.split_at(at);
        text += before;
        let after = &mark[1..];
        let inner = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let is_number = inner.len() < after.len();
        let range =
            inner.strip_prefix("..").map(|it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
        rest = match (
            &mark[..1],
            inner.strip_prefix(']'),
            range.and_then(|it| it.strip_prefix(']')),
        ) {
            ("[", Some(inner), _) if is_number => {
                text += "[]";
                inner
            }
            ("[", None, Some(inner)) if is_number => {
                text += "[..]";
                inner
            }
            ("#" | "'", ..) if is_number => inner,
            ("@", ..) if after.starts_with("0x") => {
                after[2..].trim_start_matches(|letter: char| letter.is_ascii_hexdigit())
            }
            (mark, ..) => {
                text += mark;
                after
            }
        };
    }
    text + rest
}

/// The member that `name` says, if it is one of a local variable: code that is handed such variables of several functions
/// has one fault.
pub(super) fn member_of_local(name: &str) -> &str {
    let Some((_, local)) = name.rsplit_once("().") else { return name };
    local.find('.').map_or(name, |at| &local[at..])
}

/// `name` without the file that tells it from others: `count` of `count@src/bank.c`.
fn without_file(name: &str) -> String {
    let Some((own, file)) = name.split_once('@') else { return name.to_owned() };
    // The name of a file ends with its extension; members of the variable come behind it.
    let stem = file.rfind('/').map_or(0, |at| at + 1);
    let extension = file[stem..].find('.').map_or(file.len(), |at| stem + at + 1);
    let end = file[extension..].find(|letter: char| !letter.is_alphanumeric());
    format!("{own}{}", end.map_or("", |end| &file[extension + end..]))
}

/// The name of a function without what compilers add: offsets, clones, numbers of closures.
pub(super) fn lasting_function(name: &str) -> String {
    let name = name.split("+0x").next().unwrap_or(name);
    let clones = [".constprop.", ".part.", ".isra.", ".cold", ".llvm."];
    let end = clones.iter().filter_map(|clone| name.find(clone)).min().unwrap_or(name.len());
    folded(&name[..end])
}

/// Whether `frame` is of the program itself, as far as its place says.
pub(super) fn is_of_program(frame: &Frame<'_>) -> bool {
    let libraries = ["/usr/include/", "/usr/lib/", "std/src/", "core/src/", "alloc/src/"];
    frame.location.is_some_and(|place| {
        Place::new(place).is_some() && !libraries.iter().any(|start| place.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tells_equals_apart_is_no_part_of_a_name() {
        for (name, expected) in [
            ("stats.bytes", "stats.bytes"),
            ("slots[3].next", "slots[].next"),
            ("last._M_string_length", "last"),
            ("grid[1][22]", "grid[][]"),
            ("buffer[16..4096]", "buffer[..]"),
            ("Item#12.refs", "Item.refs"),
            ("x'2", "x"),
            ("x@0x4010+8", "x+8"),
            ("count@src/bank.c", "count@src/bank.c"),
            ("map[key].value", "map[key].value"),
            ("a[1", "a[1"),
            ("größe[1..2]#x'", "größe[..]#x'"),
        ] {
            assert_eq!(folded(name), expected, "{name}");
        }
        for (name, expected) in [
            ("count@src/bank.c", "count"),
            ("count@bank.c+8", "count+8"),
            ("count@bank.c.next", "count.next"),
            ("count@Makefile", "count"),
        ] {
            assert_eq!(without_file(name), expected, "{name}");
        }
    }

    #[test]
    fn members_of_local_variables_go_by_themselves() {
        for (name, expected) in [
            ("run().signal.flags", ".flags"),
            ("run().hits", "run().hits"),
            ("stats.hits", "stats.hits"),
        ] {
            assert_eq!(member_of_local(name), expected);
        }
    }

    #[test]
    fn what_compilers_add_is_no_part_of_a_function() {
        for (name, expected) in [
            ("work.constprop.0", "work"),
            ("work.isra.0.cold", "work"),
            ("libx.so.1+0x1234", "libx.so.1"),
            ("bank::main::{closure#0}", "bank::main::{closure}"),
            ("operator[]", "operator[]"),
        ] {
            assert_eq!(lasting_function(name), expected, "{name}");
        }
    }

    #[test]
    fn a_cycle_begins_anywhere() {
        let of = |mut names: [&'static str; 3]| {
            turn(&mut names);
            names
        };
        assert_eq!(of(["b", "c", "a"]), of(["a", "b", "c"]));
        assert_ne!(of(["b", "a", "c"]), of(["a", "b", "c"]));
    }
}
