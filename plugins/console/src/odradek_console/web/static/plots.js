// Shows the values of a plot at the pointer: a vertical line in the picture, and time and values in the line below it.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const TIME = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  let pointed = null;

  function parsed(series) {
    return {
      name: series.dataset.name,
      times: series.dataset.times ? series.dataset.times.split(" ").map(Number) : [],
      values: series.dataset.values.split(" "),
    };
  }

  // The point closest in time; times are in order.
  function nearest(times, wanted) {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low > 0 && wanted - times[low - 1] < times[low] - wanted ? low - 1 : low;
  }

  function clear() {
    if (!pointed) return;
    pointed.querySelectorAll(".pointer").forEach((each) => each.remove());
    const text = pointed.closest("figure").querySelector(".pointed");
    if (text) text.textContent = "\u00a0";
    pointed = null;
  }

  function show(svg, event) {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    const begin = Number(svg.dataset.begin), end = Number(svg.dataset.end);
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    const share = ((event.clientX - box.left) / box.width * view.width - left) / (right - left);
    const wanted = begin + Math.min(1, Math.max(0, share)) * (end - begin);
    const found = Array.from(svg.querySelectorAll(".series"), parsed).filter((each) => each.times.length);
    if (!found.length) return;
    const times = found.map((each) => each.times[nearest(each.times, wanted)]);
    const time = times.reduce((best, each) => Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best);
    const told = found.map((each) => {
      const at = nearest(each.times, time);
      return `${each.name} ${Math.abs(each.times[at] - time) <= (end - begin) / 20 ? each.values[at] : "-"}`;
    });
    let line = svg.querySelector(".pointer");
    if (!line) {
      line = document.createElementNS(SVG, "line");
      line.setAttribute("class", "pointer");
      line.setAttribute("y1", "10");
      line.setAttribute("y2", String(view.height - 24));
      svg.append(line);
    }
    const at = String(left + (time - begin) / (end - begin) * (right - left));
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    svg.closest("figure").querySelector(".pointed").textContent = `${TIME.format(time * 1000)} UTC: ${told.join(", ")}`;
    pointed = svg;
  }

  document.addEventListener("pointermove", (event) => {
    const svg = event.target instanceof Element ? event.target.closest("svg.plot[data-begin]") : null;
    if (svg !== pointed) clear();
    if (svg) show(svg, event);
  }, { passive: true });
  document.addEventListener("pointerleave", clear);
})();
