//! JSON lines: an object for each event.
//!
//! ```json
//! {"semaphore":"s","start":2}
//! {"barrier":"b","parties":3}
//! {"waits_are_requested":true}
//! {"variable":"x","initial":0}
//! {"thread":"T1","op":"w","on":"x","location":"a.c:1","stack":["main.c:9"],"value":5}
//! {"thread":"T1","op":"ar","on":"flag","order":"acquire","location":"a.c:2"}
//! {"thread":"T2","op":"fence","order":"seqcst","location":"a.c:7"}
//! {"thread":"T1","name":"reader"}
//! {"ended":"hang","text":"","threads":[{"event":2,"state":"waits on condition c"}]}
//! ```
//!
//! The words are those of RAPID text. `on` is the operand, which `fence` and `branch` lack;
//! `order` is the memory order, `seqcst` where it is left out, and never left out for a fence;
//! `stack` has the innermost caller first; `location` is empty where it is left out. The first
//! objects say what a semaphore started at, how many arrivals end a barrier's generation, that a thread
//! which can wait for a lock requests it first, and what a variable held before the first write to it. A file
//! without events says `{"events":0}`. After the events, objects say what the program calls its threads. The last object says how the run ended, where that is known;
//! it names threads by the numbers of their last events. Unknown keys are refused, since a misspelt one would be
//! lost in silence.
//!
//! Carries names of any characters. The layers above the events are left out.
//!
//! Linear in the text.

use std::borrow::Cow;
use std::io::{self, Write};

use reweave_base::Id;
use reweave_trace::{
    BarrierId, EndKind, Event, EventId, FRAME_SEPARATOR, MemoryOrder, Misuse, MisuseKind, NameKind,
    OpCode, OpKind, RunEnd, RunStart, SemaphoreId, ThreadEnd, Trace, TraceBuilder, VarId,
};
use serde::{Deserialize, Serialize};

use crate::error::{Failure, ReadErrorKind, check_variables, excerpt};
use crate::lines::{LineFormat, LineSink, Lines, Parsed, read_lines};
use crate::operation;

/// Reads all events.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Parsed, Failure> {
    read_lines(JsonLines, lines)
}

/// Text that is borrowed from the line where nothing in it is escaped.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Every key that an object can have.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Record<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    thread: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    op: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    on: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    order: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    location: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    stack: Vec<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    semaphore: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    barrier: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parties: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    variable: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_are_requested: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    ended: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<Stopped<'a>>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    misuses: Vec<Misused<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Started>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
}

/// How the run was started.
#[derive(Deserialize, Serialize)]
struct Started(#[serde(with = "StartFields")] RunStart);

/// The fields of the start of a run.
#[derive(Deserialize, Serialize)]
#[serde(remote = "RunStart", deny_unknown_fields)]
struct StartFields {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
    system: String,
    folder: String,
    program: String,
    build_id: String,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    options: Vec<String>,
}

/// What a program must not do, and did.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Misused<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    event: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<u32>,
    #[serde(borrow)]
    text: Text<'a>,
}

/// Where a thread was when the run ended.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stopped<'a> {
    event: u32,
    #[serde(borrow)]
    state: Text<'a>,
}

struct JsonLines;

/// Refuses a second declaration that says otherwise.
fn once(line: &[u8], before: Option<u32>, now: u32) -> Result<(), ReadErrorKind> {
    match before {
        Some(before) if before != now => Err(ReadErrorKind::Malformed(format!(
            "expected {before}, as declared before, found `{}`",
            excerpt(line)
        ))),
        _ => Ok(()),
    }
}

