// Focus mode: keys act on what has been on the screen, and only on that.
"use strict";
(() => {
  const SETTLE_MS = 350;
  let shownAt = Infinity;
  let isBusy = false;

  let seen = {};

  const focus = () => document.getElementById("focus");
  const panel = () => document.getElementById("decision");
  const keysAreOff = () => localStorage.getItem("keys") === "off";
  const isTyping = (target) => target.matches("textarea, input:not([type=radio]):not([type=checkbox]), select");

  // A key pressed before the item was seen, or while another decision is under way, is dropped.
  const isFresh = (event) => !isBusy && event.timeStamp > shownAt + SETTLE_MS;

  function markSeen() {
    seen = { focus: focus(), panel: panel() };
    numberReasons();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      shownAt = performance.now();
      isBusy = false;
      setTimeout(() => focus()?.setAttribute("data-ready", ""), SETTLE_MS + 20);
    }));
  }

  function numberReasons() {
    const labels = [...document.querySelectorAll("#decision .reasons label")];
    labels.forEach((label, index) => {
      const key = label.querySelector("kbd");
      if (key) key.textContent = index < 9 ? String(index + 1) : "";
    });
    return labels;
  }

  function choose(key) {
    const radio = panel()?.querySelector(`input[type=radio][data-key="${key}"]`);
    if (!radio || radio.disabled) return false;
    radio.checked = true;
    radio.focus();
    return true;
  }

  function toggleReason(number) {
    const box = numberReasons()[number - 1]?.querySelector("input");
    if (!box) return false;
    box.checked = !box.checked;
    box.focus();
    return true;
  }

  function press(selector) {
    const button = document.querySelector(selector);
    if (!button) return false;
    button.click();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (!focus() || document.querySelector("dialog[open]")) return;
    const isSubmit = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (!isSubmit && (event.ctrlKey || event.metaKey || event.altKey || keysAreOff())) return;
    if (isTyping(event.target) && !isSubmit) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const handlers = {
      a: () => choose("a"), c: () => choose("c"), r: () => choose("r"),
      m: () => { panel()?.querySelector("textarea")?.focus(); return Boolean(panel()); },
      s: () => press('#decision [data-key="s"]'),
      u: () => press('.last [data-key="u"]'),
    };
    let act = isSubmit ? () => press("#decision [data-decide]") : handlers[event.key];
    if (!act && /^[1-9]$/.test(event.key)) act = () => toggleReason(Number(event.key));
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    if (isFresh(event)) act();
  }, true);

  const isReviewAction = (event) => event.detail?.ctx?.sourceElement?.closest?.("[data-review-action]");

  document.addEventListener("htmx:before:request", (event) => {
    if (!isReviewAction(event)) return;
    if (isBusy) event.preventDefault();
    isBusy = true;
    focus().removeAttribute("data-ready");
  });

  document.addEventListener("htmx:finally:request", (event) => {
    if (isReviewAction(event) && isBusy && focus() === seen.focus && panel() === seen.panel) markSeen();
  });

  // A swap detaches the form that asked for it, and its events with it: so the page itself is watched.
  new MutationObserver(() => {
    if (focus() === seen.focus && panel() === seen.panel) return;
    if (focus() !== seen.focus) {
      window.scrollTo(0, 0);
      const title = document.querySelector("#focus h1");
      title?.setAttribute("tabindex", "-1");
      title?.focus({ preventScroll: true });
    }
    markSeen();
  }).observe(document.getElementById("main"), { childList: true, subtree: true });

  window.addEventListener("pagehide", () => {
    const id = focus()?.dataset.environment;
    const token = document.querySelector("input[name=csrfmiddlewaretoken]")?.value;
    if (!id || !token) return;
    const body = new FormData();
    body.append("csrfmiddlewaretoken", token);
    navigator.sendBeacon(`/review/${id}/release/`, body);
  });

  markSeen();
})();
