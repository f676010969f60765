// The list of findings: filtered, sorted, and drawn only where it is looked at, so that it takes no
// longer with many findings than with few.

/** How high a finding of the list is, in pixels; the style says the same. */
const ROW_HEIGHT = 84;

/** How many findings are gone through before the page may draw again. */
const BATCH = 1500;

const list = {
    shown: findings,
    selected: null,
    drawn: new Map(),
    words: [],
    kind: '',
    guarantee: '',
    replayed: '',
    trace: '',
    sort: 'worst',
    texts: new Array(findings.length),
    run: 0,
};

/** What a finding stands on: what happened in the run is no prediction, whatever else proves it. */
function stands(finding) {
    return finding.happened ? 'observed' : finding.guarantee;
}

/** What the free text is looked for in. */
function searched(finding) {
    if (list.texts[finding.at] === undefined) {
        const words = finding.words.map((id) => report.strings[id]);
        const parts = [finding.id, finding.message, report.traces[finding.trace].name, ...words];
        list.texts[finding.at] = parts.join('\n').toLowerCase();
    }
    return list.texts[finding.at];
}

function isWanted(finding) {
    return (
        (list.kind === '' || finding.kind === list.kind) &&
        (list.guarantee === '' || finding.guarantee === list.guarantee) &&
        (list.replayed === '' || finding.replayed === list.replayed) &&
        (list.trace === '' || String(finding.trace) === list.trace) &&
        list.words.every((word) => searched(finding).includes(word))
    );
}

/** Sorts files by their names, and lines by their numbers. */
const collator = new Intl.Collator('en', { numeric: true });

const ORDERS = {
    worst: null,
    location: (a, b) => collator.compare(a.where, b.where) || a.finding.at - b.finding.at,
    count: (a, b) => b.finding.count - a.finding.count || a.finding.at - b.finding.at,
};

/** Lets the page draw and take keys. */
function pause() {
    return new Promise((resolve) => {
        setTimeout(resolve, 0);
    });
}

/** `items` by `compare`, in pieces between which the page may draw. */
async function sorted(items, compare, isStale) {
    let runs = [];
    for (let at = 0; at < items.length; at += BATCH) {
        runs.push(items.slice(at, at + BATCH).sort(compare));
        if (items.length > BATCH) await pause();
        if (isStale()) return null;
    }
    while (runs.length > 1) {
        const merged = [];
        for (let at = 0; at < runs.length; at += 2) {
            merged.push(at + 1 < runs.length ? merge(runs[at], runs[at + 1], compare) : runs[at]);
            await pause();
            if (isStale()) return null;
        }
        runs = merged;
    }
    return runs.length ? runs[0] : [];
}

function merge(left, right, compare) {
    const out = [];
    let [l, r] = [0, 0];
    while (l < left.length && r < right.length) {
        out.push(compare(left[l], right[r]) <= 0 ? left[l++] : right[r++]);
    }
    return out.concat(left.slice(l), right.slice(r));
}

/** Goes through all findings again, and draws those that are wanted. */
async function refilter() {
    const run = ++list.run;
    const isStale = () => run !== list.run;
    let wanted = [];
    for (let at = 0; at < findings.length; at += BATCH) {
        wanted = wanted.concat(findings.slice(at, at + BATCH).filter(isWanted));
        if (findings.length > BATCH) await pause();
        if (isStale()) return;
    }
    const compare = ORDERS[list.sort];
    if (compare) {
        const keyed = wanted.map((finding) => ({ finding, where: report.strings[finding.where] }));
        const ordered = await sorted(keyed, compare, isStale);
        if (ordered === null) return;
        wanted = ordered.map((entry) => entry.finding);
    }
    list.shown = wanted;
    list.scroller.scrollTop = 0;
    drawList();
    list.scroller.dataset.run = String(run);
}

/** Draws the part of the list that can be seen. */
function drawList() {
    const { scroller, rows, total, shown } = list;
    rows.style.height = `${shown.length * ROW_HEIGHT}px`;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_HEIGHT) - 4);
    const last = Math.min(shown.length, first + Math.ceil(scroller.clientHeight / ROW_HEIGHT) + 9);
    // A row that stays is left alone, so that a click on it is not lost.
    const kept = new Map();
    shown.slice(first, last).forEach((finding, at) => {
        const node = list.drawn.get(finding) || row(finding);
        place(node, finding, first + at);
        kept.set(finding, node);
    });
    for (const [finding, node] of list.drawn) if (!kept.has(finding)) node.remove();
    let before = null;
    for (const node of kept.values()) {
        if (node.previousSibling !== before || !node.parentNode) {
            rows.insertBefore(node, before ? before.nextSibling : rows.firstChild);
        }
        before = node;
    }
    list.drawn = kept;
    const all = findings.length;
    total.textContent =
        shown.length === all
            ? counted(all, 'finding')
            : `${grouped(shown.length)} of ${counted(all, 'finding')}`;
    list.none.hidden = shown.length > 0;
    const isDrawn = list.selected && document.getElementById(`row-${list.selected.anchor}`);
    if (isDrawn) rows.setAttribute('aria-activedescendant', `row-${list.selected.anchor}`);
    else rows.removeAttribute('aria-activedescendant');
}

