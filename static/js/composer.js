/* The reply editor: a textarea over a mirror of the same metrics, which underlines what the checks found and what has
   no source. Typed text is kept here at once and on the server within two seconds. Needs margin.js. */
(() => {
  "use strict";

  const SAVE_MS = 800;
  const SAVE_AT_MOST_MS = 1800;
  const RETRY_MS = 4000;

  const keyOf = (form) => `composer:${form.dataset.staff}:${form.dataset.ticket}`;
  const field = (form) => form.querySelector("textarea");
  const headers = () => JSON.parse(document.body.getAttribute("hx-headers:inherited"));

  /* What this browser remembers of a text: {text, saved}. A full or forbidden storage is no reason to stop typing. */
  const memory = {
    read(form) {
      try { return JSON.parse(localStorage.getItem(keyOf(form))); } catch { return null; }
    },
    write(form, text, saved) {
      try { localStorage.setItem(keyOf(form), JSON.stringify({ text, saved })); } catch { /* the server has it */ }
    },
    clear(form) {
      try { localStorage.removeItem(keyOf(form)); } catch { /* nothing was kept */ }
    },
  };

  class Composer {
    constructor(form) {
      this.form = form;
      this.area = field(form);
      this.mirror = form.querySelector(".mirror");
      this.draft = form.dataset.draft || "";
      this.sentences = JSON.parse(form.dataset.sentences || "[]");
      this.findings = [];
      this.unsaved = false;
      this.closed = false;
      this.restore();
      this.listen();
      this.readFindings();
      this.paint();
    }

    get text() { return this.area.value; }
    get edited() { return this.text.trim() !== this.draft.trim(); }
    get blocked() { return this.findings.length > 0; }

    restore() {
      const kept = memory.read(this.form);
      if (kept && !kept.saved && kept.text !== this.text) {
        this.area.value = kept.text;
        this.changed();
      }
    }

    listen() {
      this.area.addEventListener("input", () => this.changed());
      this.area.addEventListener("keydown", (event) => this.key(event));
      this.form.addEventListener("submit", (event) => this.submit(event), true);
      this.form.addEventListener("click", (event) => this.click(event));
      new ResizeObserver(() => this.placeMarks()).observe(this.mirror);
      document.fonts?.ready.then(() => this.placeMarks());
    }

    changed() {
      this.relocate();
      this.paint();
      this.unsaved = true;
      memory.write(this.form, this.text, false);
      this.say("saving");
      this.firstUnsaved ??= Date.now();
      const left = SAVE_AT_MOST_MS - (Date.now() - this.firstUnsaved);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.save(), Math.max(0, Math.min(SAVE_MS, left)));
    }

    key(event) {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
      event.preventDefault();
      this.approve();
    }

    approve() {
      if (this.form.dataset.held) document.querySelector("#held:not([hidden]) button, #notice button")?.focus();
      else if (this.blocked) this.showFinding(0);
      else this.form.requestSubmit();
    }

    /* Runs before htmx sees the submit: a text with findings never leaves, a second submit neither. */
    submit(event) {
      if (this.blocked || this.form.dataset.held || this.form.dataset.sending) {
        event.preventDefault();
        event.stopImmediatePropagation();
        if (this.blocked) this.showFinding(0);
        return;
      }
      clearTimeout(this.timer);
      this.saving?.abort();
      this.form.dataset.sending = "1";
    }

    click(event) {
      const action = event.target.closest("[data-composer]")?.dataset.composer;
      if (action === "revert") this.replaceAll(this.draft);
      if (action === "recover") this.replaceAll(this.form.dataset.kept || "");
      if (action === "show") this.showFinding(Number(event.target.closest("[data-index]").dataset.index));
      if (action === "delete") this.deleteFinding(Number(event.target.closest("[data-index]").dataset.index));
    }

    /* execCommand is the one way to change a textarea that the browser's undo knows about. */
    replace(start, end, text) {
      this.area.focus();
      this.area.setSelectionRange(start, end);
      document.execCommand(text ? "insertText" : "delete", false, text);
    }

    replaceAll(text) { this.replace(0, this.text.length, text); }

    showFinding(index) {
      const found = this.findings[index];
      if (!found) return;
      this.area.focus();
      this.area.setSelectionRange(found.start, found.end);
      this.mirror.querySelector(".finding")?.scrollIntoView({ block: "center" });
    }

    /* The first claim that has no source. */
    showOpen() {
      const span = this.spans.find(({ mark }) => mark === "open");
      if (!span) return;
      this.area.focus();
      this.area.setSelectionRange(span.start, span.end);
      this.mirror.querySelector(".unsupported")?.scrollIntoView({ block: "center" });
    }

    deleteFinding(index) {
      const found = this.findings[index];
      if (found) this.replace(found.start, found.end, "");
    }

    readFindings() {
      const checks = document.getElementById("checks-strip");
      const findings = JSON.parse(checks?.dataset.findings || "[]");
      this.findings = findings.filter((found) => this.text.slice(found.start, found.end) === found.text);
    }

    /* Until the next answer of the server a finding stays with its words, or goes with them. */
    relocate() {
      let from = 0;
      this.findings = this.findings.flatMap((found) => {
        const start = this.text.indexOf(found.text, from);
        if (start < 0) return [];
        from = start + found.text.length;
        return [{ ...found, start, end: from }];
      });
    }

    paint() {
      const spans = margin.judge(this.text, this.draft, this.sentences);
      const edges = new Set([0, this.text.length]);
      for (const { start, end } of [...spans, ...this.findings]) edges.add(start).add(end);
      const cuts = [...edges].sort((a, b) => a - b);
      const pieces = [];
      for (let i = 0; i + 1 < cuts.length; i += 1) {
        const piece = document.createElement("span");
        piece.textContent = this.text.slice(cuts[i], cuts[i + 1]);
        const inside = (span) => span.start <= cuts[i] && cuts[i + 1] <= span.end;
        const sentence = spans.find(inside);
        if (sentence?.mark === "open") piece.classList.add("unsupported");
        if (this.findings.some(inside)) piece.classList.add("finding");
        if (sentence) (sentence.pieces ??= []).push(piece);
        pieces.push(piece);
      }
      this.mirror.replaceChildren(...pieces, document.createTextNode("\u200b"));
      this.spans = spans;
      this.placeMarks();
      this.refreshLabels();
    }

    placeMarks() { margin.place(this.form, this.mirror, this.spans); }

    refreshLabels() {
      const open = this.spans.filter((span) => span.mark === "open").length;
      document.dispatchEvent(new CustomEvent("composer:changed", {
        detail: { edited: this.edited, blocked: this.findings.length, open, empty: !this.text.trim() },
      }));
      for (const node of this.form.querySelectorAll("[data-when]")) {
        node.hidden = (node.dataset.when === "edited") !== this.edited;
      }
    }

    async save(options = {}) {
      clearTimeout(this.timer);
      if (this.closed || !this.unsaved || this.form.dataset.sending) return;
      const text = this.text;
      this.firstUnsaved = null;
      this.saving = new AbortController();
      try {
        const answer = await fetch(this.form.dataset.composerUrl, {
          method: "POST", body: new URLSearchParams({ body: text }), headers: headers(),
          signal: options.keepalive ? undefined : this.saving.signal, ...options,
        });
        if (!answer.ok) throw new Error(String(answer.status));
        memory.write(this.form, text, true);
        if (this.text === text) { this.unsaved = false; this.say("saved"); }
      } catch (error) {
        if (error.name === "AbortError") return;
        this.say("failed");
        this.timer = setTimeout(() => this.save(), RETRY_MS);
      }
    }

    say(state) {
      const node = this.form.querySelector(".save-state");
      if (!node) return;
      node.dataset.state = state;
      const timeZone = this.form.dataset.timeZone;
      const time = new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
      node.textContent = (node.dataset[state] || "").replace("{time}", time);
    }

    /* The text has left, or this editor makes room for another state: nothing more to keep. */
    close() {
      this.closed = true;
      clearTimeout(this.timer);
      this.saving?.abort();
    }

    forget() {
      this.unsaved = false;
      memory.clear(this.form);
      this.close();
    }
  }

  let current = null;
  const attach = () => {
    const form = document.querySelector("form[data-composer-url]");
    if (current && current.form !== form) { current.close(); current = null; }
    if (form && !current) current = new Composer(form);
  };

  window.composer = { get current() { return current; }, attach };
  document.addEventListener("DOMContentLoaded", attach);
  document.addEventListener("htmx:after:swap", () => {
    attach();
    if (current) { current.readFindings(); current.paint(); }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) current?.save({ keepalive: true });
  });
  addEventListener("beforeunload", (event) => {
    if (current?.unsaved && !current.closed) event.preventDefault();
  });
})();
