//! What debug information says of data: which variables there are, what types they have, and which functions use
//! them.
//!
//! The question: what does a programmer call some bytes of a variable, of allocated memory or of a function's frame?
//!
//! The idea: a file is read unit by unit, each when it is first needed, into small tables of where its functions and
//! variables are. Types are followed from entry to entry ([`paths`]). What a piece of allocated memory holds follows
//! from the function that allocates it ([`allocations`]).
//!
//! Promised: damaged debug information gives no answers, or wrong names, but ends no run: every walk is bounded in
//! depth and in entries read. What was split off into other files or compressed has no types.
//!
//! The cost: the sections of a file are read when it is first asked about, each unit once where the address of a
//! variable is looked for, and the types that names need. Functions are found by bisection ([`ranges`]).

pub mod allocations;
mod locals;
pub mod paths;
mod ranges;
mod statements;
#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, DwAt, DwTag, constants as dw};
use object::{Object, ObjectSection};
use reweave_base::FxHashMap;

pub use locals::Local;
use ranges::Ranges;

type Slice = gimli::EndianArcSlice<gimli::RunTimeEndian>;
type Entry = gimli::DebuggingInformationEntry<Slice>;
type Unit = gimli::Unit<Slice>;
type VariablesByAddress = FxHashMap<u64, (Die, Option<u64>)>;

/// Files with more debug information than this have no types.
const BYTES_MAX: u64 = 1 << 29;

/// No question reads more entries than this.
const ENTRIES_MAX: u32 = 1 << 20;

/// Types that refer to each other are followed so far.
const DEPTH_MAX: usize = 48;

/// An entry: its unit, and where it is in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Die {
    unit: u32,
    offset: usize,
}

/// A function, or what was inlined of one, that a piece of code is of: how deep its entry is, and where.
#[derive(Clone, Copy, Debug)]
struct Code {
    depth: isize,
    entry: usize,
}

/// Where a variable begins, or the piece of it that begins so many bytes into it.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    within: Option<u64>,
}

/// What begins at an address: a variable of this type, or the piece of it that begins so many bytes into it.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub of: Die,
    pub within: Option<u64>,
}

/// Where things are in a unit.
#[derive(Debug, Default)]
struct Index {
    /// Of functions, types and name spaces: the entry around each.
    parents: FxHashMap<usize, usize>,
    code: Ranges<Code>,
    /// Where its variables are, and their entries.
    variables: Vec<(Place, usize)>,
    /// Its types that have definitions.
    types: Vec<usize>,
}

/// A unit, read as far as it was needed.
struct Slot {
    header: gimli::UnitHeader<Slice>,
    start: usize,
    unit: OnceCell<Option<Unit>>,
    index: OnceCell<Index>,
    /// The types by their names without scopes.
    names: OnceCell<FxHashMap<String, Vec<usize>>>,
}

/// The debug information of a file. See the [module](self).
pub struct DebugInfo {
    dwarf: gimli::Dwarf<Slice>,
    slots: Vec<Slot>,
    /// Which unit has the code at an address.
    ranges: OnceCell<Ranges<u32>>,
    /// How many units were looked through, and their variables, by address.
    variables: RefCell<(usize, VariablesByAddress)>,
    records: RefCell<FxHashMap<Die, Option<Rc<paths::Record>>>>,
    /// How many entries may still be read for the question that is being answered.
    fuel: Cell<u32>,
    /// How many types are being read, each for the one before.
    nesting: Cell<usize>,
}

