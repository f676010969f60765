// One finding: what it is, why, how it comes about, what to do next.

/** How parts of code are coloured, by the letters that the data has for them. */
const COLOURS = { k: 'keyword', s: 'string', n: 'number', c: 'comment', d: 'directive' };

/** `text` in the colours that `parts` says: the class of each part and its length, as in `k6 -1`. */
function coloured(text, parts) {
    if (!parts) return [text];
    let at = 0;
    const pieces = parts.split(' ').map((part) => {
        const end = at + Number(part.slice(1));
        const piece = text.slice(at, end);
        at = end;
        const name = COLOURS[part[0]];
        return name ? el('span', { class: `code-${name}` }, piece) : piece;
    });
    return [...pieces, text.slice(at)];
}

/** The lines of code around `place`, the one that matters marked. */
function code(place) {
    if (!place.hasCode) {
        return place.note ? el('p', { class: 'soft note' }, prose(place.note)) : null;
    }
    const lines = [];
    for (let number = place.first; number <= place.last; number += 1) {
        const isMarked = number === place.line;
        lines.push(
            el(
                'tr',
                { class: isMarked ? 'marked' : null },
                el('td', { class: 'number' }, isMarked ? '▸ ' : '', number),
                el('td', null, coloured(place.lines[number] ?? '', place.colours[number])),
            ),
        );
    }
    return el(
        'div',
        { class: 'code' },
        el(
            'div',
            { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': `Code of ${place.name}` },
            el('table', null, el('tbody', null, lines)),
        ),
        place.note ? el('p', { class: 'soft note' }, prose(place.note)) : null,
    );
}

/** `holding m, n (shared)`. */
function holdingNow(locks) {
    if (locks.length === 0) return ['holding no lock'];
    const names = locks.map((lock) => [
        el('code', null, lock.name),
        lock.isShared ? ' (shared)' : '',
    ]);
    return ['holding ', ...names.flatMap((name, at) => (at ? [', ', ...name] : name))];
}

/** An event that a finding is about besides those at fault. */
function related(chunk, one) {
    const named = { function: one.function === undefined ? null : chunk.strings[one.function] };
    const node = site(chunk, named, one, false);
    node.classList.add('related');
    node.prepend(el('p', { class: 'soft' }, `Related: ${one.what}`));
    return node;
}

/** So many callers are listed at once. */
const CALLERS_OPEN = 3;

/** One event at fault, with what a report in JSON has of it and what is said besides: what is held there,
 *  and who called it. A thread that is stuck waits there. */
function site(chunk, reported, { event: at, holding, callers: list, action: given }, isStuck) {
    const event = chunk.events[at];
    const callers = list === undefined ? [] : chunk.callers[list];
    const stack =
        callers.length === 0
            ? null
            : el(
                  'details',
                  { class: 'stack', open: callers.length <= CALLERS_OPEN },
                  el('summary', null, counted(callers.length, 'caller')),
                  el(
                      'ol',
                      null,
                      callers.map((frame) => el('li', null, el('code', null, frame))),
                  ),
              );
    const inside = reported.function ? [' in ', el('code', null, reported.function)] : null;
    const { name } = event.place;
    return el(
        'div',
        { class: 'site' },
        el(
            'p',
            { class: 'site-head' },
            el('b', null, event.thread.title),
            ' ',
            el('span', { title: event.op }, prose(given ?? (isStuck ? waiting(event) : action(event)))),
            el('span', { class: 'soft' }, `, event ${event.number}`),
        ),
        el(
            'p',
            null,
            name ? el('code', null, name) : null,
            inside,
            name || inside ? ', ' : null,
            holding === undefined ? holdingNow(event.held) : chunk.strings[holding],
        ),
        code(event.place),
        stack,
    );
}

function known(entry) {
    if (!entry) return null;
    return el(
        'div',
        null,
        el('p', null, entry.heading),
        el(
            'div',
            { class: 'scroll' },
            el(
                'table',
                { class: 'values' },
                el(
                    'tbody',
                    null,
                    entry.listed.map(({ term, value }) =>
                        el(
                            'tr',
                            null,
                            el('td', null, el('code', null, term)),
                            el('td', null, value),
                        ),
                    ),
                ),
            ),
        ),
        entry.more ? el('p', { class: 'soft' }, entry.more) : null,
    );
}

function choices(entry) {
    if (!entry) return null;
    const silent = 'Race detectors do not report ';
    return el(
        'div',
        null,
        el('p', null, prose(entry.heading)),
        el(
            'ul',
            null,
            entry.listed.map(({ write, silence }) =>
                el(
                    'li',
                    null,
                    write,
                    silence
                        ? el('p', { class: 'soft' }, silent, 'this: ', prose(silence), '.')
                        : null,
                ),
            ),
            entry.more ? el('li', { class: 'soft' }, `and ${entry.more} more`) : null,
        ),
        entry.silence ? el('p', null, silent, 'these: ', prose(entry.silence), '.') : null,
    );
}

// A part of the argument for a finding.
function part(it) {
    const steps = (it.steps ?? []).map(({ step: number, thread, op, reason }) =>
        el(
            'tr',
            null,
            el('td', { class: 'number' }, number),
            el('td', null, thread),
            el('td', null, el('code', null, op)),
            el('td', { class: 'soft' }, reason),
        ),
    );
    const table = el(
        'div',
        { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': it.heading },
        el(
            'table',
            { class: 'steps' },
            el(
                'thead',
                null,
                el(
                    'tr',
                    null,
                    ['step', 'thread', 'event', 'why'].map((name) =>
                        el('th', { scope: 'col' }, name),
                    ),
                ),
            ),
            el('tbody', null, steps),
        ),
    );
    return el(
        'section',
        { class: 'why' },
        el('h3', null, it.heading),
        steps.length > 0 ? table : null,
        it.is_list
            ? el('ul', null, it.paragraphs.map((line) => el('li', null, prose(line))))
            : it.paragraphs.map((paragraph) => el('p', null, prose(paragraph))),
    );
}

/** A command to be copied. */
function command(text, why) {
    const copy = button(
        'Copy the command',
        {
            class: 'copy',
            onclick: (event) => {
                const { target } = event;
                const done = (word) => {
                    target.textContent = word;
                    setTimeout(() => {
                        target.textContent = 'copy';
                    }, 1500);
                };
                if (!navigator.clipboard) {
                    done('select it');
                    return;
                }
                navigator.clipboard.writeText(text).then(
                    () => done('copied'),
                    () => done('select it'),
                );
            },
        },
        'copy',
    );
    return el(
        'div',
        { class: 'command' },
        el('p', { class: 'soft' }, why),
        el(
            'div',
            { class: 'shell' },
            el('code', null, text),
            copy,
        ),
    );
}

function next(chunk, reported, entry) {
    const { before, after } = chunk.commands[entry.explain] ?? {};
    const end = after === undefined ? '' : reported.id + chunk.strings[after];
    const isExplained = report.is_explanation || before === undefined;
    const explain = isExplained ? null : chunk.strings[before] + end;
    if (!explain && !entry.confirm) return null;
    return el(
        'section',
        null,
        el('h3', null, 'What to do next'),
        explain ? command(explain, 'Explain it in detail:') : null,
        entry.confirm
            ? command(
                  entry.confirm,
                  entry.confirm.endsWith(' -- CMD')
                      ? 'Make it happen; CMD is the command that was recorded:'
                      : 'Make it happen in the program:',
              )
            : null,
    );
}

/** The picture on a button. */
function icon(d) {
    return svg(
        'svg',
        { width: 16, height: 16, viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true' },
        svg('path', { d }),
    );
}

/** What turns the orders around, and steps. */
function toolbar(view, switches, hasBoth, rest) {
    const turner = (name, text) => {
        const turn = () => view.turn(name);
        const attributes = {
            type: 'button',
            'aria-pressed': 'false',
            id: `order-${name}`,
            onclick: turn,
        };
        switches[name] = el('button', attributes, text);
        return switches[name];
    };
    const stepper = (label, id, by, picture) =>
        button(label, { id: `step-${id}`, onclick: () => view.step(by) }, icon(picture));
    const orders = { class: 'switch', role: 'group', 'aria-label': 'Order' };
    return el(
        'div',
        { class: 'toolbar' },
        hasBoth
            ? el(
                  'div',
                  orders,
                  turner('observed', 'as observed'),
                  turner('predicted', view.isAsObserved ? 'up to the fault' : 'as predicted'),
              )
            : null,
        el(
            'div',
            { class: 'stepper', role: 'group', 'aria-label': 'Steps' },
            stepper('To the start (Home)', 'first', -Infinity, 'M3 3V13M14 3 6 8 14 13z'),
            stepper('Step back (left arrow)', 'back', -1, 'M12 3 4 8 12 13z'),
            stepper('Step forward (right arrow)', 'on', 1, 'M4 3 12 8 4 13z'),
            stepper('To the end (End)', 'last', Infinity, 'M13 3V13M2 3 10 8 2 13z'),
        ),
        rest,
    );
}

/** How much wider than a drawing its frame is. */
const FRAME = 12;

/** The drawing with what belongs to it: the switch between the orders, the steps, the state. */
function evidence(finding, entry, chunk) {
    const view = { goal: entry.goal, isAsObserved: entry.as_observed === true, at: null };
    const open = { predicted: new Set(), observed: new Set() };
    let orders = {};
    const layOut = () => {
        orders = {
            predicted: linesOf(chunk, entry.predicted, open.predicted),
            observed: linesOf(chunk, entry.observed, open.observed),
        };
        const threads = threadsOf([...orders.predicted, ...orders.observed]);
        // A lock has the same colour in both orders.
        const bars = [...barsOf(orders.observed, threads), ...barsOf(orders.predicted, threads)];
        view.threads = threads;
        view.locks = [...new Set(bars.map((bar) => bar.lock.name))];
    };
    layOut();
    if (view.threads.length === 0) return null;
    const scroller = el('div', {
        class: 'scroll drawing',
        tabindex: 0,
        role: 'group',
        'aria-label': 'Diagram',
    });
    // What happens is read out; code and tables are there to be looked at.
    const said = el('div', { 'aria-live': 'polite' });
    const rest = el('div');
    const side = el('div', { class: 'side', id: 'side' }, said, rest);
    const legendBox = el('div');
    const position = el('span', { class: 'position soft', id: 'position' });
    const switches = {};

    const beyond = el('p', { class: 'beyond soft', hidden: true });
    const frame = el('div', { class: 'frame' }, scroller);
    const picture = el('div', { class: 'picture' }, beyond, frame, legendBox);
    const stage = el('div', { class: 'stage' }, picture, side);
    // What is beyond an edge of the drawing can be seen to be there.
    const mark = () => {
        const { scrollLeft, scrollTop, clientWidth, clientHeight } = scroller;
        const right = scroller.scrollWidth - clientWidth - scrollLeft;
        const below = scroller.scrollHeight - clientHeight - scrollTop;
        beyond.hidden = scroller.scrollWidth - clientWidth <= 1;
        frame.classList.toggle('more-right', right > 1);
        frame.classList.toggle('more-below', below > 1);
    };
    scroller.addEventListener('scroll', mark, { passive: true });
    new ResizeObserver(mark).observe(scroller);
    const draw = () => {
        const drawing = diagram(view, view.room);
        view.drawing = drawing;
        picture.style.flexBasis = `${drawing.width + FRAME}px`;
        scroller.replaceChildren(drawing.node);
        scroller.classList.toggle('lanes', drawing.hasLanes);
        legendBox.replaceChildren(legend(drawing, view));
        beyond.textContent = `${counted(view.threads.length, 'thread')}: scroll sideways to see them all →`;
        mark();
    };
    const stops = () => view.lines.map((line, at) => at).filter((at) => view.lines[at].cells.length);
    view.go = (line) => {
        view.at = line;
        show();
    };
    view.step = (by) => {
        const all = stops();
        const at = view.at === null ? (by > 0 ? -1 : all.length) : all.indexOf(view.at);
        const to = by === -Infinity ? 0 : by === Infinity ? all.length - 1 : at + by;
        if (to < 0) view.at = null;
        else view.at = all[Math.min(all.length - 1, to)];
        show();
    };
    const redraw = (order) => {
        layOut();
        view.order = order;
        view.isPredicted = order === 'predicted';
        view.lines = orders[order];
        view.at = null;
        draw();
        show();
    };
    view.turn = (name) => {
        const order = name || (view.isPredicted ? 'observed' : 'predicted');
        if (orders[order].length === 0) return;
        for (const [key, node] of Object.entries(switches)) {
            node.setAttribute('aria-pressed', String(key === order));
        }
        redraw(order);
    };
    // Shows the events of a gap, or leaves them out again.
    view.toggle = (gap) => {
        const gaps = open[view.order];
        if (!gaps.delete(gap)) gaps.add(gap);
        redraw(view.order);
        const node = scroller.querySelector(`[data-gap="${gap}"]`);
        if (node) node.focus();
    };
    view.toggleAll = () => {
        const all = gapsOf(entry[view.order]);
        const isOpen = all.every((gap) => open[view.order].has(gap));
        open[view.order] = new Set(isOpen ? [] : all);
        redraw(view.order);
    };
    const show = () => {
        scroller.classList.toggle('stepped', view.at !== null);
        const gaps = gapsOf(entry[view.order]);
        folds.hidden = gaps.length === 0;
        folds.textContent = gaps.every((gap) => open[view.order].has(gap))
            ? 'fold them again'
            : 'show those left out';
        const all = stops();
        const left = view.lines.reduce((sum, line) => sum + line.gap, 0);
        const shown = left ? ' shown' : '';
        position.textContent =
            view.at === null
                ? counted(all.length, 'step') + (left ? `${shown}, ${grouped(left)} left out` : '')
                : `${all.indexOf(view.at) + 1} of ${all.length}${shown}`;
        for (const node of scroller.querySelectorAll('.line')) {
            const line = Number(node.dataset.line);
            node.classList.toggle('now', line === view.at);
            node.classList.toggle('later', view.at !== null && line > view.at);
        }
        said.replaceChildren(...words(view, entry));
        rest.replaceChildren(...situated(view));
        const now = scroller.querySelector('.now .mark');
        if (now) now.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    };

    const folds = el('button', { type: 'button', id: 'gaps', onclick: () => view.toggleAll() });
    const bar = toolbar(view, switches, entry.predicted.length > 0, [position, folds]);
    page.view = view;
    // The drawing fits the room that there is, also when that changes.
    view.room = Infinity;
    new ResizeObserver(() => {
        const room = stage.clientWidth - FRAME;
        if (room <= 0 || room === view.room) return;
        const isFree = view.drawing.natural <= Math.min(room, view.room);
        view.room = room;
        if (isFree) return;
        draw();
        show();
    }).observe(stage);
    view.turn(entry.predicted.length ? 'predicted' : 'observed');
    return el(
        'section',
        { class: 'evidence' },
        el('h3', null, 'How it happens'),
        el('p', null, chunk.strings[entry.heading]),
        overviewOf(report.traces[finding.trace].overview, orders.observed),
        bar,
        stage,
        (entry.notes || []).map((note) => el('p', null, prose(note))),
        (entry.remarks || []).map((remark) => el('p', { class: 'remark' }, remark)),
    );
}

/** What happens now, in words. */
function words(view, entry) {
    if (view.at === null) {
        const predicted = entry.as_observed
            ? 'The observed run itself leads to it.'
            : 'This order was not observed, but is possible.';
        const text = view.isPredicted ? predicted : 'This is the observed order.';
        return [el('p', { class: 'soft' }, `${text} Step through it to see who holds what.`)];
    }
    const line = view.lines[view.at];
    const heading = {
        race: 'Both can happen now, in either order:',
        deadlock: 'Each thread waits for a lock that another one holds:',
        stuck: 'Nobody is left to let these go on:',
    }[entry.goal];
    const actions = line.cells.map((cell) => {
        const value = valueOf(cell);
        const never = cell.role === ROLE.never ? ' This does not happen.' : '';
        const sees = sight(cell);
        const isBlocked = cell.role === ROLE.blocked;
        const end = line.isEnd && !isBlocked ? ' is next: ' : ' ';
        return el(
            'p',
            { class: 'action' },
            el('b', null, cell.event.thread.title),
            end,
            prose(isBlocked ? waiting(cell.event) : action(cell.event)),
            value === null ? '' : [' = ', el('code', null, value)],
            sees ? `, ${sees}` : '',
            '.',
            never,
            el('span', { class: 'soft' }, ` event ${cell.event.number}`),
        );
    });
    return line.isEnd && heading
        ? [el('p', { class: 'clash-words' }, heading), ...actions]
        : actions;
}

/** Where that is: the code, locks and variables. */
function situated(view) {
    if (view.at === null) return [];
    const line = view.lines[view.at];
    const { held, values } = situation(view.lines, view.threads, view.at);
    const holds = [...held].map(([thread, locks]) =>
        el(
            'tr',
            null,
            el('th', { scope: 'row' }, thread.title),
            el(
                'td',
                null,
                locks === null
                    ? el('span', { class: 'soft' }, 'not known: events are left out')
                    : locks.length === 0
                      ? el('span', { class: 'soft' }, 'nothing')
                      : holdingNow(locks).slice(1),
            ),
        ),
    );
    const vars = [...values]
        .slice(-8)
        .map(([name, { value, by }]) =>
            el(
                'tr',
                null,
                el('th', { scope: 'row' }, el('code', null, name)),
                el(
                    'td',
                    null,
                    value ?? '?',
                    el(
                        'span',
                        { class: 'soft' },
                        by ? ` by event ${by}` : by === 0 ? ' from the start' : '',
                    ),
                ),
            ),
        );
    return [
        ...line.cells.map((cell) =>
            el(
                'div',
                null,
                cell.event.place.name
                    ? el('p', { class: 'soft place' }, el('code', null, cell.event.place.name))
                    : null,
                code(cell.event.place),
            ),
        ),
        el('h4', null, 'Held'),
        el('table', { class: 'values' }, el('tbody', null, holds)),
        vars.length ? el('h4', null, 'Variables, as last seen') : null,
        vars.length ? el('table', { class: 'values' }, el('tbody', null, vars)) : null,
    ].filter((node) => node !== null);
}

/** So many other places of a fault are listed. */
const PLACES_MAX = 20;

/** Where the same fault is besides, and the other traces that show it, where a report says so. */
function elsewhere({ places = [], traces = [] }) {
    if (places.length === 0 && traces.length === 0) return null;
    return el(
        'details',
        { class: 'elsewhere', open: places.length <= 5 },
        el('summary', null, 'The same fault elsewhere'),
        el(
            'ul',
            null,
            places.slice(0, PLACES_MAX).map(({ message }) => el('li', null, prose(message))),
            unlisted('li', places.length - PLACES_MAX, 'place'),
            traces.slice(0, PLACES_MAX).map((name) => el('li', null, 'in ', el('code', null, name))),
            unlisted('li', traces.length - PLACES_MAX, 'trace'),
        ),
    );
}

/** What `finding` is called, and what it stands on. */
function heading(finding, reported, entry) {
    const standing = stands(finding);
    const isCertain = ['witnessed', 'observed'].includes(standing);
    return el(
        'header',
        null,
        el(
            'h2',
            { tabindex: -1, id: 'heading' },
            el('a', { href: `#${finding.anchor}` }, reported.id),
            ' ',
            el('span', { class: `chip kind-${reported.kind}` }, reported.kind),
            ' ',
            el(
                'span',
                {
                    class: isCertain ? 'chip good' : 'chip soft',
                    title: meanings.get(standing),
                },
                standing,
            ),
            entry.confirmed ? [' ', el('span', { class: 'chip good' }, 'confirmed')] : null,
        ),
    );
}

/** Why it is a fault, and beside it how it is repaired. */
function why(chunk, reported, argument) {
    const texts = (list) => (list ?? []).map((text) => chunk.strings[text]);
    const reason = chunk.reasons[argument.why];
    const card = (title, name, paragraphs) =>
        paragraphs.length
            ? el(
                  'section',
                  { class: `why ${name}` },
                  el('h3', null, title),
                  paragraphs.map((paragraph) => el('p', null, prose(paragraph))),
              )
            : null;
    return el(
        'div',
        { class: 'reasons' },
        card(reason.heading, 'reason', reported.why ?? texts(reason.paragraphs)),
        card('How to fix it', 'fix', reported.fix ?? texts(argument.fix)),
    );
}

/** All there is to say of `finding`. */
function details(finding) {
    page.view = null;
    const chunk = chunkOf(finding.chunk);
    if (chunk === null) {
        const again = () => {
            if (list.selected === finding) select(finding, false);
        };
        document.addEventListener('DOMContentLoaded', again, { once: true });
        return el('p', { class: 'none soft' }, 'Loading…');
    }
    const entry = chunk.findings[finding.place];
    const reported = chunk.reported[finding.place];
    const { argument } = entry;
    const isStuck = ['deadlock', 'stuck'].includes(entry.goal);
    const trace = report.traces[finding.trace];
    return el(
        'article',
        { id: finding.anchor },
        heading(finding, reported, entry),
        report.traces.length > 1 ? el('p', { class: 'soft' }, trace.name) : null,
        el('p', { class: 'message' }, prose(reported.message)),
        el('p', { class: 'standing' }, chunk.strings[entry.standing]),
        el(
            'div',
            { class: 'sites' },
            entry.known
                ? null
                : entry.sites.map((one, at) => site(chunk, reported.sites[at], one, isStuck)),
            (entry.related ?? []).map((one) => related(chunk, one)),
        ),
        (entry.legend || []).map((line) => el('p', { class: 'soft' }, prose(line), '.')),
        known(entry.known),
        choices(entry.choices),
        entry.note ? el('p', null, entry.note, '.') : null,
        elsewhere(reported),
        why(chunk, reported, argument),
        (argument.before ?? []).map(part),
        evidence(finding, entry, chunk),
        (argument.after ?? []).map(part),
        entry.confirmed
            ? el('p', null, el('b', { class: 'good' }, 'Confirmed'), ` in ${entry.confirmed}`)
            : null,
        entry.not_confirmed
            ? el('p', null, el('b', null, 'Not confirmed'), `: ${entry.not_confirmed}`)
            : null,
        next(chunk, reported, entry),
        el(
            'footer',
            { class: 'soft' },
            `Found by ${reported.analysis} of ${report.name} ${report.version}; fingerprint `,
            el('code', null, reported.fingerprint),
            '.',
        ),
    );
}
