//! What a trace says beside its events: how the run was started, how it ended, what variables held
//! at its start, and what the program calls its threads.
//!
//! ```text
//! run start = (field: u8, text)*
//! run end  = kind: u8, text, count: varint, (event number: varint, text)*, misuse*
//! misuse   = kind: u8, event number: varint, other event number or 0: varint, text
//! text     = length: varint, bytes
//! initials = (place: varint, value: varint)*
//! given    = (place: varint, text)*
//! ```
//!
//! A value is the 64 bits of a signed number, its sign in the lowest bit.

use reweave_base::Id as _;
use reweave_trace::{
    EndKind, EventId, Misuse, MisuseKind, Names, RunEnd, RunStart, ThreadEnd, ThreadId, VarId,
};

use super::{push_varint, take_varint};
use crate::error::check_variables;

/// What a field of the start of a run holds, by its number.
#[derive(Clone, Copy)]
enum Field {
    Tool,
    Time,
    System,
    Folder,
    Program,
    BuildId,
    Argument,
    /// A name, `=`, and the value.
    Variable,
    Mode,
    Seed,
    Option,
}

impl Field {
    const ALL: [Self; 11] = [
        Self::Tool,
        Self::Time,
        Self::System,
        Self::Folder,
        Self::Program,
        Self::BuildId,
        Self::Argument,
        Self::Variable,
        Self::Mode,
        Self::Seed,
        Self::Option,
    ];
}

pub(super) fn write_run_start(run_start: &RunStart) -> Vec<u8> {
    let RunStart { tool, time, system, folder, program, build_id, .. } = run_start;
    let RunStart { command, environment, mode, seed, options, .. } = run_start;
    let mut bytes = Vec::new();
    let mut push = |field: Field, text: &str| {
        bytes.push(field as u8);
        push_text(&mut bytes, text);
    };
    let single = [
        (Field::Tool, tool),
        (Field::System, system),
        (Field::Folder, folder),
        (Field::Program, program),
        (Field::BuildId, build_id),
        (Field::Mode, mode),
    ];
    single.iter().filter(|(_, text)| !text.is_empty()).for_each(|(field, text)| push(*field, text));
    let numbers = [(Field::Time, time), (Field::Seed, seed)];
    let numbers = numbers.into_iter().filter_map(|(field, number)| Some((field, (*number)?)));
    numbers.for_each(|(field, number)| push(field, &number.to_string()));
    command.iter().for_each(|argument| push(Field::Argument, argument));
    environment.iter().for_each(|(name, value)| push(Field::Variable, &format!("{name}={value}")));
    options.iter().for_each(|option| push(Field::Option, option));
    bytes
}

/// Reads the start of a run. Fields of unknown numbers are skipped: a later version may add some.
pub(super) fn read_run_start(bytes: &[u8]) -> Result<RunStart, String> {
    let mut run_start = RunStart::default();
    let mut rest = bytes;
    while let Some((&number, after)) = rest.split_first() {
        rest = after;
        let text = take_text(&mut rest)?;
        let number_of = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
        let Some(field) = Field::ALL.get(number as usize) else { continue };
        match field {
            Field::Tool => run_start.tool = text,
            Field::Time => run_start.time = Some(number_of(&text)?),
            Field::System => run_start.system = text,
            Field::Folder => run_start.folder = text,
            Field::Program => run_start.program = text,
            Field::BuildId => run_start.build_id = text,
            Field::Argument => run_start.command.push(text),
            Field::Variable => {
                let (name, value) = text.split_once('=').ok_or("a variable without a value")?;
                run_start.environment.push((name.to_owned(), value.to_owned()));
            }
            Field::Mode => run_start.mode = text,
            Field::Seed => run_start.seed = Some(number_of(&text)?),
            Field::Option => run_start.options.push(text),
        }
    }
    check_variables(&run_start)?;
    Ok(run_start)
}

