//! Draining the rings of recorded processes while they run.
//!
//! The collector owns the directory in which processes announce themselves. It looks for new ones,
//! reads what they wrote, puts the events of free-running threads in an order that synchronization
//! allows, and appends them to an event log, one for each process. What a process wrote is in memory
//! that outlives it, so it is read to the last event however the process ended. That memory also
//! outlives a collector that is killed: the next one releases it. A collector keeps its settings
//! locked as long as it lives, so which are left behind is certain.
//!
//! Free-running threads number their events of synchronization. An event without a number can be
//! taken at once: it belongs after its thread's last numbered one, and that is all that is known. A
//! numbered event waits until all smaller numbers were taken. Numbers that a dying process gave out
//! and never wrote are passed over at the end.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reweave_base::FxHashSet;
use reweave_runtime::session::{Reader, Session};
use reweave_runtime::shared::{FAILURE_WORDS, Mode, SETTINGS_WORDS, Settings, failure, outcome};
use reweave_runtime::wire::{Event, Kind};
use tempfile::TempDir;

use crate::event_log;

/// Events that are taken from a ring before the next is looked at.
const BATCH_EVENTS: u32 = 16_384;

/// Where memory that outlives a process is found.
const SHARED_MEMORY: &str = "/dev/shm";

/// How the names of directories of ours start.
const PREFIX: &str = "reweave-";

/// The file with the settings.
const SETTINGS: &str = "settings";

/// Sees every event as it is drained, with the number of its thread; runs as they are written.
/// Before the events of another process than the last, it sees an announcement (see [`announced_process`]).
pub type Observer<'a> = dyn FnMut(u32, &Event) + 'a;

/// The process whose events come next, by its place among all, if `event` says so.
#[must_use]
pub fn announced_process(event: &Event) -> Option<usize> {
    (event.kind == Kind::Switch).then_some(event.address as usize)
}

/// The file in `directory` with the memory map `number` of the process that `announcement` is of.
#[must_use]
pub fn map_file(directory: &Path, announcement: &Event, number: u64) -> PathBuf {
    let [pid, session] = [announcement.extra, announcement.value].map(Option::unwrap_or_default);
    directory.join(format!("s{pid}.{session}.maps{number}"))
}

/// What one process recorded.
#[derive(Debug)]
pub struct Recording {
    /// The process.
    pub pid: u64,
    /// How many events it logged.
    pub events: u64,
    /// How many threads it had.
    pub threads: u32,
    /// Whether accesses to memory were among the events.
    pub has_accesses: bool,
    /// How often a thread ran unseen for long.
    pub evictions: u32,
    /// How many threads could not be recorded; with them, what the others did is not understood.
    pub unrecorded: u32,
    /// Where its events are kept.
    pub event_log: PathBuf,
    /// Its memory map, each time that it changed.
    pub maps: Vec<String>,
    /// Whether words were found that are no event.
    pub is_damaged: bool,
    /// How it was recorded.
    pub mode: Mode,
    /// How it failed, if it said that it does.
    pub failure: Option<Failure>,
}

/// How a process failed, as it said itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The signal, or [`failure::PANIC`].
    pub signal: u64,
    /// The number of the thread that failed.
    pub thread: Option<u32>,
    /// The code address after that at which it failed; 0 if that is not known.
    pub code: u64,
    /// What it said.
    pub text: String,
    /// Whether the system was about to end it; else a handler of its own may have come between.
    pub is_certain: bool,
}

/// How often it is looked whether the program has started another process.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Reads what recorded processes write.
pub struct Collector {
    directory: TempDir,
    /// The settings, locked.
    _settings: File,
    logs: PathBuf,
    seen: FxHashSet<PathBuf>,
    /// When it was last looked for processes.
    looked: Instant,
    processes: Vec<Process>,
    limit: u64,
    drained: u64,
    /// How many accesses the programs counted and did not write yet.
    unwritten: u64,
    /// The process that was started; 0 before.
    started: u32,
    /// Processes that run on though the one that was started has ended.
    background: Vec<u32>,
    /// Whether the limit is reached with what the program counted and did not write yet.
    will_be_full: bool,
    is_stopped: bool,
    /// The process that was announced last.
    announced_process: Option<usize>,
}

