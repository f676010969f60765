//! Traces from figures and figures from traces.
//!
//! A figure has a column per thread: the thread names first, then one operation a line, below the
//! name of its thread. What a semaphore starts at and how many arrivals end a barrier's generation
//! may be said on lines of their own, `start(s)=1` and `parties(b)=2`. The location of an event is
//! its number.
//!
//! ```
//! let trace = reweave_testkit::trace(
//!     "
//!     t1      t2
//!     acq(m)
//!     w(x)
//!     rel(m)
//!             r(x)
//!     ",
//! );
//! assert_eq!(trace.len(), 4);
//! ```

use std::fmt::Write as _;

use reweave_trace::{
    EventId, IllFormed, MemoryOrder, NameKind, OpCode, OpKind, Trace, TraceBuilder,
};

/// The trace that `drawing` shows.
///
/// # Panics
/// If the figure cannot be read, or shows what cannot have happened.
#[must_use]
#[track_caller]
pub fn trace(drawing: &str) -> Trace {
    match try_trace(drawing) {
        Ok(trace) => trace,
        Err(error) => panic!("the drawing is ill-formed: {error}\n{drawing}"),
    }
}

/// The trace that `drawing` shows, or why its events cannot have happened.
///
/// # Errors
/// If the figure shows what cannot have happened.
///
/// # Panics
/// If the figure cannot be read.
#[track_caller]
pub fn try_trace(drawing: &str) -> Result<Trace, IllFormed> {
    builder(drawing).finish()
}

/// The events that `drawing` shows, not yet checked.
///
/// # Panics
/// If the figure cannot be read.
#[must_use]
#[track_caller]
pub fn builder(drawing: &str) -> TraceBuilder {
    match read_drawing(drawing) {
        Ok(builder) => builder,
        Err((line, reason)) => panic!("line {line} of the drawing: {reason}\n{drawing}"),
    }
}

/// The events with these numbers, counted from 1.
///
/// # Panics
/// If a number is 0.
#[must_use]
#[track_caller]
pub fn events(numbers: &[u32]) -> Vec<EventId> {
    let event = |&number| EventId::from_number(number).expect("events are numbered from 1");
    numbers.iter().map(event).collect()
}

/// The trace that `text` holds, a line `thread|operation|location` for each event.
///
/// # Panics
/// If a line cannot be read, or tells of what cannot have happened.
#[must_use]
#[track_caller]
pub fn std(text: &str) -> Trace {
    let builder = std_builder(text);
    builder.finish().unwrap_or_else(|error| panic!("the text is ill-formed: {error}"))
}

/// A builder with the events that `text` holds, to add to.
///
/// # Panics
/// If a line cannot be read.
#[must_use]
#[track_caller]
pub fn std_builder(text: &str) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut fields = line.splitn(3, '|');
        let (Some(thread), Some(operation), Some(location)) =
            (fields.next(), fields.next(), fields.next())
        else {
            panic!("line {}: expected `thread|operation|location`, found `{line}`", at + 1);
        };
        let value = location.rsplit_once('|').and_then(|(rest, value)| {
            let value: i64 = value.parse().ok()?;
            Some((rest, value))
        });
        let location = value.map_or(location, |(rest, _)| rest);
        if let Err(reason) = push(&mut builder, thread, operation, location) {
            panic!("line {}: {reason}", at + 1);
        }
        if let Some((_, value)) = value {
            builder.value(value);
        }
    }
    builder
}

