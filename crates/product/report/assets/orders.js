// What a drawing shows, worked out from its rows: who holds what, who sees what, who waits.

const READS = new Set(['r', 'r?', 'ar', 'arw']);
const WRITES = new Set(['w', 'aw', 'arw']);
const TAKES = new Set(['acq', 'racq']);
const GIVES = new Set(['rel', 'rrel']);

/** Roles of events, numbered as the data has them. */
const ROLE = { step: 0, fault: 1, next: 2, blocked: 3, never: 4, ahead: 5 };

/** What an event does, in words. */
function deed(event) {
    const of = '`' + event.operand + '`';
    const words = {
        r: `reads ${of}`,
        'r?': `reads ${of}`,
        ar: `reads ${of} atomically`,
        w: `writes ${of}`,
        aw: `writes ${of} atomically`,
        arw: `updates ${of} atomically`,
        acq: `acquires ${of}`,
        rel: `releases ${of}`,
        req: `requests ${of}`,
        wreq: `requests ${of} in exclusive mode`,
        racq: `acquires ${of} in shared mode`,
        rrel: `releases ${of}, held in shared mode`,
        fork: `starts ${of}`,
        join: `joins ${of}`,
        wait: `starts waiting on ${of}`,
        wake: `is woken from ${of}`,
        timeout: `stops waiting on ${of}`,
        notify: `wakes one thread waiting on ${of}`,
        notifyall: `wakes all threads waiting on ${of}`,
        arrive: `arrives at ${of}`,
        depart: `leaves ${of}`,
        post: `posts ${of}`,
        take: `takes ${of}`,
        alloc: `allocates ${of}`,
        free: `frees ${of}`,
        begin: `begins block ${of}`,
        end: `ends block ${of}`,
        let: `assigns to ${of}`,
        branch: 'branches',
        fence: 'executes a fence',
    };
    return words[event.kind] || `does ${event.op}`;
}

/** The locks that the thread of `event` holds after it. */
function heldAfter(event) {
    return event.after ?? event.held;
}

/** Whether the event of `cell` has happened once its line is done. */
function happens(cell) {
    return cell.role !== ROLE.next && cell.role !== ROLE.blocked;
}

/** The first line after `from` and before `to` in whose place events are left out; -1 if none. */
function gapBetween(lines, from, to) {
    return lines.findIndex((line, at) => at > from && at < to && line.gap > 0);
}

/** The rows of an order as lines: events that happen at once at the end share one. */
function linesOf(chunk, rows) {
    const lines = [];
    let count = 0;
    for (const entry of rows) {
        if (entry < 0) {
            lines.push({ gap: -entry, cells: [] });
            count -= entry;
            continue;
        }
        const [at, role, seen] = typeof entry === 'number' ? [entry, ROLE.step] : entry;
        const event = chunk.events[at];
        const isStep = role === ROLE.step || role === ROLE.fault;
        const saw = isStep || role === ROLE.ahead ? event.saw : null;
        const sees = seen === undefined ? saw : seen < 0 ? null : seen;
        if (isStep) count += 1;
        const write = sees ? chunk.byNumber.get(sees) : undefined;
        const cell = { event, role, step: isStep ? count : 0, sees, write };
        const last = lines[lines.length - 1];
        const isNext = role === ROLE.next || role === ROLE.blocked;
        if (isNext && last && last.isEnd) last.cells.push(cell);
        else lines.push({ gap: 0, cells: [cell], isEnd: isNext });
    }
    return lines;
}

/** The threads of some lines, in the order of the trace. */
function threadsOf(lines) {
    const threads = new Set(lines.flatMap((line) => line.cells.map((cell) => cell.event.thread)));
    return [...threads].sort((a, b) => a.number - b.number);
}

/** The cells of `lines` with the numbers of their lines. */
function cellsOf(lines) {
    return lines.flatMap((line, at) => line.cells.map((cell) => ({ ...cell, line: at })));
}