struct Process {
    session: Session,
    /// The path of its files, without what distinguishes them.
    prefix: PathBuf,
    mode: Mode,
    rings: Vec<Option<Reader>>,
    /// Rings that were not there yet when they were looked for.
    missing: VecDeque<usize>,
    /// For each ring the thread whose events are read.
    current: Vec<u32>,
    /// Whether the last thing in the only ring was that another thread runs.
    has_switched: bool,
    /// The next number, in `free` recordings.
    number: u64,
    output: Output,
    event_log: PathBuf,
    events: u64,
}

/// Where the events of a process go.
struct Output {
    writer: event_log::Writer<BufWriter<File>>,
    has_accesses: bool,
}

impl Output {
    /// Keeps `event`, or as much of a run as there is room for; says how many events that were.
    #[inline]
    fn push(
        &mut self,
        thread: u32,
        mut event: Event,
        room: u64,
        observer: &mut Observer<'_>,
    ) -> io::Result<u64> {
        let mut count = 1;
        if event.kind == Kind::Run {
            event.address = event.address.min(room);
            count = event.address;
        }
        self.has_accesses |= event.kind.is_plain();
        observer(thread, &event);
        self.writer.push(thread, &event)?;
        Ok(count)
    }
}

impl Collector {
    /// A directory for processes to announce themselves in, with `settings` for them and, where
    /// there is one, the words of a plan; event logs go to the directory `logs`.
    ///
    /// # Errors
    /// If the directory or its files cannot be made.
    pub fn new(
        settings: &Settings,
        plan: Option<&[u64]>,
        logs: &Path,
        limit: u64,
    ) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let directory = builder.prefix(PREFIX);
        remove_leftovers(Path::new(SHARED_MEMORY));
        let directory = directory.tempdir_in(SHARED_MEMORY).or_else(|_| directory.tempdir())?;
        let bytes = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        // They are locked before they are there, so that nobody finds them without an owner.
        let unnamed = directory.path().join("settings.new");
        let mut locked = File::create_new(&unnamed)?;
        // Where files cannot be locked, the number of the process must do.
        let _ = locked.try_lock();
        locked.write_all(&bytes(&settings.encode()))?;
        fs::rename(&unnamed, directory.path().join(SETTINGS))?;
        if let Some(plan) = plan {
            let mut words = vec![plan.len() as u64];
            words.extend_from_slice(plan);
            fs::write(directory.path().join("plan"), bytes(&words))?;
        }
        Ok(Self {
            directory,
            _settings: locked,
            logs: logs.to_path_buf(),
            seen: FxHashSet::default(),
            looked: Instant::now(),
            processes: Vec::new(),
            limit,
            drained: 0,
            unwritten: 0,
            started: 0,
            background: Vec::new(),
            will_be_full: false,
            is_stopped: false,
            announced_process: None,
        })
    }

    /// The directory, which an environment variable names to the program.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// How many events were read.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.drained
    }

    /// How many accesses were counted that will be read later.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// The recorded processes that run.
    #[must_use]
    pub fn living(&self) -> Vec<u32> {
        let pid = |it: &Process| it.session.header().pid.load(Ordering::Relaxed);
        let pids = self.processes.iter().map(|process| pid(process) as u32);
        pids.filter(|&pid| is_running(pid)).collect()
    }

    /// Whether a process was about to make another that has not announced itself.
    #[must_use]
    pub fn misses_child(&self) -> bool {
        let forks = |it: &Process| it.session.header().forks.load(Ordering::Relaxed) as usize;
        self.processes.iter().map(forks).sum::<usize>() >= self.processes.len()
    }

    /// The processes that run on in the background, once the one that was started has ended.
    #[must_use]
    pub fn background(&self) -> &[u32] {
        &self.background
    }

    /// The process that was started; 0 before.
    #[must_use]
    pub const fn started(&self) -> u32 {
        self.started
    }

    pub(crate) const fn set_started(&mut self, pid: u32) {
        self.started = pid;
    }

    pub(crate) fn set_background(&mut self, processes: Vec<u32>) {
        self.background = processes;
    }

    /// Whether as many events were read as are wanted.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.drained >= self.limit || self.will_be_full
    }

    /// Looks for new processes and reads what all have written; says how many events that were.
    ///
    /// # Errors
    /// If an event log cannot be written.
    pub fn poll(&mut self, observer: &mut Observer<'_>) -> io::Result<u64> {
        if self.processes.is_empty() || self.looked.elapsed() >= LOOK_EVERY {
            self.look_for_processes()?;
            self.looked = Instant::now();
        }
        let before = self.drained;
        for (place, process) in self.processes.iter_mut().enumerate() {
            let room = self.limit.saturating_sub(self.drained);
            process.announce(place, &mut self.announced_process, observer);
            self.drained += process.drain(room, false, observer)?;
        }
        self.unwritten = self.processes.iter().map(Process::unwritten).sum();
        self.will_be_full = self.drained + self.unwritten >= self.limit;
        if self.is_full() {
            self.stop();
        }
        Ok(self.drained - before)
    }

    /// Sleeps until there may be something to read.
    pub fn wait(&self) {
        match self.processes.last() {
            Some(process) => process.session.listen(2),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Makes all processes record nothing more.
    pub fn stop(&mut self) {
        if !self.is_stopped {
            self.processes.iter().for_each(|process| process.session.stop());
            self.is_stopped = true;
        }
    }

    /// The memory map of the process at `place`, each time that it changed.
    #[must_use]
    pub fn maps(&self, place: usize) -> Vec<String> {
        self.processes.get(place).map_or_else(Vec::new, Process::maps)
    }

    /// The announcements of processes that are not read.
    fn unopened(&self) -> io::Result<Vec<PathBuf>> {
        let mut heads = Vec::new();
        for entry in fs::read_dir(self.directory.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "head") && !self.seen.contains(&path) {
                heads.push(path);
            }
        }
        Ok(heads)
    }

    /// What became of the plan in a process that followed it to its end, or else in the first that says
    /// anything: which of several processes was recorded is not known.
    #[must_use]
    pub fn outcome(&self) -> Option<(u64, Vec<u64>)> {
        let outcomes = self.processes.iter().map(|process| process.session.outcome());
        let outcomes = outcomes.filter(|(what, _)| *what != outcome::PENDING);
        outcomes.min_by_key(|(what, _)| *what != outcome::CONFIRMED)
    }

    /// Reads the rest, once the program has ended, and closes the event logs; says also how many
    /// processes wanted to be recorded and had no room for it.
    ///
    /// # Errors
    /// If an event log cannot be written.
    pub fn finish(mut self, observer: &mut Observer<'_>) -> io::Result<(Vec<Recording>, u32)> {
        self.look_for_processes()?;
        let unopened = self.unopened()?.len() as u32;
        let mut recordings = Vec::new();
        for (place, mut process) in self.processes.into_iter().enumerate() {
            process.announce(place, &mut self.announced_process, observer);
            while self.drained < self.limit {
                let count = process.drain(self.limit - self.drained, true, observer)?;
                self.drained += count;
                if count == 0 {
                    break;
                }
            }
            self.drained += process.drain_unwritten(self.limit - self.drained, observer)?;
            process.session.stop();
            recordings.push(process.finish()?);
        }
        Ok((recordings, unopened))
    }

    fn look_for_processes(&mut self) -> io::Result<()> {
        for path in self.unopened()? {
            // A session that is not set up yet, or never will be, is looked at again.
            if let Ok(Some(session)) = Session::open(&path) {
                if self.is_stopped {
                    session.stop();
                }
                let event_log = self.logs.join(format!("{}.log", self.processes.len()));
                self.processes.push(Process::new(session, path.with_extension(""), event_log)?);
                self.seen.insert(path);
            }
        }
        Ok(())
    }
}

