// The space-time diagram: a column per thread, time downwards. The names of the threads stay at its top
// and the numbers of the steps at its left while the rest is scrolled. Where a screen is too narrow for
// that, threads have narrow lanes, and the text of each event stands at their right with its thread.

const LINE = 30;
const TOP = 44;
/** How wide the numbers of the steps are at least. */
const GUTTER = 84;
const BEFORE_TEXT = 13;

/** How wide at least is what stands beside a drawing, with the gap; the style says the same. */
const SIDE = 256;

/** How much of their spare room columns keep at least, so that something stands beside them. */
const CLOSE_MIN = 0.4;

/** How many letters stand beside a mark. */
const LABEL_MAX = 36;

/** In less room than this, text stands at the right of lanes rather than beyond the edge. */
const LANES_ROOM = 600;

/** How wide at least is the text at the right of lanes, and how far its rows are apart. */
const LANE_TEXT = 105;
const LANE_ROW = 17;

/** How many letters of a thread's name and of an event stand at the right of lanes. */
const NAME_MAX = 14;
const LANE_LABEL_MAX = 90;

/** How many colours locks have before they repeat. */
const LOCK_COLOURS = 6;

/** `text`, cut to `max` letters. */
function clip(text, max) {
    const letters = [...text];
    return letters.length > max ? letters.slice(0, max - 1).join('') + '…' : text;
}

/** What stands beside the mark of an event. */
function label(cell) {
    const { event, sees } = cell;
    const value = valueOf(cell);
    const text = value === null ? event.op : `${event.op} = ${value}`;
    if (sees === null || event.saw === null || sees === event.saw) return text;
    return `${text} \u2190 ${sees === 0 ? 'initial value' : `event ${sees}`}`;
}

/** How wide what stands at the left of lines is, and `least` at least. */
function gutterWidth(lines, view, least) {
    if (!gutterWidth.pen) {
        gutterWidth.pen = document.createElement('canvas').getContext('2d');
        gutterWidth.pen.font = `600 12.5px ${getComputedStyle(document.body).fontFamily}`;
    }
    const texts = lines
        .filter((line) => line.cells.length)
        .map((line) => gutter(line, view.goal, view.isPredicted));
    const longest = texts.reduce((all, text) => (text.length > all.length ? text : all), '');
    return Math.max(least, Math.ceil(gutterWidth.pen.measureText(longest).width) + 22);
}

/** How wide `text` is in a drawing, in pixels. */
function widthOf(text) {
    if (!widthOf.pen) {
        widthOf.pen = document.createElement('canvas').getContext('2d');
        const family = getComputedStyle(document.documentElement).getPropertyValue('--mono');
        // What is at fault is bold.
        widthOf.pen.font = `700 13px ${family.trim()}`;
    }
    return widthOf.pen.measureText(clip(text, LABEL_MAX)).width;
}

/** How wide the columns of `threads` are: with all their text, and where they stand close, with
 *  what must not meet other text. Text may run across the columns to its right. */
function widths(lines, threads, left) {
    return threads.map((thread) => {
        const widest = (some) => {
            const cells = some
                .flatMap((line) => line.cells)
                .filter((cell) => cell.event.thread === thread);
            const texts = cells.map((cell) => widthOf(label(cell)));
            return left(thread) + 34 + Math.max(46, widthOf(thread.title), ...texts);
        };
        return [widest(lines), widest(lines.filter((line) => line.cells.length > 1))];
    });
}

/** How wide the widest of the texts is that say what is left out. */
function widestGap(lines) {
    const gaps = lines.filter((line) => line.cells.length === 0);
    return Math.max(0, ...gaps.map((line) => widthOf(gapText(line))));
}

/** Where lines are from `top` down, by their `heights`. Bars and cuts end between two of them. */
function stacked(top, heights) {
    const edges = [top];
    for (const height of heights) edges.push(edges[edges.length - 1] + height);
    const heightOf = (line) => heights[line] ?? 0;
    return {
        top,
        heightOf,
        y: (line) => {
            const at = Math.floor(line + 0.5);
            return edges[at] + (line + 0.5 - at) * heightOf(at);
        },
        height: edges[heights.length] + 14,
    };
}

