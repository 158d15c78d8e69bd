"use strict";
(() => {
  const data = JSON.parse(document.getElementById("trace").textContent);
  const at = (id) => document.getElementById(id);
  const STAGES = ["query", "key", "value", "scores", "scaled", "masked", "weights", "context"];
  const MOST_CELLS = 40000;
  const cache = {};
  const state = { ...data.start, row: 0, column: 0 };

  // The numbers of an array, as they were stored.
  function numbers(name) {
    if (!cache[name]) {
      const packed = data.arrays[name];
      const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
      const view = new DataView(bytes.buffer);
      const read = packed.bytes === 8 ? "getFloat64" : "getFloat32";
      const count = bytes.length / packed.bytes;
      cache[name] = Float64Array.from({ length: count }, (_, i) => view[read](i * packed.bytes, true));
    }
    return cache[name];
  }

  function valueAt(name, head, row, column) {
    const [, rows, columns] = data.arrays[name].shape;
    const place = data.heads.indexOf(head);
    return numbers(name)[(place * rows + row) * columns + column];
  }

  function isForbidden(name, head, row, column) {
    if (!data.views[name].hatched[head]) return false;
    const masked = name.replace(/[^.]*$/, "masked");
    if (data.arrays[masked]) return valueAt(masked, head, row, column) === -Infinity;
    return column > row;
  }

  function colorOf(value, limit) {
    const stops = limit === null ? data.scales.weights : data.scales.signed;
    const share = limit === null ? value : (value / limit + 1) / 2;
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const index = Math.min(Math.floor(place), stops.length - 2);
    return [0, 2, 4].map((at) => {
      const [low, high] = [0, 1].map((i) => parseInt(stops[index + i].slice(at, at + 2), 16));
      return Math.round(low + (place - index) * (high - low));
    });
  }

  const inkOn = ([red, green, blue]) =>
    0.299 * red + 0.587 * green + 0.114 * blue > 110 ? "#000" : "#fff";

  function short(value, limit) {
    const digits = limit === null || limit < 2 ? 2 : limit < 100 ? 1 : 0;
    let text = value.toFixed(digits);
    if (Number(text) === 0) return "0";
    if (digits === 2 && Math.abs(Number(text)) < 1) text = text.replace("0.", ".");
    return text.replace(/\.00$/, "").replace("-", "−");
  }

  function long(value) {
    if (value === -Infinity) return "−∞ (may not be seen)";
    return String(Number(value.toPrecision(7))).replace("-", "−");
  }

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const nameOf = () => `${state.site}.${state.stage}`;
  const stagesAt = (site) => STAGES.filter((stage) => data.arrays[`${site}.${stage}`]);
  const kindOf = (site) => site.replace(/\.\d+\./, " ");
  const layerOf = (site) => site.split(".")[1];
  const siteOf = (kind, layer) => kind.replace(" ", `.${layer}.`);
  const sites = [...new Set(Object.keys(data.arrays).map((name) => name.replace(/\.[^.]*$/, "")))];
  const kinds = [...new Set(sites.map(kindOf))];
  const layersOf = (kind) => sites.filter((site) => kindOf(site) === kind).map(layerOf);

  function rowWords(view, row) {
    if (!view.predicted) return view.rows[row];
    return `reads ${view.rows[row]} → predicts ${view.predicted[row]}`;
  }

  function fill(select, values, chosen, say = (value) => value) {
    select.replaceChildren(
      ...values.map((value) => {
        const option = make("option", { value }, String(say(value)));
        option.selected = String(value) === String(chosen);
        return option;
      }),
    );
  }

  function choose(change) {
    Object.assign(state, change);
    if (!sites.includes(state.site)) {
      state.site = sites.find((site) => kindOf(site) === kindOf(state.site)) ?? sites[0];
    }
    const stages = stagesAt(state.site);
    if (!stages.includes(state.stage)) state.stage = stages.includes("weights") ? "weights" : stages[0];
    const view = data.views[nameOf()];
    state.row = Math.min(state.row, view.rows.length - 1);
    state.column = Math.min(state.column, view.columns.length - 1);
    history.replaceState(null, "", `#${nameOf()}.${state.head}`);
    show();
  }

  function show() {
    const kind = kindOf(state.site);
    const words = { self: "self-attention", cross: "cross-attention" };
    fill(at("kind"), kinds, kind, (one) => one.replace(/\w+$/, (last) => words[last]));
    fill(at("layer"), layersOf(kind), layerOf(state.site));
    fill(at("head"), data.heads, state.head);
    fill(at("stage"), stagesAt(state.site), state.stage);
    drawMap();
    for (const card of document.querySelectorAll("#cards button")) {
      card.setAttribute("aria-pressed", card.dataset.place === `${state.site}.${state.head}`);
    }
    showCell(false);
  }

  function firstRow(view) {
    const most = Math.max(1, Math.floor(MOST_CELLS / view.columns.length));
    return [Math.floor(state.row / most) * most, most];
  }

  function drawMap() {
    const name = nameOf();
    const view = data.views[name];
    const limit = view.limits[state.head];
    const [first, most] = firstRow(view);
    const last = Math.min(first + most, view.rows.length);
    const sides = view.predicted ? ["reads", "predicts"] : ["token"];
    const head = make("tr", { role: "row" });
    for (const side of sides) head.append(make("th", { scope: "col" }, side));
    view.columns.forEach((word, column) => {
      head.append(make("th", { scope: "col", class: "turned", "data-head": column }, word));
    });
    const body = make("tbody", {});
    for (let row = first; row < last; row += 1) {
      const line = make("tr", { role: "row" });
      line.append(make("th", { scope: "row", "data-row": row }, view.rows[row]));
      if (view.predicted) line.append(make("th", { scope: "row" }, `→ ${view.predicted[row]}`));
      for (let column = 0; column < view.columns.length; column += 1) {
        const value = valueAt(name, state.head, row, column);
        const cell = make("td", { role: "gridcell", tabindex: -1 });
        cell.dataset.cell = `${row},${column}`;
        if (value === -Infinity || isForbidden(name, state.head, row, column)) {
          cell.className = "masked";
          cell.textContent = "−∞";
        } else {
          const color = colorOf(value, limit);
          cell.style.background = `rgb(${color})`;
          cell.style.color = inkOn(color);
          cell.textContent = short(value, limit);
        }
        line.append(cell);
      }
      body.append(line);
    }
    at("map").replaceChildren(
      make("table", { class: "map", role: "grid", "aria-label": view.captions[state.head][0] },
        make("thead", {}, head), body),
    );
    at("caption").replaceChildren(
      ...view.captions[state.head].map((line) => make("div", {}, line)),
    );
    at("window").hidden = view.rows.length <= most;
    at("window-words").textContent = `rows ${first} to ${last - 1} of ${view.rows.length}`;
    const bar = Array.from({ length: 21 }, (_, i) =>
      `rgb(${colorOf(limit === null ? i / 20 : (i / 10 - 1) * limit, limit)})`);
    at("low").textContent = limit === null ? "0" : long(-limit);
    at("high").textContent = limit === null ? "1" : long(limit);
    at("bar").style.background = `linear-gradient(to right, ${bar})`;
  }

  function showCell(focus) {
    const name = nameOf();
    const view = data.views[name];
    for (const one of document.querySelectorAll("#map .chosen")) one.classList.remove("chosen");
    const cell = document.querySelector(`[data-cell="${state.row},${state.column}"]`);
    for (const one of document.querySelectorAll("#map td[tabindex='0']")) one.tabIndex = -1;
    if (cell) {
      cell.classList.add("chosen");
      cell.tabIndex = 0;
      if (focus) cell.focus();
    }
    document.querySelector(`[data-row="${state.row}"]`)?.classList.add("chosen");
    document.querySelector(`[data-head="${state.column}"]`)?.classList.add("chosen");
    const parts = view.isMap ? ["scores", "scaled", "masked", "weights"] : [state.stage];
    const held = parts.filter((stage) => data.arrays[`${state.site}.${stage}`]);
    const said = held.map(
      (stage) => `${stage} ${long(valueAt(`${state.site}.${stage}`, state.head, state.row, state.column))}`,
    );
    const column = view.isMap
      ? `attends to ${view.columns[state.column]} (${state.column})`
      : `dimension ${state.column}`;
    at("cell").textContent =
      `Row ${state.row}: ${rowWords(view, state.row)}; ${column}: ${said.join(" → ")}`;
    drawRow(view, held);
  }

  function drawRow(view, held) {
    const ends = at("row");
    at("row-words").textContent = `Row ${state.row}: ${rowWords(view, state.row)}`;
    const head = make("tr", {}, make("th", {}, view.isMap ? "attends to" : "dimension"));
    for (const stage of held) head.append(make("th", {}, stage));
    const last = held[held.length - 1];
    const hasBars = last === "weights";
    if (hasBars) head.append(make("th", {}, ""));
    const lines = view.columns.map((word, column) => {
      const line = make("tr", {}, make("td", {}, word));
      for (const stage of held) {
        const value = valueAt(`${state.site}.${stage}`, state.head, state.row, column);
        line.append(make("td", { class: "number" }, long(value)));
      }
      if (hasBars) {
        const value = valueAt(`${state.site}.weights`, state.head, state.row, column);
        const bar = make("span", {});
        bar.style.width = `${100 * value}%`;
        line.append(make("td", { class: "bar-cell" }, bar));
      }
      return line;
    });
    ends.replaceChildren(
      make("table", { class: "plain" }, make("thead", {}, head), make("tbody", {}, ...lines)),
    );
  }

  // A picture of a whole head, one pixel a cell.
  function paint(canvas, name, head) {
    const [, rows, columns] = data.arrays[name].shape;
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const hidden = isForbidden(name, head, row, column);
        const color = hidden ? [217, 217, 217] : colorOf(valueAt(name, head, row, column), null);
        image.data.set([...color, 255], 4 * (row * columns + column));
      }
    }
    context.putImageData(image, 0, 0);
  }

  function drawCards() {
    const figure = at("sort").value;
    const places = Object.keys(data.figures);
    const down = figure !== "order";
    if (down) places.sort((a, b) => data.figures[b][figure] - data.figures[a][figure]);
    at("cards").replaceChildren(
      ...places.map((place) => {
        const site = place.replace(/\.\d+$/, "");
        const head = Number(place.split(".").pop());
        const canvas = make("canvas", { "aria-hidden": "true" });
        paint(canvas, `${site}.weights`, head);
        const shown = down ? figure : "end_mass";
        const card = make("button", { type: "button", "aria-pressed": "false" }, canvas, place,
          make("br", {}), `${shown.replace("_", " ")} ${data.figures[place][shown].toFixed(3)}`);
        card.dataset.place = place;
        card.addEventListener("click", () => choose({ site, head, stage: "weights" }));
        return card;
      }),
    );
    for (const card of document.querySelectorAll("#cards button")) {
      card.setAttribute("aria-pressed", card.dataset.place === `${state.site}.${state.head}`);
    }
  }

  function moveBy(rows, columns) {
    const view = data.views[nameOf()];
    const before = firstRow(view)[0];
    state.row = Math.min(Math.max(state.row + rows, 0), view.rows.length - 1);
    state.column = Math.min(Math.max(state.column + columns, 0), view.columns.length - 1);
    if (firstRow(view)[0] !== before) drawMap();
    showCell(true);
  }

  const next = (values, value, step) =>
    values[(values.findIndex((one) => String(one) === String(value)) + step + values.length) % values.length];

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const far = 1e9;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -far], End: [0, far] };
    if (moves[event.key] && event.target.closest("#map")) {
      moveBy(...moves[event.key]);
      event.preventDefault();
      return;
    }
    const step = event.shiftKey ? -1 : 1;
    const kind = kindOf(state.site);
    const actions = {
      h: () => choose({ head: next(data.heads, state.head, step) }),
      l: () => choose({ site: siteOf(kind, next(layersOf(kind), layerOf(state.site), step)) }),
      k: () => choose({ site: siteOf(next(kinds, kind, step), layerOf(state.site)) }),
      s: () => choose({ stage: next(stagesAt(state.site), state.stage, step) }),
    };
    actions[event.key.toLowerCase()]?.();
  }

  function fromAddress() {
    const parts = location.hash.slice(1).split(".");
    const head = Number(parts.pop());
    const stage = parts.pop();
    const site = parts.join(".");
    if (data.arrays[`${site}.${stage}`] && data.heads.includes(head)) return { site, stage, head };
    return {};
  }

  at("kind").addEventListener("change", (event) =>
    choose({ site: siteOf(event.target.value, layerOf(state.site)) }));
  at("layer").addEventListener("change", (event) =>
    choose({ site: siteOf(kindOf(state.site), event.target.value) }));
  at("head").addEventListener("change", (event) => choose({ head: Number(event.target.value) }));
  at("stage").addEventListener("change", (event) => choose({ stage: event.target.value }));
  at("sort").addEventListener("change", drawCards);
  at("map").addEventListener("click", (event) => {
    const cell = event.target.closest("[data-cell]");
    if (!cell) return;
    [state.row, state.column] = cell.dataset.cell.split(",").map(Number);
    showCell(true);
  });
  at("before").addEventListener("click", () => {
    const view = data.views[nameOf()];
    const [first, most] = firstRow(view);
    choose({ row: Math.max(0, first - most) });
  });
  at("after").addEventListener("click", () => {
    const view = data.views[nameOf()];
    const [first, most] = firstRow(view);
    choose({ row: Math.min(view.rows.length - 1, first + most) });
  });
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => choose(fromAddress()));
  at("all").hidden = !Object.keys(data.figures).length;
  at("app").hidden = false;
  drawCards();
  choose(fromAddress());
})();