/** Puts the row of a finding where it belongs, as the one numbered `at`. */
function place(node, finding, at) {
    node.setAttribute('aria-selected', String(finding === list.selected));
    node.setAttribute('aria-setsize', String(list.shown.length));
    node.setAttribute('aria-posinset', String(at + 1));
    node.style.transform = `translateY(${at * ROW_HEIGHT}px)`;
}

function row(finding) {
    return el(
        'div',
        {
            id: `row-${finding.anchor}`,
            class: 'row',
            role: 'option',
            onclick: () => select(finding, true),
        },
        el(
            'div',
            { class: 'row-head' },
            el('b', { class: `kind-${finding.kind}` }, finding.id),
            ' ',
            el(
                'span',
                { class: 'soft' },
                finding.kind,
                stands(finding) === 'witnessed' ? '' : `, ${stands(finding)}`,
            ),
            finding.replayed === 'confirmed' ? el('span', { class: 'good' }, ' confirmed') : null,
            report.traces.length > 1
                ? el('span', { class: 'row-trace soft' }, `in ${report.traces[finding.trace].name}`)
                : null,
            finding.count > 1
                ? el('span', { class: 'times soft' }, `×\u2009${grouped(finding.count)}`)
                : null,
        ),
        el('div', { class: 'row-text' }, prose(finding.message)),
    );
}

/** Selects the finding that is `by` further down in the list. */
function selectNext(by) {
    if (list.shown.length === 0) return;
    const at = list.shown.indexOf(list.selected);
    const next = at < 0 ? 0 : Math.min(list.shown.length - 1, Math.max(0, at + by));
    select(list.shown[next], false);
    bringIntoView(next);
}

function bringIntoView(at) {
    const { scroller } = list;
    const [top, bottom] = [at * ROW_HEIGHT, (at + 1) * ROW_HEIGHT];
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (bottom > scroller.scrollTop + scroller.clientHeight) {
        scroller.scrollTop = bottom - scroller.clientHeight;
    }
    drawList();
}

/** A choice among `options`, each a value, a text and a count. */
function choice(label, name, options) {
    const all = options.filter(([, , count]) => count !== 0);
    const change = (event) => {
        list[name] = event.target.value;
        refilter();
    };
    const node = el(
        'select',
        { id: `by-${name}`, 'aria-label': label, onchange: change },
        all.map(([value, text, count]) =>
            el('option', { value }, count === undefined ? text : `${text} (${grouped(count)})`),
        ),
    );
    return all.length > 2 || name === 'sort' ? node : null;
}

/** What chooses and sorts. */
function filters() {
    const count = (name, value) =>
        findings.reduce((sum, finding) => sum + (finding[name] === value ? 1 : 0), 0);
    const input = el('input', {
        id: 'filter',
        type: 'search',
        placeholder: 'Filter: text, file, thread, variable',
        'aria-label': 'Filter the findings by text',
        autocomplete: 'off',
        spellcheck: 'false',
        oninput: (event) => {
            list.words = event.target.value
                .toLowerCase()
                .split(/\s+/)
                .filter((word) => word !== '');
            refilter();
        },
    });
    const kinds = report.kinds.map((kind) => [kind, kind, count('kind', kind)]);
    const guarantees = report.guarantees.map(({ name }) => [name, name, count('guarantee', name)]);
    const replayed = [
        ['confirmed', 'confirmed'],
        ['failed', 'not confirmed'],
        ['no', 'not replayed'],
    ].map(([value, text]) => [value, text, count('replayed', value)]);
    const traces = report.traces.map((trace, at) => [at, trace.name, count('trace', at)]);
    return el(
        'div',
        { class: 'filters' },
        input,
        el(
            'div',
            { class: 'choices' },
            choice('Kind', 'kind', [['', 'all kinds'], ...kinds]),
            choice('Guarantee', 'guarantee', [['', 'all guarantees'], ...guarantees]),
            choice('Replayed', 'replayed', [['', 'replayed or not'], ...replayed]),
            report.traces.length > 1
                ? choice('Trace', 'trace', [['', 'all traces'], ...traces])
                : null,
            choice('Order', 'sort', [
                ['worst', 'worst first'],
                ['location', 'by location'],
                ['count', 'most instances first'],
            ]),
        ),
    );
}

/** The pane of the list. */
function listPane() {
    list.rows = el('div', {
        class: 'rows',
        id: 'rows',
        role: 'listbox',
        tabindex: 0,
        'aria-label': 'Findings',
    });
    list.none = el('p', { class: 'none soft', hidden: true }, 'No finding matches the filter.');
    list.scroller = el('div', { class: 'scroller', id: 'scroller' }, list.rows, list.none);
    list.total = el('p', { class: 'total soft', role: 'status', id: 'total' });
    list.scroller.addEventListener('scroll', () => requestAnimationFrame(drawList), {
        passive: true,
    });
    new ResizeObserver(() => drawList()).observe(list.scroller);
    return el(
        'section',
        { class: 'list', 'aria-label': 'List of findings' },
        filters(),
        list.total,
        list.scroller,
    );
}
