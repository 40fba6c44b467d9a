/* Figures with parameters (traindyn.interactive): draws the specification, a file beside the
   pictures of the figure. It and Vega are fetched by pages that have such a figure alone. */

(() => {
  const figures = [...document.querySelectorAll(".interactive-figure")];
  if (!figures.length) return;

  const NARROWEST = 320; /* Pixels a chart gets at least before charts stand side by side. */
  const AXIS = 80; /* Pixels its axis, labels and margin take. */

  const element = (tag, name, parent) => {
    const made = document.createElement(tag);
    made.className = name;
    parent.append(made);
    return made;
  };

  /* What is written on one line, as it is printed: x_0 with a subscript, -1 with a minus sign. */
  const pieces = (text) =>
    text.replace(/(^|[^\w)])-(?=\d)/g, "$1\u2212").split(/_([\p{L}\d]+)/u);
  const print = (box, text) => {
    box.replaceChildren(...pieces(text).map((piece, place) => {
      if (place % 2 === 0) return piece;
      const lowered = document.createElement("sub");
      lowered.textContent = piece;
      return lowered;
    }));
  };

  /* Text of a picture has no subscripts of its own. */
  const SVG = "http://www.w3.org/2000/svg";
  const lower = (picture) => {
    for (const text of picture.querySelectorAll("svg text")) {
      if (!/_[\p{L}\d]/u.test(text.textContent)) continue;
      text.replaceChildren(...pieces(text.textContent).map((piece, place) => {
        const part = document.createElementNS(SVG, "tspan");
        part.textContent = piece;
        if (place % 2) part.setAttribute("font-size", "75%");
        if (place) part.setAttribute("dy", place % 2 ? "0.3em" : "-0.22em");
        return part;
      }));
    }
  };

  /* A slider may move an exponent, and then shows the power. */
  const dressUp = (input, powers) => {
    const [name, theirs] = input.labels[0].querySelectorAll(":scope > span");
    print(name, powers?.label ?? name.textContent);
    if (!theirs) return;
    /* Into its own Vega writes the exponent again, after the picture has changed. */
    const value = document.createElement("span");
    theirs.replaceWith(value);
    const letter = powers ? `${powers.label.split(" ").pop()} = ` : "";
    const say = () => {
      const place = Math.round((input.valueAsNumber - input.min) / input.step);
      print(value, powers ? powers.values[place] : input.value);
      input.setAttribute("aria-valuetext", `${letter}${value.textContent}`);
    };
    input.addEventListener("input", say);
    say();
  };

  const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

  const fetched = (address) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    });

  const prepare = async (figure) => {
    const address = figure.querySelector("template").dataset.specification;
    await fetched(address);
    const { spec, themes, powers = {} } = window.specifications[address.split("/").pop()];
    delete spec.title; /* The reading, which stands below as text. */
    const drawn = element("div", "traindyn-drawn", figure);
    const inputs = element("div", "traindyn-inputs", drawn);
    const picture = element("div", "traindyn-picture", drawn);
    const reading = element("p", "traindyn-reading", drawn);
    reading.setAttribute("role", "status");
    const watch = new MutationObserver(() => lower(picture));
    watch.observe(picture, { childList: true, characterData: true, subtree: true });
    return { figure, spec, themes, powers, inputs, picture, reading, view: null };
  };

  /* The specification at the width there is, with the values the reader has chosen. */
  const fitted = ({ figure, spec, view }) => {
    const width = figure.clientWidth;
    const columns = Math.max(1, Math.min(spec.concat.length, Math.floor(width / NARROWEST)));
    const room = Math.floor(width / columns) - AXIS;
    const concat = spec.concat.map((chart) => {
      const scale = Math.min(1, room / chart.width);
      return {
        ...chart,
        width: Math.floor(chart.width * scale),
        height: Math.floor(chart.height * scale),
      };
    });
    const params = spec.params.map((each) =>
      view && each.bind ? { ...each, value: view.signal(each.name) } : each
    );
    return { ...spec, columns, concat, params };
  };

  const draw = async (state) => {
    const { inputs, picture, powers, reading, themes } = state;
    const focused = [...inputs.querySelectorAll("input, select")].indexOf(document.activeElement);
    const next = fitted(state);
    if (state.view) state.view.finalize();
    inputs.replaceChildren();
    const { view } = await vegaEmbed(picture, next, {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      ast: true,
      bind: inputs,
      config: themes[theme()],
      defaultStyle: false,
      tooltip: false,
    });
    state.view = view;
    /* The description is on the box; single marks have none. */
    picture.querySelector("svg").setAttribute("aria-hidden", "true");
    for (const input of inputs.querySelectorAll("input, select")) dressUp(input, powers[input.name]);
    const read = (_, text) => print(reading, text);
    read("reading", view.signal("reading"));
    view.addSignalListener("reading", read);
    if (focused >= 0) inputs.querySelectorAll("input, select")[focused].focus();
    state.figure.classList.add("is-drawn");
    state.figure.view = view;
  };

  let pending = Promise.resolve();
  const states = [];
  const drawSoon = (chosen) => {
    pending = pending.then(() => Promise.all(chosen().map(draw)));
  };
  const drawAll = () => drawSoon(() => states);

  /* The scripts are large: each figure is drawn when it comes near the screen. */
  let fetching = null;
  const start = async (figure) => {
    fetching ??= fetched(vega);
    await fetching;
    const state = await prepare(figure);
    states.push(state);
    drawSoon(() => [state]);
  };
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      start(target);
    }
  }, { rootMargin: "50%" });
  figures.forEach((figure) => near.observe(figure));

  new MutationObserver(drawAll).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
  /* The side bar may change the width too; a phone's browser changes the height all the time. */
  const widths = new Map(figures.map((figure) => [figure, figure.clientWidth]));
  const watch = new ResizeObserver((entries) => {
    const changed = entries.filter(({ target }) => target.clientWidth !== widths.get(target));
    for (const { target } of changed) widths.set(target, target.clientWidth);
    if (changed.length) drawAll();
  });
  figures.forEach((figure) => watch.observe(figure));

  const vega = new URL("vega.js", document.currentScript.src).href;
})();
