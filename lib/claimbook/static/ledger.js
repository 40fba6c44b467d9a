/* The pages of the ledger: formulas are typeset when they come into view, a link opens what it leads
   to, and the ledger has a filter, the choice of which stands in the address. */

(() => {
  /* Formulas of hundreds of entries would take seconds: each waits until its place is on the screen.
     What is folded has no place. */
  let last = new Promise((done) => {
    if (document.readyState === "complete") done();
    else window.addEventListener("load", done);
  }).then(() => window.MathJax?.startup?.promise);
  const typeset = (texts) => {
    last = last
      .then(() => window.MathJax?.typesetPromise?.(texts))
      .then(() => document.dispatchEvent(new Event("td-typeset")));
    return last;
  };
  const waiting = new Set();
  const take = (texts) => texts.filter((text) => {
    watch.unobserve(text);
    return waiting.delete(text);
  });
  const watch = new IntersectionObserver((entries) => {
    const seen = entries.filter((entry) => entry.isIntersecting);
    if (seen.length) typeset(take(seen.map((entry) => entry.target)));
  }, {rootMargin: "50%"});
  for (const text of document.querySelectorAll(".td-tex")) {
    if (!/\\[([]/.test(text.textContent)) continue;
    waiting.add(text);
    watch.observe(text);
  }
  /* A printer shows what is open from the first line to the last. */
  window.addEventListener("beforeprint", () => {
    const shown = [...waiting].filter((text) => !text.closest("details:not([open])"));
    if (shown.length && window.MathJax?.typeset) MathJax.typeset(take(shown));
  });

  const form = document.getElementById("td-filter");
  const rows = [...document.querySelectorAll("#td-ledger li[data-text]")];
  const groups = [...document.querySelectorAll("#td-ledger > .td-group")].map((group) => ({
    group,
    mine: [...group.querySelectorAll("li[data-text]")],
    number: group.querySelector(".td-number"),
    words: group.querySelector(".td-number").textContent,
  }));
  const count = document.getElementById("td-count");
  const choices = ["source", "verdict", "kind", "chapter"];
  const keys = [...choices, "words"];
  let filtered = false;
  const filter = () => {
    const wanted = choices.map((key) => [key, form.elements[key].value]);
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = words.length > 0 || wanted.some(([, value]) => value);
    let shown = 0;
    for (const {group, mine, number, words: all} of groups) {
      let found = 0;
      for (const row of mine) {
        const text = row.dataset.text;
        row.hidden = !wanted.every(([key, value]) => !value || row.dataset[key] === value)
          || !words.every((word) => text.includes(word));
        found += !row.hidden;
      }
      group.hidden = !found;
      /* What is found is shown; without a choice the sources are folded again. */
      if (chosen || filtered) group.open = chosen;
      number.textContent = chosen ? `${found} of ${all}` : all;
      shown += found;
    }
    filtered = chosen;
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  // The address holds what is chosen, so that it can be kept and passed on.
  const remember = () => {
    const query = new URLSearchParams();
    for (const key of keys) {
      const value = form.elements[key].value.trim();
      if (value) query.set(key, value);
    }
    history.replaceState(null, "", `${query}` ? `?${query}` : location.pathname);
  };
  const recall = () => {
    const query = new URLSearchParams(location.search);
    for (const key of keys) {
      const field = form.elements[key];
      field.value = query.get(key) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    filter();
  };

  /* A link to something folded opens it; a link to a heading with one thing folded under it, that. */
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    if (target.closest("#td-ledger [hidden]")) {
      for (const key of keys) form.elements[key].value = "";
      filter();
      history.replaceState(null, "", `${location.pathname}${location.hash}`);
    }
    const section = target.closest("section");
    const titled = section && (target === section || section.firstElementChild === target);
    let folded = target.closest(".td-group, .td-entry")
      ?? (titled && section.querySelector(":scope > .td-group"));
    if (!folded) return;
    for (; folded; folded = folded.parentElement.closest("details")) folded.open = true;
    target.scrollIntoView();
    /* Formulas above it change their height when they are typeset. */
    const place = target.closest("li") ?? target;
    typeset(take([...place.querySelectorAll(".td-tex")]))
      .then(() => target.scrollIntoView());
  };
  if (form) {
    const change = () => {
      filter();
      remember();
    };
    form.addEventListener("input", change);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(change));
    form.hidden = false;
    recall();
  }
  window.addEventListener("hashchange", open);
  open();
})();
