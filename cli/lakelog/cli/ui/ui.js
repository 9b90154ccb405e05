"use strict";
// Without it everything is there by links and forms; it keeps the page up to date.
{
  let tag = null;
  let asked = 0;
  let timer = 0;

  const sortOf = (table) =>
    [...table.tHead.rows[0].cells].map((cell) => cell.getAttribute("aria-sort"));

  const stops = (live) => [...live.querySelectorAll("a, button, input, summary, .scroll")];

  // The part that changes is exchanged; how columns are sorted, how far tables are scrolled and
  // where the focus is stay as they were.
  function swap(html) {
    const old = document.getElementById("live");
    const next = new DOMParser().parseFromString(html, "text/html").getElementById("live");
    if (!old || !next) {
      location.reload();
      return;
    }
    const sorts = new Map();
    for (const table of old.querySelectorAll("table[data-sorts]")) sorts.set(table.id, sortOf(table));
    const focus = stops(old).indexOf(document.activeElement);
    const scrolled = [...old.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    old.replaceWith(document.adoptNode(next));
    enhance(next);
    for (const [id, sort] of sorts) {
      const at = sort.findIndex((each) => each !== null);
      const cell = document.getElementById(id)?.tHead.rows[0].cells[at];
      const button = cell?.querySelector("button");
      button?.click();
      if (sort[at] === "descending") button?.click();
    }
    [...next.querySelectorAll(".scroll")].forEach((each, at) => each.scrollTo(...(scrolled[at] ?? [0, 0])));
    if (focus >= 0) stops(next)[focus]?.focus({ preventScroll: true });
  }

  // Nothing is pulled away from under a reader who filters or has opened something.
  const isInUse = (live) =>
    live.querySelector("input:focus") !== null ||
    [...live.querySelectorAll("input[data-filters]")].some((each) => each.value) ||
    live.querySelector("[data-touched]") !== null;

  async function look(address, quietly) {
    const mine = ++asked;
    const headers = quietly && tag ? { "If-None-Match": tag } : {};
    const answer = await fetch(address, { headers, cache: "no-store" }).catch(() => null);
    const html = answer && answer.status !== 304 ? await answer.text() : null;
    if (mine !== asked) return;
    const live = document.getElementById("live");
    if (html !== null && live && !(quietly && isInUse(live))) {
      tag = answer.headers.get("ETag");
      swap(html);
    }
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    const seconds = Number(document.getElementById("live")?.dataset.every ?? 0);
    if (!seconds) return;
    const again = () => (document.hidden ? schedule() : look(location.href, true));
    timer = setTimeout(again, seconds * 1000);
  }

  // Time travel: what is shown follows the slider.
  const form = document.querySelector("form.travel");
  const slider = form?.querySelector("input[type=range]");
  if (slider) {
    let moved = 0;
    const go = () => {
      const address = `${form.action}?v=${slider.value}`;
      document.getElementById("live").dataset.waits = "";
      history.replaceState(null, "", address);
      look(address, false);
    };
    slider.addEventListener("input", () => {
      form.querySelector("output").textContent = Number(slider.value).toLocaleString("en");
      clearTimeout(moved);
      moved = setTimeout(go, 200);
    });
  }

  addEventListener("click", (event) => {
    const opened = event.target.closest("summary")?.parentElement;
    if (opened) opened.dataset.touched = "";
  });
  schedule();
}
