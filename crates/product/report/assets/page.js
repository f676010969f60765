// The page as a whole: summary, panes, keys, theme, and the finding that the address names.

const page = { view: null };

/** So many traces are summed up one by one, and so many repairs of each are listed. */
const TRACES_MAX = 50;
const REPAIRS_MAX = 200;

/** What is known of a run that is typed as it stands there. */
const TYPED = new Set(['command', 'variables', 'folder', 'options']);

/** Says that `count` more are not listed. */
function unlisted(tag, count, thing) {
    if (count <= 0) return null;
    return el(tag, { class: 'soft' }, `and ${counted(count, `more ${thing}`)}, not listed here`);
}

/** Shows `finding`; `isChosen` says that a reader asked for it, who is then taken there. */
function select(finding, isChosen) {
    list.selected = finding;
    page.detail.replaceChildren(details(finding));
    page.detail.scrollTop = 0;
    if (list.rows) drawList();
    const address = `#${finding.anchor}`;
    const isNamed = isChosen || list.isOpen;
    if (isNamed && window.location.hash !== address) window.history.replaceState(null, '', address);
    if (isChosen && page.isNarrow.matches) page.detail.scrollIntoView();
}

/** What was examined, what was found, and what was not looked at. */
function traceSummary(trace) {
    const aside = [
        trace.known ? `${counted(trace.known, 'finding')} in the baseline, not shown.` : null,
        trace.suppressed ? `${counted(trace.suppressed, 'finding')} suppressed, not shown.` : null,
    ].filter((text) => text !== null);
    const left = trace.coverage.flatMap((coverage) => coverage.left_out);
    const incomplete = trace.coverage.filter((coverage) => coverage.incomplete !== null);
    const rest = [
        ...left.map((sentence) => `${sentence}.`),
        ...incomplete.map((one) => `${one.counters} (incomplete: ${one.incomplete}).`),
    ];
    const count = trace.coverage.length;
    return el(
        'div',
        { class: 'trace' },
        el('h2', null, trace.name),
        el('p', { class: 'soft' }, trace.size),
        trace.run.length
            ? el(
                  'dl',
                  { class: 'run' },
                  trace.run.map(({ name, value }) =>
                      el(
                          'div',
                          null,
                          el('dt', null, name),
                          el('dd', null, TYPED.has(name) ? el('code', null, value) : value),
                      ),
                  ),
              )
            : null,
        report.traces.length > 1 || findings.length === 0 ? el('p', null, trace.summary) : null,
        aside.map((text) => el('p', { class: 'soft' }, text)),
        rest.length
            ? el(
                  'details',
                  { class: 'rest' },
                  el('summary', null, 'What was not searched, and what is not shown'),
                  el(
                      'ul',
                      null,
                      rest.map((sentence) => el('li', null, sentence)),
                  ),
              )
            : null,
        trace.repairs.length
            ? el(
                  'details',
                  null,
                  el(
                      'summary',
                      null,
                      `This trace was repaired: ${counted(trace.repairs.length, 'change')}`,
                  ),
                  el(
                      'ul',
                      null,
                      trace.repairs.slice(0, REPAIRS_MAX).map((repair) => el('li', null, repair)),
                      unlisted('li', trace.repairs.length - REPAIRS_MAX, 'change'),
                  ),
              )
            : null,
        count
            ? el(
                  'details',
                  null,
                  el('summary', null, count === 1 ? '1 analysis' : `${count} analyses`),
                  el(
                      'ul',
                      null,
                      trace.coverage.map((one) => el('li', null, one.counters)),
                  ),
              )
            : null,
    );
}

/** What `count` findings of `kind` are called: races, but nondeterminism however often. */
function several(kind, count) {
    const isCounted = !['atomicity', 'nondeterminism', 'stuck'].includes(kind);
    return isCounted && count !== 1 ? `${kind}s` : kind;
}

/** How many findings there are of each kind and guarantee. */
function totals() {
    const counts = report.kinds
        .map((kind) => [kind, findings.filter((finding) => finding.kind === kind).length])
        .filter(([, count]) => count > 0);
    const seen = findings.filter((finding) => stands(finding) === 'observed').length;
    const proven = findings.filter((finding) => stands(finding) === 'witnessed').length;
    const confirmed = findings.filter((finding) => finding.replayed === 'confirmed').length;
    return el(
        'ul',
        { class: 'totals' },
        counts.map(([kind, count]) =>
            el('li', null, el('b', { class: `kind-${kind}` }, grouped(count)), ` ${several(kind, count)}`),
        ),
        seen ? el('li', null, el('b', { class: 'good' }, grouped(seen)), ' observed') : null,
        proven ? el('li', null, el('b', { class: 'good' }, grouped(proven)), ' witnessed') : null,
        confirmed
            ? el('li', null, el('b', { class: 'good' }, grouped(confirmed)), ' confirmed')
            : null,
    );
}

const KEYS = [
    ['j / k', 'next, previous finding'],
    ['← / →', 'step back, forward'],
    ['Home / End', 'first, last step'],
    ['o', 'the other order'],
    ['g', 'show what is left out'],
    ['/', 'filter'],
    ['Enter', 'from the list or the filter to the finding'],
    ['t', 'light or dark'],
    ['?', 'these keys'],
    ['Esc', 'close, or leave the filter'],
];

