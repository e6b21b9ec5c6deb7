// Keeps a page up to date: when the server says that data have changed, the page is fetched again, and elements with data-live are exchanged.
"use strict";
(() => {
  const RECONNECT_MS = 15000;
  const button = document.getElementById("live"), stale = document.getElementById("stale");
  let source = null, paused = false, busy = false, again = false;

  const SPOTS = "summary, [tabindex]";

  // An element that a person is using stays as it is until the focus leaves it; a link keeps the focus, because its twin is found by its address,
  // and a summary or a region that scrolls by its place.
  function exchange(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    const active = document.activeElement;
    if (old.contains(active) && active.matches("input, select, textarea, button")) return;
    const link = old.contains(active) ? active.getAttribute("href") : null;
    const spot = Array.from(old.querySelectorAll(SPOTS)).indexOf(active);
    const scrolled = Array.from(old.querySelectorAll(".scroll"), (each) => each.scrollLeft);
    const opened = Array.from(old.querySelectorAll("details"), (each) => each.open);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((each, place) => { each.scrollLeft = scrolled[place] || 0; });
    fresh.querySelectorAll("details").forEach((each, place) => { if (place < opened.length) each.open = opened[place]; });
    if (link !== null) {
      const twin = Array.from(fresh.querySelectorAll("a")).find((each) => each.getAttribute("href") === link);
      if (twin) twin.focus({ preventScroll: true });
    } else if (spot >= 0) {
      const twin = fresh.querySelectorAll(SPOTS)[spot];
      if (twin) twin.focus({ preventScroll: true });
    }
  }

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true; again = false;
    try {
      const answer = await fetch(location.href, { headers: { "X-Live": "1" }, credentials: "same-origin", redirect: "error" });
      if (answer.status === 401) location.reload(); // the login has ended: the page for logging in leads back here
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const fresh of page.querySelectorAll("[data-live]")) {
          const old = document.getElementById(fresh.id);
          if (old) exchange(old, document.importNode(fresh, true));
        }
      }
    } catch { /* the server is away: the event source connects again by itself */ }
    busy = false;
    if (again) refresh();
  }

  function start() {
    const opened = source = new EventSource("/events");
    let failed = false;
    opened.addEventListener("changed", refresh);
    opened.addEventListener("open", () => { stale.hidden = true; if (failed) refresh(); failed = false; });
    opened.addEventListener("error", () => {
      stale.hidden = false;
      failed = true;
      // The browser connects again by itself, except after an answer that is no stream, such as 401 or 503.
      if (opened.readyState === EventSource.CLOSED) {
        refresh();
        setTimeout(() => { if (source === opened) { start(); refresh(); } }, RECONNECT_MS);
      }
    });
  }

  function stop() {
    source.close();
    source = null;
  }

  // A browser opens few connections to a server: a page that nobody sees holds none.
  function follow() {
    const wanted = !paused && !document.hidden;
    if (wanted && !source) { start(); refresh(); }
    if (!wanted && source) stop();
  }

  if (document.querySelector("[data-live]") && window.EventSource) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      stale.hidden = true;
      button.textContent = paused ? "Resume updates" : "Pause updates";
      button.setAttribute("aria-pressed", String(paused));
      follow();
    });
    document.addEventListener("visibilitychange", follow);
    if (!document.hidden) start();
  }
})();