/** `text` in rows of at most `max` letters, broken after spaces where there are some. */
function wrapped(text, max) {
    const rows = [];
    let rest = [...text];
    while (rest.length > max) {
        const space = rest.lastIndexOf(' ', max);
        const end = space > max / 2 ? space : max;
        rows.push(rest.slice(0, end).join(''));
        rest = rest.slice(rest[end] === ' ' ? end + 1 : end);
    }
    return [...rows, rest.join('')];
}

/** Where things are if threads have narrow lanes, with all text at their right; null if there is no
 *  room for that either. */
function measureLanes(lines, threads, lanes, room, gutter) {
    const xs = new Map();
    let textX = gutter;
    for (const thread of threads) {
        xs.set(thread, textX + 7 + 9 * lanes.get(thread));
        textX = xs.get(thread) + 9;
    }
    textX += 3;
    const max = Math.floor((room - textX - 2) / widthOf('m'));
    if (room > LANES_ROOM || room - textX < LANE_TEXT) return null;
    const rowsOf = (cell) => {
        const name = clip(cell.event.thread.name, NAME_MAX);
        const [first, ...rest] = wrapped(`${name} ${clip(label(cell), LANE_LABEL_MAX)}`, max);
        return [first.slice(name.length), ...rest];
    };
    const heights = lines.map(({ cells }) => {
        const rows = cells.reduce((sum, cell) => sum + rowsOf(cell).length, 0);
        return Math.max(LINE, 12 + LANE_ROW * rows);
    });
    return {
        x: (thread) => xs.get(thread),
        ...stacked(6, heights),
        gutter,
        rowsOf,
        textX,
        width: Math.max(room, Math.ceil(gutter + 6 + widestGap(lines))),
    };
}

/** Where things are: the middle of a line, and the column of a thread; in `room` if that will do. */
function measure(lines, threads, lanes, room, gutter) {
    const left = (thread) => 22 + 9 * lanes.get(thread);
    const columns = widths(lines, threads, left);
    const sum = (which) => columns.slice(0, -1).reduce((all, column) => all + column[which], 0);
    const [full, close] = [sum(0), sum(1)];
    const last = columns[columns.length - 1][0];
    const shareIn = (some) => {
        const spare = some - gutter - 12 - last - close;
        return full > close && spare < full - close ? spare / (full - close) : Math.sign(spare);
    };
    // Rather a little closer than without what stands beside it.
    const beside = shareIn(room - SIDE);
    const share = Math.min(1, beside > CLOSE_MIN ? beside : Math.max(0, shareIn(room)));
    const xs = new Map();
    let x = gutter;
    let width = 0;
    threads.forEach((thread, at) => {
        const [wide, narrow] = columns[at];
        xs.set(thread, x + left(thread));
        width = Math.max(width, x + wide);
        x += narrow + (wide - narrow) * share;
    });
    return {
        x: (thread) => xs.get(thread),
        ...stacked(
            TOP,
            lines.map(() => LINE),
        ),
        gutter,
        width: Math.ceil(Math.max(width, gutter + 6 + widestGap(lines)) + 12),
        /** How much room there is to be for all, and what stands beside it. */
        natural: Math.ceil(gutter + 12 + full + last) + SIDE,
    };
}

/** The mark of an event: its shape says what it is. */
function mark(event, x, y) {
    const path = (d) => svg('path', { d: `M${x} ${y}${d}`, class: 'mark' });
    if (event.kind === 'arw') return path('m-6 0 6-6 6 6-6 6z');
    if (WRITES.has(event.kind)) return svg('circle', { cx: x, cy: y, r: 5.5, class: 'mark' });
    if (READS.has(event.kind)) return svg('circle', { cx: x, cy: y, r: 5, class: 'mark hollow' });
    if (TAKES.has(event.kind)) return path('m-6-4h12l-6 9z');
    if (GIVES.has(event.kind)) return path('m-6 5h12l-6-9z');
    return svg('rect', { x: x - 4, y: y - 4, width: 8, height: 8, class: 'mark' });
}

