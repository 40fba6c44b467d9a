/* The map of statements: one of them with what it rests on, or what rests on it. What is chosen
   stands in the address. Without this script the page shows everything. */

(() => {
  const form = document.getElementById("td-map-form");
  if (!form) return;

  const keys = ["focus", "way", "depth"];
  const count = document.getElementById("td-map-count");
  const graphs = [...document.querySelectorAll(".td-map")].map((box) => {
    const svg = box.querySelector("svg");
    const nodes = new Map(
      [...svg.querySelectorAll("[data-node]")].map((node) => [node.dataset.node, node]),
    );
    const lines = [...svg.querySelectorAll("[data-from]")];
    const list = box.parentElement.querySelector(".td-map-list");
    const rows = list ? [...list.querySelectorAll("tbody > tr")] : [];
    return {box, svg, nodes, lines, rows, whole: svg.getAttribute("viewBox")};
  });
  // Names reached from one, in at most so many steps against or along the lines.
  const reach = (graph, start, from, to, depth) => {
    const found = new Set([start]);
    let rim = [start];
    for (let step = 0; step < depth && rim.length; step += 1) {
      const next = new Set();
      for (const line of graph.lines) {
        if (rim.includes(line.dataset[from]) && !found.has(line.dataset[to])) {
          next.add(line.dataset[to]);
        }
      }
      rim = [...next];
      for (const name of rim) found.add(name);
    }
    return found;
  };
  const size = (graph, box) => {
    graph.svg.setAttribute("viewBox", box.join(" "));
    graph.svg.setAttribute("width", box[2]);
    graph.svg.setAttribute("height", box[3]);
  };
  const crop = (graph, shown) => {
    const rects = [...shown].map((name) => graph.nodes.get(name).querySelector("rect"));
    const at = (rect, name) => Number(rect.getAttribute(name));
    const left = Math.min(...rects.map((rect) => at(rect, "x"))) - 8;
    const top = Math.min(...rects.map((rect) => at(rect, "y"))) - 8;
    const right = Math.max(...rects.map((rect) => at(rect, "x") + at(rect, "width"))) + 8;
    const bottom = Math.max(...rects.map((rect) => at(rect, "y") + at(rect, "height"))) + 8;
    size(graph, [left, top, right - left, bottom - top]);
  };
  const centre = ({box}, thing) => {
    const [inner, outer] = [thing, box].map((element) => element.getBoundingClientRect());
    box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  };
  const show = () => {
    const focus = form.elements.focus.value;
    const way = form.elements.way.value;
    const depth = Number(form.elements.depth.value) || Infinity;
    let number = 0;
    for (const graph of graphs) {
      const here = graph.nodes.has(focus);
      const listed = graph.rows.some((row) => row.dataset.node === focus);
      let shown = null;
      if (focus) {
        shown = new Set(listed ? [focus] : []);
        const down = way === "up" || !here ? [] : reach(graph, focus, "from", "to", depth);
        const up = way === "down" || !here ? [] : reach(graph, focus, "to", "from", depth);
        for (const name of [...down, ...up]) shown.add(name);
      }
      graph.box.closest("section").hidden = Boolean(focus) && !listed;
      for (const [name, node] of graph.nodes) {
        node.classList.toggle("td-hidden", Boolean(shown) && !shown.has(name));
        node.classList.toggle("td-focus", name === focus);
      }
      for (const line of graph.lines) {
        const {from, to} = line.dataset;
        line.classList.toggle("td-hidden", Boolean(shown) && !(shown.has(from) && shown.has(to)));
      }
      for (const row of graph.rows) {
        row.hidden = Boolean(shown) && !shown.has(row.dataset.node);
        number += !row.hidden;
      }
      graph.box.hidden = Boolean(focus) && listed && !here;
      graph.box.classList.toggle("td-focused", here);
      if (focus && listed) graph.box.closest(".td-section")?.setAttribute("open", "");
      if (here) crop(graph, shown);
      else size(graph, graph.whole.split(" ").map(Number));
      if (here) centre(graph, graph.nodes.get(focus));
      else graph.box.scrollLeft = 0;
    }
    count.textContent = `${number} ${number === 1 ? "statement" : "statements"}`;
  };
  // The address holds what is chosen, so that it can be kept and passed on.
  const remember = () => {
    const query = new URLSearchParams();
    const focus = form.elements.focus.value;
    for (const key of focus ? keys : []) {
      const value = form.elements[key].value;
      if (value) query.set(key, value);
    }
    history.replaceState(null, "", `${query}` ? `?${query}` : location.pathname);
  };
  const recall = () => {
    const query = new URLSearchParams(location.search);
    for (const key of keys) {
      const field = form.elements[key];
      const value = query.get(key);
      const known = [...field.options].some((option) => option.value === value);
      if (known) field.value = value;
      else field.selectedIndex = 0;
    }
    show();
    if (!form.elements.focus.value) return;
    form.closest(".td-section")?.setAttribute("open", "");
    form.scrollIntoView();
  };
  const change = () => {
    show();
    remember();
  };
  form.addEventListener("input", change);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(change));
  // With the pointer or the focus of the keyboard on a box, its own lines stand out.
  for (const graph of graphs) {
    for (const [name, node] of graph.nodes) {
      const mark = (on) => () => {
        for (const line of graph.lines) {
          const mine = line.dataset.from === name || line.dataset.to === name;
          line.classList.toggle("td-mine", on && mine);
        }
      };
      for (const event of ["pointerenter", "focus"]) node.addEventListener(event, mark(true));
      for (const event of ["pointerleave", "blur"]) node.addEventListener(event, mark(false));
    }
  }
  /* On a phone the graph is seen before what explains its marks. */
  if (matchMedia("(max-width: 600px)").matches) {
    document.querySelector(".td-marks").removeAttribute("open");
  }
  form.hidden = false;
  recall();
})();
