"use strict";
// Draws every figure when the page is loaded, and again when the reader turns the lights off.
(() => {
  const data = JSON.parse(document.getElementById("figure-data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const mouse = matchMedia("(pointer: fine)").matches; // a finger that drags wants to scroll
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // So many that Plotly labels whole decades, or 1, 2 and 5 where there are few of them.
  function ticks(values) {
    const logs = values.filter((v) => v > 0).map(Math.log10);
    const decades = logs.reduce((a, b) => Math.max(a, b), -Infinity) - logs.reduce((a, b) => Math.min(a, b), Infinity);
    return decades >= 2 ? Math.min(7, Math.ceil(decades)) : 3;
  }

  function axis(spec, values) {
    return {
      title: { text: spec.title, standoff: 8 }, type: spec.type, automargin: true, zeroline: false,
      gridcolor: colour("--line"), linecolor: colour("--line"), exponentformat: "power", hoverformat: ".4g",
      ...(spec.type === "log" ? { nticks: ticks(values), tickformat: ",.6~g" } : { nticks: 7 }),
    };
  }

  function layout(figure) {
    return {
      autosize: true, height: 340, margin: { l: 48, r: 12, t: 8, b: 44 }, showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: mouse ? "zoom" : false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--quiet") },
      xaxis: axis(figure.x, figure.traces.flatMap((t) => t.x)),
      yaxis: axis(figure.y, figure.traces.flatMap((t) => t.y)),
    };
  }

  const config = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false };

  // The area between the lowest and the highest of what a line is the mean of.
  function band(trace) {
    const [low, high] = trace.band;
    return {
      x: [...trace.x, ...[...trace.x].reverse()], y: [...high, ...[...low].reverse()], visible: trace.visible,
      mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: `${trace.line.color}26`, hoverinfo: "skip",
    };
  }

  function draw(canvas) {
    const figure = data[Number(canvas.dataset.figure)];
    const bands = figure.traces.filter((t) => t.band.length).map(band);
    return Plotly.react(canvas, [...bands, ...figure.traces], layout(figure), config);
  }

  // A legend of buttons above the figure: it wraps on a phone, and a finger can hit it.
  function legend(canvas) {
    const figure = data[Number(canvas.dataset.figure)];
    const box = canvas.parentElement.querySelector(".legend");
    const only = figure.traces.length === 1 && figure.traces[0].name === figure.y.title; // the axis says it
    figure.traces.filter(() => !only).forEach((trace) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const swatch = document.createElement("span");
      swatch.className = `swatch ${trace.mode === "markers" ? "point" : trace.line.dash}`;
      swatch.style.color = trace.line.color;
      button.append(swatch, trace.name);
      button.addEventListener("click", () => {
        trace.visible = trace.visible === false;
        button.setAttribute("aria-pressed", String(trace.visible));
        draw(canvas);
      });
      box.append(button);
    });
    const controls = document.createElement("div");
    controls.className = "controls";
    canvas.after(controls);
    if (figure.x.choices.length > 1) {
      const select = document.createElement("select");
      select.className = "scale";
      select.title = "what is on the horizontal axis";
      select.setAttribute("aria-label", select.title);
      select.append(...figure.x.choices.map((name) => new Option(name)));
      select.addEventListener("change", () => {
        figure.x.title = select.value;
        figure.traces.forEach((trace) => { trace.x = trace.xs[select.value]; });
        draw(canvas);
      });
      controls.append(select);
    }
    for (const name of ["x", "y"]) {
      const button = document.createElement("button");
      const spec = figure[name];
      button.type = "button";
      button.className = "scale";
      const label = () => { button.textContent = `${name}: ${spec.type}`; };
      button.title = `logarithmic or linear ${name} axis`;
      label();
      button.addEventListener("click", () => {
        spec.type = spec.type === "log" ? "linear" : "log";
        label();
        draw(canvas);
      });
      controls.append(button);
    }
  }

  const canvases = [...document.querySelectorAll(".canvas")];
  canvases.forEach(legend);
  dark.addEventListener("change", () => canvases.forEach(draw));
  Promise.all(canvases.map(draw)).then(() => { document.documentElement.dataset.drawn = canvases.length; });
})();