/** A curve from one mark to another. */
function curve(at, from, to) {
    const [x1, y1, y2] = [at.x(from.event.thread), at.y(from.line), at.y(to.line)];
    const side = x1 < at.x(to.event.thread) ? 1 : -1;
    // What comes from the right ends behind the text.
    const text = side < 0 && !at.rowsOf ? BEFORE_TEXT + widthOf(label(to)) : 0;
    const x2 = at.x(to.event.thread) + text;
    const down = y1 < y2 ? 1 : -1;
    // It leaves along its thread, so that it does not run through the text beside the mark.
    const bend = Math.min(80, Math.abs(x2 - x1) * 0.6);
    const drop = Math.min(46, Math.abs(y2 - y1));
    return (
        `M${x1} ${y1 + 8 * down}C${x1} ${y1 + drop * down} ${x2 - bend * side} ${y2} ` +
        `${x2 - 9 * side} ${y2}`
    );
}

function arrowheads() {
    const head = (kind) =>
        svg(
            'marker',
            {
                id: `tip-${kind}`,
                viewBox: '0 0 8 8',
                refX: 7,
                refY: 4,
                markerWidth: 7,
                markerHeight: 7,
                orient: 'auto-start-reverse',
                class: kind,
            },
            svg('path', { d: 'M0 .5 8 4 0 7.5z' }),
        );
    return svg('defs', null, ['reads', 'hands', 'starts', 'ends', 'wakes', 'strong'].map(head));
}

/** The ground of a line, in all its width unless `attributes` say otherwise. */
function bandOf(at, line, attributes) {
    const height = at.heightOf(line);
    const y = at.y(line) - height / 2;
    return svg('rect', { class: 'band', x: at.gutter, y, width: at.width, height, ...attributes });
}

/** What is said of events that are left out, or of those that are no more. */
function gapText(line) {
    if (line.isOpen) return `▾ ${counted(line.count, 'event')}`;
    const text = `${counted(line.gap, 'event')} left out`;
    if (line.toggle === null || line.toggle === undefined) return `… ${text}`;
    return line.some < line.gap ? `▸ ${text}; show ${line.some}` : `▸ ${text}; show`;
}

function gapLine(at, line, index, view) {
    const y = at.y(index);
    const isButton = line.toggle !== null && line.toggle !== undefined;
    const turn = (event) => {
        event.stopPropagation();
        view.toggle(line.toggle);
    };
    const onkeydown = (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        turn(event);
    };
    const button = {
        role: 'button',
        tabindex: 0,
        'aria-expanded': String(line.isOpen === true),
        'aria-label': gapText(line),
        'data-gap': line.toggle,
        onclick: turn,
        onkeydown,
    };
    return svg(
        'g',
        { class: isButton ? 'gap toggle' : 'gap', ...(isButton ? button : {}) },
        bandOf(at, index),
        svg('path', { d: `M${at.gutter} ${y}H${at.width - 12}` }),
        svg('text', { x: at.gutter + 6, y: y + 4.5 }, gapText(line)),
    );
}

/** What stands at the left of a line. */
function gutter(line, goal, isPredicted) {
    const [cell] = line.cells;
    if (line.isEnd) {
        const names = { deadlock: 'each waits', stuck: 'waits', race: 'at once' };
        return names[goal] ?? 'next';
    }
    if (cell.role === ROLE.never) return 'never';
    if (isPredicted && cell.step > 0) return `step ${cell.step}`;
    return `event ${cell.event.number}`;
}

/** The classes of a line. */
function classes(line) {
    const isFault = line.cells.some((cell) =>
        [ROLE.fault, ROLE.next, ROLE.blocked].includes(cell.role),
    );
    const names = ['line'];
    if (isFault) names.push('fault');
    if (line.isEnd) names.push('end');
    if (line.isExtra) names.push('extra');
    if (line.cells.length && line.cells[0].role === ROLE.never) names.push('never');
    return names.join(' ');
}

/** What is behind a line: bars and arrows are drawn over it, and text over those. */
function band(at, line, index, view) {
    return svg(
        'g',
        { class: `${classes(line)} back`, 'data-line': index, onclick: () => view.go(index) },
        bandOf(at, index),
    );
}

