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

  /* A slider that moves a logarithm, "time, log₁₀ t", shows the number itself. */
  const LOGARITHM = /,? log(₂|₁₀) (\S+)$/;
  const EQUATION = /log(₂|₁₀) (\S+) = (-?\d+(?:\.\d+)?)/g;
  const raised = (digits) =>
    digits.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).replace("-", "⁻").replace("+", "");
  const power = (base, exponent) => {
    const number = (base === "₂" ? 2 : 10) ** exponent;
    if (number >= 1e-3 && number < 1e4) return `${Number(number.toPrecision(3))}`;
    const [front, back] = number.toExponential(1).split("e");
    return `${front === "1.0" ? "" : `${Number(front)} · `}10${raised(back)}`;
  };
  const dressUp = (input) => {
    const [name, value] = input.labels[0].querySelectorAll(":scope > span");
    const [, base, symbol] = name.textContent.match(LOGARITHM) ?? [];
    print(name, name.textContent.replace(LOGARITHM, " $2"));
    if (!value) return;
    const say = () => {
      print(value, base ? power(base, input.valueAsNumber) : input.value);
      input.setAttribute("aria-valuetext", `${symbol ? `${symbol} = ` : ""}${value.textContent}`);
    };
    input.addEventListener("input", say); /* After the listener of Vega, which was there before. */
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
    const { spec, themes } = window.specifications[address.split("/").pop()];
    delete spec.title; /* The reading, which stands below as text. */
    const drawn = element("div", "traindyn-drawn", figure);
    const inputs = element("div", "traindyn-inputs", drawn);
    const picture = element("div", "traindyn-picture", drawn);
    const reading = element("p", "traindyn-reading", drawn);
    reading.setAttribute("role", "status");
    const watch = new MutationObserver(() => lower(picture));
    watch.observe(picture, { childList: true, characterData: true, subtree: true });
    return { figure, spec, themes, inputs, picture, reading, view: null };
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
    const { inputs, picture, reading, themes } = state;
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
    for (const input of inputs.querySelectorAll("input, select")) dressUp(input);
    const read = (_, text) => {
      const told = text.replace(EQUATION, (_whole, base, symbol, exponent) =>
        `${symbol} = ${power(base, Number(exponent))}`);
      print(reading, told);
    };
    read("reading", view.signal("reading"));
    view.addSignalListener("reading", read);
    if (focused >= 0) inputs.querySelectorAll("input, select")[focused].focus();
    state.figure.classList.add("is-drawn");
    state.figure.view = view;
  };

  const start = async () => {
    await fetched(vega);
    const states = await Promise.all(figures.map(prepare));
    let pending = Promise.resolve();
    const drawAll = () => {
      pending = pending.then(() => Promise.all(states.map(draw)));
    };
    drawAll();
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
  };

  const vega = new URL("vega.js", document.currentScript.src).href;
  start();
})();
