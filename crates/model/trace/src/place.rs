//! Places in code, as the text of a trace spells them: lines of files, and calls that were active.

use crate::names::Names;
use crate::op::SiteId;

/// A line of a file, as locations spell it: `bank.c:12` or `bank.c:12:5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'t> {
    /// The file, as the trace calls it.
    pub file: &'t str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1, where it is known.
    pub column: Option<u32>,
}

impl<'t> Place<'t> {
    /// The place that `location` names; none if it is no line of a file.
    #[must_use]
    pub fn new(location: &'t str) -> Option<Self> {
        let (rest, last) = location.trim().rsplit_once(':')?;
        let last = number(last)?;
        let inner = rest.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?)));
        let (file, line, column) = match inner {
            Some((file, line)) => (file, line, Some(last)),
            None => (rest, last, None),
        };
        (!file.is_empty()).then_some(Self { file, line, column })
    }
}

/// A positive number of digits alone.
fn number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| is_plain && number > 0)
}

/// A call that was active: `transfer (bank.c:12)`, as the stacks of recorded programs spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'t> {
    /// The function.
    pub function: &'t str,
    /// Where it was, if that is known; a file alone has no line.
    pub location: Option<&'t str>,
}

impl<'t> Frame<'t> {
    /// What `text` says; all of it is the function if it ends in no location.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let text = text.trim();
        let split = text.strip_suffix(')').and_then(|inner| inner.rsplit_once(" ("));
        match split.filter(|(function, _)| !function.trim().is_empty()) {
            Some((function, location)) => Self { function, location: Some(location) },
            None => Self { function: text, location: None },
        }
    }

    /// Whether it is the function that `location` is in: it says that it is there, or the location
    /// is an address in it, as in `transfer+0x12`.
    #[must_use]
    pub fn is_at(&self, location: &str) -> bool {
        let location = location.trim();
        let offset = location.strip_prefix(self.function);
        self.location == Some(location) || offset.is_some_and(|rest| rest.starts_with("+0x"))
    }
}

/// The calls that were active at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls<'t> {
    /// The function that the site is in, where that is known.
    pub own: Option<Frame<'t>>,
    /// Who called it, the innermost first.
    pub callers: Vec<Frame<'t>>,
}

impl<'t> Calls<'t> {
    /// Those at `site`. The first frame of a stack is the function of the site itself if it is
    /// [at](Frame::is_at) its location.
    #[must_use]
    pub fn new(names: &'t Names, site: SiteId) -> Self {
        let location = names.location(site);
        let mut frames = names.stack(site).map(Frame::new).peekable();
        let own = frames.next_if(|frame| frame.is_at(location));
        Self { own, callers: frames.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_name_files_and_lines_or_nothing() {
        let place = |file, line, column| Some(Place { file, line, column });
        assert_eq!(Place::new("src/bank.c:12"), place("src/bank.c", 12, None));
        assert_eq!(Place::new("bank.c:12:5"), place("bank.c", 12, Some(5)));
        assert_eq!(Place::new(" a:b.c:7 "), place("a:b.c", 7, None));
        for text in ["", "17", "bank.c", "bank.c:", "bank.c:0", "bank.c:x", ":4", "main+0x12"] {
            assert_eq!(Place::new(text), None, "{text}");
        }
    }

    #[test]
    fn frames_name_functions_and_places() {
        let frame = |function, location| Frame { function, location };
        assert_eq!(Frame::new("main (bank.c:40)"), frame("main", Some("bank.c:40")));
        assert_eq!(Frame::new("f(int) (a.cc:1)"), frame("f(int)", Some("a.cc:1")));
        assert_eq!(Frame::new("libc.so.6+0x29d90"), frame("libc.so.6+0x29d90", None));
    }

    #[test]
    fn the_first_frame_is_the_function_itself_if_it_is_where_the_site_is() {
        let mut names = Names::default();
        let named = names.site("a.c:3", ["add (a.c:3)", "main (a.c:9)"]);
        let unnamed = names.site("a.c:3", ["main (a.c:9)"]);
        let address = names.site("add+0x3", ["add", "main (a.c:9)"]);
        let main = Frame { function: "main", location: Some("a.c:9") };
        let add = Frame { function: "add", location: Some("a.c:3") };
        assert_eq!(Calls::new(&names, named), Calls { own: Some(add), callers: vec![main] });
        assert_eq!(Calls::new(&names, unnamed), Calls { own: None, callers: vec![main] });
        let add = Frame { function: "add", location: None };
        assert_eq!(Calls::new(&names, address), Calls { own: Some(add), callers: vec![main] });
    }
}