function keysDialog() {
    const close = button('Close', { onclick: () => page.keys.close(), class: 'close' }, 'close');
    return el(
        'dialog',
        { class: 'keys', id: 'keys', 'aria-label': 'Keys' },
        el('h2', null, 'Keys'),
        el(
            'table',
            { class: 'values' },
            el(
                'tbody',
                null,
                KEYS.map(([key, what]) =>
                    el(
                        'tr',
                        null,
                        el('th', { scope: 'row' }, el('kbd', null, key)),
                        el('td', null, what),
                    ),
                ),
            ),
        ),
        close,
    );
}

/** The theme that a reader chose, where the browser keeps such things. */
function storedTheme() {
    try {
        return window.localStorage.getItem('reweave-theme');
    } catch {
        return null;
    }
}

function isDark() {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
}

function turnTheme() {
    const theme = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    try {
        window.localStorage.setItem('reweave-theme', theme);
    } catch {
        /* then it is for this page */
    }
}

/** What a key does where no text is typed. */
const ACTIONS = {
    j: () => selectNext(1),
    ArrowDown: () => selectNext(1),
    k: () => selectNext(-1),
    ArrowUp: () => selectNext(-1),
    ArrowRight: () => page.view && page.view.step(1),
    ArrowLeft: () => page.view && page.view.step(-1),
    Home: () => page.view && page.view.step(-Infinity),
    End: () => page.view && page.view.step(Infinity),
    o: () => page.view && page.view.turn(),
    g: () => page.view && page.view.toggleAll(),
    t: turnTheme,
    '/': () => {
        const input = document.getElementById('filter');
        if (input) input.focus();
    },
    '?': () => page.keys.showModal(),
};

/** Takes a reader to the finding: the selected one, or the first of the list. */
function toFinding() {
    if (!list.shown.includes(list.selected) && list.shown.length) select(list.shown[0], true);
    const heading = document.getElementById('heading');
    if (heading) heading.focus();
}

function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || page.keys.open) return;
    const { target } = event;
    if (target instanceof HTMLInputElement) {
        if (event.key === 'Escape') target.blur();
        if (event.key === 'Enter') toFinding();
        return;
    }
    if (target instanceof HTMLSelectElement) return;
    if (event.key === 'Enter' && target === list.rows) {
        toFinding();
        return;
    }
    const isScrolled =
        target instanceof Element &&
        target.classList.contains('scroll') &&
        target.scrollWidth > target.clientWidth &&
        !target.classList.contains('drawing');
    if (isScrolled && event.key.startsWith('Arrow')) return;
    const isList = event.key === 'ArrowDown' || event.key === 'ArrowUp';
    if (isList && target !== list.rows) return;
    const action = ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
}

/** The finding that the address names, or the first. */
function named() {
    try {
        return byAnchor.get(decodeURIComponent(window.location.hash.slice(1))) || null;
    } catch {
        // Whatever is no address names nothing.
        return null;
    }
}

function build() {
    const theme = storedTheme();
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
    page.isNarrow = window.matchMedia('(max-width: 60rem)');
    page.keys = keysDialog();
    page.detail = el('main', {
        class: 'detail',
        id: 'detail',
        tabindex: -1,
        'aria-label': 'The finding',
    });
    const tools = el(
        'div',
        { class: 'tools' },
        button('Keys (?)', { onclick: () => page.keys.showModal(), id: 'show-keys' }, 'keys'),
        button('Light or dark (t)', { onclick: turnTheme, id: 'theme' }, 'theme'),
    );
    const title = el(
        'div',
        { class: 'title' },
        el('span', { class: 'brand' }, report.name, ' ', el('span', null, report.version)),
        el('h1', null, report.heading),
    );
    const top = el('header', { class: 'top' }, title, tools);
    const app = document.getElementById('app');
    if (report.is_explanation) {
        app.append(
            top,
            el(
                'div',
                { class: 'alone' },
                el('div', { class: 'summary' }, report.traces.map(traceSummary)),
                page.detail,
            ),
            page.keys,
        );
        app.className = 'explanation';
    } else {
        const summary = el(
            'div',
            { class: 'summary' },
            totals(),
            report.traces.slice(0, TRACES_MAX).map(traceSummary),
            unlisted('p', report.traces.length - TRACES_MAX, 'trace'),
        );
        const pane = findings.length ? listPane() : null;
        app.append(
            top,
            el('div', { class: 'panes' }, el('div', { class: 'left' }, summary, pane), page.detail),
            page.keys,
        );
    }
    if (findings.length === 0) {
        page.detail.append(
            el(
                'p',
                { class: 'none soft' },
                'Nothing was found. The summary says what was searched, and what was not.',
            ),
        );
    } else {
        if (list.rows) drawList();
        const first = named() || findings[0];
        select(first, false);
        if (list.rows) bringIntoView(list.shown.indexOf(first));
        list.isOpen = true;
    }
    document.addEventListener('keydown', onKey);
    window.addEventListener('hashchange', () => {
        const finding = named();
        if (finding && finding !== list.selected) select(finding, true);
    });
}

build();
