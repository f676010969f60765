//! Names of a small program, and that damage ends no question.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use object::ObjectSymbol;
use reweave_base::Rng;

use super::allocations::Answer;
use super::*;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <pthread.h>
struct node { struct node *next; union { int small; double large; }; unsigned a : 3, b : 5; char text[3][4]; };
typedef struct { pthread_mutex_t lock; struct node nodes[4]; struct { long reads, writes; } counts; } Table;
Table table;
struct other { double cells[4]; };
struct other *other, *others[2];
static int *numbers;
void *wrap(size_t size) { return malloc(size); }
int main(void) {
    struct node local = {0};
    struct node *made = wrap(sizeof *made);
    numbers = calloc(8, sizeof(int));
    made->next = &local;
    return made == 0;
}
"#;

type Sections = BTreeMap<String, Vec<u8>>;

/// The sections of the program, by name, and the addresses of its symbols; nothing without a compiler.
fn program() -> Option<(Sections, BTreeMap<String, u64>)> {
    built("a.c", PROGRAM, "cc")
}

/// The same of what `compiler` makes of `source`, in the file `name`.
fn built(name: &str, source: &str, compiler: &str) -> Option<(Sections, BTreeMap<String, u64>)> {
    built_with(name, source, compiler, "-O0")
}

/// The same, at `level` of optimisation.
fn built_with(
    name: &str,
    source: &str,
    compiler: &str,
    level: &str,
) -> Option<(Sections, BTreeMap<String, u64>)> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), source).unwrap();
    let words = ["-g", level, "-gdwarf-5", name, "-o", "a", "-pthread"];
    let built = Command::new(compiler).args(words).current_dir(folder.path()).status();
    built.is_ok_and(|status| status.success()).then_some(())?;
    let file = fs::read(folder.path().join("a")).unwrap();
    let object = object::File::parse(&*file).unwrap();
    let sections = object.sections().map(|section| {
        (section.name().unwrap().to_owned(), section.data().unwrap_or_default().to_vec())
    });
    let symbols = object.symbols().map(|it| (it.name().unwrap().to_owned(), it.address()));
    Some((sections.collect(), symbols.collect()))
}

fn debug_info(sections: &Sections) -> Option<DebugInfo> {
    let section = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
        let data = sections.get(id.name()).cloned().unwrap_or_default();
        Ok(Slice::new(Arc::from(data), gimli::RunTimeEndian::Little))
    };
    DebugInfo::new(gimli::Dwarf::load(section).ok()?)
}

/// A class that is only declared in the debug information, as clang leaves those of libraries.
#[test]
fn a_member_of_unknown_type_has_its_name() {
    let source = "#include <condition_variable>\n#include <mutex>\n\
        struct Queue { long size; std::condition_variable ready; std::mutex lock; int last; };\n\
        Queue queue;\nint main() { return queue.last; }\n";
    for compiler in ["g++", "clang++"] {
        let Some((sections, symbols)) = built("a.cpp", source, compiler) else { continue };
        let info = debug_info(&sections).unwrap();
        let queue = info.variable_at(symbols["queue"]).unwrap().of;
        assert_eq!(info.object_path(queue, 8), ".ready", "{compiler}");
        assert_eq!(info.object_path(queue, 56), ".lock", "{compiler}");
        assert_eq!(info.path(queue, 96, 4), ".last", "{compiler}");
    }
}

/// Clang gives each member of a static struct a place of its own where nobody has the address of the whole.
#[test]
fn members_that_are_placed_by_themselves_are_known() {
    let source = "struct totals { long orders; struct { long grams; int pallets; } weight; };\n\
        static struct totals totals;\n\
        int main(int count, char **words) { totals.orders += count; totals.weight.pallets += **words;\n\
            totals.weight.grams += count; return totals.orders + totals.weight.grams > totals.weight.pallets; }\n";
    let Some((sections, symbols)) = built_with("a.c", source, "clang", "-O2") else { return };
    let info = debug_info(&sections).unwrap();
    let pieces = symbols.iter().filter(|(name, _)| name.starts_with("totals."));
    let names = pieces.filter_map(|(_, &address)| {
        let Variable { of, within } = info.variable_at(address)?;
        Some(info.path(of, within?, 4))
    });
    let names: Vec<String> = names.collect();
    assert!(
        names.is_empty() || names == [".orders", ".weight.grams", ".weight.pallets"],
        "{names:?}"
    );
}

#[test]
fn bytes_are_called_as_in_the_source() {
    let Some((sections, symbols)) = program() else { return };
    let info = debug_info(&sections).unwrap();
    let table = info.variable_at(symbols["table"]).unwrap().of;
    let start = info.size(table, 0).unwrap() - 16 - 4 * 32;
    let cases = [
        (start, 8, ".nodes[0].next"),
        (start + 32 + 8, 4, ".nodes[1].small"),
        (start + 32 + 8, 8, ".nodes[1].large"),
        (start + 16, 1, ".nodes[0].a/b"),
        (start + 17 + 4 + 2, 1, ".nodes[0].text[1][2]"),
        (start + 4 * 32 + 8, 8, ".counts.writes"),
        (start + 4 * 32, 16, ".counts"),
        (start + 8, 16, ".nodes[0].large..text"),
        (0, 4, ".lock"),
        (start + 8 + 6, 1, ".nodes[0].large+6"),
    ];
    for (offset, size, expected) in cases {
        assert_eq!(info.path(table, offset, size), expected, "{offset} {size}");
    }
    assert_eq!(info.object_path(table, 0), ".lock");
}