impl LineFormat for JsonLines {
    fn take(&mut self, line: &[u8], builder: &mut TraceBuilder) -> Result<(), ReadErrorKind> {
        // An array would do for the deserializer: its items would be the keys in order.
        if !line.trim_ascii_start().starts_with(b"{") {
            let found = excerpt(line);
            let reason = format!("expected the JSON object of an event, found `{found}`");
            return Err(ReadErrorKind::Malformed(reason));
        }
        let record: Record<'_> =
            serde_json::from_slice(line).map_err(|error| not_a_record(line, &error))?;
        let (has_only_start, has_only_name) = (record.has_keys(1), record.has_keys(2));
        match record {
            Record { started: Some(started), .. } if has_only_start => {
                check_variables(&started.0).map_err(ReadErrorKind::Malformed)?;
                builder.set_run_start(started.0);
            }
            Record {
                thread: None, op: None, semaphore: Some(name), start: Some(start), ..
            } if record.has_keys(2) => {
                let semaphore = builder.semaphore(&name.0);
                once(line, builder.declared().start(semaphore), start)?;
                builder.declare_start(semaphore, start);
            }
            Record {
                thread: None, op: None, barrier: Some(name), parties: Some(parties), ..
            } if record.has_keys(2) && parties > 0 => {
                let barrier = builder.barrier(&name.0);
                once(line, builder.declared().parties(barrier), parties)?;
                builder.declare_parties(barrier, parties);
            }
            Record { waits_are_requested: Some(true), .. } if record.has_keys(1) => {
                builder.declare_requested_waits();
            }
            Record { variable: Some(name), initial: Some(initial), .. } if record.has_keys(2) => {
                let var = builder.var(&name.0);
                builder.declare_initial(var, initial);
            }
            Record { thread: Some(thread), name: Some(name), .. }
                if has_only_name && !name.0.is_empty() =>
            {
                let thread = builder.thread(&thread.0);
                builder.names().give_name(thread, &name.0);
            }
            Record { events: Some(0), .. } if record.has_keys(1) => {}
            Record {
                ended: Some(ref kind),
                text: Some(ref text),
                threads: Some(ref threads),
                ..
            } if record.has_keys(3 + usize::from(!record.misuses.is_empty())) => {
                let run_end = run_end(&kind.0, &text.0, threads, &record.misuses);
                builder.set_run_end(run_end.ok_or_else(|| {
                    ReadErrorKind::Malformed(format!(
                        "expected how the run ended, such as `hang`, and threads with the numbers of \
                         their last events, found `{}`",
                        excerpt(line)
                    ))
                })?);
            }
            record => record.push(line, builder)?,
        }
        Ok(())
    }
}

/// How the run ended, if that is what these say.
fn run_end(
    kind: &str,
    text: &str,
    threads: &[Stopped<'_>],
    misuses: &[Misused<'_>],
) -> Option<RunEnd> {
    let thread = |stopped: &Stopped<'_>| {
        let state = stopped.state.0.clone().into_owned();
        EventId::from_number(stopped.event).map(|event| ThreadEnd { event, state })
    };
    let threads = threads.iter().map(thread).collect::<Option<_>>()?;
    let misuse = |misused: &Misused<'_>| {
        Some(Misuse {
            kind: MisuseKind::named(&misused.kind.0)?,
            event: EventId::from_number(misused.event)?,
            other: misused
                .other
                .map(|number| EventId::from_number(number).ok_or(()))
                .transpose()
                .ok()?,
            text: misused.text.0.clone().into_owned(),
        })
    };
    let misuses = misuses.iter().map(misuse).collect::<Option<_>>()?;
    Some(RunEnd { kind: EndKind::named(kind)?, text: text.to_owned(), threads, misuses })
}

fn not_a_record(line: &[u8], error: &serde_json::Error) -> ReadErrorKind {
    let reason = error.to_string();
    // The line it counts is always the first: it was shown no other.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = reason.strip_suffix(&place).unwrap_or(&reason);
    ReadErrorKind::Malformed(format!(
        "expected the JSON object of an event: {reason}, at character {} of `{}`",
        error.column(),
        excerpt(line)
    ))
}