impl Process {
    fn new(session: Session, prefix: PathBuf, event_log: PathBuf) -> io::Result<Self> {
        let is_free = session.header().mode.load(Ordering::Relaxed) == Mode::Free as u64;
        let mode = if is_free { Mode::Free } else { Mode::Serial };
        let file = BufWriter::new(File::create(&event_log)?);
        let rings = if is_free { Vec::new() } else { vec![Some(session.ring())] };
        Ok(Self {
            session,
            prefix,
            mode,
            rings,
            missing: VecDeque::new(),
            current: if is_free { Vec::new() } else { vec![0] },
            has_switched: false,
            number: 0,
            output: Output { writer: event_log::Writer::new(file)?, has_accesses: false },
            event_log,
            events: 0,
        })
    }

    /// Says that its events come next, unless that was said last.
    fn announce(&self, place: usize, last: &mut Option<usize>, observer: &mut Observer<'_>) {
        if last.replace(place) == Some(place) {
            return;
        }
        let name = self.prefix.file_name().and_then(|name| name.to_str());
        let session = name.and_then(|name| name.rsplit_once('.')?.1.parse().ok());
        let pid = Some(self.session.header().pid.load(Ordering::Relaxed));
        let event = Event::new(Kind::Switch, place as u64, 0);
        observer(u32::MAX, &Event { extra: pid, value: session, ..event });
    }

