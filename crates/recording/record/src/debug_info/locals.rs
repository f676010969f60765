//! Which variable of a function is at a place in its frame.

use gimli::constants as dw;
use gimli::{Operation, Reader as _};

use super::{DebugInfo, Die, Entry};

/// A variable in the frame of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// What it is called.
    pub name: String,
    /// Its type.
    pub of: Die,
    /// How many bytes into it a place is.
    pub offset: u64,
}

/// How far the place that the frame pointer shows is below the end of the frame: it and the return address are there.
const FRAME_POINTER: i64 = -16;

impl DebugInfo {
    /// The variable of the function at `probe` that is `place` bytes from the end of the function's frame.
    pub fn local(&self, probe: u64, place: i64) -> Option<Local> {
        self.ask(|| {
            let function = *self.functions_at(probe).last()?;
            let base = self.frame_base(function)?;
            let mut found: Option<Local> = None;
            let _ = self.visit_within(function, |entry| {
                let is_variable =
                    matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
                if is_variable
                    && let Some(local) =
                        self.local_at(function.unit, entry, place.saturating_sub(base))
                {
                    // Of variables of several blocks that share a place, the first.
                    found.get_or_insert(local);
                }
                matches!(entry.tag(), dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine)
            });
            found
        })
    }

    /// Where the places of a function's variables count from, relative to the end of its frame.
    fn frame_base(&self, function: Die) -> Option<i64> {
        let base = self.entry(function)?.attr_value(dw::DW_AT_frame_base)?.exprloc_value()?;
        let mut operations = base.0;
        let encoding = self.unit(function.unit)?.encoding();
        match Operation::parse(&mut operations, encoding).ok()? {
            Operation::CallFrameCFA => Some(0),
            Operation::Register { register: gimli::X86_64::RBP } => Some(FRAME_POINTER),
            _ => None,
        }
    }

    fn local_at(&self, unit: u32, entry: &Entry, place: i64) -> Option<Local> {
        let mut operations = entry.attr_value(dw::DW_AT_location)?.exprloc_value()?.0;
        let encoding = self.unit(unit)?.encoding();
        let Operation::FrameOffset { offset: start } =
            Operation::parse(&mut operations, encoding).ok()?
        else {
            return None;
        };
        operations.is_empty().then_some(())?;
        let origin = self.reference(unit, entry, dw::DW_AT_abstract_origin);
        let own = self.reference(unit, entry, dw::DW_AT_type);
        let of = own.or_else(|| self.type_of(origin?))?;
        let offset = u64::try_from(place.checked_sub(start)?).ok()?;
        (offset < self.size(of, 0)?).then_some(())?;
        let name = self.name_in(unit, entry).or_else(|| self.name(origin?))?;
        Some(Local { name, of, offset })
    }
}
