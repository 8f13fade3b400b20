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

  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.sourceElement === poll) {
      if (ctx.response?.status === 200) show("");
    } else if (ctx.request?.method === "POST") refresh();
  });
})();
