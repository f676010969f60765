// What a drawing shows, worked out from its rows: who holds what, who sees what, who waits.

const READS = new Set(['r', 'r?', 'ar', 'arw']);
const WRITES = new Set(['w', 'aw', 'arw']);
const TAKES = new Set(['acq', 'racq']);
const GIVES = new Set(['rel', 'rrel']);

/** What events have to do with a finding, as the data calls it. */
const ROLE = {
    step: 'step',
    fault: 'fault',
    next: 'next',
    blocked: 'blocked',
    never: 'never',
    ahead: 'ahead',
};

/** What an event does with a lock or a file descriptor as a whole, in words; nothing if it does not. */
function ofHandle(event) {
    const lock = /^lock\((.*)\)$/.exec(event.operand);
    const file = /^descriptor\((\d+)\)/.exec(event.operand);
    const name = lock ? '`' + lock[1] + '`' : file ? `file descriptor ${file[1]}` : null;
    if (name === null) return null;
    if (event.kind === 'free') return `${lock ? 'destroys' : 'closes'} ${name}`;
    if (event.kind === 'alloc') return `${lock ? 'makes' : 'opens'} ${name}`;
    return file && (READS.has(event.kind) || WRITES.has(event.kind)) ? `uses ${name}` : null;
}

/** What the thread of an event waits for in it, in words. */
function waiting(event) {
    const of = '`' + event.operand + '`';
    const words = {
        join: `waits for ${of} to end`,
        wake: `waits on ${of}`,
        wait: `waits on ${of}`,
        take: `waits for a post of ${of}`,
        depart: `waits at ${of}`,
        arrive: `waits at ${of}`,
    };
    const isLock = TAKES.has(event.kind) || ['req', 'wreq'].includes(event.kind);
    return words[event.kind] || (isLock ? `waits for ${of}` : action(event));
}

/** What an event does, in words. */
function action(event) {
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
        branch: 'is here',
        fence: 'executes a fence',
    };
    return ofHandle(event) || words[event.kind] || `does ${event.op}`;
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

/** How many events of a gap can be shown. */
function hidden(row) {
    return (row.first ?? []).length + (row.last ?? []).length;
}

/** The rows of an order as lines: events that happen at once at the end share one. The gaps that are
 *  named in `open`, by the numbers of their rows, are lines of their events. */
function linesOf(chunk, rows, open = new Set()) {
    const lines = [];
    let count = 0;
    const push = (row, isExtra) => {
        const role = Object.values(ROLE).find((name) => name in row);
        const seen = row.sees;
        const event = chunk.events[row[role]];
        const isStep = role === ROLE.step || role === ROLE.fault;
        const saw = isStep || role === ROLE.ahead ? event.saw : null;
        const sees = seen === undefined ? saw : seen;
        if (isStep) count += 1;
        const write = sees ? chunk.byNumber.get(sees) : undefined;
        const cell = { event, role, step: isStep ? count : 0, sees, write };
        const last = lines[lines.length - 1];
        const isNext = role === ROLE.next || role === ROLE.blocked;
        if (isNext && last && last.isEnd) last.cells.push(cell);
        else lines.push({ gap: 0, cells: [cell], isEnd: isNext, isExtra });
    };
    rows.forEach((row, at) => {
        if (typeof row === 'number') push({ step: row }, false);
        else if (row.gap === undefined) push(row, false);
        else if (open.has(at)) {
            const [first, last] = [row.first ?? [], row.last ?? []];
            const rest = row.gap - first.length - last.length;
            lines.push({ gap: 0, cells: [], toggle: at, count: row.gap, isOpen: true });
            first.forEach((step) => push({ step }, true));
            if (rest > 0) lines.push({ gap: rest, cells: [] });
            count += rest;
            last.forEach((step) => push({ step }, true));
        } else {
            const toggle = hidden(row) > 0 ? at : null;
            lines.push({ gap: row.gap, cells: [], toggle, count: row.gap, some: hidden(row) });
            count += row.gap;
        }
    });
    return lines;
}

/** The numbers of the rows that are gaps of which events can be shown. */
function gapsOf(rows) {
    return rows.map((row, at) => at).filter((at) => hidden(rows[at]) > 0);
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

/** What leads from one event to another: reads, locks handed over, threads started and ended, and what
 *  woke those that waited. */
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
        if (event.isFirst && started.has(event.thread)) {
            arrows.push({ kind: 'starts', from: started.get(event.thread), to: cell });
        }
        if (event.kind === 'fork' && event.other) started.set(event.other, cell);
        const ended = event.kind === 'join' && event.other ? lastOf.get(event.other) : null;
        if (ended && ended.event.isLast && happens(cell)) {
            arrows.push({ kind: 'ends', from: ended, to: cell });
        }
        if (TAKES.has(event.kind) && cell.role !== ROLE.blocked && cell.role !== ROLE.next) {
            const before = given.get(event.operand);
            if (before && before.event.thread !== event.thread) {
                arrows.push({ kind: 'hands', from: before, to: cell });
            }
        }
        if (GIVES.has(event.kind)) given.set(event.operand, cell);
        const isOver = happens(cell) && cell.role !== ROLE.ahead;
        for (const number of isOver ? event.causes : []) {
            const cause = byNumber.get(number);
            const isOther = cause && cause.event.thread !== event.thread;
            if (isOther && cause.line < cell.line) {
                arrows.push({ kind: 'wakes', from: cause, to: cell });
            }
        }
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