pub(super) fn write_run_end(run_end: &RunEnd) -> Vec<u8> {
    let number = EndKind::ALL.iter().position(|&kind| kind == run_end.kind).unwrap_or(0);
    let mut bytes = vec![number as u8];
    push_text(&mut bytes, &run_end.text);
    push_varint(&mut bytes, run_end.threads.len() as u64);
    for thread in &run_end.threads {
        push_varint(&mut bytes, u64::from(thread.event.number()));
        push_text(&mut bytes, &thread.state);
    }
    for misuse in &run_end.misuses {
        let number = MisuseKind::ALL.iter().position(|&kind| kind == misuse.kind).unwrap_or(0);
        bytes.push(number as u8);
        push_varint(&mut bytes, u64::from(misuse.event.number()));
        push_varint(&mut bytes, misuse.other.map_or(0, |event| u64::from(event.number())));
        push_text(&mut bytes, &misuse.text);
    }
    bytes
}

pub(super) fn read_run_end(bytes: &[u8]) -> Result<RunEnd, String> {
    let (&number, mut rest) = bytes.split_first().ok_or("an end of the run without a kind")?;
    let kind = EndKind::ALL.get(number as usize).ok_or("an end of the run of unknown kind")?;
    let text = take_text(&mut rest)?;
    let count = take_varint(&mut rest)? as usize;
    // A thread takes at least two bytes, so this also bounds the memory.
    if count > rest.len() {
        return Err(format!("{count} threads in {} bytes", rest.len()));
    }
    let mut threads = Vec::with_capacity(count);
    for _ in 0..count {
        let event = take_event(&mut rest)?.ok_or("a thread without a last event")?;
        threads.push(ThreadEnd { event, state: take_text(&mut rest)? });
    }
    let mut misuses = Vec::new();
    while let Some((&number, after)) = rest.split_first() {
        rest = after;
        let kind = *MisuseKind::ALL.get(number as usize).ok_or("a misuse of unknown kind")?;
        let event = take_event(&mut rest)?.ok_or("a misuse without an event")?;
        let other = take_event(&mut rest)?;
        misuses.push(Misuse { kind, event, other, text: take_text(&mut rest)? });
    }
    Ok(RunEnd { kind: *kind, text, threads, misuses })
}

/// The event that a number stands for; none for 0.
fn take_event(bytes: &mut &[u8]) -> Result<Option<EventId>, String> {
    let number = u32::try_from(take_varint(bytes)?).map_err(|_| "a number of no event")?;
    Ok(EventId::from_number(number))
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn take_text(bytes: &mut &[u8]) -> Result<String, String> {
    let length = take_varint(bytes)? as usize;
    let (text, rest) = bytes.split_at_checked(length).ok_or("a text is cut off")?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).map_err(|_| "a text is not UTF-8".into())
}

pub(super) fn write_initials(initials: impl Iterator<Item = (usize, i64)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, value) in initials {
        push_varint(&mut bytes, place as u64);
        push_varint(&mut bytes, (value << 1 ^ value >> 63) as u64);
    }
    bytes
}

/// The variables below `count` in `bytes`, each with what it held.
pub(super) fn read_initials(bytes: &[u8], count: usize) -> Result<Vec<(VarId, i64)>, String> {
    let mut rest = bytes;
    let mut initials = Vec::new();
    while !rest.is_empty() {
        let place = take_varint(&mut rest)? as usize;
        let value = take_varint(&mut rest)?;
        if place >= count || initials.len() >= count {
            return Err("more initial values than variables".into());
        }
        initials.push((VarId::from_index(place), (value >> 1) as i64 ^ -((value & 1) as i64)));
    }
    Ok(initials)
}

/// What the program calls its threads.
pub(super) fn write_given(names: &Names) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (thread, name) in names.given_names() {
        push_varint(&mut bytes, thread.index() as u64);
        push_text(&mut bytes, name);
    }
    bytes
}

/// Adds to `names` what the program calls its threads.
pub(super) fn read_given(bytes: &[u8], names: &mut Names) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let place = take_varint(&mut rest)?;
        let name = take_text(&mut rest)?;
        if place >= names.threads.len() as u64 || name.is_empty() {
            return Err("a name that the program gives to no thread, or an empty one".into());
        }
        names.give_name(ThreadId::from_index(place as usize), &name);
    }
    Ok(())
}
