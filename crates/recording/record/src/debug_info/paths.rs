//! What the bytes of a variable are called: `.entries[3].next`.
//!
//! A type is walked down to the member, element or variant that holds the bytes. Base classes and anonymous members add
//! nothing to the name, as in the source; of a union, and of an enum's variants, the first that has a part of just this
//! size is taken. Within types of the standard libraries, what only wraps something is left out: a programmer says
//! `flag` of a `std::atomic`, not `flag._M_base._M_i`.

use std::fmt::Write as _;
use std::rc::Rc;

use gimli::{AttributeValue, constants as dw};

use super::{DEPTH_MAX, DebugInfo, Die, Entry};
use crate::shorten;

/// A struct, class, union or enum with fields.
#[derive(Debug)]
pub struct Record {
    name: String,
    size: u64,
    members: Vec<Member>,
    /// Whether it is of a standard library.
    is_library: bool,
    /// The first type that it is a template or generic of.
    parameter: Option<Die>,
}

#[derive(Debug)]
struct Member {
    /// None for base classes, anonymous members and what an enum tells its variants by.
    name: Option<String>,
    offset: u64,
    size: u64,
    of: Die,
    is_bits: bool,
}

/// A type as far as names need it.
enum Shape {
    Leaf(u64),
    Alias(Die),
    Array { element: Die, counts: Vec<u64> },
    Record(Rc<Record>),
}

/// What is behind the name of a variable, for some of its bytes.
#[derive(Debug, Default)]
struct Found {
    path: String,
    /// Whether there is something of just this size.
    is_exact: bool,
}

/// The size of a member whose type is only declared, until its neighbours are known.
const UNKNOWN_SIZE: u64 = 0;

/// Members of the C++ library that say nothing where there is only what they hold.
const SILENT: [&str; 7] =
    ["_M_payload", "_M_storage", "_M_impl", "_M_value", "_M_b", "_M_elems", "_M_head_impl"];

/// Types of the libraries that hold what the program puts into them, and are no locks themselves.
const HOLDERS: [&str; 16] = [
    "pair<",
    "tuple<",
    "array<",
    "optional<",
    "variant<",
    "ArcInner<",
    "RcInner<",
    "RcBox<",
    "UnsafeCell<",
    "Cell<",
    "RefCell<",
    "MaybeUninit<",
    "ManuallyDrop<",
    "OnceCell<",
    "OnceLock<",
    "CachePadded<",
];

/// Rust's types that have what they guard in a field of their own.
const GUARDS: [&str; 7] =
    ["Mutex<", "RwLock<", "ReentrantLock<", "ArcInner<", "RcInner<", "RcBox<", "FairMutex<"];

/// How the types of the C library are called that threads synchronize by.
const C_OBJECTS: [&str; 13] = [
    "pthread_mutex_t",
    "pthread_rwlock_t",
    "pthread_cond_t",
    "pthread_barrier_t",
    "pthread_spinlock_t",
    "pthread_once_t",
    "sem_t",
    "mtx_t",
    "cnd_t",
    "once_flag",
    "omp_lock_t",
    "omp_nest_lock_t",
    "atomic_flag",
];

impl DebugInfo {
    /// What is called so behind the name of something of type `of`: the `size` bytes that are `offset` into it.
    pub fn path(&self, of: Die, offset: u64, size: u64) -> String {
        self.ask(|| self.walk(of, offset, size, 0)).path
    }

    /// What a lock or the like is called behind the name of something of type `of`, `offset` bytes into it: the
    /// outermost member that is no more than it.
    pub fn object_path(&self, of: Die, offset: u64) -> String {
        let mut path = String::new();
        let (mut at, mut rest) = (of, offset);
        self.ask(|| {
            for _ in 0..DEPTH_MAX {
                if rest == 0 && self.is_object(at, 0) {
                    return;
                }
                let Some((step, next, offset)) = self.step_to_object(at, rest) else {
                    // What is inside of a lock is the lock's own.
                    if !self.is_lock_of_library(at) {
                        path.push_str(&self.walk(at, rest, 1, 0).path);
                    }
                    return;
                };
                path.push_str(&step);
                (at, rest) = (next, offset);
            }
        });
        path
    }

    /// Whether something of type `of` is a lock or the like, or has nothing but one.
    fn is_object(&self, of: Die, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        if self.is_c_object(of) {
            return true;
        }
        match self.shape(of) {
            Some(Shape::Alias(next)) => self.is_object(next, depth + 1),
            Some(Shape::Record(record)) if record.is_lock_of_library() => true,
            Some(Shape::Record(record)) => {
                matches!(&record.members[..], [member] if self.is_object(member.of, depth + 1))
            }
            Some(Shape::Leaf(_)) => depth > 0,
            Some(Shape::Array { .. }) | None => false,
        }
    }

