/* On the search page: the claims, figures and pages that a number, a letter or words lead to, above
   what the search of Sphinx finds. The index is claims-index.js, which claimbook writes with the
   pages of the ledger; words have the stems that Sphinx gives them. */

(() => {
  const results = document.getElementById("search-results");
  const asked = (new URLSearchParams(location.search).get("q") ?? "").trim();
  if (!results || !asked) return;

  const MOST = 12;
  const ID = 8; // above all numbers
  const LETTERS = 2; // of the pages of notation and of words, below the claims
  const FIGURES = 2; // of those whose captions have the words
  const PAGES = 2; // of those that are found by their question
  const THEOREM = 1.5; // what most ask for weighs more than what illustrates it
  const SAME = 0.9; // what a word counts that means what was asked for

  /* ------------------------------------------------------------- one form for all spellings */

  const GREEK = {
    "\u03b1": "alpha", "\u03b2": "beta", "\u03b3": "gamma", "\u03b4": "delta",
    "\u03b5": "epsilon", "\u03b6": "zeta", "\u03b7": "eta", "\u03b8": "theta", "\u03b9": "iota",
    "\u03ba": "kappa", "\u03bb": "lambda", "\u03bc": "mu", "\u03bd": "nu", "\u03be": "xi",
    "\u03c0": "pi", "\u03c1": "rho", "\u03c3": "sigma", "\u03c2": "sigma", "\u03c4": "tau",
    "\u03c5": "upsilon", "\u03c6": "phi", "\u03c7": "chi", "\u03c8": "psi", "\u03c9": "omega",
    "\u221e": "infinity",
  };
  const LOOKS = new RegExp(
    "\\\\(?:left|right|rm|bf|it|text|textrm|mathrm|mathbb|mathbf|mathcal|mathsf|operatorname|"
      + "boldsymbol|bm|hat|widehat|bar|overline|tilde|widetilde|d?dot|[Bb]igg?[lr]?)(?![A-Za-z])\\s*",
    "g",
  );
  const digits = (text, zero) =>
    [...text].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉".indexOf(digit) - zero).join("");
  /* TeX, Unicode and typed letters: \delta_{\rm NN}, δ_NN and delta_NN become delta_nn. */
  const fold = (text) => text
    .replace(LOOKS, "")
    .replace(/\\var(?=[a-z])/g, "\\")
    .replace(/\\infty/g, " infinity ")
    .replace(/\\([A-Za-z]+)/g, " $1 ")
    .replace(/[₀-₉]+/g, (found) => `_${digits(found, 10)}`)
    .replace(/[⁰¹²³⁴-⁹]+/g, (found) => `^${digits(found, 0)}`)
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[\u03b1-\u03c9\u221e]/g, (letter) => ` ${GREEK[letter] ?? letter} `)
    .replace(/\u2212/g, "-")
    .replace(/[{}$\\]/g, "")
    .replace(/\s*([_^])[\s(]*/g, "$1");
  const STOP = new Set(("a all an and any are as at be by can code csv data did do does done find "
    + "for from function get has have how i if in is it its me my not of on or our over should take "
    + "takes taken than that the there they this to use was we were what when where which why will "
    + "with would you your").split(" "));
  const stemmer = new Stemmer();
  const stem = (word) => word.length < 4 || /[_^\d]/.test(word) ? word : stemmer.stemWord(word);
  const words = (text) =>
    (fold(text).match(/[a-z0-9]+(?:[_^]-?[a-z0-9]+)*/g) ?? []).filter((word) => !STOP.has(word))
      .map(stem);

  /* --------------------------------------------------------------------- numbers of a source */

  const KINDS = {
    appendix: "app|appendix", assumption: "assumption", chapter: "ch|chap|chapter", claim: "claim",
    corollary: "cor|corollary", definition: "def|defn|definition", equation: "eqn?s?|equation",
    example: "ex|example", fact: "fact", figure: "figs?|figure", lemma: "lem|lemma",
    observation: "obs|observation", proposition: "prop|proposition", remark: "rem|remark",
    section: "sec|sect|section|§", table: "tab|table", theorem: "thms?|theorem",
  };
  const kindOf = (word) => Object.keys(KINDS).find(
    (kind) => new RegExp(`^(?:${KINDS[kind]})$`, "i").test(word));
  const NUMBER = "(?:[A-Z]\\.)?\\d+(?:\\.\\d+)*|[A-Z]\\d+";
  const named = new RegExp(
    `(?:(?<![A-Za-z])(${Object.values(KINDS).join("|")})s?\\.?\\s*)?(\\()?(?<![\\w.^_-])(${NUMBER})(?![\\w^_]|\\.\\d)(\\))?`,
    "i",
  );
  const everywhere = new RegExp(named.source, "gi");
  const numbersIn = (text) => {
    const found = [...text.matchAll(everywhere)].map((each) => ({
      kind: each[1] ? kindOf(each[1]) : "",
      number: each[3].toUpperCase(),
      place: each.index,
    }));
    /* Figure 2.1 of Chapter 14 is also called Figure 14.2.1. */
    const [chapter, second] = found;
    if (chapter?.kind === "chapter" && second) {
      found.push({...second, number: `${chapter.number}.${second.number}`, place: 0});
    }
    return found;
  };
  /* What a question says of a number: of which source, of which kind, and the words beside it. */
  const readNumber = (question, sources) => {
    /* In small letters OWN, the key of what a book adds, is a word like others. */
    const source = sources.find((key) =>
      new RegExp(`(?<![\\w-])${key}(?![\\w-])`, key === "OWN" ? "" : "i").test(question));
    const rest = source ? question.replace(new RegExp(`\\b${source}\\b[,:]?`, "i"), " ") : question;
    const found = named.exec(rest);
    if (!found) return {source, rest};
    const bracketed = found[2] && found[4];
    const whole = rest.trim() === found[0].trim();
    /* A number among words is one of a statement if it has a kind, brackets or a dot. */
    if (!whole && !found[1] && !bracketed && !found[3].includes(".")) return {source, rest};
    return {
      source,
      kind: found[1] ? kindOf(found[1]) : "",
      number: found[3].toUpperCase(),
      bracketed: Boolean(bracketed),
      rest: rest.replace(found[0], " "),
    };
  };
  /* How well the number of a claim answers: 0 not at all, 5 exactly. */
  const answers = (entry, {kind, number, bracketed}) => {
    const wanted = kind || (bracketed ? "equation" : "");
    let best = 0;
    for (const [place, own] of entry.numbers.entries()) {
      if (own.number !== number) continue;
      const first = own.place === 0 || (place && entry.numbers[0].kind === "chapter");
      const alone = entry.number.trim().toUpperCase().endsWith(number);
      const level = first ? (alone ? 5 : 4) : 3;
      if (wanted && own.kind !== wanted) best = Math.max(best, kind ? 0.5 : 1.5);
      else best = Math.max(best, level);
    }
    if (best) return best;
    const said = wanted === "equation" ? `(${number})` : `${wanted} ${number}`;
    const text = entry.text.toUpperCase();
    const after = wanted ? text.indexOf(said.toUpperCase()) : -1;
    if (after >= 0 && !/^[\w]|^\.\d/.test(text.slice(after + said.length))) return 1;
    /* The number of a section, or the beginning of one. */
    const begun = entry.numbers.filter((own) => own.number.startsWith(`${number}.`));
    if (!begun.length) return 0;
    return !wanted || begun.some((own) => own.kind === wanted) ? 0.4 : 0.2;
  };

  /* ------------------------------------------------------------------------------- the search */

  const prepare = (entry, fields) => {
    entry.weights = new Map();
    const add = (word, weight) =>
      entry.weights.set(word, Math.max(weight, entry.weights.get(word) ?? 0));
    entry.phrases = [];
    for (const [text, weight] of fields) {
      const found = words(text);
      /* A word weighs less in a long text. */
      const each = weight / (0.8 + found.length / 100);
      entry.phrases.push([` ${found.join(" ")} `, weight, each]);
      for (const word of found) {
        add(word, each);
        if (/[_^]/.test(word)) for (const part of word.split(/[_^]/)) add(part, each / 2);
      }
    }
    return entry;
  };
  const find = (index, question) => {
    const claims = index.claims.map((claim, order) => prepare({
      ...claim,
      order,
      title: `${claim.source}, ${claim.number}`,
      numbers: numbersIn(claim.number),
      address: `${index.folder}/${claim.chapter}.html#${claim.place}`,
      about: `${index.verdicts[claim.verdict]} · ${index.chapters[claim.chapter]}`,
    }, [
      ...claim.terms.map((term) => [term, 4]),
      [claim.number, 3],
      [claim.text, 2],
      [claim.reason, .8],
      /* Without the key of its source: OWN would be found by whoever has a model of their own. */
      [claim.id.replace(/^[^-]*-/, ""), 1],
      [index.chapters[claim.chapter], 1],
      [claim.functions.join(" "), .5],
      [claim.tested, .5],
    ]));
    const figures = index.figures.map((figure, order) => prepare({
      ...figure,
      order,
      title: `Figure ${figure.number}: ${index.chapters[figure.chapter]}`,
      address: `${index.folder}/${figure.chapter}.html#${figure.place}`,
      about: "",
    }, [[figure.text, 1], [index.chapters[figure.chapter], .5]]));
    const pages = index.pages.map((page, order) => prepare({
      ...page,
      order,
      address: `${index.folder}/${page.place.replace(/(?=#|$)/, ".html")}`,
      about: "",
    }, [...page.words.map((phrase) => [phrase, 4]), [page.title, 3], [page.text, 1]]));
    const letters = index.letters.map((letter, order) => prepare({
      ...letter,
      order,
      title: `Notation: ${letter.name}`,
      address: `${index.folder}/notation.html#${letter.place}`,
      about: "",
    }, [[letter.name, 2], [letter.text, 1]]));

    const terms = index.terms.map((term, order) => prepare({
      ...term,
      order,
      title: `Glossary: ${term.name}`,
      address: `${index.folder}/glossary.html#${term.place}`,
      about: "",
    }, [[term.name, 4], [term.text, .5]]));

    const asks = readNumber(question, index.sources);
    const id = question.toLowerCase();
    const mine = asks.source ? claims.filter((claim) => claim.source === asks.source) : claims;
    const wanted = [...new Set(words(asks.rest))];

    const every = [...claims, ...figures, ...pages, ...letters, ...terms];
    const frequency = new Map();
    for (const entry of every) {
      for (const word of entry.weights.keys()) frequency.set(word, 1 + (frequency.get(word) ?? 0));
    }
    /* A phrase counts in an entry if one of those that mean the same stands in it. */
    const phrase = ` ${wanted.join(" ")} `;
    const others = index.synonyms.flatMap((group) => {
      const forms = group.map((each) => ` ${words(each).join(" ")} `);
      return forms.filter((form) => phrase.includes(form)).map((form) => ({
        places: form.trim().split(" ").map((word) => wanted.indexOf(word)),
        forms: forms.filter((each) => each !== form),
      }));
    });
    const meansIn = (entry, {forms}) => Math.max(0, ...entry.phrases.map(
      ([text, , each]) => forms.some((form) => text.includes(form)) ? each * SAME : 0));
    /* A word that nothing has is taken for the beginning of one; else it says nothing. */
    const known = [...frequency.keys()];
    const guessed = (word) => {
      const short = word.replace(/([aou])e/g, "$1"); // Hoelder, which is Hölder
      return known.filter((each) => each.startsWith(word) || each === short);
    };
    const spelled = wanted.map((word) =>
      frequency.has(word) || word.length < 4 ? [word] : guessed(word));
    const common = spelled.map((forms) => Math.max(0, ...forms.map((word) => frequency.get(word) ?? 0)));
    for (const meaning of others) {
      const number = every.filter((entry) => meansIn(entry, meaning)).length;
      for (const place of meaning.places) common[place] = Math.max(common[place], number);
    }
    const rarity = common.map((number) => number && Math.log(1 + every.length / (1 + number)));
    const all = rarity.reduce((sum, value) => sum + value, 0);
    /* Words that stand side by side in a question do so in what it asks for. */
    const pairs = wanted.slice(1).map((word, place) => [
      ` ${wanted[place]} ${word} `, Math.min(rarity[place], rarity[place + 1]),
    ]);
    const clear = 2 * common.filter(Boolean).length >= wanted.length;
    const weigh = (entry) => {
      if (!all || !clear) return 0;
      const weights = spelled.map((forms) =>
        Math.max(0, ...forms.map((word) => entry.weights.get(word) ?? 0)));
      for (const meaning of others) {
        const weight = meansIn(entry, meaning);
        for (const place of meaning.places) weights[place] = Math.max(weights[place], weight);
      }
      let score = 0;
      let covered = 0;
      weights.forEach((weight, place) => {
        score += weight * rarity[place];
        if (weight) covered += rarity[place];
      });
      if (covered < 0.6 * all) return 0;
      for (const [pair, worth] of pairs) {
        const weight = entry.phrases.map(([text, , each]) => text.includes(pair) ? each : 0);
        score += Math.max(0, ...weight) * worth;
      }
      const said = entry.phrases.filter(([text]) => text.includes(phrase)).map(([, weight]) => weight);
      const together = wanted.length > 1 ? Math.max(0, ...said) : 0;
      const theorem = entry.numbers?.[0]?.kind === "theorem" && !entry.numbers[0].place;
      return (score * (covered / all) ** 2 + together * all) * (theorem ? THEOREM : 1);
    };

    const ranked = (entries, level) => entries
      .map((entry) => [level(entry), weigh(entry), entry])
      .filter(([exact, score]) => exact > 0 || (score > 0 && !asks.number))
      .sort((a, b) => b[0] - a[0] || b[1] - a[1] || a[2].order - b[2].order)
      .map(([, , entry]) => entry);
    const exact = (claim) => {
      const own = claim.id.toLowerCase();
      if (own === id) return ID + 1;
      if (id.length > 4 && own.startsWith(`${id}-`)) return ID;
      if (asks.number) return answers(claim, asks);
      /* A source alone asks for its claims. */
      return asks.source && !wanted.length ? 1 : 0;
    };
    const called = claims.filter((claim) => exact(claim) >= ID);
    let found = called.length ? ranked(called, exact) : ranked(mine, exact);
    if (!found.length && asks.number) {
      delete asks.number;
      found = ranked(mine, () => 0);
    }
    /* What is shown of a claim is its statement, or the sentence of its reason that has more of the
       words. */
    const has = (text) => words(text).filter((word, place, each) =>
      each.indexOf(word) === place && spelled.some((forms) => forms.includes(word))).length;
    for (const claim of found.slice(0, MOST)) {
      const [sentence] = claim.reason.split(/(?<=[.:;]) /).sort((a, b) => has(b) - has(a));
      if (has(sentence) > has(claim.text)) claim.text = `Reason: ${sentence}`;
    }
    if (asks.number || called.length) return found.slice(0, MOST);
    /* The page or the word that was asked for stands above the claims, letters and other words
       below them. */
    const named = (names) => wanted.length
      && names.some((name) => ` ${words(name).join(" ")} ` === phrase);
    const meant = [
      ...ranked(terms.filter(({name}) => named([name])), () => 0),
      ...pages.filter(({words: names}) => named(names)),
    ];
    const below = ranked([...letters, ...terms].filter((entry) => !meant.includes(entry)), () => 0)
      .slice(0, wanted.length > 2 ? 1 : LETTERS);
    const best = (entries, most) => ranked(entries, () => 0).slice(0, most);
    /* A claim that says it in these words stands before the pages. */
    const first = found.slice(0, 1)
      .filter(({phrases}) => phrases.some(([text]) => text.includes(phrase)));
    const beside = asks.source ? [] : [
      ...best(pages.filter((page) => !meant.includes(page)), PAGES),
      ...best(figures, FIGURES),
    ];
    const among = ranked([...found.slice(first.length), ...beside], () => 0);
    const room = MOST - meant.length - first.length - below.length;
    return [...meant, ...first, ...among.slice(0, room), ...below];
  };

  /* ---------------------------------------------------------------------------------- the page */

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const root = document.documentElement.dataset.content_root ?? "./";
  const show = () => {
    const found = find(window.claimsIndex, asked);
    if (!found.length) return;
    const list = element("ol", {});
    for (const entry of found) {
      list.append(element("li", {},
        element("a", {href: root + entry.address}, entry.title),
        element("span", {class: "td-about"}, entry.about && ` ${entry.about}`),
        element("p", {}, entry.text)));
    }
    results.before(element("section", {class: "td-found", "aria-labelledby": "td-found"},
      element("h2", {id: "td-found"}, "Statements, figures and pages"), list));
  };
  const script = element("script", {src: `${root}_static/claims-index.js`});
  script.addEventListener("load", show);
  document.head.append(script);
})();
