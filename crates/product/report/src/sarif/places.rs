//! Where something is, as code scanners want it told.

use crate::shown::shown;
use crate::site::Site;
use crate::sources::{Frame, Place};
use crate::stack;

use super::model::{
    ArtifactLocation, Location, LogicalLocation, PhysicalLocation, Region, Stack, StackFrame, Text,
};
use super::uri;

/// What relative names of files are relative to.
pub(super) const ROOT: &str = "%SRCROOT%";

/// How many calls of a stack are listed.
const FRAMES_MAX: usize = 64;

/// The file that is called `name`.
pub(super) fn artifact(name: &str) -> ArtifactLocation {
    let uri_base_id = uri::is_relative(name).then_some(ROOT);
    ArtifactLocation { uri: uri::of_file(name), uri_base_id }
}

/// The line of a file that `location` names, if it names one.
fn physical(location: &str) -> Option<PhysicalLocation> {
    let place = Place::new(location)?;
    let region = Region { start_line: place.line, start_column: place.column };
    Some(PhysicalLocation { artifact_location: artifact(place.file), region: Some(region) })
}

/// The file of the trace at `path`, for what is at no line of a file; none for standard input.
fn in_trace(path: &str) -> Option<PhysicalLocation> {
    let is_file = path != "-" && !path.is_empty();
    is_file.then(|| PhysicalLocation { artifact_location: artifact(path), region: None })
}

/// Where `site` is, with `message`; if it is at no line of a file, in the trace at `path` if that
/// is given.
pub(super) fn location(site: &Site<'_>, path: Option<&str>, message: Option<&str>) -> Location {
    let physical = physical(site.location);
    let logical = match (site.function(), &physical) {
        (Some(function), _) => vec![function_named(function)],
        (None, Some(_)) => Vec::new(),
        (None, None) => vec![LogicalLocation { fully_qualified_name: name(site), kind: None }],
    };
    Location {
        id: None,
        physical_location: physical.or_else(|| path.and_then(in_trace)),
        logical_locations: logical,
        message: message.map(Text::new),
    }
}

/// What `site` is called if it is at no line of a file.
fn name(site: &Site<'_>) -> String {
    match site.place().as_ref() {
        "" => format!("event {} of {}", site.number, shown(site.thread)),
        place => shown(place).into_owned(),
    }
}

fn function_named(function: &str) -> LogicalLocation {
    let fully_qualified_name = shown(function).into_owned();
    LogicalLocation { fully_qualified_name, kind: Some("function") }
}

/// The calls that led to `site`; none if they are not known.
pub(super) fn stack(site: &Site<'_>) -> Option<Stack> {
    let frame = |text: &&str| {
        let frame = Frame::new(text);
        // Where the C library was built is nowhere in the program's own folder.
        let is_own = !stack::is_of_library(text);
        StackFrame {
            location: Location {
                id: None,
                physical_location: frame.location.filter(|_| is_own).and_then(physical),
                logical_locations: vec![function_named(frame.function)],
                message: None,
            },
        }
    };
    let frames: Vec<StackFrame> = site.stack.iter().take(FRAMES_MAX).map(frame).collect();
    let who = format!("event {}, {}: {}", site.number, site.thread, site.op);
    (!frames.is_empty()).then(|| Stack { message: Text::new(&shown(&who)), frames })
}
