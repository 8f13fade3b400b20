/* The ticket list: rows change in place; a list that changed is not swapped under somebody's hand but offered.
   The list keeps its scroll position from page to page, and the row of the open ticket through every swap. */
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

  /* Only the order waits behind the bar. What a row says is always of now: the element stays where it is, and with it
     focus and the pointer above it. */
  function refreshRows(fragment) {
    for (const fresh of fragment.querySelectorAll("[data-row]")) {
      const row = document.getElementById(fresh.id);
      if (!row || row.innerHTML === fresh.innerHTML) continue;
      row.className = fresh.className;
      row.replaceChildren(...fresh.cloneNode(true).childNodes);
    }
  }

  /* A list that is swapped in knows nothing of the open ticket: its row is marked, or stands on top of the list. */
  function keepOpenRow(element, fragment, tasks) {
    const open = element.querySelector("[data-row][aria-current]");
    if (!open) return;
    const fresh = fragment.querySelector(`#${CSS.escape(open.id)}`);
    if (fresh) fresh.setAttribute("aria-current", "true");
    else pin(fragment.querySelector("[data-pinned]"), newest(open, tasks).cloneNode(true));
  }

  /* What comes along for a row would be swapped into the one that leaves with the old list. */
  function newest(row, tasks) {
    return tasks.find(({ target }) => target?.id === row.id)?.fragment?.querySelector("[data-row]") ?? row;
  }

  function pin(place, row) {
    if (!place) return;
    row.setAttribute("aria-current", "true");
    place.append(row);
    place.hidden = false;
  }

  /* Further rows may bring the one that stands on top: it is shown where it belongs, once. */
  function unpin(element) {
    const pinned = element.querySelector("[data-pinned] [data-row]");
    const same = pinned && [...element.querySelectorAll("[data-row]")].find((row) => row !== pinned && row.id === pinned.id);
    if (!same) return;
    same.setAttribute("aria-current", "true");
    pinned.parentElement.hidden = true;
    pinned.remove();
  }

  /* A list that comes by the stream. One that the person asked for (the bar, a filter) is always swapped. */
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail;
    const element = list();
    if (!element) return;
    const asked = Boolean(ctx.sourceElement?.closest?.("#inbox-list"));
    for (let at = tasks.length - 1; at >= 0; at -= 1) {
      const { target, fragment } = tasks[at];
      if (target !== element || !fragment) continue;
      if (asked || !inUse(element)) {
        keepOpenRow(element, fragment, tasks);
        continue;
      }
      refreshRows(fragment);
      offer(element, fragment);
      tasks.splice(at, 1);
    }
  });
  document.addEventListener("htmx:after:swap", () => {
    if (list()) unpin(list());
  });

  /* The selected row and focus survive a swap: htmx restores focus by id. */
  window.addEventListener("pagehide", () => {
    if (list()) sessionStorage.setItem(key(), String(list().scrollTop));
  });
  if (list()) {
    list().scrollTop = Number(sessionStorage.getItem(key()) || 0);
    list().querySelector("[aria-current='true']")?.scrollIntoView({ block: "nearest" });
  }
})();
