//! From what a process recorded to a trace with names.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use crate::collect::Recording;
use crate::convert::{self, FileSink, Summary, convert};
use crate::expand::Expanded;
use crate::lift::Lifted;
use crate::spool::Reader;
use crate::symbols::Symbols;

/// The names of a process, for both who rewrites its events and who converts them.
impl convert::Symbols for Rc<RefCell<Symbols>> {
    fn site(&mut self, code: u64, stack: &[u64]) -> String {
        self.borrow_mut().site(code, stack)
    }

    fn data(&mut self, address: u64) -> Option<(String, u64)> {
        self.borrow_mut().data(address)
    }

    fn maps(&mut self, number: u64) {
        self.borrow_mut().select(number);
    }

    fn origin(&mut self, code: u64) -> Option<(String, u64)> {
        let mut symbols = self.borrow_mut();
        symbols.origin(code).map(|(path, offset)| (path.to_owned(), offset))
    }

    fn build_id(&mut self, path: &str) -> String {
        self.borrow_mut().build_id(path).unwrap_or_default().to_owned()
    }
}

/// Writes the trace of `recording` to `out`; source files below `base` are named relative to it.
/// With `keeps_all`, accesses to memory that threads do not contend for are kept too.
///
/// # Errors
/// If the recording cannot be read or the trace cannot be written.
pub fn write_trace(
    recording: &Recording,
    base: &Path,
    keeps_all: bool,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    let stage = tracing::info_span!(
        "convert recording",
        recorded = recording.events,
        events = tracing::field::Empty,
    );
    let stage = stage.entered();
    let mut symbols = Symbols::new(base);
    for (number, text) in (0..).zip(&recording.maps) {
        symbols.add_map(number, text);
    }
    let symbols = Rc::new(RefCell::new(symbols));
    let open = || {
        symbols.borrow_mut().select(0);
        let reader = Reader::new(BufReader::new(File::open(&recording.spool)?))?;
        Ok(Lifted::new(Expanded::new(reader), Rc::clone(&symbols)))
    };
    let mut sink = FileSink::new(BufWriter::new(out))?;
    let summary = convert(open, keeps_all, &mut Rc::clone(&symbols), &mut sink)?;
    sink.finish()?.flush()?;
    stage.record("events", summary.events);
    Ok(summary)
}