    fn is_c_object(&self, of: Die) -> bool {
        let own = self.entry(of).and_then(|entry| self.name_in(of.unit, &entry));
        own.is_some_and(|name| C_OBJECTS.contains(&&*name))
    }

    fn is_lock_of_library(&self, of: Die) -> bool {
        matches!(self.shape(of), Some(Shape::Record(record)) if record.is_lock_of_library())
    }

    /// The member or element of something of type `of` that the byte at `offset` is in; none where the walk ends.
    fn step_to_object(&self, of: Die, offset: u64) -> Option<(String, Die, u64)> {
        match self.shape(of)? {
            Shape::Leaf(_) => None,
            Shape::Alias(next) => Some((String::new(), next, offset)),
            Shape::Array { element, counts } => {
                let size = self.size(element, 0).filter(|&size| size > 0)?;
                Some((indexes(&counts, offset / size), element, offset % size))
            }
            Shape::Record(record) => {
                let is_at = |member: &&Member| {
                    member.offset <= offset && offset - member.offset < member.size
                };
                let member = record.members.iter().find(is_at)?;
                let is_of_lock = record.is_lock_of_library() && !record.is_guarded(member);
                (!is_of_lock).then_some(())?;
                Some((self.label(&record, member, false), member.of, offset - member.offset))
            }
        }
    }

    fn walk(&self, of: Die, offset: u64, size: u64, depth: usize) -> Found {
        let shape = self.shape(of).filter(|_| depth < DEPTH_MAX);
        let Some(shape) = shape else { return Found { path: plus(offset), is_exact: false } };
        match shape {
            // What is inside of them is the C library's own.
            Shape::Alias(_) if offset == 0 && self.is_c_object(of) => {
                Found { path: String::new(), is_exact: false }
            }
            Shape::Alias(next) => self.walk(next, offset, size, depth + 1),
            Shape::Leaf(own) => Found { path: plus(offset), is_exact: offset == 0 && own == size },
            Shape::Array { element, counts } => {
                self.walk_array((element, &counts), offset, size, depth)
            }
            Shape::Record(record) => self.walk_record(&record, offset, size, depth, false),
        }
    }

    fn walk_array(
        &self,
        (element, counts): (Die, &[u64]),
        offset: u64,
        size: u64,
        depth: usize,
    ) -> Found {
        let Some(stride) = self.size(element, 0).filter(|&stride| stride > 0) else {
            return Found { path: plus(offset), is_exact: false };
        };
        let count = counts.iter().fold(1_u64, |all, &count| all.saturating_mul(count));
        let (first, rest) = (offset / stride, offset % stride);
        if rest.saturating_add(size) > stride {
            let is_exact = offset == 0 && count.saturating_mul(stride) == size;
            if is_exact {
                return Found { path: String::new(), is_exact };
            }
            let end = offset.saturating_add(size).div_ceil(stride);
            return Found { path: format!("[{first}..{end}]"), is_exact: false };
        }
        let inner = self.walk(element, rest, size, depth + 1);
        Found { path: indexes(counts, first) + &inner.path, ..inner }
    }

    fn walk_record(
        &self,
        record: &Record,
        offset: u64,
        size: u64,
        depth: usize,
        is_part: bool,
    ) -> Found {
        let end = offset.saturating_add(size);
        let member_end = |member: &Member| member.offset.saturating_add(member.size);
        let holds = |member: &&Member| member.offset <= offset && end <= member_end(member);
        let overlaps = |member: &&Member| member.offset < end && offset < member_end(member);
        let mut holding = record.members.iter().filter(holds).peekable();
        if holding.peek().is_none() {
            let mut parts = record.members.iter().filter(overlaps);
            let is_whole = offset == 0 && size >= record.size;
            let Some(first) = parts.next().filter(|_| !is_whole) else {
                return Found { path: plus(offset), is_exact: is_whole };
            };
            let name = |member: &Member| match &member.name {
                Some(name) => field_name(name),
                None => {
                    let path = self.walk(member.of, 0, member.size, depth + 1).path;
                    path.trim_start_matches('.')
                        .split(['.', '[', '+'])
                        .next()
                        .unwrap_or("")
                        .to_owned()
                }
            };
            let path = match parts.next_back() {
                Some(last) if last.name != first.name => {
                    format!(".{}..{}", name(first), name(last))
                }
                _ => self.label(record, first, is_part),
            };
            return Found { path, is_exact: false };
        }
        let bits: Vec<&str> = record.bits_within(offset, end);
        if !bits.is_empty() {
            return Found { path: format!(".{}", bits.join("/")), is_exact: true };
        }
        let mut best: Option<Found> = None;
        for member in holding {
            let at = offset - member.offset;
            // A base class is a part of many, though it may have only one member itself.
            let base = member.name.is_none() && record.members.len() > 1;
            let inner = match self.shape(member.of).filter(|_| base && depth < DEPTH_MAX) {
                Some(Shape::Record(part)) => self.walk_record(&part, at, size, depth + 1, true),
                _ => self.walk(member.of, at, size, depth + 1),
            };
            let found = Found { path: self.label(record, member, is_part) + &inner.path, ..inner };
            if found.is_exact {
                return found;
            }
            best = best.or(Some(found));
        }
        best.unwrap_or_default()
    }

