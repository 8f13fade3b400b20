/* What every page does in the browser: toasts, the confirm dialog, menus, theme, ages, keys, the side drawer.
   Works by data-attributes and delegation, so that regions swapped in later need no set-up. */
(() => {
  "use strict";

  const TOAST_MS = 6000;
  const YEAR_S = 31536000;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* ---------- toasts: a good one goes by itself, a bad one waits to be read ---------- */
  function watchToast(toast) {
    if (toast.dataset.watched) return;
    toast.dataset.watched = "yes";
    if (!toast.classList.contains("toast-bad")) setTimeout(() => toast.remove(), TOAST_MS);
  }

  function say(words, kind) {
    const toast = document.createElement("div");
    toast.className = `toast toast-${kind}`;
    toast.setAttribute("role", kind === "bad" ? "alert" : "status");
    toast.dataset.toast = "";
    const text = document.createElement("span");
    text.textContent = words;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "link";
    close.dataset.toastClose = "";
    close.textContent = document.body.dataset.close;
    toast.append(text, close);
    document.getElementById("toasts").append(toast);
  }

  /* ---------- one question before what can't be undone, or makes work ---------- */
  function ask({ confirmTitle, confirmYes, confirmTone }, text) {
    const dialog = document.getElementById("confirm");
    dialog.querySelector("#confirm-title").textContent = confirmTitle || text;
    dialog.querySelector("#confirm-text").textContent = confirmTitle ? text : "";
    const yes = dialog.querySelector("#confirm-yes");
    yes.textContent = confirmYes || "OK";
    yes.classList.toggle("btn-danger", confirmTone !== "plain");
    dialog.returnValue = "no";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    });
  }

  document.addEventListener("htmx:confirm", (event) => {
    const { ctx, issueRequest, dropRequest } = event.detail;
    if (!ctx.confirm) return;
    event.preventDefault();
    ask(ctx.sourceElement.dataset, ctx.confirm).then((yes) => (yes ? issueRequest() : dropRequest()));
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.confirm && !form.dataset.confirmed) {
      event.preventDefault();
      ask(form.dataset, form.dataset.confirm).then((yes) => {
        if (!yes) return;
        form.dataset.confirmed = "yes";
        form.requestSubmit();
      });
      return;
    }
    if ("once" in form.dataset) {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
    }
    form.dataset.clean = "yes";
  });

  /* ---------- leaving with words that were not sent ---------- */
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-confirm-leave]");
    if (form) delete form.dataset.clean, (form.dataset.dirty = "yes");
  });
  window.addEventListener("beforeunload", (event) => {
    if (document.querySelector("form[data-confirm-leave][data-dirty]:not([data-clean])")) event.preventDefault();
  });
  window.addEventListener("pageshow", () => all("form[data-once]").forEach((form) => delete form.dataset.sent));

  /* ---------- theme, without a request ---------- */
  function chooseTheme(choice) {
    if (choice) document.documentElement.dataset.theme = choice;
    else delete document.documentElement.dataset.theme;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `theme=${choice}; Path=/; Max-Age=${choice ? YEAR_S : 0}; SameSite=Lax${secure}`;
    for (const button of all("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
  }

  /* ---------- ages: the same rule as app/httpkit/language.py ---------- */
  const amount = (value, unit) =>
    new Intl.NumberFormat(document.documentElement.lang, { style: "unit", unit, unitDisplay: "short" }).format(value);
  function freshenAges() {
    for (const time of all("time[data-age]")) {
      const minutes = Math.floor((Date.now() - Date.parse(time.dateTime)) / 60000);
      if (minutes >= 24 * 60) continue;
      let words = document.body.dataset.justNow;
      if (minutes >= 60) words = amount(Math.floor(minutes / 60), "hour");
      else if (minutes >= 1) words = amount(minutes, "minute");
      if (time.textContent !== words) time.textContent = words;
    }
  }
  setInterval(freshenAges, 30000);

  /* ---------- clicks ---------- */
  document.addEventListener("click", (event) => {
    for (const menu of all("details[data-menu][open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const hit = (selector) => event.target.closest(selector);
    if (hit("[data-find] > summary")) setTimeout(() => hit("[data-find]").querySelector("input").focus());
    if (hit("[data-show-keys]")) document.getElementById("keys").showModal();
    const theme = hit("[data-theme-choice]");
    if (theme) chooseTheme(theme.dataset.themeChoice);
    if (hit("[data-toast-close]")) hit("[data-toast]").remove();
    const drawer = hit("[data-drawer]");
    if (hit("[data-close-drawer]")) hit(".side").classList.remove("is-open");
    else if (drawer) document.getElementById(drawer.dataset.drawer)?.classList.toggle("is-open");
    else if (!hit(".side")) all(".side.is-open").forEach((side) => side.classList.remove("is-open"));
    const demo = hit("[data-demo] [data-username]");
    if (demo) {
      const form = demo.closest("form");
      form.elements.username.value = demo.dataset.username;
      form.elements.password.value = demo.dataset.password;
      form.querySelector(".btn-primary").focus();
    }
  });

  /* ---------- keys: off while typing, and with modifiers ---------- */
  const typing = (element) => element.closest("input, textarea, select, [contenteditable='true']");
  function step(by) {
    const rows = all("[data-row]");
    if (!rows.length) return;
    const at = rows.findIndex((row) => row === document.activeElement);
    const from = at >= 0 ? at : rows.findIndex((row) => row.getAttribute("aria-current") === "true");
    const next = rows[Math.min(rows.length - 1, Math.max(0, from < 0 ? 0 : from + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      all("details[data-menu][open]").forEach((menu) => (menu.open = false));
      all(".side.is-open").forEach((side) => side.classList.remove("is-open"));
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") document.getElementById("keys")?.showModal();
    else if (event.key === "/") {
      const folded = all("[data-find]").find((menu) => menu.offsetParent);
      if (folded) folded.open = true;
      const search = folded ? folded.querySelector("input") : all("[data-search]").find((input) => input.offsetParent);
      if (search) search.focus(), event.preventDefault();
    }
  });

  /* ---------- dropping files: the form's own input takes them, then sends them ---------- */
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      const form = event.target.closest?.("[data-drop]");
      if (!form) return;
      event.preventDefault();
      form.classList.toggle("is-over", name === "dragover");
      if (name !== "drop" || !event.dataTransfer.files.length) return;
      const input = form.querySelector("input[type=file]");
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
  document.addEventListener("htmx:finally:request", (event) => {
    const source = event.detail.ctx?.sourceElement;
    if (source?.matches?.("[data-drop]")) source.reset();
  });

  /* ---------- requests that did not reach the server ---------- */
  document.addEventListener("htmx:error", (event) => {
    if (event.detail.ctx && !event.detail.ctx.response) say(document.body.dataset.offline, "bad");
  });

  const watchToasts = () => all("[data-toast]").forEach(watchToast);
  new MutationObserver(watchToasts).observe(document.getElementById("toasts"), { childList: true });
  watchToasts();
})();