/** The left end of a line. */
function margin(at, line, index, view) {
    const y = at.y(index);
    return svg(
        'g',
        { class: classes(line), 'data-line': index, onclick: () => view.go(index) },
        bandOf(at, index, { x: 4, width: at.gutter, rx: 5 }),
        svg(
            'text',
            { x: 12, y: y + 4.5, class: 'gutter' },
            gutter(line, view.goal, view.isPredicted),
        ),
    );
}

/** The text of `cell`, `row` rows below the first of its line. */
function eventText(at, cell, y, line, row) {
    if (!at.rowsOf) {
        const x = at.x(cell.event.thread) + BEFORE_TEXT;
        return svg('text', { x, y: y + 4.5, class: 'op' }, clip(label(cell), LABEL_MAX));
    }
    const count = line.cells.reduce((sum, other) => sum + at.rowsOf(other).length, 0);
    const yOf = (at) => y + 4.5 + LANE_ROW * (row + at - (count - 1) / 2);
    const rows = at.rowsOf(cell).map((text, number) =>
        svg(
            'tspan',
            { x: at.textX, y: yOf(number) },
            number === 0
                ? svg('tspan', { class: 'thread' }, clip(cell.event.thread.name, NAME_MAX))
                : null,
            text,
        ),
    );
    return svg('text', { class: 'op' }, rows);
}

function eventLine(at, line, index, view) {
    const y = at.y(index);
    let row = 0;
    const cells = line.cells.map((cell) => {
        const x = at.x(cell.event.thread);
        const text = eventText(at, cell, y, line, row);
        if (at.rowsOf) row += at.rowsOf(cell).length;
        const title =
            `event ${cell.event.number}, ${cell.event.thread.title}: ${label(cell)}` +
            (cell.event.place.name ? ` at ${cell.event.place.name}` : '');
        return svg(
            'g',
            null,
            svg('title', null, title),
            mark(cell.event, x, y),
            text,
        );
    });
    return svg(
        'g',
        { class: classes(line), 'data-line': index, onclick: () => view.go(index) },
        cells,
    );
}

/** The line through a state: below what each thread has done, above what it does next. */
function cut(at, lines, threads) {
    const cells = cellsOf(lines);
    const points = threads.map((thread) => {
        const mine = cells.filter((cell) => cell.event.thread === thread);
        const done = mine.filter((cell) => cell.role !== ROLE.ahead).map((cell) => cell.line);
        const ahead = mine.filter((cell) => cell.role === ROLE.ahead).map((cell) => cell.line);
        const low = done.length ? Math.max(...done) : -1;
        const high = ahead.length ? Math.min(...ahead) : lines.length;
        return { x: at.x(thread), low, high };
    });
    // A straight line, if one separates what has happened from what has not.
    const low = Math.max(...points.map((point) => point.low));
    const high = Math.min(...points.map((point) => point.high));
    const between = (point) => at.y(low < high ? (low + high) / 2 : (point.low + point.high) / 2);
    const first = between(points[0]);
    const last = between(points[points.length - 1]);
    const path = points.map((point) => `${point.x} ${between(point)}`).join('L');
    return [
        svg('path', {
            class: 'cut',
            d: `M${at.gutter - 14} ${first}L${path}L${at.width - 12} ${last}`,
        }),
        svg(
            'text',
            { class: 'cut-name', x: at.width - 14, y: last - 7, 'text-anchor': 'end' },
            'the state',
        ),
    ];
}

