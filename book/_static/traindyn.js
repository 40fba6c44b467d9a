/* What the markup of the theme and of MathJax lacks for readers without a mouse or a screen. */

(() => {
  /* A formula wider than its column scrolls by itself; then the keyboard has to reach it. */
  const markWideFormulas = () => {
    for (const formula of document.querySelectorAll("mjx-container")) {
      const drawing = formula.querySelector(":scope > svg");
      const column = formula.hasAttribute("display")
        ? formula /* Its number may stand beside it. */
        : formula.closest("p, li, dd, dt, td, th, h1, h2, h3, h4, div");
      /* With the stop that stays beside it. */
      formula.classList.remove("wide");
      const whole = formula.closest(".td-together") ?? drawing;
      const wide = whole.getBoundingClientRect().width > column.clientWidth;
      formula.classList.toggle("wide", wide);
      if (wide) formula.tabIndex = 0;
      else formula.removeAttribute("tabindex");
    }
  };

  /* A line may end beside a drawing; a full stop would then begin the next one, or a bracket end
     the one before. */
  const keepStops = () => {
    for (const drawing of document.querySelectorAll("mjx-container:not([display])")) {
      const formula = drawing.closest("span.math") ?? drawing;
      const [before, next] = [formula.previousSibling, formula.nextSibling];
      const signs = (node, those) =>
        node?.nodeType === Node.TEXT_NODE ? (node.data.match(those)?.[0] ?? "") : "";
      const opening = signs(before, /[([\u2018\u201c]+$/);
      const stop = signs(next, /^[.,;:!?)\]\u2019\u201d]+/);
      if (!(opening || stop) || formula.parentElement.classList.contains("td-together")) continue;
      const together = document.createElement("span");
      together.className = "td-together";
      if (opening) before.data = before.data.slice(0, -opening.length);
      if (stop) next.data = next.data.slice(stop.length);
      formula.replaceWith(together);
      together.append(opening, formula, stop);
    }
  };

  /* The role that docutils gives to bibliography entries was withdrawn from WAI-ARIA. */
  const nameBibliographyEntries = () => {
    for (const entry of document.querySelectorAll("[role='doc-biblioentry']")) {
      entry.setAttribute("role", "listitem");
    }
  };

  /* What stands outside of all landmarks is passed over by those who jump between them. */
  const nameSideBar = () => {
    const bar = document.querySelector(".bd-sidebar-primary");
    bar?.setAttribute("role", "navigation");
    bar?.setAttribute("aria-label", "Book");
    for (const summary of bar?.querySelectorAll("details > summary") ?? []) {
      const page = summary.closest("li").querySelector("a");
      summary.setAttribute("aria-label", `Pages of ${page.textContent.trim()}`);
    }
  };

  /* A chapter is for reading: its code is folded until the reader asks for it, for the whole page
     (kept for the next one, and in the address as ?code) or beside one result. Without a script
     the code is there. */
  const KEY = "traindyn-code";
  const query = new URLSearchParams(location.search);
  let shown = query.has("code") || localStorage.getItem(KEY) === "shown";
  const root = document.documentElement;
  root.classList.toggle("td-reading", !shown);

  const foldCode = () => {
    const cells = [...document.querySelectorAll(".bd-article .cell")];
    /* Among the buttons above the page; a phone has no room for it there. */
    const narrow = matchMedia("(max-width: 600px)").matches;
    const bar = document.querySelector(narrow ? ".bd-article" : ".article-header-buttons");
    if (!cells.length || !bar) return;
    const all = document.createElement("button");
    all.type = "button";
    all.className = "btn btn-sm td-all-code";
    const say = () => {
      all.textContent = shown ? "Hide code" : "Show code";
      root.classList.toggle("td-reading", !shown);
    };
    all.addEventListener("click", () => {
      shown = !shown;
      localStorage.setItem(KEY, shown ? "shown" : "folded");
      if (shown) query.set("code", "");
      else query.delete("code");
      const text = `${query}`.replace(/code=(&|$)/, "code$1");
      history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
      say();
    });
    say();
    bar.prepend(all);
    /* Cells with nothing between them open together. */
    let group = [];
    for (const cell of cells) {
      group.push(cell);
      if (cell.nextElementSibling?.classList.contains("cell")) continue;
      const mine = group;
      group = [];
      const one = document.createElement("button");
      one.type = "button";
      one.className = "td-one-code";
      one.textContent = "code";
      one.setAttribute("aria-expanded", "false");
      one.addEventListener("click", () => {
        const open = one.getAttribute("aria-expanded") === "false";
        one.setAttribute("aria-expanded", `${open}`);
        for (const each of mine) each.classList.toggle("td-open", open);
      });
      mine[0].before(one);
    }
    /* A figure leads to the cell that draws it. Without this script its address shows all code. */
    for (const link of document.querySelectorAll(".td-to-code")) {
      const cell = link.closest(".cell");
      const input = cell?.querySelector(":scope > .cell_input, :scope > details.above-input");
      if (!input) continue;
      link.addEventListener("click", (event) => {
        event.preventDefault();
        let first = cell;
        while (first.previousElementSibling?.matches(".cell")) first = first.previousElementSibling;
        const one = first.previousElementSibling;
        if (one.getAttribute("aria-expanded") === "false") one.click();
        if (input.matches("details")) input.open = true;
        input.tabIndex = -1;
        input.focus({preventScroll: true});
        input.scrollIntoView();
      });
    }
  };

  window.addEventListener("load", () => {
    foldCode();
    nameBibliographyEntries();
    nameSideBar();
    if (!window.MathJax) return;
    MathJax.startup.promise.then(() => {
      keepStops();
      markWideFormulas();
      window.addEventListener("resize", markWideFormulas);
      /* Formulas in closed details have no width. */
      document.addEventListener("toggle", markWideFormulas, true);
      document.addEventListener("td-typeset", () => {
        keepStops();
        markWideFormulas();
      });
    });
  });
})();
