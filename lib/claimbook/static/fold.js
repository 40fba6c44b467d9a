/* On a phone, a page that says so is a list of its sections: each opens by a touch, by a link to
   something in it, or when words in it are looked for. <meta name="td-fold" content="1"> leaves the
   first section open. Without this script, on a wider screen and on paper all sections are open. */

(() => {
  const wanted = document.querySelector("meta[name='td-fold']");
  if (!wanted || !matchMedia("(max-width: 600px)").matches) return;

  const headings = [...document.querySelectorAll(".bd-article section > h2")];
  const made = headings.slice(Number(wanted.content)).map((heading) => {
    const folded = document.createElement("details");
    folded.className = "td-group td-section";
    const rest = [];
    for (let next = heading.nextSibling; next; next = next.nextSibling) rest.push(next);
    heading.replaceWith(folded);
    const summary = document.createElement("summary");
    summary.append(heading);
    folded.append(summary, ...rest);
    return folded;
  });
  window.addEventListener("beforeprint", () => {
    for (const folded of made) folded.open = true;
  });
})();