    fn maps(&self) -> Vec<String> {
        let count = self.session.header().maps.load(Ordering::Acquire).min(1 << 16);
        let maps = (0..count).map(|number| {
            let path = suffixed(&self.prefix, &format!(".maps{number}"));
            fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        });
        maps.map(Result::unwrap_or_default).collect()
    }

    /// Reads what is there, at most `room` events; at the end also past numbers that never came.
    fn drain(&mut self, room: u64, is_over: bool, observer: &mut Observer<'_>) -> io::Result<u64> {
        match self.mode {
            Mode::Serial => self.drain_serial(room, observer),
            Mode::Free => self.drain_free(room, is_over, observer),
        }
    }

    fn drain_serial(&mut self, room: u64, observer: &mut Observer<'_>) -> io::Result<u64> {
        let Some(Some(ring)) = self.rings.first_mut() else { return Ok(0) };
        let mut count = 0;
        loop {
            ring.refresh();
            let mut batch = 0;
            while batch < BATCH_EVENTS && count < room {
                let Some((event, words)) = ring.peek() else { break };
                ring.pass(words);
                batch += 1;
                if event.kind == Kind::Switch {
                    // That a thread ran is kept, though nothing was seen of what it did.
                    if std::mem::replace(&mut self.has_switched, true) {
                        let nothing = Event::new(Kind::Nothing, 0, 0);
                        count += self.output.push(self.current[0], nothing, 1, observer)?;
                    }
                    self.current[0] = event.address as u32;
                    continue;
                }
                self.has_switched = false;
                count += self.output.push(self.current[0], event, room - count, observer)?;
            }
            ring.release();
            if batch < BATCH_EVENTS {
                break;
            }
        }
        self.events += count;
        Ok(count)
    }

    fn drain_free(
        &mut self,
        room: u64,
        is_over: bool,
        observer: &mut Observer<'_>,
    ) -> io::Result<u64> {
        self.open_rings();
        let mut total = 0;
        loop {
            let mut count = 0;
            for place in 0..self.rings.len() {
                count += self.drain_ring(place, room - total - count, observer)?;
            }
            total += count;
            if count == 0 && !(is_over && self.skip_numbers()) {
                break;
            }
        }
        self.close_rings();
        self.events += total;
        Ok(total)
    }

    /// Takes the events of one ring, up to a number that is not next.
    fn drain_ring(
        &mut self,
        place: usize,
        room: u64,
        observer: &mut Observer<'_>,
    ) -> io::Result<u64> {
        let Some(ring) = &mut self.rings[place] else { return Ok(0) };
        ring.refresh();
        let mut count = 0;
        let mut has_switched = false;
        while count < room.min(u64::from(BATCH_EVENTS)) {
            let Some((event, words)) = ring.peek() else { break };
            if event.kind == Kind::Switch {
                self.current[place] = event.address as u32;
                ring.pass(words);
                has_switched = true;
                continue;
            }
            if let Some(number) = event.number {
                if number > self.number {
                    break;
                }
                self.number += 1;
            }
            ring.pass(words);
            count += self.output.push(self.current[place], event, room - count, observer)?;
        }
        if count > 0 || has_switched {
            ring.release();
        }
        Ok(count)
    }

    /// Goes on with the smallest number that was written; false if none was.
    fn skip_numbers(&mut self) -> bool {
        let numbers = self.rings.iter_mut().flatten().filter_map(|ring| {
            ring.refresh();
            ring.peek().and_then(|(event, _)| event.number)
        });
        match numbers.min() {
            Some(number) if number > self.number => {
                self.number = number;
                true
            }
            _ => false,
        }
    }

    /// How many accesses were counted and not written yet.
    fn unwritten(&self) -> u64 {
        self.rings.iter().flatten().map(Reader::unwritten).sum()
    }

    /// Takes what was counted and will never be written.
    fn drain_unwritten(&mut self, room: u64, observer: &mut Observer<'_>) -> io::Result<u64> {
        let mut total = 0;
        for (&thread, ring) in self.current.iter().zip(&self.rings) {
            let count = ring.as_ref().map_or(0, Reader::unwritten);
            if count > 0 {
                let run = Event::new(Kind::Run, count, 0);
                total += self.output.push(thread, run, room - total, observer)?;
            }
        }
        self.events += total;
        Ok(total)
    }

