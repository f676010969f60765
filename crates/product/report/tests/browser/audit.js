// What is hard to read on the page: small letters, and letters too close in colour to what is
// behind them. Returns a sentence for each.
const channels = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return text.startsWith('color(')
        ? numbers
              .slice(0, 3)
              .map((part) => part * 255)
              .concat(numbers[3] ?? 1)
        : numbers.length === 3
          ? numbers.concat(1)
          : numbers;
};
const luminance = ([r, g, b]) => {
    const linear = [r, g, b]
        .map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const behind = (node) => {
    const line = node.closest && node.closest('g.line');
    if (line) {
        const fill = channels(
            getComputedStyle(
                document.querySelector(`.back[data-line="${line.dataset.line}"] .band`),
            ).fill,
        );
        if (fill[3] > 0.99) return fill;
    }
    for (let at = node; at; at = at.parentElement) {
        const colour = channels(getComputedStyle(at).backgroundColor);
        if (colour[3] > 0.99) return colour;
    }
    return [255, 255, 255, 1];
};
const faults = new Set();
const walker = document.createTreeWalker(
    document.getElementById('app') || document.body,
    NodeFilter.SHOW_TEXT,
);
let count = 0;
while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (
        text === '' ||
        node.tagName === 'title' ||
        node.closest('dialog:not([open]), [hidden], option')
    )
        continue;
    if (!node.checkVisibility() || node.getClientRects().length === 0) continue;
    count += 1;
    const style = getComputedStyle(node);
    const isDrawn = node instanceof SVGElement;
    const scale = isDrawn ? node.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    const name = `${node.tagName.toLowerCase()}.${node.getAttribute('class') || ''} "${text.slice(0, 30)}"`;
    if (size < 12) faults.add(`${name}: letters of ${size.toFixed(1)} pixels`);
    const front = luminance(channels(isDrawn ? style.fill : style.color));
    const back = luminance(behind(node));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) faults.add(`${name}: contrast ${ratio.toFixed(2)}`);
}
const wide = document.scrollingElement.scrollWidth - window.innerWidth;
if (wide > 0) faults.add(`the page is ${wide} pixels too wide`);
if (count < 10) faults.add(`only ${count} texts`);
return [...faults].join('\n');
