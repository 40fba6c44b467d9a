/* The filter of the ledger. What is chosen stands in the address, and a link to a claim opens it. */

(() => {
  const form = document.getElementById("td-filter");
  if (!form) return;

  const rows = [...document.querySelectorAll("#td-ledger > tbody > tr")];
  const count = document.getElementById("td-count");
  const choices = ["source", "verdict", "kind", "chapter"];
  const keys = [...choices, "words"];
  const filter = () => {
    const wanted = choices.map((key) => [key, form.elements[key].value]);
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.text;
      row.hidden = !wanted.every(([key, value]) => !value || row.dataset[key] === value)
        || !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
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
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    const row = target && target.closest("#td-ledger > tbody > tr");
    if (!row) return;
    if (row.hidden) {
      form.reset();
      filter();
    }
    row.querySelector("details").open = true;
    row.scrollIntoView();
  };
  const change = () => {
    filter();
    remember();
  };
  form.addEventListener("input", change);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(change));
  window.addEventListener("hashchange", open);
  form.hidden = false;
  recall();
  open();
})();
