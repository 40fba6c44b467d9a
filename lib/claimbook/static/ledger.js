/* The pages of the ledger: formulas are typeset when they come into view, a link opens what it leads
   to, and pages with a filter have its choice, and the order of their entries, in the address. */

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
  const rows = [...document.querySelectorAll("[data-text]")];
  const orders = form?.elements.order;
  const keys = [...form?.elements ?? []].map(({name}) => name).filter(Boolean);
  const choices = keys.filter((key) => key !== "words" && key !== "order");
  const count = document.getElementById("td-count");

  /* What can be folded around entries, with what it is before anything is chosen. */
  const around = (kind) => [...new Set(rows.map((row) => row.closest(kind)).filter(Boolean))]
    .map((group) => ({
      group,
      mine: rows.filter((row) => group.contains(row)),
      number: group.querySelector(":scope > summary > .td-number"),
      words: group.querySelector(":scope > summary > .td-number")?.textContent,
      open: group.open,
    }));
  /* Entries can be put together by another of their values: in groups that are made for it. */
  const places = rows.map((row) => row.parentElement);
  const initial = form ? [...around(".td-group:not(.td-section)"), ...around(".td-section")] : [];
  let made = [];
  let groups = initial;
  const arrange = () => {
    groups = initial;
    if (!orders) return;
    const order = orders.value;
    rows.forEach((row, place) => places[place].append(row));
    for (const group of made) group.remove();
    made = [];
    for (const {value, text} of order ? form.elements[order].options : []) {
      const mine = rows.filter((row) => value && row.dataset[order] === value);
      if (!mine.length) continue;
      const group = document.createElement("details");
      group.className = "td-group";
      const list = places[0].cloneNode(false);
      list.append(...mine);
      const summary = document.createElement("summary");
      const name = document.createElement("strong");
      name.textContent = text;
      const number = document.createElement("span");
      number.className = "td-number";
      number.textContent = `${mine.length} ${form.dataset.of}`.replace(/^(1 .*)s$/, "$1");
      summary.append(name, " ", number);
      group.append(summary, list);
      (made.at(-1) ?? form).after(group);
      made.push(group);
    }
    for (const {group} of initial) group.hidden = Boolean(order);
    if (order) groups = around(".td-group");
  };
  const sections = [...new Set(rows.map((row) => row.closest("section")))]
    .filter((section) => form && !section.contains(form));
  let filtered = false;
  const filter = () => {
    const wanted = choices.map((key) => [key, form.elements[key].value]);
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = words.length > 0 || wanted.some(([, value]) => value);
    for (const row of rows) {
      const {text} = row.dataset;
      const has = ([key, value]) => !value || row.dataset[key].split(" ").includes(value);
      row.hidden = !wanted.every(has) || !words.every((word) => text.includes(word));
    }
    for (const {group, mine, number, words: all, open} of groups) {
      const found = mine.filter((row) => !row.hidden).length;
      group.hidden = !found;
      /* What is found is shown; without a choice the groups are folded again. */
      if (chosen) group.open = true;
      else if (filtered) group.open = open;
      if (number) number.textContent = chosen ? `${found} of ${all}` : all;
    }
    for (const section of sections) {
      section.hidden = rows.every((row) => row.hidden || !section.contains(row));
    }
    filtered = chosen;
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = `${shown} of ${rows.length} ${form.dataset.of}`;
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
    arrange();
    filter();
  };

  /* A link to something folded opens it; a link to a heading with one thing folded under it, that. */
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    if (form && target.closest("[hidden]")) {
      for (const key of keys) form.elements[key].value = "";
      arrange();
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
    const change = (event) => {
      if (!event || event.target.name === "order") arrange();
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
