// What a reader of a narrow screen would miss: commands that are cut, and what goes on beyond an edge
// without a sign. Returns a sentence for each.
const faults = new Set();
const isCut = (node) => node.scrollWidth > node.clientWidth + 1;
const right = (node) => node.getBoundingClientRect().right;
for (const code of document.querySelectorAll('.shell code')) {
    const copy = code.closest('.shell').querySelector('.copy');
    if (right(code) > right(code.parentElement)) faults.add(`cut: ${code.textContent}`);
    if (right(copy) > window.innerWidth) faults.add(`no button beside ${code.textContent}`);
}
for (const box of document.querySelectorAll('.scroll:not(.drawing), pre')) {
    const { overflowX, backgroundImage } = getComputedStyle(box);
    if (!isCut(box)) continue;
    if (overflowX !== 'auto') faults.add(`cannot be scrolled: ${box.textContent.slice(0, 40)}`);
    if (!backgroundImage.includes('gradient')) {
        faults.add(`goes on without a sign: ${box.textContent.slice(0, 40)}`);
    }
}
const drawing = document.querySelector('.drawing');
if (drawing) {
    const hidden = [...drawing.querySelectorAll('.op, .mark')].filter(
        (node) => right(node) > right(drawing),
    );
    const sign = document.querySelector('.beyond');
    const hasSign =
        sign && !sign.hidden && sign.textContent.includes('scroll sideways') &&
        document.querySelector('.frame.more-right');
    if (hidden.length > 0 && !hasSign) faults.add(`${hidden.length} texts beyond the drawing`);
    const threads = new Set(
        [...drawing.querySelectorAll('.line title')].map(
            (title) => /event \d+, ([^:]*):/.exec(title.textContent)[1],
        ),
    );
    for (const thread of threads) {
        const name = thread.split(' ')[0];
        const isNamed = [...drawing.querySelectorAll('.thread')].some((node) =>
            node.textContent.includes(name),
        );
        if (!isNamed) faults.add(`the drawing does not name ${name}`);
    }
}
return [...faults].join('\n');