impl Record<'_> {
    /// Whether it has this many keys.
    fn has_keys(&self, count: usize) -> bool {
        let present = [
            self.thread.is_some(),
            self.op.is_some(),
            self.on.is_some(),
            self.order.is_some(),
            self.location.is_some(),
            !self.stack.is_empty(),
            self.value.is_some(),
            self.semaphore.is_some(),
            self.start.is_some(),
            self.barrier.is_some(),
            self.parties.is_some(),
            self.waits_are_requested.is_some(),
            self.variable.is_some(),
            self.initial.is_some(),
            self.events.is_some(),
            self.ended.is_some(),
            self.text.is_some(),
            self.threads.is_some(),
            !self.misuses.is_empty(),
            self.started.is_some(),
            self.name.is_some(),
        ];
        present.into_iter().filter(|&is| is).count() == count
    }

    fn push(&self, line: &[u8], builder: &mut TraceBuilder) -> Result<(), ReadErrorKind> {
        let malformed = |what: &str| {
            ReadErrorKind::Malformed(format!("expected {what}, found `{}`", excerpt(line)))
        };
        let declares = [
            self.semaphore.is_some(),
            self.start.is_some(),
            self.barrier.is_some(),
            self.parties.is_some(),
            self.variable.is_some(),
            self.initial.is_some(),
            self.waits_are_requested.is_some(),
            self.events.is_some(),
            self.ended.is_some(),
            self.text.is_some(),
            self.threads.is_some(),
            !self.misuses.is_empty(),
            self.started.is_some(),
            self.name.is_some(),
        ];
        if declares.contains(&true) {
            return Err(malformed(
                "the keys of one event, or `semaphore` and `start`, or `barrier` and `parties`, \
                 or `variable` and `initial`, or `waits_are_requested` with true, or `events` with 0, \
                 or `ended`, `text` and `threads`, or `started`, or `thread` and a `name`",
            ));
        }
        let Some(thread) = &self.thread else { return Err(malformed("the key `thread`")) };
        let Some(word) = &self.op else { return Err(malformed("the key `op`")) };
        let code = self.code(&word.0, &malformed)?;
        let on = match (&self.on, code.kind().operand()) {
            (Some(on), kind) if kind != NameKind::None => on.0.as_bytes(),
            (None, NameKind::None) => &[],
            (None, _) => return Err(malformed(&format!("the key `on` for `{}`", word.0))),
            (Some(_), _) => return Err(malformed(&format!("no key `on` for `{}`", word.0))),
        };
        let location = self.location.as_ref().map_or("", |location| &location.0);
        if location.contains(FRAME_SEPARATOR)
            || self.stack.iter().any(|frame| frame.0.contains(FRAME_SEPARATOR))
        {
            return Err(malformed("no line end in `location` and `stack`, where it would be lost"));
        }
        let names = builder.names();
        let thread = names.threads.intern(&thread.0).number() - 1;
        let operand =
            names.intern(code.kind().operand(), on).map_err(|_| ReadErrorKind::NotUtf8)?;
        let site = names.site(location, self.stack.iter().map(|frame| &*frame.0)).number() - 1;
        builder.push_indexes(thread, code, operand, site);
        if let Some(value) = self.value {
            builder.value(value);
        }
        Ok(())
    }

    fn code(
        &self,
        word: &str,
        malformed: &dyn Fn(&str) -> ReadErrorKind,
    ) -> Result<OpCode, ReadErrorKind> {
        let Some(kind) = operation::kind_of(word.as_bytes()) else {
            let found = excerpt(word.as_bytes());
            return Err(ReadErrorKind::Malformed(format!(
                "expected an operation's word such as `w` or `acq` as `op`, found `{found}`"
            )));
        };
        let order = match &self.order {
            Some(_) if !kind.has_order() => {
                return Err(malformed(&format!("no key `order` for `{word}`")));
            }
            Some(order) => operation::expect_order(order.0.as_bytes())?,
            None if kind == OpKind::Fence => return Err(malformed("the key `order` for `fence`")),
            None => MemoryOrder::SeqCst,
        };
        Ok(OpCode::new(kind, order))
    }
}