    /// What `member` adds to a name; more, if `record` is only a part of something.
    fn label(&self, record: &Record, member: &Member, is_part: bool) -> String {
        let Some(name) = &member.name else { return String::new() };
        let is_silent = record.is_library
            && (record.members.len() == 1 && !is_part
                || SILENT.contains(&&**name)
                || record.is_counted(member));
        if is_silent {
            return String::new();
        }
        format!(".{}", field_name(name))
    }

    /// How many bytes something of type `of` has.
    pub fn size(&self, of: Die, depth: usize) -> Option<u64> {
        match self.shape(of).filter(|_| depth < DEPTH_MAX)? {
            Shape::Leaf(size) => Some(size),
            Shape::Alias(next) => self.size(next, depth + 1),
            Shape::Array { element, counts } => {
                let count = counts.iter().fold(1_u64, |all, &count| all.saturating_mul(count));
                Some(self.size(element, depth + 1)?.saturating_mul(count))
            }
            Shape::Record(record) => Some(record.size),
        }
    }

    fn shape(&self, of: Die) -> Option<Shape> {
        let entry = self.entry(of)?;
        let size = || entry.attr_value(dw::DW_AT_byte_size)?.udata_value();
        Some(match entry.tag() {
            dw::DW_TAG_base_type | dw::DW_TAG_enumeration_type | dw::DW_TAG_unspecified_type => {
                Shape::Leaf(size().unwrap_or(0))
            }
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type => Shape::Leaf(size().unwrap_or(8)),
            dw::DW_TAG_ptr_to_member_type | dw::DW_TAG_subroutine_type => {
                Shape::Leaf(size().unwrap_or(16))
            }
            dw::DW_TAG_array_type => {
                let element = self.reference(of.unit, &entry, dw::DW_AT_type)?;
                Shape::Array { element, counts: self.counts(of) }
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                Shape::Record(self.record(of, &entry)?)
            }
            _ => Shape::Alias(self.reference(of.unit, &entry, dw::DW_AT_type)?),
        })
    }

    /// How many elements an array has, by its dimensions; one that is open has as many as can be.
    fn counts(&self, of: Die) -> Vec<u64> {
        let mut counts = Vec::new();
        let _ = self.visit_within(of, |entry| {
            if entry.tag() == dw::DW_TAG_subrange_type && counts.len() < DEPTH_MAX {
                let number = |at| entry.attr_value(at)?.udata_value();
                let bound = number(dw::DW_AT_upper_bound).map(|bound| bound.wrapping_add(1));
                counts.push(number(dw::DW_AT_count).or(bound).unwrap_or(u64::from(u32::MAX)));
            }
            false
        });
        counts
    }

    fn record(&self, of: Die, entry: &Entry) -> Option<Rc<Record>> {
        if let Some(known) = self.records.borrow().get(&of) {
            return known.clone();
        }
        if self.nesting.get() >= DEPTH_MAX {
            return None;
        }
        self.nesting.set(self.nesting.get() + 1);
        let record = if entry.attr(dw::DW_AT_declaration).is_some() {
            let definition = self.definition(of);
            definition.and_then(|of| Some(Rc::new(self.read_record(of, &self.entry(of)?))))
        } else {
            // Empty while it is read, so that types which hold themselves end.
            self.records.borrow_mut().insert(of, None);
            Some(Rc::new(self.read_record(of, entry)))
        };
        self.nesting.set(self.nesting.get() - 1);
        self.records.borrow_mut().insert(of, record.clone());
        record
    }

