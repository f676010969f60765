//! What was mapped where: the text of `/proc/PID/maps`, read into segments.
//!
//! The part of `.bss` beyond the last page of the file is an anonymous mapping of its own. It is
//! counted to the module that ends where it starts, so that zeroed globals have names too.

use reweave_base::IndexVec;

use super::ModuleId;

reweave_base::id! {
    /// A line of a map.
    pub(super) struct SegmentId;
}

/// One line of a map: some memory, and what file it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its first address.
    pub(super) start: u64,
    /// The address after its last.
    pub(super) end: u64,
    /// The place in the file that `start` shows.
    pub(super) offset: u64,
    /// Whether code may run in it.
    pub(super) is_executable: bool,
    /// Whether it may be written.
    pub(super) is_writable: bool,
    /// The file, or a thing such as `[vdso]`; nothing for anonymous memory.
    pub(super) module: Option<ModuleId>,
    /// The segment that shows the file, where this one is its zeroed rest.
    pub(super) rest_of: Option<SegmentId>,
}

/// The segments of one map, by rising address.
#[derive(Debug, Default)]
pub(super) struct Map {
    segments: IndexVec<SegmentId, Segment>,
}

impl Map {
    /// Reads `text`; `module` gives the id of a path. Lines that are no mapping are skipped.
    pub(super) fn parse(text: &str, mut module: impl FnMut(&str) -> ModuleId) -> Self {
        let mut found: Vec<Segment> =
            text.lines().filter_map(|line| parse_line(line, &mut module)).collect();
        found.sort_by_key(|segment| (segment.start, segment.end));
        let mut segments: IndexVec<SegmentId, Segment> = IndexVec::new();
        let mut last: Option<SegmentId> = None;
        for mut segment in found {
            let before = last.map(|id| (id, segments[id]));
            if let Some((id, before)) = before
                && segment.module.is_none()
                && segment.is_writable
                && before.end == segment.start
            {
                segment.module = before.module;
                segment.rest_of = before.module.map(|_| before.rest_of.unwrap_or(id));
            }
            last = Some(segments.push(segment));
        }
        Self { segments }
    }

    /// The segment with `address`, and the segment that shows its file.
    pub(super) fn find(&self, address: u64) -> Option<(Segment, Segment)> {
        let segments = self.segments.as_slice();
        let count = segments.partition_point(|segment| segment.start <= address);
        let segment = segments[..count].last().filter(|segment| address < segment.end)?;
        Some((*segment, segment.rest_of.map_or(*segment, |id| self.segments[id])))
    }

    /// The segments of files that may be written: the module and the segment that shows it.
    pub(super) fn writable(&self) -> Vec<(ModuleId, Segment)> {
        let segments = self.segments.as_slice().iter().filter(|segment| segment.is_writable);
        let shown = |segment: &Segment| {
            let shown = segment.rest_of.map_or(*segment, |id| self.segments[id]);
            segment.module.map(|module| (module, shown))
        };
        segments.filter_map(shown).collect()
    }

    /// The modules with code, in the order of their addresses.
    pub(super) fn code_modules(&self) -> impl Iterator<Item = ModuleId> {
        let code = self.segments.as_slice().iter().filter(|segment| segment.is_executable);
        code.filter_map(|segment| segment.module)
    }
}

/// Reads `7f00-7f10 r-xp 00001000 08:01 1234   /path`, the path possibly missing.
fn parse_line(line: &str, module: &mut impl FnMut(&str) -> ModuleId) -> Option<Segment> {
    let mut rest = line;
    let mut field = || {
        let text = rest.trim_start_matches(' ');
        let end = text.find(' ').unwrap_or(text.len());
        rest = &text[end..];
        &text[..end]
    };
    let (start, end) = field().split_once('-')?;
    let (permissions, offset) = (field(), field());
    let (_device, _inode) = (field(), field());
    let path = rest.trim_start_matches(' ');
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    (start < end).then_some(())?;
    Some(Segment {
        start,
        end,
        offset: hexadecimal(offset)?,
        is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
        is_writable: permissions.as_bytes().get(1) == Some(&b'w'),
        module: (!path.is_empty()).then(|| module(path)),
        rest_of: None,
    })
}
