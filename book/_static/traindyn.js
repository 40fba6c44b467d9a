/* What the markup of the theme and of MathJax lacks for readers without a mouse or a screen. */

(() => {
  /* A formula wider than its column scrolls by itself; then the keyboard has to reach it. */
  const markWideFormulas = () => {
    for (const formula of document.querySelectorAll("mjx-container")) {
      const drawing = formula.querySelector(":scope > svg");
      const column = formula.hasAttribute("display")
        ? formula /* Its number may stand beside it. */
        : formula.closest("p, li, dd, dt, td, th, h1, h2, h3, h4, div");
      const wide = drawing.getBoundingClientRect().width > column.clientWidth;
      formula.classList.toggle("wide", wide);
      if (wide) formula.tabIndex = 0;
      else formula.removeAttribute("tabindex");
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

  window.addEventListener("load", () => {
    nameBibliographyEntries();
    nameSideBar();
    if (!window.MathJax) return;
    MathJax.startup.promise.then(() => {
      markWideFormulas();
      window.addEventListener("resize", markWideFormulas);
      /* Formulas in closed details have no width. */
      document.addEventListener("toggle", markWideFormulas, true);
    });
  });
})();