    fn read_record(&self, of: Die, entry: &Entry) -> Record {
        let name = self.name_in(of.unit, entry).unwrap_or_default();
        let size = entry.attr_value(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
        let mut record = Record {
            is_library: self.is_library(of, &name),
            name,
            size: size.unwrap_or(0),
            members: Vec::new(),
            parameter: None,
        };
        let is_rust = self.is_rust(of.unit);
        let _ = self.visit_within(of, |entry| {
            match entry.tag() {
                dw::DW_TAG_template_type_parameter => {
                    let parameter = self.reference(of.unit, entry, dw::DW_AT_type);
                    record.parameter = record.parameter.or(parameter);
                }
                // The members of an enum's variants follow within.
                dw::DW_TAG_variant_part | dw::DW_TAG_variant => return true,
                dw::DW_TAG_member | dw::DW_TAG_inheritance => {
                    record.members.extend(self.member(of, entry, is_rust));
                }
                _ => {}
            }
            false
        });
        record.bound_unknown_sizes();
        let holds_raw = ["__aligned_buffer<", "__aligned_membuf<", "aligned_storage<"];
        if record.is_library
            && holds_raw.iter().any(|name| record.name.starts_with(name))
            && let Some(of) = record.parameter
        {
            let size = self.size(of, 0).unwrap_or(record.size);
            record.members = vec![Member { name: None, offset: 0, size, of, is_bits: false }];
        }
        record
    }

    fn member(&self, record: Die, entry: &Entry, is_rust: bool) -> Option<Member> {
        if entry.attr(dw::DW_AT_external).is_some() || entry.attr(dw::DW_AT_declaration).is_some() {
            return None;
        }
        let of = self.reference(record.unit, entry, dw::DW_AT_type)?;
        let number =
            |at| entry.attr_value(at).and_then(|value: AttributeValue<_>| value.udata_value());
        let offset = number(dw::DW_AT_data_member_location).unwrap_or(0);
        let known_size = self.size(of, 0);
        if known_size == Some(0) || self.is_empty(of) {
            return None;
        }
        let mut size = known_size.unwrap_or(UNKNOWN_SIZE);
        let (mut offset, bits) = (offset, number(dw::DW_AT_bit_size));
        if let Some(bits) = bits {
            let first = match number(dw::DW_AT_data_bit_offset) {
                Some(first) => first,
                // The older way counts from the other end of the type.
                None => {
                    let behind = number(dw::DW_AT_bit_offset).unwrap_or(0).saturating_add(bits);
                    let all = size.saturating_mul(8).saturating_sub(behind);
                    offset.saturating_mul(8).saturating_add(all)
                }
            };
            offset = first / 8;
            size = first.saturating_add(bits).div_ceil(8).saturating_sub(offset);
        }
        let name = self.name_in(record.unit, entry).filter(|_| entry.tag() == dw::DW_TAG_member);
        let name = name.filter(|name| !name.is_empty());
        let name = name.map(|name| if is_rust { name } else { name.replace('$', ".") });
        Some(Member { name, offset, size, of, is_bits: bits.is_some() })
    }

    /// Whether a class has no data: C++ gives it a byte, which is another's where it is a base.
    fn is_empty(&self, of: Die) -> bool {
        let mut at = of;
        for _ in 0..DEPTH_MAX {
            match self.shape(at) {
                Some(Shape::Alias(next)) => at = next,
                Some(Shape::Record(record)) => {
                    return record.size <= 1 && record.members.is_empty();
                }
                _ => return false,
            }
        }
        false
    }

    fn is_library(&self, of: Die, name: &str) -> bool {
        const SPACES: [&str; 9] = [
            "std",
            "__gnu_cxx",
            "core",
            "alloc",
            "lock_api",
            "parking_lot",
            "parking_lot_core",
            "spin",
            "absl",
        ];
        match self.scopes(of).first() {
            Some(scope) => SPACES.contains(&&**scope),
            None => name.starts_with("__pthread") || name.starts_with("pthread_"),
        }
    }

    /// What a type is called, shortened; none for `void` and what has no name.
    pub fn type_name(&self, of: Die) -> Option<String> {
        self.type_name_within(of, 0)
    }

    fn type_name_within(&self, of: Die, depth: usize) -> Option<String> {
        (depth < DEPTH_MAX).then_some(())?;
        let mut at = of;
        for _ in 0..DEPTH_MAX {
            let entry = self.entry(at)?;
            if let Some(name) = self.name_in(at.unit, &entry) {
                if self.is_rust(at.unit) {
                    return Some(shorten::rust_type(&name));
                }
                let mut scopes = self.scopes(at);
                scopes.push(name);
                return Some(shorten::name(&scopes.join("::")));
            }
            let inner = self.reference(at.unit, &entry, dw::DW_AT_type);
            match entry.tag() {
                dw::DW_TAG_const_type | dw::DW_TAG_volatile_type | dw::DW_TAG_atomic_type => {
                    at = inner?;
                }
                dw::DW_TAG_pointer_type => {
                    let name = |it| self.type_name_within(it, depth + 1);
                    let to = inner.map_or_else(|| Some("void".into()), name);
                    return Some(format!("{}*", to?));
                }
                _ => return None,
            }
        }
        None
    }

    /// The definition of the struct, class or union that `of` is, perhaps by another name.
    pub(super) fn record_behind(&self, of: Die) -> Option<Die> {
        let mut at = of;
        for _ in 0..DEPTH_MAX {
            let entry = self.entry(at)?;
            match entry.tag() {
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                    let is_declared = entry.attr(dw::DW_AT_declaration).is_some();
                    return if is_declared { self.definition(at) } else { Some(at) };
                }
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type
                | dw::DW_TAG_reference_type => {
                    at = self.reference(at.unit, &entry, dw::DW_AT_type)?;
                }
                _ => return None,
            }
        }
        None
    }