/// Writes `trace` to `out`.
///
/// # Errors
/// If `out` fails, or an event has more text than a line can have.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut sink = LineSink::new(out);
    for record in declarations(trace) {
        write_record(&mut sink, &record)?;
    }
    if trace.is_empty() {
        write_record(&mut sink, &Record { events: Some(0), ..Record::default() })?;
    }
    if let Some(run_start) = trace.run_start() {
        let started = Some(Started(run_start.clone()));
        write_record(&mut sink, &Record { started, ..Record::default() })?;
    }
    for (id, event) in trace.events() {
        write_record(&mut sink, &record_of(trace, id, event))?;
    }
    // After the events, so that threads keep their order.
    for (thread, name) in trace.names().given_names() {
        let thread = text(trace.names().threads.name(thread));
        write_record(&mut sink, &Record { thread, name: text(name), ..Record::default() })?;
    }
    if let Some(run_end) = trace.run_end() {
        let threads = run_end.threads.iter().map(|thread| Stopped {
            event: thread.event.number(),
            state: Text(Cow::Borrowed(&thread.state)),
        });
        let misuses = run_end.misuses.iter().map(|misuse| Misused {
            kind: Text(Cow::Borrowed(misuse.kind.as_str())),
            event: misuse.event.number(),
            other: misuse.other.map(EventId::number),
            text: Text(Cow::Borrowed(&misuse.text)),
        });
        let record = Record {
            ended: text(run_end.kind.as_str()),
            text: text(&run_end.text),
            threads: Some(threads.collect()),
            misuses: misuses.collect(),
            ..Record::default()
        };
        write_record(&mut sink, &record)?;
    }
    sink.finish()
}

fn write_record(sink: &mut LineSink<'_>, record: &Record<'_>) -> io::Result<()> {
    sink.push(&serde_json::to_string(record)?);
    sink.end_line()
}

fn declarations(trace: &Trace) -> impl Iterator<Item = Record<'_>> {
    let (names, declared) = (trace.names(), trace.declared());
    let starts = (0..names.semaphores.len()).map(SemaphoreId::from_index).filter_map(|id| {
        let semaphore = text(names.semaphores.name(id));
        declared.start(id).map(|start| Record {
            semaphore,
            start: Some(start),
            ..Record::default()
        })
    });
    let parties = (0..names.barriers.len()).map(BarrierId::from_index).filter_map(|id| {
        let barrier = text(names.barriers.name(id));
        let record = |parties| Record { barrier, parties: Some(parties), ..Record::default() };
        declared.parties(id).map(record)
    });
    let initials = (0..names.vars.len()).map(VarId::from_index).filter_map(|id| {
        let variable = text(names.vars.name(id));
        let record = |initial| Record { variable, initial: Some(initial), ..Record::default() };
        declared.initial(id).map(record)
    });
    let requests = declared
        .waits_are_requested
        .then(|| Record { waits_are_requested: Some(true), ..Record::default() });
    requests.into_iter().chain(starts).chain(parties).chain(initials)
}

fn record_of(trace: &Trace, id: EventId, event: Event) -> Record<'_> {
    let names = trace.names();
    let (code, operand) = event.op.encode();
    let kind = code.kind();
    let tells_order = kind == OpKind::Fence || code.order() != MemoryOrder::SeqCst;
    Record {
        thread: text(names.threads.name(event.thread)),
        op: text(kind.as_str()),
        on: match kind.operand() {
            NameKind::None => None,
            what => text(names.name(what, operand)),
        },
        order: if tells_order { text(code.order().as_str()) } else { None },
        location: text(names.location(event.site)),
        stack: names
            .stack(event.site)
            .chain(names.source_text(event.site))
            .map(|frame| Text(frame.into()))
            .collect(),
        value: trace.value(id),
        ..Record::default()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every key of a record is optional")]
fn text(text: &str) -> Option<Text<'_>> {
    Some(Text(Cow::Borrowed(text)))
}
