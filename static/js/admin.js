/* The operations page asks for its content every few seconds while somebody can see it, at once when they come back to
   it, and after everything they did. An answer that fails is said by a bar, not by a toast each time. */
(() => {
  "use strict";

  const EVERY_MS = 3000;
  const poll = document.getElementById("board-poll");

  const refresh = () => poll.dispatchEvent(new CustomEvent("refresh"));
  setInterval(() => {
    if (!document.hidden) refresh();
  }, EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });

  function show(state) {
    const bar = document.getElementById("live-lost");
    if (!bar) return;
    bar.hidden = state === "";
    for (const words of bar.querySelectorAll("[data-state]")) words.hidden = words.dataset.state !== state;
  }

  const failed = (event) => {
    if (event.target !== poll) return;
    event.stopPropagation();
    const status = event.detail.ctx?.response?.status;
    show(status === 401 ? "signed-out" : "lost");
  };
  for (const name of ["htmx:error", "htmx:response:error"]) document.addEventListener(name, failed, true);

  /* What a person asks for comes first: content that was read before it, or comes while they decide, is not shown. */
  let asking = 0;
  let asked = 0;
  let askedBefore = 0;
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement === poll) askedBefore = asked;
    else asking += 1;
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement === poll) {
      if (ctx.response?.status === 200) show("");
      return;
    }
    asking -= 1;
    asked += 1;
    if (ctx.request.method === "POST") refresh();
  });
  const isLate = () => asking > 0 || asked !== askedBefore || document.querySelector("dialog[open]");

  /* Why something was refused stays in its row until it is closed; the fresh content does not know of it. */
  document.addEventListener("htmx:before:swap", ({ detail: { ctx, tasks } }) => {
    if (ctx.sourceElement !== poll) return;
    if (isLate()) tasks.splice(0);
    for (const { fragment } of tasks) {
      for (const notice of document.querySelectorAll("[data-notice]")) {
        const row = `#${CSS.escape(notice.parentElement.id)} > tr`;
        fragment?.querySelector(row)?.after(notice.cloneNode(true));
      }
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-notice-close]")) event.target.closest("[data-notice]").remove();
  });
})();