    pub(super) fn is_record(&self, of: Die) -> bool {
        self.record_behind(of).is_some()
    }

    /// What an array of one dimension holds.
    pub(super) fn element_of_array(&self, of: Die) -> Option<Die> {
        let mut at = of;
        for _ in 0..DEPTH_MAX {
            match self.shape(at)? {
                Shape::Alias(next) => at = next,
                Shape::Array { element, counts } => return (counts.len() == 1).then_some(element),
                Shape::Leaf(_) | Shape::Record(_) => return None,
            }
        }
        None
    }

    /// What the pointer type `of` points to.
    pub(super) fn target(&self, of: Die) -> Option<Die> {
        let mut at = of;
        for _ in 0..DEPTH_MAX {
            let entry = self.entry(at)?;
            let inner = self.reference(at.unit, &entry, dw::DW_AT_type);
            match entry.tag() {
                dw::DW_TAG_pointer_type => return inner,
                dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_restrict_type => {
                    at = inner?;
                }
                _ => return None,
            }
        }
        None
    }
}

impl Record {
    /// What is only declared ends where the next member begins: clang leaves out definitions that others have.
    fn bound_unknown_sizes(&mut self) {
        for at in 0..self.members.len() {
            let Member { offset, size: UNKNOWN_SIZE, .. } = self.members[at] else { continue };
            let offsets = self.members.iter().map(|member| member.offset);
            let next = offsets.filter(|&next| next > offset).min().unwrap_or(self.size);
            self.members[at].size = next.saturating_sub(offset);
        }
    }

    fn is_holder(&self) -> bool {
        HOLDERS.iter().any(|holder| self.name.starts_with(holder))
    }

    fn is_lock_of_library(&self) -> bool {
        self.is_library && !self.is_holder()
    }

    /// Whether `member` is what a counted pointer of Rust leads to.
    fn is_counted(&self, member: &Member) -> bool {
        self.is_holder() && self.is_guarded(member)
    }

    /// Whether `member` is what the program gave a lock or a counted pointer of Rust to hold.
    fn is_guarded(&self, member: &Member) -> bool {
        let is_data = matches!(member.name.as_deref(), Some("data" | "value"));
        is_data && self.is_library && GUARDS.iter().any(|guard| self.name.starts_with(guard))
    }

    /// The names of the members with a width in bits that share the bytes from `offset` to `end`.
    fn bits_within(&self, offset: u64, end: u64) -> Vec<&str> {
        const SHOWN_MAX: usize = 4;
        let members = self.members.iter().filter(|member| {
            member.is_bits
                && member.offset < end
                && offset < member.offset.saturating_add(member.size)
        });
        members.filter_map(|member| member.name.as_deref()).take(SHOWN_MAX).collect()
    }
}

/// `+8`, or nothing.
fn plus(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!("+{offset}") }
}

/// The element with the number `flat` of an array with so many elements by its dimensions: `[1][2]`.
fn indexes(counts: &[u64], flat: u64) -> String {
    let mut parts = Vec::new();
    let mut rest = flat;
    for &count in counts.iter().skip(1).rev() {
        let count = count.max(1);
        parts.push(rest % count);
        rest /= count;
    }
    parts.push(rest);
    parts.iter().rev().fold(String::new(), |mut text, index| {
        let _ = write!(text, "[{index}]");
        text
    })
}

/// A field as the source spells it: Rust numbers those of tuples, compilers name what closures capture.
fn field_name(name: &str) -> String {
    if name.starts_with("_vptr") {
        return "vptr".into();
    }
    if let Some(number) = name.strip_prefix("__")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return number.to_owned();
    }
    name.strip_prefix("_ref__").unwrap_or(name).to_owned()
}