#[test]
fn memory_is_called_by_what_its_allocation_is_for() {
    let Some((sections, symbols)) = program() else { return };
    let info = debug_info(&sections).unwrap();
    let main = symbols["main"] + 8;
    let name = |size, line| match info.answer(main, 0, size, line) {
        Answer::Holds(content) | Answer::SeemsToHold(content) => {
            Some((content.name, content.is_array))
        }
        Answer::Passes | Answer::Unknown => None,
    };
    assert_eq!(name(32, "struct node *made = wrap(sizeof *made);"), Some(("node".into(), false)));
    assert_eq!(name(32, "numbers = calloc(8, sizeof(int));"), Some(("int".into(), true)));
    assert_eq!(name(33, "numbers = calloc(8, sizeof(int));"), None);
    assert_eq!(name(7, ""), None);
    let node = Some(("node".to_owned(), false));
    let other = Some(("other".to_owned(), false));
    let pointers = Some(("other*".to_owned(), true));
    let cases = [
        (32, "made->next = malloc(size);", &node),
        (32, "table.nodes[2].next = (void *)wrap(size);", &node),
        (32, "(*made).next = other ? made : malloc(size);", &None),
        (32, "others[1] = malloc(size);", &other),
        (32, "if (!(other = malloc(strlen(\"a;b\") + 1))) abort();", &other),
        (32, "for (i = 0; i < 2; i++) others[i] = malloc(size);", &other),
        (16, "struct other **more = calloc(2, sizeof(struct other *));", &None),
        (32, "keep(NEW(struct node));", &node),
        (32, "keep(NEW(struct node), NEW(struct other));", &None),
        (32, "made = malloc(sizeof(struct node)), other = malloc(sizeof(struct other));", &None),
        (32, "made = malloc(sizeof(struct node)), numbers = malloc(2 * sizeof(int));", &None),
        (32, "other = first(second(size));", &None),
        (32, "other = malloc(sizeof *made);", &node),
        (32, "other = malloc(sizeof *made->next /* other */);", &node),
        (37, "made = malloc(sizeof(struct node) + 5);", &node),
        (37, "made = malloc(size);", &None),
        (32, "use(malloc(size));", &None),
        (32, "other = malloc(((((((", &None),
        (32, "= * sizeof sizeof ( new <", &None),
    ];
    for (size, statement, expected) in cases {
        assert_eq!(name(size, statement), *expected, "{statement}");
    }
    assert_eq!(name(48, "others[0] = malloc(size);"), None);
    assert_eq!(name(16, "table = malloc(2 * sizeof others[0]);"), pointers);
    assert_eq!(info.answer(symbols["wrap"] + 8, 0, 40, "malloc(size)"), Answer::Passes);
}

/// Asks all there is to ask.
fn ask_all(info: &DebugInfo, symbols: &BTreeMap<String, u64>) {
    for &address in symbols.values() {
        if let Some(Variable { of, .. }) = info.variable_at(address) {
            for offset in [0, 1, 40, 100, u64::MAX] {
                for size in [1, 4, 8, 100, u64::MAX] {
                    info.path(of, offset, size);
                }
                info.object_path(of, offset);
            }
        }
        info.constructed(address + 8, None, 40);
        info.function_label(address + 8);
        for level in 0..info.depth_at(address + 8) {
            info.answer(address + 8, level, 40, "made = wrap(sizeof *made)");
        }
        for place in [-1, -40, i64::MIN, i64::MAX] {
            if let Some(local) = info.local(address + 8, place) {
                info.path(local.of, local.offset, 4);
            }
        }
    }
}

#[test]
fn damaged_debug_information_ends_no_question() {
    let Some((sections, symbols)) = program() else { return };
    let mut symbols = symbols;
    symbols.retain(|name, _| ["main", "wrap", "table", "numbers"].contains(&name.as_str()));
    let mut random = Rng::new(1);
    for round in 0..300_u32 {
        let mut sections = sections.clone();
        for name in [".debug_info", ".debug_abbrev", ".debug_str", ".debug_rnglists"] {
            let Some(data) = sections.get_mut(name).filter(|data| !data.is_empty()) else {
                continue;
            };
            let length = data.len();
            if round % 3 == 0 {
                data.truncate(random.below(length));
            } else {
                for _ in 0..1 + round % 5 {
                    let at = random.below(length);
                    data[at] = random.below(256) as u8;
                }
            }
        }
        if let Some(info) = debug_info(&sections) {
            ask_all(&info, &symbols);
        }
    }
}
