/* The ticket list: rows change in place; a list that changed is not swapped under somebody's hand but offered.
   The list keeps its scroll position from page to page. */
(() => {
  "use strict";

  const list = () => document.getElementById("inbox-list");
  const key = () => `inbox-scroll:${new URLSearchParams(location.search).toString()}`;

  /* Somebody points at the list, uses it by keys, or has scrolled down in it. */
  function inUse(element) {
    return element.matches(":hover") || element.contains(document.activeElement) || element.scrollTop > 8;
  }

  function offer(element, fragment) {
    const bar = element.querySelector("[data-list-new]");
    if (!bar) return;
    const fresh = [...fragment.querySelectorAll("[data-row]")].filter((row) => !document.getElementById(row.id)).length;
    let words = bar.dataset.moved;
    if (fresh) words = fresh === 1 ? bar.dataset.one : bar.dataset.many.replace("{n}", fresh);
    bar.querySelector("[data-words]").textContent = words;
    bar.hidden = false;
  }

  /* A list that comes by the stream. One that the person asked for (the bar, a filter) is always swapped. */
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail;
    const element = list();
    if (!element || ctx.sourceElement?.closest?.("#inbox-list")) return;
    for (let at = tasks.length - 1; at >= 0; at -= 1) {
      if (tasks[at].target !== element || !inUse(element)) continue;
      offer(element, tasks[at].fragment);
      tasks.splice(at, 1);
    }
  });

  /* The selected row and focus survive a swap: htmx restores focus by id, the server marks the row. */
  window.addEventListener("pagehide", () => {
    if (list()) sessionStorage.setItem(key(), String(list().scrollTop));
  });
  if (list()) {
    list().scrollTop = Number(sessionStorage.getItem(key()) || 0);
    list().querySelector("[aria-current='true']")?.scrollIntoView({ block: "nearest" });
  }
})();
