/* The ticket page: what the stream may replace, the pop-overs of the sources, the action bar, the keys. */
(() => {
  "use strict";

  const NEAR_BOTTOM = 80;
  const HOVER_MS = 120;
  const LEAVE_MS = 200;
  const TICK_MS = 500;
  const GUARDED = new Set(["desk", "actions"]);

  const byId = (id) => document.getElementById(id);
  const composer = () => window.composer?.current;

  /* ---------- what the stream may replace ---------- */

  /* The thread's newest event that each region brought which was not let in, for an answer of an older one. */
  const missed = new Map();

  /* A region that was read before what is already shown is dropped: answers overtake each other. From the stream, a
     region in the state that it already shows is left alone too (focus and selection stay), and an editor with a
     person's own words is never replaced from afar: the notice says what happened instead. */
  const guard = (event) => {
    const { ctx, tasks } = event.detail;
    const fromStream = ctx.sourceElement?.id === "live";
    for (let i = tasks.length - 1; i >= 0; i -= 1) {
      const { target, fragment } = tasks[i];
      const incoming = fragment?.firstElementChild;
      if (!target?.id || !incoming) continue;
      if (Number(incoming.dataset.seq) < Number(target.dataset.seq)) {
        tasks.splice(i, 1);
        continue;
      }
      keepOpen(target, incoming);
      if (!fromStream) continue;
      if (target.dataset.key && incoming.dataset.key === target.dataset.key) {
        target.dataset.seq = incoming.dataset.seq;
        tasks.splice(i, 1);
      } else if (isChoosing(target) || (GUARDED.has(target.id) && isHeld())) {
        missed.set(target.id, Number(incoming.dataset.seq));
        tasks.splice(i, 1);
        if (target.id === "desk") hold(incoming.dataset.notice);
      } else if (target.id === "desk") byId("notice")?.replaceChildren();
    }
  };

  /* The answer to a person's own request may be older than what was kept out while they waited for it. */
  const catchUp = ({ response, sourceElement }) => {
    if (!response || response.status >= 300 || !sourceElement?.matches?.("#review, form.class")) return;
    const behind = [...missed].some(([id, seq]) => Number(byId(id)?.dataset.seq) < seq);
    missed.clear();
    if (behind) byId("held")?.querySelector("button").click();
  };

  /* A choice that is about to be sent; its answer brings the region anew. */
  const isChoosing = (target) => [...target.querySelectorAll("select")].some(
    (select) => !select.options[select.selectedIndex]?.defaultSelected);

  const isHeld = () => {
    const editor = composer();
    return Boolean(editor && (editor.edited || editor.form.dataset.sending));
  };

  const hold = (words) => {
    const bar = byId("held");
    if (!bar || composer()?.form.dataset.sending) return;
    bar.querySelector("[data-words]").textContent = words || "";
    bar.hidden = false;
    holdActions();
  };

  /* Another state has come, and the actions are of this one: they wait until the person has looked. Looking swaps the
     bar and the editor, which lets go again. */
  const holdActions = () => {
    if (byId("actions")) byId("actions").inert = true;
    if (byId("review")) byId("review").dataset.held = "yes";
  };

  /* htmx carries the attributes of equal ids over for a moment, and the CSP refuses an inline style among them. */
  const dropStyles = (target) => {
    for (const styled of target?.querySelectorAll?.("[id][style]") ?? []) styled.removeAttribute("style");
  };

  const keepOpen = (target, incoming) => {
    for (const open of target.querySelectorAll("details[id][open]")) {
      incoming.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    }
  };

  let atBottom = false;
  document.addEventListener("htmx:before:swap", (event) => {
    const body = byId("ticket-body");
    atBottom = Boolean(body) && body.scrollHeight - body.scrollTop - body.clientHeight < NEAR_BOTTOM;
    guard(event);
    event.detail.tasks.forEach(({ target }) => dropStyles(target));
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const growing = event.detail.ctx.sourceElement?.id === "live" && document.querySelector(".sheet.is-running");
    if (growing && atBottom) byId("ticket-body").scrollTop = byId("ticket-body").scrollHeight;
    // the bar speaks of an editor that is held; a new one is of the newest state
    const said = byId("notice")?.childElementCount > 0 || !byId("review")?.dataset.held;
    if (said && byId("held")) byId("held").hidden = true;
    byId("notice")?.querySelector("[data-typed]")?.toggleAttribute("hidden", !composer()?.edited);
    closePop();
    catchUp(event.detail.ctx);
  });

  /* An action may take the editor away: what was typed goes to the server first. */
  document.addEventListener("htmx:before:request", (event) => {
    const source = event.detail.ctx.sourceElement;
    if (source?.closest("#actions, #ticket-menu")) composer()?.save({ keepalive: true });
    if (source?.closest("#ticket-menu")) {
      byId("ticket-menu").open = false;
      byId("ticket-menu-opener").focus();
    }
  });

  /* A reply that was approved has left the editor; one that was refused stays in it. */
  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.response?.status === 409 && ctx.sourceElement?.matches?.("#review, #actions form")) holdActions();
    if (ctx.sourceElement?.id !== "review") return;
    if (ctx.response.status < 300) {
      composer()?.forget();
      byId("held").hidden = true;
    }
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (event.detail.ctx.sourceElement?.id === "review") delete event.detail.ctx.sourceElement.dataset.sending;
  });

  /* ---------- sources ---------- */

  let timer;
  let opener;

  const openPop = (anchor) => {
    const pop = byId(`source-${anchor.dataset.cite}`);
    if (!pop) return;
    closePop();
    opener = anchor;
    const frame = pop.offsetParent.getBoundingClientRect();
    const box = anchor.getBoundingClientRect();
    const visible = byId("ticket-body").getBoundingClientRect();
    pop.style.left = `${Math.max(0, Math.min(box.left - frame.left, frame.width - pop.offsetWidth))}px`;
    const below = box.bottom - frame.top + 6;
    const above = box.top - frame.top - pop.offsetHeight - 6;
    const fits = box.bottom + pop.offsetHeight + 6 <= visible.bottom;
    pop.style.top = `${fits || box.top - pop.offsetHeight < visible.top ? below : above}px`;
    pop.classList.add("is-open");
    anchor.classList.add("is-open");
  };

  const closePop = () => {
    clearTimeout(timer);
    document.querySelector(".pop.is-open")?.classList.remove("is-open");
    opener?.classList.remove("is-open");
    opener = null;
  };

  const later = (work, delay) => { clearTimeout(timer); timer = setTimeout(work, delay); };

  document.addEventListener("mouseover", (event) => {
    const anchor = event.target.closest?.("[data-cite]");
    if (anchor) later(() => openPop(anchor), HOVER_MS);
    else if (event.target.closest?.(".pop")) clearTimeout(timer);
    else if (opener && !opener.matches(":focus")) later(closePop, LEAVE_MS);
  });
  document.addEventListener("focusin", (event) => {
    const anchor = event.target.closest?.("[data-cite]");
    if (anchor) openPop(anchor);
    else if (!event.target.closest?.(".pop")) closePop();
  });

  /* ---------- the action bar ---------- */

  document.addEventListener("composer:changed", ({ detail }) => {
    const { edited, blocked, open, empty } = detail;
    const button = byId("approve");
    if (button) {
      button.classList.toggle("btn-held", blocked > 0 || empty);
      button.classList.toggle("btn-primary", !blocked && !empty);
      const need = button.querySelector(".need");
      need.hidden = !blocked && !empty;
      need.textContent = blocked ? need.dataset.words.replace("{n}", blocked) : need.dataset.empty;
      for (const label of button.querySelectorAll("[data-label]")) {
        label.hidden = label.dataset.label !== (edited ? "edited" : "plain");
      }
    }
    const sum = byId("proof-sum");
    if (sum) {
      const state = blocked ? "bad" : open ? "warn" : empty ? "" : "ok";
      for (const part of sum.querySelectorAll("[data-sum]")) {
        part.hidden = part.dataset.sum !== state;
        const words = part.querySelector("[data-words]");
        if (words) words.textContent = words.dataset.words.replace("{n}", blocked || open);
      }
    }
    const facts = byId("check-facts");
    if (facts) {
      facts.classList.toggle("is-warn", open > 0);
      facts.querySelector("[data-none]").hidden = open > 0;
      const some = facts.querySelector("[data-some]");
      some.hidden = open === 0;
      some.textContent = some.dataset.some.replace("{n}", open);
    }
  });

  const toggleLine = (id) => {
    for (const line of document.querySelectorAll(".ask-line")) line.hidden = line.id !== id || !line.hidden;
    const line = byId(id);
    if (line && !line.hidden) line.querySelector("input:not([type=hidden]), textarea").focus();
  };

  document.addEventListener("click", (event) => {
    const opensLine = event.target.closest("[data-line]");
    if (opensLine) toggleLine(opensLine.dataset.line);
    if (event.target.closest("#approve")) {
      event.preventDefault();
      const editor = composer();
      if (editor?.text.trim()) editor.approve();
      else editor?.area.focus();
    }
    const jump = event.target.closest("[data-jump]")?.dataset.jump;
    if (jump === "bad") composer()?.showFinding(0);
    else if (jump === "warn") composer()?.showOpen();
    else if (jump) document.querySelector(jump)?.scrollIntoView({ block: "end", behavior: "smooth" });
    const look = event.target.closest("[data-look]");
    if (look) byId(look.dataset.look)?.classList.toggle("is-diff");
  });

  /* Opened to be written in. A toggle does not bubble. */
  document.addEventListener("toggle", (event) => {
    if (event.target.id === "record" && event.target.open) event.target.querySelector("textarea").focus();
  }, true);

  document.addEventListener("click", (event) => {
    const dismiss = event.target.closest("[data-dismiss]");
    if (dismiss) byId(dismiss.dataset.dismiss).replaceChildren();
  });

  setInterval(() => {
    for (const node of document.querySelectorAll("[data-since]")) {
      const elapsed = Math.max(0, (Date.now() - Date.parse(node.dataset.since)) / 1000);
      node.textContent = node.dataset.unit.replace("{n}", elapsed.toFixed(1));
    }
  }, TICK_MS);

  /* ---------- keys ---------- */

  /* A plain letter opens or focuses and never sends: a hand beside the editor costs nothing. */
  const press = (selector) => {
    const button = document.querySelector(selector);
    if (!button || button.closest("[inert]")) return false;
    button.click();
    return true;
  };
  const KEYS = {
    e: () => { composer()?.area.focus(); return Boolean(composer()); },
    g: () => press('[data-line="line-regenerate"]'),
    u: () => press('[data-line="line-escalate"]'),
  };

  /* While capturing: what Escape closes is still open then, and it closes one thing at a time. */
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") escape(event);
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (!typing && plain && KEYS[event.key]?.()) event.preventDefault();
  }, true);

  const escape = (event) => {
    const line = document.querySelector(".ask-line:not([hidden])");
    if (opener) closePop();
    else if (line) line.hidden = true;
    else if (document.querySelector("details[data-menu][open], .side.is-open")) return;
    else if (event.target.matches("textarea, input")) event.target.blur();
    else press("[data-stop]");
  };
})();