/** What shows that events can happen at once, or that each waits for another. */
function atOnce(at, line, index, goal, lines) {
    const y = at.y(index);
    const cells = [...line.cells].sort((a, b) => at.x(a.event.thread) - at.x(b.event.thread));
    if (goal === 'race' && cells.length === 2) {
        const [from, to] = cells.map((cell) => at.x(cell.event.thread));
        const width = at.rowsOf ? 8 : BEFORE_TEXT + 1 + widthOf(label(cells[0]));
        const start = Math.min(from + width, to - (at.rowsOf ? 12 : 26));
        return svg('path', { class: 'clash', d: `M${start} ${y}H${to - 9}` });
    }
    if (goal !== 'deadlock') return null;
    const all = cellsOf(lines);
    return cells.map((cell) => {
        const other = cells.find(
            (one) =>
                one.event.thread !== cell.event.thread &&
                one.event.held.some((lock) => lock.name === cell.event.operand),
        );
        const takes =
            other &&
            all
                .filter(
                    (one) =>
                        one.event.thread === other.event.thread &&
                        TAKES.has(one.event.kind) &&
                        one.event.operand === cell.event.operand &&
                        one.role !== ROLE.blocked,
                )
                .pop();
        if (!takes) return null;
        return svg('path', {
            class: 'arrow strong',
            'marker-end': 'url(#tip-strong)',
            d: curve(at, { event: cell.event, line: index }, takes),
        });
    });
}

/** Whether an arrow is what the finding is about: what an event at fault reads. */
function isStrong(arrow, view) {
    return arrow.isFault && view.goal === 'order';
}

/** The diagram of the lines of `view`, in `room` pixels if that will do. */
function diagram(view, room) {
    const { lines, threads } = view;
    const bars = barsOf(lines, threads);
    const lanesOf = (thread) => {
        const mine = [
            ...new Set(bars.filter((bar) => bar.thread === thread).map((bar) => bar.lock.name)),
        ];
        return new Map(mine.map((name, lane) => [name, lane]));
    };
    const lanes = new Map(threads.map((thread) => [thread, lanesOf(thread)]));
    const counts = new Map(threads.map((thread) => [thread, lanes.get(thread).size]));
    const inColumns = measure(lines, threads, counts, room, gutterWidth(lines, view, GUTTER));
    const inLanes =
        inColumns.width > room
            ? measureLanes(lines, threads, counts, room, gutterWidth(lines, view, 0))
            : null;
    const at = inLanes ?? inColumns;
    const columns = threads.map((thread) =>
        svg(
            'g',
            { class: 'column' },
            svg('path', { d: `M${at.x(thread)} ${at.top}V${at.height - 8}` }),
        ),
    );
    // Right of lanes each event has its thread.
    const names = (inLanes ? [] : threads).map((thread) =>
        svg(
            'g',
            { class: 'column' },
            svg('path', { d: `M${at.x(thread)} ${at.top - 8}V${at.top}` }),
            svg(
                'text',
                { x: at.x(thread) - 6, y: 22, class: 'thread' },
                svg('title', null, thread.title),
                clip(thread.title, LABEL_MAX),
            ),
        ),
    );
    const rects = bars.map((bar) => {
        const x = at.x(bar.thread) - 14 - 9 * lanes.get(bar.thread).get(bar.lock.name);
        const [top, bottom] = [Math.max(at.top - 4, at.y(bar.from)), at.y(bar.to)];
        const colour = view.locks.indexOf(bar.lock.name) % LOCK_COLOURS;
        return svg(
            'rect',
            {
                x,
                y: top,
                width: 6,
                height: Math.max(6, bottom - top),
                rx: 3,
                class: `bar lock${colour}${bar.lock.isShared ? ' shared' : ''}`,
            },
            svg(
                'title',
                null,
                `${bar.thread.title} holds ${bar.lock.name}` + (bar.lock.isShared ? ', shared' : ''),
            ),
        );
    });
    const arrows = arrowsOf(lines).map((arrow) => {
        const kind = isStrong(arrow, view) ? 'strong' : arrow.kind;
        return svg('path', {
            class: `arrow ${kind}`,
            'marker-end': `url(#tip-${kind})`,
            d: curve(at, arrow.from, arrow.to),
        });
    });
    const each = (draw) =>
        lines.map((line, index) => (line.cells.length ? draw(at, line, index, view) : null));
    const drawn = lines.map((line, index) =>
        line.cells.length ? eventLine(at, line, index, view) : gapLine(at, line, index, view),
    );
    const ends = lines.map((line, index) =>
        line.isEnd ? atOnce(at, line, index, view.goal, lines) : null,
    );
    const [line, name] = view.goal === 'state' ? cut(at, lines, threads) : [];
    const title =
        view.isPredicted && !view.isAsObserved
            ? 'The predicted order of events'
            : 'The observed order of events';
    const body = picture(
        [at.gutter, at.top, at.width - at.gutter, at.height - at.top],
        { class: 'diagram', role: 'img', 'aria-label': title },
        [arrowheads(), each(band), columns, rects, arrows, ends.flat(), line, drawn, name],
    );
    const hidden = { 'aria-hidden': 'true' };
    const heads = picture(
        [at.gutter, 0, at.width - at.gutter, at.top],
        { class: 'diagram', ...hidden },
        names,
    );
    const left = picture(
        [0, at.top, at.gutter, at.height - at.top],
        { class: 'diagram', ...hidden },
        each(margin),
    );
    const node = el(
        'div',
        { class: 'chart' },
        el('div', { class: 'corner' }),
        el('div', { class: 'heads' }, heads),
        el('div', { class: 'gutters' }, left),
        body,
    );
    node.style.gridTemplateColumns = `${at.gutter}px auto`;
    const { natural } = inColumns;
    return { node, width: at.width, natural, hasLanes: inLanes !== null, bars, arrows: arrowsOf(lines) };
}