/** Where locks are held: thread, lock, from which line to which, as fractions of lines. */
function barsOf(lines, threads) {
    const bars = [];
    for (const thread of threads) {
        const mine = cellsOf(lines).filter(
            (cell) => cell.event.thread === thread && cell.role !== ROLE.never,
        );
        const open = new Map();
        const close = (key, at) => {
            bars.push({ ...open.get(key), to: at });
            open.delete(key);
        };
        // A lock that was given back and taken again is held twice.
        const key = (lock) => `${lock.since}\n${lock.name}`;
        let last = -1;
        for (const cell of mine) {
            const before = new Map(cell.event.held.map((lock) => [key(lock), lock]));
            // What changed in between, changed where events are left out: at the earliest what was
            // given back, at the latest what was taken.
            const gaps = lines.map((line, at) => at).filter((at) => at > last && at < cell.line);
            const skipped = gaps.filter((at) => lines[at].gap > 0);
            const [given, taken] = [skipped[0] ?? last, skipped[skipped.length - 1] ?? -0.5];
            for (const name of [...open.keys()]) if (!before.has(name)) close(name, given);
            for (const [name, lock] of before) {
                if (!open.has(name)) open.set(name, { thread, lock, from: taken });
            }
            const left = happens(cell) ? heldAfter(cell.event) : cell.event.held;
            const after = new Map(left.map((lock) => [key(lock), lock]));
            for (const name of [...open.keys()]) if (!after.has(name)) close(name, cell.line);
            for (const [name, lock] of after) {
                if (!open.has(name)) open.set(name, { thread, lock, from: cell.line });
            }
            last = cell.line;
        }
        const gap = gapBetween(lines, last, lines.length);
        for (const name of [...open.keys()]) close(name, gap < 0 ? lines.length - 0.5 : gap);
    }
    return bars;
}

/** What leads from one event to another: reads, locks handed over, threads started and ended. */
function arrowsOf(lines) {
    const cells = cellsOf(lines).filter((cell) => cell.role !== ROLE.never);
    const byNumber = new Map(cells.map((cell) => [cell.event.number, cell]));
    const arrows = [];
    const given = new Map();
    const lastOf = new Map();
    const started = new Map();
    for (const cell of cells) {
        const { event } = cell;
        const seen = cell.sees ? byNumber.get(cell.sees) : undefined;
        if (seen && seen.event.thread !== event.thread) {
            arrows.push({ kind: 'reads', from: seen, to: cell, isFault: cell.role === ROLE.fault });
        }
        if (!lastOf.has(event.thread) && started.has(event.thread)) {
            arrows.push({ kind: 'starts', from: started.get(event.thread), to: cell });
        }
        if (event.kind === 'fork' && event.other) started.set(event.other, cell);
        if (event.kind === 'join' && event.other && lastOf.has(event.other)) {
            arrows.push({ kind: 'starts', from: lastOf.get(event.other), to: cell });
        }
        if (TAKES.has(event.kind) && cell.role !== ROLE.blocked && cell.role !== ROLE.next) {
            const before = given.get(event.operand);
            if (before && before.event.thread !== event.thread) {
                arrows.push({ kind: 'hands', from: before, to: cell });
            }
        }
        if (GIVES.has(event.kind)) given.set(event.operand, cell);
        lastOf.set(event.thread, cell);
    }
    return arrows;
}

/** What `thread` holds after the lines up to `until`; null if events that are left out may tell. */
function heldBy(lines, thread, until) {
    const mine = cellsOf(lines).filter(
        (cell) => cell.event.thread === thread && cell.role !== ROLE.never,
    );
    const before = mine.filter((cell) => cell.line <= until).pop();
    if (before && gapBetween(lines, before.line, until + 1) < 0) {
        return happens(before) ? heldAfter(before.event) : before.event.held;
    }
    const next = mine.find((cell) => cell.line > until);
    return next && gapBetween(lines, until, next.line) < 0 ? next.event.held : null;
}

/** Who holds what, and what was last seen of variables, after the lines up to `until`. */
function situation(lines, threads, until) {
    const held = new Map(threads.map((thread) => [thread, heldBy(lines, thread, until)]));
    const values = new Map();
    for (const cell of cellsOf(lines.slice(0, until + 1))) {
        const { event, role, sees } = cell;
        if (role === ROLE.never) continue;
        if (happens(cell) && (READS.has(event.kind) || WRITES.has(event.kind))) {
            const by = WRITES.has(event.kind) ? event.number : sees;
            values.set(event.operand, { value: valueOf(cell), by });
        }
    }
    return { held, values };
}

/** The value that an access gives or gets in this order, where it is known. */
function valueOf(cell) {
    const { event, role, sees, write } = cell;
    if (!READS.has(event.kind) || event.kind === 'arw') return event.value;
    // What is read when it comes to that is not known.
    if ([ROLE.next, ROLE.blocked, ROLE.never].includes(role)) return null;
    if (sees === null || sees === event.saw) return event.value;
    return write && write.kind !== 'arw' ? write.value : null;
}

/** What a read sees, in words, and what it saw where that is something else. */
function sight(cell) {
    if (cell.sees === null) return '';
    const name = (number) => (number === 0 ? 'the initial value' : `event ${number}`);
    const isNew = cell.event.saw !== null && cell.event.saw !== cell.sees;
    return `sees ${name(cell.sees)}${isNew ? `, not ${name(cell.event.saw)}` : ''}`;
}
