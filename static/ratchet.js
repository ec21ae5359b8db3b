// Keys, copying, tables, trees: everything here is an addition; the pages work without it.
"use strict";
(() => {
  const keysAreOff = () => localStorage.getItem("keys") === "off";
  const isTyping = (target) =>
    target.matches("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]");
  const goals = { o: "/", e: "/environments/", l: "/lineage/", r: "/review/", u: "/runs/", d: "/datasets/" };
  let isGoing = false;

  function rows() {
    return [...document.querySelectorAll("table[data-rows] tbody tr")];
  }

  function moveRow(step) {
    const all = rows();
    if (!all.length) return false;
    const at = all.findIndex((row) => row.classList.contains("at"));
    const next = Math.max(0, Math.min(all.length - 1, at + step));
    all.forEach((row, index) => row.classList.toggle("at", index === next));
    all[next].scrollIntoView({ block: "nearest" });
    all[next].querySelector("a")?.focus({ preventScroll: true });
    return true;
  }

  function moveFile(step) {
    const files = [...document.querySelectorAll("[data-file]")];
    if (!files.length) return false;
    const edge = 12;
    const tops = files.map((file) => file.getBoundingClientRect().top);
    let at = step > 0 ? tops.findIndex((top) => top > edge) : tops.findLastIndex((top) => top < -edge);
    if (at < 0) at = step > 0 ? files.length - 1 : 0;
    files[at].scrollIntoView({ block: "start" });
    files[at].querySelector("summary").focus({ preventScroll: true });
    return true;
  }

  function openKeys() {
    const dialog = document.getElementById("keys");
    if (!dialog) return false;
    dialog.querySelector("#keys-off").checked = keysAreOff();
    dialog.showModal();
    return true;
  }

  const actions = {
    "?": openKeys,
    "/": () => (document.getElementById("search")?.focus(), Boolean(document.getElementById("search"))),
    "j": () => moveRow(1),
    "k": () => moveRow(-1),
    "]": () => moveFile(1),
    "[": () => moveFile(-1),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target) || keysAreOff() || document.querySelector("dialog[open]")) return;
    if (isGoing) {
      isGoing = false;
      if (goals[event.key]) { event.preventDefault(); location.assign(goals[event.key]); }
      return;
    }
    if (event.key === "g") { isGoing = true; setTimeout(() => { isGoing = false; }, 1200); return; }
    if (actions[event.key]?.()) { event.preventDefault(); return; }
    const marked = event.key.length === 1 && document.querySelector(`:is(a, .head button)[data-key="${CSS.escape(event.key)}"]`);
    if (marked) { event.preventDefault(); marked.click(); }
  });

  document.addEventListener("click", (event) => {
    const copied = event.target.closest("[data-copy]");
    if (copied && navigator.clipboard) {
      navigator.clipboard.writeText(copied.dataset.copy).then(() => {
        copied.classList.add("copied");
        setTimeout(() => copied.classList.remove("copied"), 1200);
      });
    }
    if (event.target.closest("[data-open]")) openKeys();
  });

  document.addEventListener("change", (event) => {
    if (event.target.id === "keys-off") localStorage.setItem("keys", event.target.checked ? "off" : "on");
    const all = event.target.closest("[data-all]");
    const boxes = (name) => [...document.querySelectorAll(`input[name="${name}"]`)];
    if (all) boxes(all.dataset.all).forEach((box) => { box.checked = event.target.checked; });
    const counter = document.querySelector("[data-count-of]");
    if (counter) {
      const list = boxes(counter.dataset.countOf);
      counter.textContent = `${list.filter((box) => box.checked).length} of ${list.length} chosen`;
    }
  });

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset?.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // What was typed before htmx listened is asked for now.
  document.addEventListener("htmx:after:init", (event) => {
    const search = event.target.querySelector?.("#search");
    if (search && search.value !== search.defaultValue) search.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Nothing is asked for while nobody looks.
  document.addEventListener("htmx:before:request", (event) => {
    const source = event.detail?.ctx?.sourceElement;
    if (document.hidden && source?.hasAttribute?.("data-poll")) event.preventDefault();
  });

  // An answer that is no part of the page is told, and never put into it.
  const tell = (words) => {
    const trouble = document.getElementById("trouble");
    if (trouble) { trouble.textContent = words; trouble.hidden = false; }
  };
  document.addEventListener("htmx:response:error", (event) => {
    const status = event.detail?.ctx?.response?.status;
    if (status === 409 || status === 422) return;
    tell(status === 403 ? "You may not do this, or the page is too old: reload it." :
      `The server refused (${status}); nothing was changed. Reload the page.`);
  });
  document.addEventListener("htmx:error", () => tell("The server does not answer; nothing was changed."));

  for (const hidden of document.querySelectorAll("[data-open][hidden], [data-all][hidden]")) hidden.hidden = false;
})();
