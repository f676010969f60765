// What all parts use: making elements, and reading the data of the page. Whatever comes from a
// trace is put into the page as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

/** Gives `node` its attributes and children; a child that is no node is text. */
function filled(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else node.setAttribute(name, value === true ? '' : String(value));
    }
    for (const child of children.flat()) {
        if (child !== null && child !== undefined && child !== false) node.append(child);
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

const report = data('report');

/** The findings, with the names of their parts. */
const findings = report.findings.map((entry, at) => {
    const [trace, id, kind, guarantee, message, count, replayed, chunk, place, where, words] =
        entry;
    const anchor = trace === 0 ? id : `trace${trace + 1}-${id}`;
    return {
        at,
        trace,
        id,
        anchor,
        kind,
        guarantee,
        message,
        count,
        replayed,
        chunk,
        place,
        where,
        words,
    };
});

const byAnchor = new Map(findings.map((finding) => [finding.anchor, finding]));

const chunks = new Map();

/** The data of the chunk numbered `at`, read when first asked for; null if it is not there yet. */
function chunkOf(at) {
    if (!chunks.has(at)) {
        const chunk = data(`chunk${at}`);
        if (chunk === null) return null;
        const text = (id) => chunk.strings[id];
        chunk.threads = chunk.threads.map(([number, name]) => ({ number, name: text(name) }));
        chunk.calls = chunk.calls.map((calls) => calls.map(text));
        chunk.held = chunk.held.map((set) =>
            set.map(([name, shared, since]) => ({
                name: text(name),
                isShared: shared === 1,
                since,
            })),
        );
        chunk.places = chunk.places.map((place) => {
            if (typeof place === 'number') return { name: text(place), file: null, note: '' };
            const [name, file, line, first, last, note] = place;
            return {
                name: text(name),
                line,
                first,
                last,
                file: file === null ? null : text(chunk.files[file][0]),
                lines: file === null ? null : chunk.files[file][1],
                note: note === null ? '' : text(note),
            };
        });
        chunk.events = chunk.events.map((entry) => {
            const [number, thread, kind, operand, op, place] = entry;
            const [held, value, other, saw, after] = entry.slice(6);
            return {
                number,
                kind,
                value,
                saw,
                thread: chunk.threads[thread],
                operand: text(operand),
                op: op === null ? `${kind}(${text(operand)})` : text(op),
                place: chunk.places[place],
                held: chunk.held[held],
                after: after === null ? null : chunk.held[after],
                other: other === null ? null : chunk.threads[other],
            };
        });
        chunk.byNumber = new Map(chunk.events.map((event) => [event.number, event]));
        chunks.set(at, chunk);
    }
    return chunks.get(at);
}

/** A button that says what it does. */
function button(label, attributes, text) {
    return el('button', { type: 'button', 'aria-label': label, title: label, ...attributes }, text);
}