    fn open_rings(&mut self) {
        let count = self.session.header().rings.load(Ordering::Acquire) as usize;
        while self.rings.len() < count.min(1 << 20) {
            self.missing.push_back(self.rings.len());
            self.rings.push(None);
            self.current.push(0);
        }
        for _ in 0..self.missing.len() {
            let Some(place) = self.missing.pop_front() else { break };
            match self.session.thread_ring(&self.ring_path(place)) {
                Ok(ring) => self.rings[place] = Some(ring),
                Err(_) => self.missing.push_back(place),
            }
        }
    }

    fn ring_path(&self, place: usize) -> PathBuf {
        suffixed(&self.prefix, &format!(".t{place}"))
    }

    fn close_rings(&mut self) {
        for place in 0..self.rings.len() {
            if self.rings[place].as_ref().is_some_and(Reader::is_over) {
                self.rings[place] = None;
                // What cannot be removed now goes with the directory.
                let _ = fs::remove_file(self.ring_path(place));
            }
        }
    }

    fn finish(self) -> io::Result<Recording> {
        let header = self.session.header();
        let maps = self.maps();
        let recording = Recording {
            pid: header.pid.load(Ordering::Relaxed),
            events: self.events,
            threads: header.threads.load(Ordering::Relaxed),
            has_accesses: self.output.has_accesses,
            evictions: header.evictions.load(Ordering::Relaxed),
            unrecorded: header.unrecorded.load(Ordering::Relaxed),
            event_log: self.event_log,
            maps,
            is_damaged: self.rings.iter().flatten().any(Reader::is_damaged),
            mode: self.mode,
            failure: failure_of(header),
        };
        self.output.writer.finish()?;
        Ok(recording)
    }
}

/// How the process with `header` says that it failed.
fn failure_of(header: &reweave_runtime::shared::Header) -> Option<Failure> {
    let state = header.failure.load(Ordering::Acquire);
    let length = header.failure_length.load(Ordering::Acquire).min(FAILURE_WORDS as u64 * 8);
    let words = header.failure_text.iter().map(|word| word.load(Ordering::Relaxed));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(length as usize);
    (state != failure::NONE).then(|| Failure {
        signal: header.failure_signal.load(Ordering::Relaxed),
        thread: header.failure_thread.load(Ordering::Relaxed).checked_sub(1),
        code: header.failure_code.load(Ordering::Relaxed),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        is_certain: state == failure::CERTAIN,
    })
}

/// Whether the process `pid` is there and has not ended.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name before it is in brackets and may hold anything.
    let state = text.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Removes the directories in `folder` that belonged to collectors which are gone.
fn remove_leftovers(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        // A link is no directory.
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && is_left_behind(&entry.path())
        {
            // Another collector may be at it, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether `directory` holds settings of a collector that is gone: nobody has them locked, and there
/// is no process of its number.
fn is_left_behind(directory: &Path) -> bool {
    let Ok(mut file) = File::open(directory.join(SETTINGS)) else { return false };
    let mut bytes = [0; SETTINGS_WORDS * 8];
    if file.try_lock().is_err() || file.read_exact(&mut bytes).is_err() {
        return false;
    }
    let mut words = [0; SETTINGS_WORDS];
    for (word, eight) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*eight);
    }
    Settings::decode(&words)
        .is_some_and(|settings| !Path::new(&format!("/proc/{}", settings.collector)).exists())
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_collector_left_behind_is_removed() {
        let folder = TempDir::new().expect("there is room for a folder");
        let mut settings = Settings {
            mode: Mode::Serial,
            values: true,
            seed: 1,
            quantum_max: 1,
            ring_words: 1 << 9,
            collector: u64::from(u32::MAX),
            replay: false,
            stall_timeout_ms: 0,
            exit_wait_ms: 0,
        };
        let put = |name: &str, settings: &Settings| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("the folder is new");
            let bytes: Vec<u8> =
                settings.encode().iter().flat_map(|word| word.to_le_bytes()).collect();
            fs::write(path.join(SETTINGS), bytes).expect("the folder can be written to");
            File::open(path.join(SETTINGS)).expect("the file is there")
        };
        put("reweave-dead", &settings);
        put("someone-else", &settings);
        let locked = put("reweave-locked", &settings);
        locked.try_lock().expect("nobody else has it");
        settings.collector = u64::from(std::process::id());
        put("reweave-living", &settings);
        fs::create_dir(folder.path().join("reweave-new")).expect("the folder is new");
        remove_leftovers(folder.path());
        let entries = fs::read_dir(folder.path()).expect("the folder is there").flatten();
        let mut left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["reweave-living", "reweave-locked", "reweave-new", "someone-else"]);
    }
}