/// The figure of `trace`, from which [`trace`] makes it again, but for locations and values.
#[must_use]
pub fn draw(trace: &Trace) -> String {
    let names = trace.names();
    let spelled: Vec<String> =
        trace.events().map(|(_, event)| names.spell(event.op).to_string()).collect();
    let mut widths: Vec<usize> =
        names.threads.entries().map(|(_, name)| name.chars().count()).collect();
    for ((_, event), text) in trace.events().zip(&spelled) {
        let width = &mut widths[event.thread.number() as usize - 1];
        *width = text.chars().count().max(*width);
    }
    let mut figure = String::new();
    for ((_, name), &width) in names.threads.entries().zip(&widths) {
        write!(figure, "{name:<width$}  ").expect("text takes all that is written");
    }
    end_line(&mut figure);
    for (id, name) in names.semaphores.entries() {
        if let Some(start) = trace.declared().start(id) {
            writeln!(figure, "start({name})={start}").expect("text takes all that is written");
        }
    }
    for (id, name) in names.barriers.entries() {
        if let Some(parties) = trace.declared().parties(id) {
            writeln!(figure, "parties({name})={parties}").expect("text takes all that is written");
        }
    }
    for ((_, event), text) in trace.events().zip(&spelled) {
        let before = event.thread.number() as usize - 1;
        let indent: usize = widths[..before].iter().map(|width| width + 2).sum();
        figure.extend(std::iter::repeat_n(' ', indent));
        figure.push_str(text);
        end_line(&mut figure);
    }
    figure
}

fn end_line(figure: &mut String) {
    figure.truncate(figure.trim_end_matches(' ').len());
    figure.push('\n');
}

/// The words of `line`, each with the column it starts in.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut column = 0;
    for piece in line.split(' ') {
        if !piece.is_empty() {
            words.push((column, piece));
        }
        column += piece.chars().count() + 1;
    }
    words
}

fn read_drawing(drawing: &str) -> Result<TraceBuilder, (usize, String)> {
    let mut lines = drawing.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut builder = TraceBuilder::new();
    let Some((_, header)) = lines.next() else { return Ok(builder) };
    let columns = words(header);
    for &(_, thread) in &columns {
        builder.thread(thread);
    }
    let mut number = 0;
    for (at, line) in lines {
        let words = words(line);
        let &[(column, operation)] = words.as_slice() else {
            return Err((at + 1, "more than one operation on a line".into()));
        };
        match declare(&mut builder, operation) {
            Ok(true) => continue,
            Ok(false) => {}
            Err(reason) => return Err((at + 1, reason)),
        }
        let Some(&(_, thread)) = columns.iter().find(|&&(start, _)| start == column) else {
            return Err((at + 1, format!("`{operation}` is not below the name of a thread")));
        };
        number += 1;
        push(&mut builder, thread, operation, &number.to_string())
            .map_err(|reason| (at + 1, reason))?;
    }
    Ok(builder)
}

/// Whether `text` says what a semaphore starts at or how many end a barrier's generation.
fn declare(builder: &mut TraceBuilder, text: &str) -> Result<bool, String> {
    let Some((left, number)) = text.split_once(")=") else { return Ok(false) };
    let number =
        number.parse().map_err(|_| format!("expected a number after `=`, found `{number}`"))?;
    match left.split_once('(') {
        Some(("start", name)) => {
            let semaphore = builder.names().semaphores.intern(name);
            builder.declare_start(semaphore, number);
            Ok(true)
        }
        Some(("parties", name)) => {
            let barrier = builder.names().barriers.intern(name);
            builder.declare_parties(barrier, number);
            Ok(true)
        }
        _ => Err(format!("expected `start(s)=1` or `parties(b)=2`, found `{text}`")),
    }
}

fn push(
    builder: &mut TraceBuilder,
    thread: &str,
    operation: &str,
    location: &str,
) -> Result<(), String> {
    let thread = builder.thread(thread).number() - 1;
    let (code, operand) = read_operation(builder, operation)?;
    let site = builder.site(location).number() - 1;
    builder.push_indexes(thread, code, operand, site);
    Ok(())
}

