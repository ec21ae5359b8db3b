// The lineage page: folding, arrow keys, and a click into the picture.
"use strict";
(() => {
  const tree = document.querySelector("[data-tree]");

  function setOpen(twist, isOpen) {
    const branch = twist.closest("li").querySelector(":scope > .branch");
    twist.setAttribute("aria-expanded", String(isOpen));
    if (branch) branch.hidden = !isOpen;
  }

  tree?.addEventListener("click", (event) => {
    const twist = event.target.closest("button.twist");
    if (twist) setOpen(twist, twist.getAttribute("aria-expanded") !== "true");
  });

  function links() {
    return [...tree.querySelectorAll(".node a")].filter((link) => link.offsetParent);
  }

  tree?.addEventListener("keydown", (event) => {
    const link = event.target.closest(".node a");
    if (!link) return;
    const item = link.closest("li");
    const twist = item.querySelector(":scope > .node button.twist");
    const all = links();
    const at = all.indexOf(link);
    const isOpen = twist?.getAttribute("aria-expanded") === "true";
    const moves = {
      ArrowDown: () => all[at + 1]?.focus(),
      ArrowUp: () => all[at - 1]?.focus(),
      Home: () => all[0]?.focus(),
      End: () => all.at(-1)?.focus(),
      ArrowRight: () => (twist && !isOpen ? twist.click() : all[at + 1]?.focus()),
      d: () => { location.assign(`/environments/${link.dataset.node}/diff/`); },
      ArrowLeft: () => (isOpen ? twist.click() : item.parentElement.closest("li")?.querySelector(".node a")?.focus()),
    };
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey);
    const isOff = event.key === "d" && localStorage.getItem("keys") === "off";
    if (moves[event.key] && isPlain && !isOff) { event.preventDefault(); moves[event.key](); }
  });

  function focusNode(id) {
    for (const at of document.querySelectorAll("li.in-focus")) at.classList.remove("in-focus");
    const link = tree?.querySelector(`a[data-node="${id}"]`);
    link?.closest("li").classList.add("in-focus");
    link?.scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", `?${new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(location.search)), focus: id })}`);
  }

  document.addEventListener("click", (event) => {
    const mark = event.target.closest("a[data-node]");
    if (!mark || event.ctrlKey || event.metaKey) return;
    if (mark.closest("svg")) {
      event.preventDefault();
      htmx.ajax("GET", `/lineage/panel/${mark.dataset.node}/`, { target: "#panel", swap: "outerHTML" });
      for (const at of document.querySelectorAll("svg .in-focus")) at.classList.remove("in-focus");
      mark.querySelector("g").classList.add("in-focus");
    }
    focusNode(mark.dataset.node);
  });

  const binned = document.querySelector("svg[data-at]");
  binned?.addEventListener("click", (event) => {
    const box = binned.getBoundingClientRect();
    const x = event.clientX - box.left - 22;
    const y = event.clientY - box.top - 26;
    const generation = Math.max(0, Math.round(x / Number(binned.dataset.column)));
    const rank = Math.max(0, Math.round((y / 3) * Number(binned.dataset.perRow)));
    const place = new URLSearchParams({ generation, rank });
    htmx.ajax("GET", `${binned.dataset.at}?${place}`, { target: "#panel", swap: "outerHTML" });
  });
})();
