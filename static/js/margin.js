/* The margin of the sheet: which sentences of the draft still stand, and a mark beside each line that says so. */
(() => {
  "use strict";

  const LINE_TOLERANCE = 6;
  const STRONGEST_FIRST = ["open", "ok", "mine"];

  /* Where each sentence of the draft still stands, word for word; what lies between was written by the person. */
  const judge = (text, draft, sentences) => {
    const spans = [];
    let from = 0;
    for (const sentence of sentences) {
      const words = sentence.text.trim();
      const start = words ? text.indexOf(words, from) : -1;
      if (start < 0) continue;
      addOwn(spans, text, from, start);
      from = start + words.length;
      const mark = sentence.sources.length ? "ok" : sentence.unsupported ? "open" : "plain";
      spans.push({ start, end: from, mark, sources: sentence.sources });
    }
    if (draft) addOwn(spans, text, from, text.length);
    return spans;
  };

  const addOwn = (spans, text, start, end) => {
    const between = text.slice(start, end);
    const words = between.trim();
    if (!words) return;
    const at = start + between.indexOf(words);
    spans.push({ start: at, end: at + words.length, mark: "mine", sources: [] });
  };

  /* Sentences of one paragraph that share their sources show the numbers once, at the last of them. */
  const isRepeated = (spans, index, text) => {
    const span = spans[index];
    const next = spans[index + 1];
    return Boolean(next) && String(next.sources) === String(span.sources) && !text.slice(span.end, next.start).includes("\n");
  };

  /* Marks stand at the first line of a sentence, numbers of sources at its last. */
  const place = (form, mirror, spans) => {
    const text = form.querySelector("textarea").value;
    const top = mirror.getBoundingClientRect().top;
    const marks = new Map();
    const sources = new Map();
    for (const [index, span] of spans.entries()) {
      const lines = (span.pieces || []).flatMap((piece) => [...piece.getClientRects()]);
      if (!lines.length) continue;
      add(marks, lines[0].top - top, span.mark);
      if (isRepeated(spans, index, text)) continue;
      for (const source of span.sources) add(sources, lines.at(-1).top - top, source);
    }
    form.querySelector(".editor-marks").replaceChildren(...[...marks].flatMap(([y, all]) => {
      const mark = STRONGEST_FIRST.find((each) => all.has(each));
      return mark ? [placed(markNode(mark, form), y)] : [];
    }));
    form.querySelector(".editor-cites").replaceChildren(...[...sources].map(([y, all]) => {
      const row = placed(document.createElement("span"), y);
      row.append(...[...all].sort((a, b) => a - b).map((number) => sourceNode(number, form)));
      return row;
    }));
  };

  const add = (lines, y, value) => {
    const near = [...lines.keys()].find((line) => Math.abs(line - y) < LINE_TOLERANCE) ?? y;
    if (!lines.has(near)) lines.set(near, new Set());
    lines.get(near).add(value);
  };

  const placed = (node, y) => { node.style.top = `${y}px`; return node; };

  const markNode = (mark, form) => {
    const node = document.createElement("i");
    node.className = `mark mark-${mark}`;
    node.title = form.dataset[`mark${mark[0].toUpperCase()}${mark.slice(1)}`] || "";
    return node;
  };

  const sourceNode = (number, form) => {
    const node = document.createElement("button");
    node.type = "button";
    node.className = "cite-n";
    node.dataset.cite = number;
    node.textContent = number;
    node.setAttribute("aria-label", `${form.dataset.citeLabel} ${number}`);
    return node;
  };

  window.margin = { judge, place };
})();
