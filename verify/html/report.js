// Draws the charts of a report from the JSON in the page. Colors are CSS alone, so that they follow
// the color scheme and print without drawing anew.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const EQUALITY = ["not-compared", "equal", "tainted", "origin"];
  const PHASE = ["forward", "backward", "update"];
  const word = data.word || "subnet";
  const count = d3.format(",");
  const significant = d3.format(".5~g");

  // An SVG as wide as its box, whose units are pixels; chart functions fill it.
  function sheet(box, height) {
    const width = Math.max(280, box.clientWidth);
    box.replaceChildren();
    const svg = d3.select(box).append("svg")
      .attr("viewBox", `0 0 ${width} ${height}`)
      .attr("role", "img")
      .attr("tabindex", 0)
      .attr("aria-label", `${box.dataset.label}. Arrow keys step through its marks.`);
    return { svg, width, height };
  }

  function axis(svg, x, y, axisOf) {
    return svg.append("g").attr("class", "axis").attr("transform", `translate(${x},${y})`)
      .call(axisOf);
  }

  function tip(mark, text) {
    return mark.attr("data-tip", text);
  }

  function secondsText(nanoseconds) {
    return nanoseconds < 1e9 ? `${significant(nanoseconds / 1e6)} ms`
      : `${significant(nanoseconds / 1e9)} s`;
  }

  // The first difference as a vertical line.
  function focusLine(svg, x, top, bottom, seq, width) {
    svg.append("line").attr("class", "focus-line").attr("x1", x).attr("x2", x)
      .attr("y1", top).attr("y2", bottom);
    const left = x > width - 110;
    svg.append("text").attr("class", "focus").attr("x", left ? x - 5 : x + 5).attr("y", top + 9)
      .attr("text-anchor", left ? "end" : "start").text(`≠ ${word} ${seq}`);
  }

  function drawCurve(svg, curve, kind, x, y) {
    const line = d3.line().x((d) => x(d[0])).y((d) => y(d[1]));
    svg.append("path").attr("class", `raw ${kind}`).attr("d", line(curve.points));
    const means = curve.windows.map(([first, last, lowest, mean, highest]) =>
      ({ first, last, lowest, mean, highest, middle: (first + last) / 2 }));
    if (means.length < curve.points.length) {
      svg.append("path").attr("class", `mean ${kind}`)
        .attr("d", line(means.map((d) => [d.middle, d.mean])));
    }
    means.forEach((d) => tip(
      svg.append("circle").attr("class", `point ${kind}`).attr("r", 2.25)
        .attr("cx", x(d.middle)).attr("cy", y(d.mean)),
      `${curve.name}, ${d.first === d.last ? `${word} ${d.first}` : `${word}s ${d.first}–${d.last}`}\n` +
        `mean ${significant(d.mean)}, lowest ${significant(d.lowest)}, highest ` +
        significant(d.highest)));
  }

  function drawLoss(box, loss) {
    const { svg, width, height } = sheet(box, 240);
    const margin = { top: 8, right: 12, bottom: 34, left: 44 };
    const curves = [["reference", loss.reference], ["record", loss.record]]
      .filter(([, curve]) => curve && curve.points.length > 0);
    const all = curves.flatMap(([, curve]) => curve.points);
    const x = d3.scaleLinear().domain(d3.extent(all, (d) => d[0]))
      .range([margin.left, width - margin.right]);
    const y = d3.scaleLinear().domain(d3.extent(all, (d) => d[1])).nice()
      .range([height - margin.bottom, margin.top]);
    axis(svg, 0, height - margin.bottom,
      d3.axisBottom(x).ticks(Math.min(10, width / 80)).tickSizeOuter(0).tickFormat(count));
    axis(svg, margin.left, 0, d3.axisLeft(y).ticks(5).tickSizeOuter(0));
    svg.append("text").attr("class", "muted").attr("x", width - margin.right).attr("y", height - 4)
      .attr("text-anchor", "end").text(word);
    curves.forEach(([kind, curve]) => drawCurve(svg, curve, kind, x, y));
    if (loss.focus !== null) {
      focusLine(svg, x(loss.focus), margin.top, height - margin.bottom, loss.focus, width);
    }
  }

  function drawBars(svg, bars, focus, x, y) {
    bars.forEach(([stage, begin, end, phase, seq, microbatch]) => {
      const left = x(Math.max(0, begin));
      const wide = Math.max(phase === 2 ? 2 : 0.75, Math.min(x(end), x.range()[1]) - left);
      const tall = y.bandwidth();
      const inset = phase === 2 ? 0 : 4;
      const bar = svg.append("rect").attr("class", PHASE[phase])
        .attr("x", left).attr("width", wide).attr("y", y(stage) + inset)
        .attr("height", tall - 2 * inset);
      if (seq === focus) {
        svg.append("rect").attr("class", "in-focus").attr("x", left).attr("width", wide)
          .attr("y", y(stage)).attr("height", 3);
      }
      tip(bar, `${PHASE[phase]} of subnet ${seq}, micro-batch ${microbatch}\n` +
        `stage ${stage}, ${secondsText(end - begin)}`);
      if (phase !== 2 && wide > 8 + 7 * String(seq).length) {
        svg.append("text").attr("class", `on-${PHASE[phase]}`).attr("x", left + wide / 2)
          .attr("y", y(stage) + tall / 2 + 4).attr("text-anchor", "middle").text(seq);
      }
    });
  }

  function drawTimeline(box, timeline) {
    const margin = { top: 4, right: 46, bottom: 34, left: 52 };
    const row = 36;
    const { svg, width, height } = sheet(box, margin.top + row * timeline.stages + margin.bottom);
    const x = d3.scaleLinear().domain([0, timeline.length_ns])
      .range([margin.left, width - margin.right]);
    const seconds = d3.scaleLinear()
      .domain([timeline.begin_ns / 1e9, (timeline.begin_ns + timeline.length_ns) / 1e9])
      .range(x.range());
    const stages = d3.range(timeline.stages);
    const y = d3.scaleBand().domain(stages).range([margin.top, height - margin.bottom])
      .paddingInner(0.12);
    stages.forEach((stage) => {
      const middle = y(stage) + y.bandwidth() / 2 + 4;
      svg.append("rect").attr("class", "idle").attr("x", margin.left).attr("y", y(stage))
        .attr("width", width - margin.left - margin.right).attr("height", y.bandwidth());
      svg.append("text").attr("x", 0).attr("y", middle).text(`stage ${stage}`);
      svg.append("text").attr("x", width).attr("y", middle).attr("text-anchor", "end")
        .text(d3.format(".0%")(timeline.busy[stage]).replace("%", " %"));
    });
    drawBars(svg, timeline.bars, timeline.focus, x, y);
    axis(svg, 0, height - margin.bottom,
      d3.axisBottom(seconds).ticks(Math.min(10, width / 90)).tickSizeOuter(0));
    svg.append("text").attr("class", "muted").attr("x", width - margin.right).attr("y", height - 4)
      .attr("text-anchor", "end").text("seconds since the start of the run");
  }

  // Runs of columns with one Equality, position by position: fewer marks than cells.
  function* mapRuns(map, columns) {
    const positions = map.positions.length;
    for (let position = 0; position < positions; ++position) {
      let begin = 0;
      for (let column = 1; column <= columns; ++column) {
        const cell = map.cells[begin * positions + position];
        if (column < columns && map.cells[column * positions + position] === cell) continue;
        yield { position, begin, end: column, equality: Number(cell) };
        begin = column;
      }
    }
  }

  function runTip(map, run) {
    const first = run.begin * map.subnets_per_column;
    const last = Math.min(run.end * map.subnets_per_column, map.subnets) - 1;
    const one = map.word || word;
    const subnets = first >= last ? `${one} ${first}` : `${one}s ${first}–${last}`;
    return `${map.positions[run.position]}, ${subnets}: ${EQUALITY[run.equality].replace("-", " ")}`;
  }

  function drawCross(svg, x, y, size) {
    svg.append("path").attr("class", "cross")
      .attr("d", `M${x - size},${y - size}l${2 * size},${2 * size}m0,${-2 * size}l${-2 * size},${2 * size}`);
  }

  function drawMap(box, map) {
    const positions = map.positions.length;
    const columns = map.cells.length / positions;
    const row = Math.max(7, Math.min(16, 360 / positions));
    // Names of a model's tensors are long, and differ at their ends.
    const longest = d3.max(map.positions, (name) => name.length) || 0;
    const left = Math.max(62, Math.min(6 * longest + 12, 0.3 * box.clientWidth));
    const named = (name) => (6 * name.length + 12 <= Math.max(left, 62) ? name
      : `…${name.slice(-Math.max(4, Math.floor((left - 18) / 6)))}`);
    const margin = { top: 4, right: 14, bottom: 34, left };
    const { svg, width, height } = sheet(box, margin.top + row * positions + margin.bottom);
    const x = d3.scaleLinear().domain([0, columns]).range([margin.left, width - margin.right]);
    const y = (position) => margin.top + row * position;
    for (const run of mapRuns(map, columns)) {
      tip(svg.append("rect").attr("class", EQUALITY[run.equality]).attr("x", x(run.begin))
        .attr("width", x(run.end) - x(run.begin)).attr("y", y(run.position) + 0.5)
        .attr("height", row - 1), runTip(map, run));
      const cell = x(1) - x(0);
      if (run.equality !== 3 || cell < 5) continue;
      for (let column = run.begin; column < run.end; ++column) {
        drawCross(svg, x(column + 0.5), y(run.position) + row / 2, Math.min(row, cell) / 2 - 1.5);
      }
    }
    const every = Math.ceil(12 / row);
    map.positions.forEach((name, position) => {
      if (position % every !== 0) return;
      svg.append("text").attr("class", "muted").attr("x", margin.left - 6).attr("text-anchor", "end")
        .attr("y", y(position) + row / 2 + 4).text(named(name));
    });
    const subnet = d3.scaleLinear().domain([0, columns * map.subnets_per_column]).range(x.range());
    axis(svg, 0, height - margin.bottom,
      d3.axisBottom(subnet).ticks(Math.min(10, width / 80)).tickSizeOuter(0).tickFormat(count));
    svg.append("text").attr("class", "muted").attr("x", width - margin.right).attr("y", height - 4)
      .attr("text-anchor", "end").text(map.word || word);
  }

  function shorten(text, width) {
    const most = Math.max(3, Math.floor(width / 5.8));
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  }

  // What a row of the graph says: the versions that join the subnet to the level nearer the middle.
  function neighbourText(seq, level, edges) {
    if (level < 0) {
      return edges.filter(([from]) => from === seq)
        .map(([, to, layers]) => `wrote ${layers.join(", ")} for ${to}`).join("; ");
    }
    return edges.filter(([, to]) => to === seq)
      .map(([from, , layers]) => `used ${layers.join(", ")} of ${from}`).join("; ");
  }

  function drawNode(svg, x, y, level, equality) {
    const size = 5.5;
    const kind = `node ${EQUALITY[equality]}`;
    if (level === 0) svg.append("circle").attr("class", "ring").attr("cx", x).attr("cy", y).attr("r", 10);
    if (equality === 2) {
      return svg.append("path").attr("class", kind)
        .attr("d", `M${x},${y - 7}l7,12h-14z`);
    }
    if (equality === 3) {
      const square = svg.append("rect").attr("class", kind).attr("x", x - size).attr("y", y - size)
        .attr("width", 2 * size).attr("height", 2 * size);
      drawCross(svg, x, y, size - 2);
      return square;
    }
    return svg.append("circle").attr("class", kind).attr("cx", x).attr("cy", y).attr("r", size);
  }

  function drawGraph(box, graph) {
    const row = 24;
    const { svg, width } = sheet(box, row * graph.nodes.length + 8);
    const lane = Math.max(22, Math.min(56, width / 16));
    const place = new Map(graph.nodes.map(([seq, level, equality], index) =>
      [seq, { x: 14 + lane * (level + 2), y: 4 + row * (index + 0.5), equality }]));
    const text = 14 + lane * 4 + 24;
    graph.nodes.forEach(([seq, level], index) => {
      if (level === 0) {
        svg.append("rect").attr("class", "band").attr("x", 0).attr("width", width)
          .attr("y", 4 + row * index).attr("height", row);
      }
    });
    graph.edges.forEach(([from, to, layers]) => {
      const a = place.get(from);
      const b = place.get(to);
      const middle = (a.y + b.y) / 2;
      tip(svg.append("path").attr("class", `edge ${EQUALITY[a.equality]}`)
        .attr("d", `M${a.x},${a.y}C${a.x},${middle} ${b.x},${middle} ${b.x},${b.y}`),
      `subnet ${to} used ${layers.join(", ")} of subnet ${from}`);
    });
    graph.nodes.forEach(([seq, level, equality]) => {
      const { x, y } = place.get(seq);
      const said = neighbourText(seq, level, graph.edges);
      tip(drawNode(svg, x, y, level, equality),
        `subnet ${seq}: ${EQUALITY[equality].replace("-", " ")}\n${said}`);
      const label = `subnet ${seq}`;
      svg.append("text").attr("class", level === 0 ? "strong" : "").attr("x", text).attr("y", y + 4)
        .text(label);
      const after = text + 78;
      svg.append("text").attr("class", "muted").attr("x", after).attr("y", y + 4)
        .text(shorten(said, width - after));
    });
  }

  function drawSeries(svg, series, x, y) {
    const line = (value) => d3.line().x((d) => x(d[0])).y((d) => y(d[value]));
    svg.append("path").attr("class", "mean reference").attr("d", line(2)(series.points));
    svg.append("path").attr("class", "mean").attr("d", line(1)(series.points));
    series.points.forEach(([value, speedup, most]) => tip(
      svg.append("circle").attr("class", "point").attr("r", 3).attr("cx", x(value))
        .attr("cy", y(speedup)),
      `${series.name || "speed-up"}, ${value}\n${significant(speedup)} of at most ${significant(most)}`));
  }

  // Each series' name beside its last point, one below the other where points are close.
  function nameSeries(svg, all, x, y) {
    const names = all.map(({ name, points }) => {
      const [value, speedup] = points[points.length - 1];
      return { name, x: x(value) + 6, y: y(speedup) + 4 };
    }).sort((a, b) => a.y - b.y);
    names.forEach((name, index) => {
      if (index > 0) name.y = Math.max(name.y, names[index - 1].y + 12);
      svg.append("text").attr("class", "muted").attr("x", name.x).attr("y", name.y).text(name.name);
    });
  }

  function drawSweep(box, sweep) {
    const { svg, width, height } = sheet(box, 260);
    const longest = d3.max(sweep.series, (d) => d.name.length);
    const margin = { top: 8, right: 16 + Math.min(width / 3, 7 * longest), bottom: 34, left: 44 };
    const points = sweep.series.flatMap((d) => d.points);
    const x = d3.scalePoint().domain([...new Set(points.map((d) => d[0]))])
      .range([margin.left, width - margin.right]).padding(0.2);
    const y = d3.scaleLinear().domain([0, d3.max(points, (d) => Math.max(d[1], d[2]))]).nice()
      .range([height - margin.bottom, margin.top]);
    axis(svg, 0, height - margin.bottom, d3.axisBottom(x).tickSizeOuter(0));
    axis(svg, margin.left, 0, d3.axisLeft(y).ticks(6).tickSizeOuter(0));
    svg.append("text").attr("class", "muted").attr("x", width - margin.right).attr("y", height - 4)
      .attr("text-anchor", "end").text(sweep.key);
    sweep.series.forEach((series) => drawSeries(svg, series, x, y));
    nameSeries(svg, sweep.series, x, y);
  }

  const CHARTS = {
    loss: drawLoss, timeline: drawTimeline, map: drawMap, graph: drawGraph, sweep: drawSweep,
  };

  function drawAll() {
    document.querySelectorAll(".chart").forEach((box) => {
      const numbers = data[box.dataset.chart];
      // There may be several of a kind: "timeline-2".
      if (numbers) CHARTS[box.dataset.chart.split("-")[0]](box, numbers);
    });
  }

  function addHatching() {
    const defs = d3.select(document.body).append("svg").attr("class", "defs")
      .attr("aria-hidden", "true").append("defs");
    for (const name of ["backward", "tainted"]) {
      const pattern = defs.append("pattern").attr("id", `hatch-${name}`)
        .attr("class", `hatch-${name}`).attr("patternUnits", "userSpaceOnUse")
        .attr("width", 6).attr("height", 6).attr("patternTransform", "rotate(45)");
      pattern.append("rect").attr("class", "ground").attr("width", 6).attr("height", 6);
      pattern.append("line").attr("class", "stroke").attr("y2", 6).attr("stroke-width", 2);
    }
  }

  const tipBox = document.getElementById("tip");

  function showTip(mark, x, y) {
    tipBox.textContent = mark.dataset.tip;
    tipBox.hidden = false;
    const { offsetWidth, offsetHeight } = tipBox;
    tipBox.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - offsetWidth - 4))}px`;
    tipBox.style.top = `${y + 16 + offsetHeight > innerHeight ? y - offsetHeight - 8 : y + 16}px`;
  }

  function hideTip() {
    tipBox.hidden = true;
    document.querySelectorAll(".current").forEach((mark) => mark.classList.remove("current"));
  }

  // Arrow keys step from mark to mark of the chart that has the focus.
  function stepThrough(event) {
    const svg = event.target.closest(".chart svg");
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!svg || !step) return;
    event.preventDefault();
    const marks = [...svg.querySelectorAll("[data-tip]")];
    const at = marks.findIndex((mark) => mark.classList.contains("current"));
    const next = marks[(at + step + marks.length + (at < 0 && step < 0 ? 1 : 0)) % marks.length];
    hideTip();
    if (!next) return;
    next.classList.add("current");
    const { left, width, bottom } = next.getBoundingClientRect();
    showTip(next, left + width / 2, bottom);
  }

  function listen() {
    document.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-tip]");
      if (mark) showTip(mark, event.clientX, event.clientY);
      else if (!document.querySelector(".current")) hideTip();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hideTip();
      else stepThrough(event);
    });
    document.addEventListener("focusout", hideTip);
    let drawn = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === drawn) return;
      drawn = innerWidth;
      drawAll();
    });
  }

  function selectText(element) {
    getSelection().selectAllChildren(element);
  }

  function addCopying() {
    document.querySelectorAll("button.copy").forEach((button) => {
      const command = button.parentElement.querySelector("code");
      button.setAttribute("aria-label", `Copy ${command.textContent}`);
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(command.textContent);
          button.textContent = "Copied";
        } catch {
          // A page from a file may not write to the clipboard in every browser.
          selectText(command);
          button.textContent = "Selected";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    });
  }

  document.documentElement.classList.add("js");
  addHatching();
  drawAll();
  listen();
  addCopying();
})();
