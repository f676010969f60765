// The whole run on a strip: when each thread was busy, and where in it the finding is.

/** So many threads have a lane of their own. */
const LANES_MAX = 6;

/** A shorter run is drawn well enough by itself. */
const WHOLE = 60;

/** How long a strip is, in the units of its drawing. */
const STRIP = 1000;

/** The parts of a run, darker where more happened; `activity` has a digit for each. */
function shades(activity) {
    const width = STRIP / activity.length;
    return [...activity].map((digit, at) =>
        digit === '0'
            ? null
            : svg('rect', {
                  class: `shade${digit}`,
                  x: at * width,
                  y: 3,
                  width: width + 0.5,
                  height: 12,
              }),
    );
}

/** One line of the strip: the activity of a thread, and marks at the events of `cells`. */
function lane(name, activity, events, cells) {
    const place = (cell) => ((cell.event.number - 0.5) / events) * STRIP;
    // What is at fault is drawn over the rest.
    const isFault = (cell) => [ROLE.fault, ROLE.blocked].includes(cell.role);
    const mark = (cell) => {
        const x = place(cell).toFixed(1);
        return svg('path', {
            class: isFault(cell) ? 'at-fault' : 'drawn',
            d: isFault(cell) ? `M${x} 0V18` : `M${x} 15V18`,
        });
    };
    const [rest, faults] = [cells.filter((cell) => !isFault(cell)), cells.filter(isFault)];
    return el(
        'div',
        { class: 'lane' },
        el('span', { class: 'lane-name', title: name }, name),
        svg(
            'svg',
            {
                class: 'strip',
                viewBox: `0 0 ${STRIP} 18`,
                preserveAspectRatio: 'none',
                'aria-hidden': 'true',
            },
            svg('rect', { class: 'strip-back', x: 0, y: 3, width: STRIP, height: 12 }),
            shades(activity),
            rest.map(mark),
            faults.map(mark),
        ),
    );
}

/** `1`, `1 and 2`, `1, 2 and 3`. */
function listed(words) {
    const last = words[words.length - 1];
    return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${last}`;
}

/** Where in the run of `overview` the `lines` are that were observed; nothing of a short run. */
function overviewOf(overview, lines) {
    if (!overview || overview.events < WHOLE || !lines.some((line) => line.gap > 0)) return null;
    const cells = cellsOf(lines).filter((cell) => cell.event.number <= overview.events);
    const faults = cells.filter((cell) => [ROLE.fault, ROLE.blocked].includes(cell.role));
    const numbers = faults.slice(0, 6).map((cell) => grouped(cell.event.number));
    const isOf = (thread) => (cell) => cell.event.thread.number === thread.number;
    const rank = (thread) => (faults.some(isOf(thread)) ? 0 : 1);
    const lanes = overview.threads
        .filter((thread) => cells.some(isOf(thread)))
        .sort((a, b) => rank(a) - rank(b) || a.number - b.number)
        .slice(0, LANES_MAX)
        .sort((a, b) => a.number - b.number);
    const all = overview.threads_count > lanes.length ? overview.all : null;
    const words =
        `The whole run of ${counted(overview.events, 'event')}, darker where more happened. ` +
        `Red: ${numbers.length === 1 ? 'event' : 'events'} ${listed(numbers)}, at fault.`;
    return el(
        'figure',
        { class: 'overview', role: 'img', 'aria-label': words },
        all === null ? null : lane(`all ${overview.threads_count} threads`, all, overview.events, faults),
        lanes.map((thread) =>
            lane(thread.name, thread.activity, overview.events, cells.filter(isOf(thread))),
        ),
        el('figcaption', { class: 'soft' }, words),
    );
}