/** A drawing of what is in a part of the whole, from `x` and `y` on. */
function picture([x, y, width, height], attributes, children) {
    return svg(
        'svg',
        { ...attributes, width, height, viewBox: `${x} ${y} ${width} ${height}` },
        children,
    );
}

/** What the shapes and colours of a diagram mean. */
function legend(drawing, view) {
    const item = (picture, text) => el('li', null, picture, ' ', text);
    const icon = (...children) =>
        svg('svg', { width: 18, height: 16, viewBox: '0 0 18 16' }, children);
    const kinds = new Set(cellsOf(view.lines).map((cell) => cell.event.kind));
    const has = (set) => [...set].some((kind) => kinds.has(kind));
    const arrow = (kind) =>
        icon(
            svg('path', {
                class: `arrow ${kind}`,
                d: 'M1 8H15',
                'marker-end': `url(#tip-${kind})`,
            }),
        );
    const shape = (kind) => icon(mark({ kind }, 9, 8));
    const bar = (name) =>
        icon(
            svg('rect', {
                x: 6,
                y: 1,
                width: 6,
                height: 14,
                rx: 3,
                class: `bar lock${view.locks.indexOf(name) % LOCK_COLOURS}`,
            }),
        );
    const locks = [...new Set(drawing.bars.map((one) => one.lock.name))];
    const arrows = new Set(
        drawing.arrows.map((one) => (isStrong(one, view) ? 'strong' : one.kind)),
    );
    return el(
        'ul',
        { class: 'legend' },
        has(new Set(['w', 'aw'])) ? item(shape('w'), 'write') : null,
        has(new Set(['r', 'r?', 'ar'])) ? item(shape('r'), 'read') : null,
        kinds.has('arw') ? item(shape('arw'), 'update') : null,
        has(TAKES) ? item(shape('acq'), 'acquires a lock') : null,
        has(GIVES) ? item(shape('rel'), 'releases it') : null,
        locks.slice(0, 8).map((name) => item(bar(name), [el('code', null, name), ' held'])),
        drawing.bars.some((one) => one.lock.isShared)
            ? item(
                  icon(
                      svg('rect', {
                          x: 6,
                          y: 1,
                          width: 6,
                          height: 14,
                          rx: 3,
                          class: 'bar shared lock0',
                      }),
                  ),
                  'held in shared mode',
              )
            : null,
        arrows.has('strong') ? item(arrow('strong'), 'reads from, at fault') : null,
        arrows.has('reads') ? item(arrow('reads'), 'reads from') : null,
        arrows.has('hands') ? item(arrow('hands'), 'lock handed over') : null,
        arrows.has('starts') ? item(arrow('starts'), 'thread started') : null,
        arrows.has('ends') ? item(arrow('ends'), 'thread ended and joined') : null,
        arrows.has('wakes') ? item(arrow('wakes'), 'woken, or let go on') : null,
    );
}
