/* The page's one stream: says when it is lost, and that it is back. Reconnecting and catching up is the stream's own
   work (hx-sse with Last-Event-ID); nothing here asks the server for anything. */
(() => {
  "use strict";

  const isStream = (event) => event.target.id === "live";

  const show = (state) => {
    const bar = document.getElementById("live-lost");
    if (!bar) return;
    bar.hidden = state === "open";
    bar.dataset.state = state;
    for (const words of bar.querySelectorAll("[data-state]")) words.hidden = words.dataset.state !== state;
  };

  const failed = (event) => {
    if (!isStream(event)) return;
    event.stopPropagation(); // the bar says it; no toast for what heals by itself
    const status = event.detail.status ?? event.detail.ctx?.response?.status;
    show(status === 401 ? "signed-out" : "lost");
  };

  for (const name of ["htmx:sse:error", "htmx:error", "htmx:response:error"]) document.addEventListener(name, failed, true);
  document.addEventListener("htmx:sse:after:connection", (event) => {
    if (isStream(event) && event.detail.connection.status === 200) show("open");
  });
})();