impl DebugInfo {
    /// That of `object`, if it has some.
    pub fn read<'a>(object: &impl Object<'a>) -> Option<Self> {
        let endian = gimli::RunTimeEndian::Little;
        let section = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let wanted = matches!(
                id,
                gimli::SectionId::DebugInfo
                    | gimli::SectionId::DebugAbbrev
                    | gimli::SectionId::DebugLine
                    | gimli::SectionId::DebugStr
                    | gimli::SectionId::DebugLineStr
                    | gimli::SectionId::DebugStrOffsets
                    | gimli::SectionId::DebugAddr
                    | gimli::SectionId::DebugRanges
                    | gimli::SectionId::DebugRngLists
            );
            let section = wanted.then(|| object.section_by_name(id.name())).flatten();
            let section = section.filter(|section| section.size() <= BYTES_MAX);
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(Slice::new(Arc::from(&*data.unwrap_or_default()), endian))
        };
        Self::new(gimli::Dwarf::load(section).ok()?)
    }

    fn new(dwarf: gimli::Dwarf<Slice>) -> Option<Self> {
        let mut slots = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let start = header.debug_info_offset()?.0;
            let (unit, index, names) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
            slots.push(Slot { header, start, unit, index, names });
        }
        (!slots.is_empty()).then(|| Self {
            dwarf,
            slots,
            ranges: OnceCell::new(),
            variables: RefCell::default(),
            records: RefCell::default(),
            fuel: Cell::new(0),
            nesting: Cell::new(0),
        })
    }

    /// Answers a question, within bounds.
    fn ask<T>(&self, question: impl FnOnce() -> T) -> T {
        self.fuel.set(ENTRIES_MAX);
        question()
    }

    fn unit(&self, at: u32) -> Option<&Unit> {
        let slot = self.slots.get(at as usize)?;
        slot.unit.get_or_init(|| self.dwarf.unit(slot.header.clone()).ok()).as_ref()
    }

    fn entry(&self, die: Die) -> Option<Entry> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let offset = gimli::UnitOffset(die.offset);
        offset.is_in_bounds(&self.slots.get(die.unit as usize)?.header).then_some(())?;
        self.unit(die.unit)?.entry(offset).ok()
    }

    /// Calls `visit` with the entries within that of `die`, until it says that it does not want to see what is within
    /// the one that it was given.
    fn visit_within(&self, die: Die, mut visit: impl FnMut(&Entry) -> bool) -> Option<()> {
        let start = gimli::UnitOffset(die.offset);
        start.is_in_bounds(&self.slots.get(die.unit as usize)?.header).then_some(())?;
        let mut entries = self.unit(die.unit)?.entries_raw(Some(start)).ok()?;
        let mut entry = Entry::null();
        entries.read_entry(&mut entry).ok()?;
        let mut wanted_depth = isize::MAX;
        while entries.next_depth() > 0 && !entries.is_empty() {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            if !entries.read_entry(&mut entry).ok()? || entry.depth > wanted_depth {
                continue;
            }
            wanted_depth = if visit(&entry) { isize::MAX } else { entry.depth };
        }
        Some(())
    }

    fn string(&self, unit: u32, value: AttributeValue<Slice>) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit(unit)?, value).ok()?;
        Some(gimli::Reader::to_string_lossy(&text).ok()?.into_owned())
    }

    fn name_in(&self, unit: u32, entry: &Entry) -> Option<String> {
        self.string(unit, entry.attr_value(dw::DW_AT_name)?)
    }

    /// Its name, or that of what it is an instance of.
    fn name(&self, die: Die) -> Option<String> {
        self.in_origins(die, |unit, entry| self.name_in(unit, entry))
    }

    /// The entry that the attribute `at` of `entry` refers to.
    fn reference(&self, unit: u32, entry: &Entry, at: DwAt) -> Option<Die> {
        match entry.attr_value(at)? {
            AttributeValue::UnitRef(offset) => Some(Die { unit, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) => {
                let count = self.slots.partition_point(|slot| slot.start <= offset.0);
                let place = count.checked_sub(1)?;
                let offset = offset.0 - self.slots[place].start;
                Some(Die { unit: place as u32, offset })
            }
            _ => None,
        }
    }

    /// What `look` finds in the entry of `die` or in what it is an instance or the definition of.
    fn in_origins<T>(&self, die: Die, look: impl Fn(u32, &Entry) -> Option<T>) -> Option<T> {
        let mut at = die;
        for _ in 0..4 {
            let entry = self.entry(at)?;
            if let Some(found) = look(at.unit, &entry) {
                return Some(found);
            }
            let origin = self.reference(at.unit, &entry, dw::DW_AT_abstract_origin);
            at = origin.or_else(|| self.reference(at.unit, &entry, dw::DW_AT_specification))?;
        }
        None
    }

    /// The type of a variable, a member, a pointer's target and so on; none for `void`.
    fn type_of(&self, die: Die) -> Option<Die> {
        self.in_origins(die, |unit, entry| self.reference(unit, entry, dw::DW_AT_type))
    }

    fn is_rust(&self, unit: u32) -> bool {
        let slot = self.slots.get(unit as usize);
        let root = slot.map(|slot| Die { unit, offset: slot.header.root_offset().0 });
        let language = root.and_then(|root| self.entry(root)?.attr_value(dw::DW_AT_language));
        matches!(language, Some(AttributeValue::Language(dw::DW_LANG_Rust)))
    }

    fn index(&self, unit: u32) -> Option<&Index> {
        let slot = self.slots.get(unit as usize)?;
        Some(slot.index.get_or_init(|| {
            let (mut index, mut code) = (Index::default(), Vec::new());
            // What was read before the damage holds.
            let _ = self.fill(unit, &mut index, &mut code);
            index.code = Ranges::new(code);
            index
        }))
    }

    fn fill(&self, at: u32, index: &mut Index, code: &mut Vec<(Range<u64>, Code)>) -> Option<()> {
        let unit = self.unit(at)?;
        let mut entries = unit.entries_raw(None).ok()?;
        let mut entry = Entry::null();
        let mut around: Vec<(isize, usize)> = Vec::new();
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset().0);
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            around.truncate(around.partition_point(|&(outer, _)| outer < depth));
            let tag = abbreviation.tag();
            let parent = around.last().map(|&(_, offset)| offset);
            if abbreviation.has_children() && (has_place(tag) || parent.is_none()) {
                around.push((depth, offset));
            }
            if !has_place(tag) {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            entries.read_attributes(abbreviation.attributes(), &mut entry.attrs).ok()?;
            match tag {
                dw::DW_TAG_variable => {
                    let places = self.places(at, &entry);
                    index.variables.extend(places.into_iter().map(|place| (place, offset)));
                    continue;
                }
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine => {
                    let mut ranges = self.dwarf.die_ranges(unit, &entry).ok()?;
                    while let Ok(Some(gimli::Range { begin, end })) = ranges.next() {
                        code.push((begin..end, Code { depth, entry: offset }));
                    }
                }
                dw::DW_TAG_namespace => {}
                _ if entry.attr(dw::DW_AT_declaration).is_none() => index.types.push(offset),
                _ => {}
            }
            index.parents.extend(parent.map(|parent| (offset, parent)));
        }
        Some(())
    }

    /// Where a variable is that has an address: compilers place the members of some by themselves.
    fn places(&self, unit: u32, entry: &Entry) -> Vec<Place> {
        let mut places = Vec::new();
        let location = entry.attr_value(dw::DW_AT_location);
        let Some(mut operations) = location.and_then(|it| it.exprloc_value()) else {
            return places;
        };
        let Some(unit) = self.unit(unit) else { return places };
        let (mut address, mut within) = (None, 0_u64);
        while !gimli::Reader::is_empty(&operations.0) {
            use gimli::Operation::{Address, AddressIndex, Piece};
            match gimli::Operation::parse(&mut operations.0, unit.encoding()) {
                Ok(Address { address: at }) => address = Some(at),
                Ok(AddressIndex { index }) => address = self.dwarf.address(unit, index).ok(),
                Ok(Piece { size_in_bits, bit_offset: None }) => {
                    let place = |address| Place { address, within: Some(within) };
                    places.extend(address.take().map(place));
                    within = within.saturating_add(size_in_bits / 8);
                }
                _ => return Vec::new(),
            }
        }
        places.extend(address.map(|address| Place { address, within: None }));
        places
    }

    /// What begins at `address`: a variable, or a piece of one.
    pub fn variable_at(&self, address: u64) -> Option<Variable> {
        self.ask(|| {
            let mut variables = self.variables.borrow_mut();
            let (seen, known) = &mut *variables;
            while !known.contains_key(&address) && *seen < self.slots.len() {
                let unit = *seen as u32;
                *seen += 1;
                let found = self.index(unit).map_or(&[][..], |index| &index.variables);
                for &(place, offset) in found {
                    known.entry(place.address).or_insert((Die { unit, offset }, place.within));
                }
            }
            let &(variable, within) = known.get(&address)?;
            Some(Variable { of: self.type_of(variable)?, within })
        })
    }

    /// The functions whose code is at `probe`, the innermost inlined one first.
    fn functions_at(&self, probe: u64) -> Vec<Die> {
        let ranges = self.ranges.get_or_init(|| {
            let mut all = Vec::new();
            for at in 0..self.slots.len() as u32 {
                let Some(unit) = self.unit(at) else { continue };
                let Ok(mut ranges) = self.dwarf.unit_ranges(unit) else { continue };
                while let Ok(Some(gimli::Range { begin, end })) = ranges.next() {
                    all.push((begin..end, at));
                }
            }
            Ranges::new(all)
        });
        let Some(unit) = ranges.holding(probe).into_iter().min() else { return Vec::new() };
        let mut found = self.index(unit).map_or_else(Vec::new, |it| it.code.holding(probe));
        found.sort_unstable_by_key(|code| (std::cmp::Reverse(code.depth), code.entry));
        found.iter().map(|code| Die { unit, offset: code.entry }).collect()
    }

    /// The entry around that of `die`, if it is a function, a type or a name space.
    fn parent(&self, die: Die) -> Option<Die> {
        let offset = *self.index(die.unit)?.parents.get(&die.offset)?;
        Some(Die { unit: die.unit, offset })
    }

    /// The names around that of a type or function, the outermost first.
    fn scopes(&self, die: Die) -> Vec<String> {
        let mut scopes = Vec::new();
        let mut at = die;
        while let Some(parent) = self.parent(at).filter(|_| scopes.len() < DEPTH_MAX) {
            at = parent;
            let Some(entry) = self.entry(at) else { break };
            if entry.tag() == dw::DW_TAG_subprogram {
                continue;
            }
            let is_root = matches!(entry.tag(), dw::DW_TAG_compile_unit | dw::DW_TAG_partial_unit);
            if is_root {
                break;
            }
            scopes.extend(self.name_in(at.unit, &entry));
        }
        scopes.reverse();
        scopes
    }

    /// The types in `unit` by their names without scopes.
    fn type_names(&self, unit: u32) -> Option<&FxHashMap<String, Vec<usize>>> {
        let slot = self.slots.get(unit as usize)?;
        Some(slot.names.get_or_init(|| {
            let mut names: FxHashMap<String, Vec<usize>> = FxHashMap::default();
            for &offset in self.index(unit).map_or(&[][..], |index| &index.types) {
                let entry = |unit: &Unit| unit.entry(gimli::UnitOffset(offset)).ok();
                let entry = self.unit(unit).and_then(entry);
                if let Some(name) = entry.and_then(|entry| self.name_in(unit, &entry)) {
                    names.entry(name).or_default().push(offset);
                }
            }
            names
        }))
    }

    /// The definitions in `unit` of types called `name`, without scopes.
    fn types_named(&self, unit: u32, name: &str) -> Vec<Die> {
        let found = self.type_names(unit).and_then(|names| names.get(name));
        let found = found.map_or(&[][..], Vec::as_slice);
        found.iter().map(|&offset| Die { unit, offset }).collect()
    }

    /// The same of types whose names begin with `start`.
    fn types_starting(&self, unit: u32, start: &str) -> Vec<Die> {
        let names = self.type_names(unit).into_iter().flatten();
        let found = names.filter(|(name, _)| name.starts_with(start));
        let mut offsets: Vec<usize> = found.flat_map(|(_, offsets)| offsets).copied().collect();
        offsets.sort_unstable();
        offsets.into_iter().map(|offset| Die { unit, offset }).collect()
    }

    /// The definition of the type that the entry of `die` only declares: compilers may give it in one unit alone.
    fn definition(&self, die: Die) -> Option<Die> {
        let name = self.name(die)?;
        let scopes = self.scopes(die);
        let mut units = std::iter::once(die.unit).chain(0..self.slots.len() as u32);
        units.find_map(|unit| {
            let found = self.types_named(unit, &name);
            found.into_iter().find(|&found| self.scopes(found) == scopes)
        })
    }
}

/// Whether it matters where entries with this tag are.
const fn has_place(tag: DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_variable
            | dw::DW_TAG_subprogram
            | dw::DW_TAG_inlined_subroutine
            | dw::DW_TAG_namespace
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_typedef
            | dw::DW_TAG_base_type
    )
}
