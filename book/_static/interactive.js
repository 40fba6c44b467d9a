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
    const read = (_, text) => { reading.textContent = text; };
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
