// What all parts use: making elements, and reading the data of the page. Whatever comes from a
// trace is put into the page as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

/** What could turn the writing around, vanish, or move what follows. */
const HIDDEN =
    /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu;

/** `text` with whatever is hidden in it shown by its escape. */
function shown(text) {
    return String(text).replace(HIDDEN, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
}

/** Gives `node` its attributes and children; a child that is no node is text, and is shown as it is. */
function filled(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else node.setAttribute(name, value === true ? '' : shown(value));
    }
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        node.append(child instanceof Node ? child : shown(child));
    }
    return node;
}

/** An element of the page. */
function el(tag, attributes, ...children) {
    return filled(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
function svg(tag, attributes, ...children) {
    return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** `text` in which what stands between backticks is code. */
function prose(text) {
    const parts = text.split('`');
    return parts.map((part, at) => {
        if (at % 2 === 0) return part;
        return at + 1 < parts.length ? el('code', null, part) : '`' + part;
    });
}

/** `1 step`, `1 234 steps`. */
function counted(count, thing) {
    return `${grouped(count)} ${thing}${count === 1 ? '' : 's'}`;
}

/** A number in groups of three digits. */
function grouped(count) {
    return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** The data called `id`; null if the page is not read that far. */
function data(id) {
    const node = document.getElementById(id);
    const isWhole = node && (node.nextSibling || document.readyState !== 'loading');
    return isWhole ? JSON.parse(node.textContent) : null;
}

const report = data('page');

/** The findings of the list, each with its place in its chunk. */
const findings = (() => {
    const { findings: columns } = report;
    const places = new Map();
    return columns.id.map((id, at) => {
        const finding = { at };
        for (const [name, column] of Object.entries(columns)) finding[name] = column[at];
        const { chunk, trace } = finding;
        finding.kind = report.kinds[finding.kind];
        finding.guarantee = report.guarantees[finding.guarantee].name;
        finding.replayed = ['no', 'failed', 'confirmed'][finding.replayed];
        finding.anchor = trace === 0 ? id : `trace${trace + 1}-${id}`;
        finding.where = finding.place;
        finding.place = places.get(chunk) ?? 0;
        places.set(chunk, finding.place + 1);
        return finding;
    });
})();

const byAnchor = new Map(findings.map((finding) => [finding.anchor, finding]));

/** What guarantees mean, by their names. */
const meanings = new Map(report.guarantees.map(({ name, meaning }) => [name, meaning]));

const chunks = new Map();

/** The place that is the `at`th of the columns of `view`, with its lines of code and their colours. */
function placeOf(view, at) {
    const { file: fileAt, line: lineAt, name, note } = view.places;
    const line = lineAt[at];
    const file = fileAt[at] === null ? null : view.files[fileAt[at]];
    const fileName = file && view.strings[file.name];
    const has = (number) => file !== null && number in file.lines;
    let [first, last] = [line, line];
    while (first > line - view.around && has(first - 1)) first -= 1;
    while (last < line + view.around && has(last + 1)) last += 1;
    return {
        name: at in name ? view.strings[name[at]] : `${fileName}:${line}`,
        hasCode: has(line),
        note: at in note ? view.strings[note[at]] : '',
        line,
        first,
        last,
        lines: file && file.lines,
        colours: (file && file.colours) ?? {},
    };
}

/** The event that is the `at`th of the columns of `view`. */
function eventOf(view, at) {
    const { events, strings } = view;
    const { kind, operand, spelled } = view.ops[events.op[at]];
    const { after, other } = events;
    return {
        number: events.number[at],
        kind,
        operand: strings[operand],
        op: spelled === undefined ? `${kind}(${strings[operand]})` : strings[spelled],
        thread: view.threads[events.thread[at]],
        place: view.places[events.place[at]],
        held: view.held[events.held[at]],
        after: at in after ? view.held[after[at]] : null,
        value: events.value[at] ?? null,
        saw: events.saw[at] ?? null,
        other: at in other ? view.threads[other[at]] : null,
        causes: events.causes[at] ?? [],
        isFirst: events.first.includes(at),
        isLast: events.last.includes(at),
    };
}

/** The data of the chunk numbered `at`, read when first asked for; null if it is not there yet. */
function chunkOf(at) {
    if (!chunks.has(at)) {
        const [reported, view] = [data(`report${at}`), data(`view${at}`)];
        if (reported === null || view === null) return null;
        const text = (id) => view.strings[id];
        view.threads = view.threads.map(({ number, name, given }) => ({
            number,
            name: text(name),
            // What the program calls it is said where there is room for it.
            title: given === undefined ? text(name) : `${text(name)} ${text(given)}`,
        }));
        view.callers = view.callers.map((callers) => callers.map(text));
        view.held = view.held.map((set) =>
            set.map(({ name, shared, since }) => ({ name: text(name), isShared: shared, since })),
        );
        view.places = view.places.line.map((line, index) => placeOf(view, index));
        view.events = view.events.number.map((number, index) => eventOf(view, index));
        view.byNumber = new Map(view.events.map((event) => [event.number, event]));
        view.reported = reported.findings;
        chunks.set(at, view);
    }
    return chunks.get(at);
}

/** A button that says what it does. */
function button(label, attributes, text) {
    return el('button', { type: 'button', 'aria-label': label, title: label, ...attributes }, text);
}