fn read_operation(builder: &mut TraceBuilder, text: &str) -> Result<(OpCode, u32), String> {
    let unknown = || format!("expected an operation such as `w(x)` or `acq(m)`, found `{text}`");
    let (head, operand) = match text.split_once('(') {
        Some((head, rest)) => (head, Some(rest.strip_suffix(')').ok_or_else(unknown)?)),
        None => (text, None),
    };
    let (word, order) = match head.split_once('.') {
        Some((word, order)) => (word, Some(order)),
        None => (head, None),
    };
    let kind = *OpKind::ALL.iter().find(|kind| kind.as_str() == word).ok_or_else(unknown)?;
    let order_named = |word: &str| {
        MemoryOrder::ALL.iter().copied().find(|order| order.as_str() == word).ok_or_else(unknown)
    };
    if let OpKind::Fence = kind {
        return match (operand, order) {
            (Some(word), None) => Ok((OpCode::new(kind, order_named(word)?), 0)),
            _ => Err(unknown()),
        };
    }
    let order = match order {
        Some(word) if kind.has_order() => order_named(word)?,
        Some(_) => return Err(unknown()),
        None => MemoryOrder::default(),
    };
    let index = match (kind.operand(), operand) {
        (NameKind::None, None) => 0,
        (named, Some(name)) if named != NameKind::None && !name.is_empty() => {
            builder.names().intern(named, name.as_bytes()).map_err(|_| unknown())?
        }
        _ => return Err(unknown()),
    };
    Ok((OpCode::new(kind, order), index))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_OPERATION: &str = "\
main                t2
start(s)=1
parties(b)=2
fork(t2)
                    r(x)
                    w(x)
                    r?(x)
ar.acquire(x)
aw.release(x)
arw.acqrel(x)
ar(x)
fence(seqcst)
acq(m)
                    req(m)
rel(m)
                    racq(m)
                    rrel(m)
                    wait(c)
notify(c)
                    wake(c)
                    wait(c)
                    timeout(c)
notifyall(c)
arrive(b)
                    arrive(b)
depart(b)
post(s)
take(s)
alloc(o)
free(o)
begin(t)
end(t)
branch
let(v)
join(t2)
";

    #[test]
    fn every_operation_is_read_and_drawn_again() {
        let read = trace(EVERY_OPERATION);
        let figure = draw(&read);
        assert_eq!(trace(&figure), read);
        let squeeze = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(squeeze(&figure), squeeze(EVERY_OPERATION));
    }

    #[test]
    fn a_figure_may_be_indented() {
        assert_eq!(trace("\n    a  b\n\n    w(x)\n       r(x)\n"), trace("a  b\nw(x)\n   r(x)\n"));
    }

    #[test]
    fn the_location_of_an_event_is_its_number() {
        let read = trace("a  b\nw(x)\n   r(x)\n");
        let locations: Vec<&str> =
            read.events().map(|(_, event)| read.names().location(event.site)).collect();
        assert_eq!(locations, ["1", "2"]);
    }

    #[test]
    fn a_bad_figure_says_what_is_wrong_with_which_line() {
        let reason = |drawing| read_drawing(drawing).err();
        let unknown =
            |text| Some((2, format!("expected an operation such as `w(x)` or `acq(m)`, {text}")));
        assert_eq!(reason("a\nw(x) r(x)"), Some((2, "more than one operation on a line".into())));
        assert_eq!(
            reason("a  b\n  w(x)"),
            Some((2, "`w(x)` is not below the name of a thread".into()))
        );
        assert_eq!(reason("a\nq(x)"), unknown("found `q(x)`"));
        assert_eq!(reason("a\nw(x"), unknown("found `w(x`"));
        assert_eq!(reason("a\nw()"), unknown("found `w()`"));
        assert_eq!(reason("a\nw.relaxed(x)"), unknown("found `w.relaxed(x)`"));
        assert_eq!(reason("a\nbranch(x)"), unknown("found `branch(x)`"));
        assert_eq!(reason("a\nfence(loud)"), unknown("found `fence(loud)`"));
    }

    #[test]
    fn text_lines_are_read_with_their_locations() {
        let read = std("# a comment\nT1|w(x)|a.c:1 | b\n\nT2|r(x)|7|-3\n");
        assert_eq!(read.len(), 2);
        let locations: Vec<&str> =
            read.events().map(|(_, event)| read.names().location(event.site)).collect();
        assert_eq!(locations, ["a.c:1 | b", "7"]);
        let values: Vec<_> = read.events().map(|(id, _)| read.value(id)).collect();
        assert_eq!(values, [None, Some(-3)]);
    }
}
