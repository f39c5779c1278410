"use strict";
// One page, no network: every map is worked out here from the basis vectors in the data block.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const EIGHT = [[86, 180, 233], [230, 159, 0], [0, 158, 115], [240, 228, 66], [0, 114, 178], [213, 94, 0], [204, 121, 167], [150, 150, 150]];
  const SCALE = [[0, 32, 76], [53, 66, 108], [102, 105, 112], [148, 142, 119], [199, 180, 100], [255, 234, 70]];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { layout: 0, other: -1, color: "", lead: [], selected: null, bit: -1 };

  // A layout with all its maps: places are numbered with the first input running fastest.
  function read(raw) {
    const inputs = Object.entries(raw.bases).map(([name, rows]) => ({ name, rows, size: 2 ** rows.length }));
    const shape = raw.out_dims.map((pair) => pair[1]);
    const flat = (vector) => vector.reduce((index, part, i) => index * shape[i] + part, 0);
    const bits = inputs.flatMap((input) => input.rows.map((vector, i) => ({ input: input.name, bit: i, vector, flat: flat(vector) })));
    let places = [0];
    for (const { flat: step } of bits) places = places.concat(places.map((element) => element ^ step));
    const size = shape.reduce((a, b) => a * b, 1);
    const owners = Array.from({ length: size }, () => []);
    places.forEach((element, place) => owners[element].push(place));
    const layout = { ...raw, inputs, shape, flat, bits, places, owners, size };
    return { ...layout, slots: slotsOf(layout) };
  }
  // In shared memory: the place at each element of memory, -1 where padding is; one CTA after another.
  function slotsOf(layout) {
    if (kindOf(layout) !== "offset") return null;
    const offsets = layout.inputs[0].size, whole = padded(layout, offsets - 1) + 1;
    const slots = new Array(whole * (layout.places.length / offsets)).fill(-1);
    layout.places.forEach((_, place) => { slots[Math.floor(place / offsets) * whole + padded(layout, place % offsets)] = place; });
    return slots;
  }
  const current = () => layouts[state.layout];

  function split(layout, place) {
    const parts = {};
    for (const input of layout.inputs) {
      parts[input.name] = place % input.size;
      place = Math.floor(place / input.size);
    }
    return parts;
  }
  function coordinates(layout, element) {
    const parts = [];
    for (let i = layout.shape.length - 1; i >= 0; i -= 1) {
      parts.unshift(element % layout.shape[i]);
      element = Math.floor(element / layout.shape[i]);
    }
    return parts;
  }
  const kindOf = (layout) => layout.inputs[0].name; // register, offset or column
  const isRegisters = (layout) => kindOf(layout) === "register";
  const thread = (parts) => `${parts.block ?? 0}/${parts.warp ?? 0}/${parts.lane ?? 0}`;

  // Bytes of an offset, padding counted, as irscope.layout.memory_map has it.
  const padded = (layout, offset) => offset + (layout.padding || []).reduce((sum, [interval, pad]) => sum + Math.floor(offset / interval) * pad, 0);
  const byteOf = (layout, offset) => (padded(layout, offset) * layout.element_bits) / 8;
  const bankOf = (layout, offset) => Math.floor(byteOf(layout, offset) / 4) % layout.banks;

  function colorings(layout) {
    if (isRegisters(layout)) return ["warp", "lane", "register", "vector"];
    return kindOf(layout) === "offset" ? ["bank", "line"] : ["row", "column"];
  }
  // The colouring of a layout: the chosen one, or if that is for another memory, its own first one.
  const colorOf = (layout) => (colorings(layout).includes(state.color) ? state.color : colorings(layout)[0]);
  function colorValue(layout, place) {
    const parts = split(layout, place), color = colorOf(layout);
    const line = layout.banks * 4;
    switch (color) {
      case "warp": return [parts.warp + parts.block * sizeOf(layout, "warp"), sizeOf(layout, "warp") * sizeOf(layout, "block")];
      case "vector": return [Math.floor(parts.register / layout.vector), Math.max(sizeOf(layout, "register") / layout.vector, 1)];
      case "bank": return [bankOf(layout, parts.offset), layout.banks];
      case "line": return [Math.floor(byteOf(layout, parts.offset) / line), Math.max(Math.ceil(byteOf(layout, sizeOf(layout, "offset")) / line), 1)];
      default: return [parts[color], sizeOf(layout, color)];
    }
  }
  const sizeOf = (layout, name) => layout.inputs.find((input) => input.name === name)?.size ?? 1;
  function fill(value, count) {
    const ground = dark.matches ? [16, 18, 22] : [255, 255, 255];
    const mix = (a, b, share) => a.map((part, i) => Math.round(part * share + b[i] * (1 - share)));
    if (count > 16) {
      const x = (value / (count - 1)) * (SCALE.length - 1);
      const low = Math.min(Math.floor(x), SCALE.length - 2);
      return mix(SCALE[low + 1], SCALE[low], x - low);
    }
    const share = value % 16 < 8 ? (dark.matches ? 0.72 : 0.62) : (dark.matches ? 0.42 : 0.95);
    return mix(EIGHT[value % 8], ground, share);
  }
  const css = (rgb) => `rgb(${rgb.join(",")})`;
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ink = (rgb) => (luminance(rgb) > 0.179 ? "#000000" : "#ffffff");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const layouts = data.layouts.map((raw) => (raw.bases ? read(raw) : raw));
  let kept = false, waiting = false, pointed = "";

  // Selections: which elements and which places are meant.
  function marked() {
    const layout = current();
    const chosen = { elements: new Set(), places: new Set() };
    const one = state.selected;
    if (!one) return chosen;
    if (one.element !== undefined) {
      chosen.elements.add(one.element);
      layout.owners[one.element].forEach((place) => chosen.places.add(place));
    } else {
      layout.places.forEach((element, place) => {
        const parts = split(layout, place);
        if (Object.entries(one).every(([name, value]) => parts[name] === value)) {
          chosen.places.add(place);
          chosen.elements.add(element);
        }
      });
    }
    return chosen;
  }
  // The elements that differ, or of an access those of its first lanes; and what a frame means.
  function difference() {
    const a = current(), b = layouts[state.other];
    const found = new Set();
    if (!b?.bases) return null;
    if (isRegisters(a) !== isRegisters(b)) {
      const shown = data.request && state.layout + state.other === 1;
      return { elements: new Set(shown ? data.request : []), text: shown ? "framed: what the first lanes of warp 0 access together" : "" };
    }
    for (let element = 0; element < a.size; element += 1) {
      if (isRegisters(a)) {
        const there = new Set(b.owners[element].map((place) => thread(split(b, place))));
        if (!a.owners[element].some((place) => there.has(thread(split(a, place))))) found.add(element);
      } else if (placeText(a, a.owners[element][0]) !== placeText(b, b.owners[element][0])) found.add(element);
    }
    const what = isRegisters(a) ? "have another thread" : "lie at another place";
    // The fewer are framed: frames around nearly everything say nothing.
    const most = 2 * found.size > a.size, other = isRegisters(a) ? "another thread holds it" : "it lies elsewhere";
    const text = `${found.size} of ${a.size} elements ${what} in ${b.name}; framed: ${most ? (isRegisters(a) ? "the same thread holds it" : "it lies at the same place") : other} there`;
    return { elements: found, most, text };
  }

  // Grids
  const grids = {};
  function plane(layout) {
    const rank = layout.shape.length;
    const columns = layout.shape[rank - 1] ?? 1, rows = rank > 1 ? layout.shape[rank - 2] : 1;
    const lead = layout.shape.slice(0, -2).map((_, i) => state.lead[i] ?? 0);
    const base = rank > 2 ? lead.reduce((index, part, i) => index * layout.shape[i] + part, 0) * rows * columns : 0;
    // A long line is folded.
    const fold = rows === 1 && columns > 64 ? 32 : columns;
    return { rows: rows === 1 ? Math.ceil(columns / fold) : rows, columns: fold, element: (row, column) => base + row * fold + column };
  }
  function hardware(layout) {
    if (isRegisters(layout)) {
      const registers = sizeOf(layout, "register");
      return { rows: layout.places.length / registers, columns: registers, place: (row, column) => row * registers + column };
    }
    if (kindOf(layout) === "offset") {
      const line = Math.max((layout.banks * 32) / layout.element_bits, 1);
      const columns = Math.min(line, layout.slots.length);
      return { rows: Math.ceil(layout.slots.length / columns), columns, place: (row, column) => layout.slots[row * columns + column] };
    }
    const columns = sizeOf(layout, "column");
    return { rows: layout.places.length / columns, columns, place: (row, column) => row * columns + column };
  }
  const PADDING = "padding";
  function hatch(draw, x, y, width, height) {
    draw.save();
    draw.beginPath();
    draw.rect(x, y, width, height);
    draw.clip();
    draw.strokeStyle = style("--faint");
    draw.lineWidth = 1;
    draw.beginPath();
    for (let at = x - height; at < x + width; at += 5) { draw.moveTo(at, y + height); draw.lineTo(at + height, y); }
    draw.stroke();
    draw.restore();
  }
  // Whether two neighbours are in one register run of a thread, or in one access of memory: they share a label.
  function joined(layout, a, b) {
    if (b !== a + 1) return false;
    if (isRegisters(layout)) return Math.floor(a / sizeOf(layout, "register")) === Math.floor(b / sizeOf(layout, "register"));
    if (kindOf(layout) !== "offset") return false;
    const { offset } = split(layout, b);
    return offset % Math.max(128 / layout.element_bits, 1) !== 0 && padded(layout, offset) === padded(layout, offset - 1) + 1;
  }
  // The cells of the tensor from one on, to the right, that share its label.
  function runAt(tensor, isStart, row, column) {
    let end = column + 1;
    while (end < tensor.columns && !isStart(row, end)) end += 1;
    return end - column;
  }
  const CHARACTER = 6.1;
  // Pixels of an element for which labels fit.
  function cellFor(tensor, ownerAt, layout) {
    const lengths = [], longest = [];
    const isStart = (row, column) => !joined(layout, ownerAt(row, column - 1), ownerAt(row, column));
    for (let column = 0; column < tensor.columns; ) {
      const length = runAt(tensor, isStart, 0, column);
      lengths.push(length);
      longest.push(label(layout, layout.places.length - 1, length).length);
      column += length;
    }
    const cell = Math.ceil((Math.max(...longest) * CHARACTER + 6) / Math.min(...lengths));
    return cell * tensor.columns * (window.devicePixelRatio || 1) < 16000 ? cell : 0;
  }
  function paint(id, grid, placeAt, colorAt, labelAt, isMarked, isFramed, isStart = null, least = 0) {
    const canvas = at(id), ratio = window.devicePixelRatio || 1, margin = 44;
    const room = Math.max(canvas.parentElement.clientWidth - margin - 4, 200);
    const cell = Math.max(Math.min(Math.floor(room / grid.columns), 44), 4, least);
    const high = cell >= 30 ? 24 : least ? 20 : Math.max(Math.min(cell, 20), 5);
    const width = margin + grid.columns * cell + 2, height = 20 + grid.rows * high + 2;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const draw = canvas.getContext("2d");
    draw.scale(ratio, ratio);
    draw.font = "10px ui-monospace, 'DejaVu Sans Mono', monospace";
    draw.textBaseline = "middle";
    const any = state.selected !== null || state.bit >= 0, few = state.selected !== null;
    const texts = [], frames = [];
    let first = Infinity;
    for (let row = 0; row < grid.rows; row += 1) {
      for (let column = 0; column < grid.columns; column += 1) {
        const rgb = colorAt(row, column);
        if (!rgb) continue;
        const x = margin + column * cell, y = 20 + row * high, on = isMarked(row, column);
        if (rgb === PADDING) {
          hatch(draw, x, y, cell, high);
          continue;
        }
        draw.globalAlpha = any && !on ? 0.35 : 1;
        draw.fillStyle = css(rgb);
        // A gap where the next cell, to the right or below, does not go on where this one ends.
        const place = placeAt(row, column), apart = (other) => cell >= 30 || other !== place + 1;
        const ends = isStart ? column + 1 === grid.columns || isStart(row, column + 1) : apart(placeAt(row, column + 1));
        draw.fillRect(x, y, cell - (ends ? 1 : 0), high - (apart(placeAt(row + 1, column)) ? 1 : 0));
        const [text, length] = cell >= 30 || least ? labelAt(row, column) : ["", 0];
        if (text.length * CHARACTER < 1.5 * cell * length) texts.push([text, any && !on ? style("--faint") : ink(rgb), x + (cell * length) / 2, y + high / 2, cell * length - 3]);
        draw.globalAlpha = 1;
        if (any && on && few) {
          draw.strokeStyle = style("--ink");
          draw.lineWidth = 1.5;
          draw.strokeRect(x - 1, y - 1, cell + 1, high + 1);
          first = Math.min(first, y);
        }
        if (isFramed?.(row, column) && (column === 0 || isStart(row, column) || !isFramed(row, column - 1))) {
          frames.push([x + 1.5, y + 1.5, cell * runAt(grid, isStart, row, column) - 4, high - 4]);
        }
      }
    }
    // In two colours: one of them stands out from any filling.
    for (const [color, line] of [["--paper", 3.5], ["--ink", 1.5]]) {
      draw.strokeStyle = style(color);
      draw.lineWidth = line;
      frames.forEach((box) => draw.strokeRect(...box));
    }
    draw.textAlign = "center";
    for (const [text, color, x, y, width] of texts) {
      draw.fillStyle = color;
      draw.fillText(text, x, y, width);
    }
    draw.fillStyle = style("--faint");
    draw.textAlign = "right";
    for (let row = 0, step = Math.max(2 ** Math.ceil(Math.log2(14 / high)), 1); row < grid.rows; row += step) draw.fillText(grid.rowName(row), margin - 5, 20 + row * high + high / 2);
    draw.textAlign = "left";
    for (let column = 0, step = Math.max(2 ** Math.ceil(Math.log2(26 / cell)), 1); column < grid.columns; column += step) draw.fillText(String(column), margin + column * cell + 1, 10);
    grids[id] = { ...grid, cell, high, margin };
    canvas.dataset.grid = JSON.stringify({ cell, high, margin });
    const holder = canvas.parentElement;
    if (first < Infinity && id !== pointed && (first < holder.scrollTop || first > holder.scrollTop + holder.clientHeight - high)) {
      holder.scrollTop = Math.max(first - holder.clientHeight / 2, 0);
    }
  }
  function label(layout, place, length = 1) {
    const parts = split(layout, place);
    if (isRegisters(layout)) {
      const warp = colorOf(layout) !== "warp" && sizeOf(layout, "warp") > 1 ? `w${parts.warp} ` : "";
      return `${parts.block ? `C${parts.block} ` : ""}${warp}t${parts.lane} r${parts.register}${length > 1 ? `–${parts.register + length - 1}` : ""}`;
    }
    return kindOf(layout) === "offset" ? String(byteOf(layout, parts.offset)) : `${parts.row},${parts.column}`;
  }
  function bitElements(layout) {
    if (state.bit < 0) return null;
    const places = new Set(), elements = new Set();
    layout.places.forEach((element, place) => {
      if (Math.floor(place / 2 ** state.bit) % 2) { places.add(place); elements.add(element); }
    });
    return { places, elements };
  }
  function redraw() {
    const layout = current();
    const stepping = bitElements(layout);
    const chosen = stepping && !state.selected ? stepping : marked();
    const differs = difference(), other = layouts[state.other];
    const framed = differs && ((element) => differs.elements.has(element) !== Boolean(differs.most));
    const hard = hardware(layout);
    const tint = (of, place) => (place === undefined ? null : fill(...colorValue(of, place)));
    at("beside").hidden = !differs;
    document.querySelector("main").classList.toggle("pair", Boolean(differs));
    if (differs) at("second-title").textContent = `tensor in ${other.name}`;
    const both = (differs ? [["tensor", layout], ["second", other]] : [["tensor", layout]]).map(([id, of]) => {
      const tensor = plane(of);
      tensor.rowName = (row) => String(of.shape.length > 1 ? row : row * tensor.columns);
      return { id, of, tensor, owner: (row, column) => of.owners[tensor.element(row, column)]?.[0] };
    });
    const least = Math.max(...both.map(({ of, tensor, owner }) => cellFor(tensor, owner, of)));
    for (const { id, of, tensor, owner } of both) {
      const isFramed = framed && ((row, column) => framed(tensor.element(row, column)));
      const isStart = (row, column) =>
        column === 0 || !joined(of, owner(row, column - 1), owner(row, column)) || (isFramed && isFramed(row, column - 1) !== isFramed(row, column));
      paint(id, tensor,
        (row, column) => (column < tensor.columns && row < tensor.rows ? owner(row, column) : -1),
        (row, column) => tint(of, owner(row, column)),
        (row, column) => {
          if (owner(row, column) === undefined || !isStart(row, column)) return ["", 0];
          const length = runAt(tensor, isStart, row, column);
          return [label(of, owner(row, column), length), length];
        },
        (row, column) => chosen.elements.has(tensor.element(row, column)), isFramed, isStart, least);
    }
    hard.rowName = (row) => {
      if (kindOf(layout) === "offset") return String((row * hard.columns * layout.element_bits) / 8);
      const parts = split(layout, hard.place(row, 0));
      return isRegisters(layout) ? `${parts.block ? `C${parts.block}` : ""}w${parts.warp}t${parts.lane}` : String(parts.row);
    };
    const placed = (row, column) => layout.places[hard.place(row, column)];
    paint("hardware", hard,
      (row, column) => (column < hard.columns && row < hard.rows ? placed(row, column) ?? -1 : -1),
      (row, column) => (hard.place(row, column) === -1 ? PADDING : placed(row, column) === undefined ? null : tint(layout, hard.place(row, column))),
      (row, column) => [coordinates(layout, placed(row, column)).join(","), 1],
      (row, column) => chosen.places.has(hard.place(row, column)), null);
    const said = differs && data.facts && state.layout + state.other === 1 ? data.facts[state.layout] : [];
    at("comparison").textContent = differs ? [...said, differs.text].filter(Boolean).join("\n") : "";
    details(layout, differs);
    steps(layout);
  }

  // Words
  function details(layout, differs) {
    const one = state.selected, lines = [];
    if (!one) lines.push("Point at a cell of either grid, or choose below. Click to keep it.");
    else if (one.element !== undefined) {
      const places = layout.owners[one.element];
      lines.push(`element (${coordinates(layout, one.element).join(", ")})`, places.length ? `held ${places.length === 1 ? "once" : `${places.length} times`}:` : "held nowhere");
      places.slice(0, 64).forEach((place) => lines.push(`  ${placeText(layout, place)}`));
      if (places.length > 64) lines.push(`  … ${places.length - 64} more`);
      if (places.length) lines.push("", sumText(layout, places[0]));
      const other = layouts[state.other];
      if (other?.bases && other.size === layout.size) {
        lines.push("", `in ${other.name}${isRegisters(layout) && isRegisters(other) && differs?.elements.has(one.element) ? " (moves)" : ""}:`);
        other.owners[one.element].slice(0, 16).forEach((place) => lines.push(`  ${placeText(other, place)}`));
      }
    } else {
      const chosen = marked();
      lines.push(Object.entries(one).map(([name, value]) => `${name} ${value}`).join(", "), `${chosen.elements.size} elements:`);
      const rows = [...chosen.places].slice(0, 128).map((place) => `  ${placeText(layout, place, one)} → (${coordinates(layout, layout.places[place]).join(", ")})`);
      lines.push(...rows);
      if (chosen.places.size > 128) lines.push(`  … ${chosen.places.size - 128} more`);
      if (chosen.places.size === 1) lines.push("", sumText(layout, [...chosen.places][0]));
    }
    at("details").textContent = lines.join("\n");
  }
  // What is asked for already, `known`, need not be said on every line.
  function placeText(layout, place, known = {}) {
    const parts = split(layout, place);
    if (kindOf(layout) === "offset") {
      return `offset ${parts.offset}, byte ${byteOf(layout, parts.offset)}, bank ${bankOf(layout, parts.offset)}${parts.block ? `, CTA ${parts.block}` : ""}`;
    }
    if (!isRegisters(layout)) return `lane ${parts.row}, column ${parts.column} of tensor memory`;
    const names = ["block", "warp", "lane", "register"].filter((name) => !(name in known) && (name !== "block" || sizeOf(layout, "block") > 1));
    return names.map((name) => `${name === "block" ? "CTA" : name} ${parts[name]}`).join(", ") || "it";
  }
  function sumText(layout, place) {
    const used = layout.bits.filter((_, index) => Math.floor(place / 2 ** index) % 2);
    const terms = used.map(({ input, bit, vector }) => `  ${input} bit ${bit}: [${vector.join(", ")}]`);
    return terms.length ? `bits that are set, and their vectors:\n${terms.join("\n")}` : "no bit is set: the origin";
  }
  function steps(layout) {
    const bit = layout.bits[state.bit];
    at("step").textContent = bit ? `${bit.input} bit ${bit.bit} (value ${2 ** bit.bit}) adds [${bit.vector.join(", ")}]` : "no bit chosen";
    document.querySelectorAll("[data-bit]").forEach((cell) => cell.classList.toggle("now", Number(cell.dataset.bit) === state.bit));
  }
  function element(tag, text, properties = {}) {
    const node = Object.assign(document.createElement(tag), properties);
    node.textContent = text;
    return node;
  }
  function tables(layout) {
    const bases = at("bases"), matrix = at("matrix");
    bases.replaceChildren();
    let number = 0;
    for (const input of layout.inputs) {
      const row = bases.insertRow();
      row.append(element("th", input.name));
      for (const vector of input.rows) {
        const cell = element("td", `[${vector.join(", ")}]`);
        cell.dataset.bit = String(number);
        number += 1;
        row.append(cell);
      }
    }
    matrix.replaceChildren();
    const bits = Math.round(Math.log2(layout.size));
    const head = matrix.insertRow();
    head.append(element("th", ""));
    layout.bits.forEach(({ input, bit }) => head.append(element("th", `${input[0]}${bit}`)));
    for (let out = bits - 1; out >= 0; out -= 1) {
      const row = matrix.insertRow();
      row.append(element("th", outName(layout, out)));
      layout.bits.forEach(({ flat, bit }, index) => {
        const one = Math.floor(flat / 2 ** out) % 2;
        const cell = element("td", String(one), { className: `${one ? "one" : "zero"}${bit === 0 && index ? " first" : ""}` });
        cell.dataset.bit = String(index);
        row.append(cell);
      });
    }
  }
  function outName(layout, bit) {
    for (let i = layout.shape.length - 1; i >= 0; i -= 1) {
      const bits = Math.round(Math.log2(layout.shape[i]));
      if (bit < bits) return `${layout.out_dims[i][0]} bit ${bit}`;
      bit -= bits;
    }
    return "";
  }

  // Controls and the permalink
  function options(select, rows, value) {
    select.replaceChildren(...rows.map(([key, text]) => element("option", text, { value: String(key) })));
    select.value = String(value);
  }
  function choose(index) {
    state.layout = index;
    const layout = current();
    at("title").textContent = layout.title;
    at("parameters").textContent = layout.parameters;
    at("facts").replaceChildren(...layout.facts.map((fact) => element("li", fact)));
    const missing = !layout.bases;
    for (const part of document.querySelectorAll("main, #algebra")) part.hidden = missing;
    if (missing) {
      at("facts").append(element("li", `no picture: ${layout.reason}`));
      return;
    }
    const names = colorings(layout);
    if (!names.includes(state.color)) state.color = names[0] === "warp" && sizeOf(layout, "warp") * sizeOf(layout, "block") === 1 ? "lane" : names[0];
    options(at("color"), names.map((name) => [name, name]), state.color);
    const others = layouts.map((item, i) => [i, item]).filter(([i, item]) => i !== index && item.bases && kindOf(item) !== "column" && kindOf(layout) !== "column" && item.shape.join() === layout.shape.join());
    options(at("other"), [[-1, "nothing"], ...others.map(([i, item]) => [i, item.name])], others.some(([i]) => i === state.other) ? state.other : -1);
    state.other = Number(at("other").value);
    at("leading").replaceChildren(...layout.shape.slice(0, -2).map((size, i) => {
      const input = element("input", "", { type: "number", min: "0", max: String(size - 1), value: String(state.lead[i] ?? 0) });
      input.addEventListener("input", () => { state.lead[i] = Math.min(Math.max(Number(input.value) || 0, 0), size - 1); update(); });
      const holder = element("label", `${layout.out_dims[i][0]} `);
      holder.append(input);
      return holder;
    }));
    at("hardware-title").textContent = isRegisters(layout) ? "threads (rows) × registers (columns)" : kindOf(layout) === "offset" ? `shared memory, a line of ${layout.banks} banks a row` : "tensor memory, lanes × columns";
    at("tensor-title").textContent = `tensor, ${layout.shape.join(" × ")} elements`;
    at("pickers").replaceChildren(...layout.inputs.filter((input) => input.size > 1).map((input) => {
      const field = element("input", "", { type: "number", min: "0", max: String(input.size - 1), placeholder: `0–${input.size - 1}` });
      field.id = `pick-${input.name}`;
      field.addEventListener("input", pick);
      const holder = element("label", `${input.name} `);
      holder.append(field);
      return holder;
    }));
    tables(layout);
  }
  function pick() {
    const chosen = {};
    for (const input of current().inputs) {
      const field = at(`pick-${input.name}`);
      if (field && field.value !== "" && Number(field.value) < input.size && Number(field.value) >= 0) chosen[input.name] = Number(field.value);
    }
    state.selected = Object.keys(chosen).length ? chosen : null;
    kept = state.selected !== null;
    update();
  }
  function fragment() {
    const parts = [`layout=${state.layout}`, `color=${state.color}`];
    if (state.other >= 0) parts.push(`other=${state.other}`);
    if (state.lead.some(Boolean)) parts.push(`lead=${state.lead.map((part) => part ?? 0).join(",")}`);
    if (state.bit >= 0) parts.push(`bit=${state.bit}`);
    if (state.selected) {
      for (const [name, value] of Object.entries(state.selected)) parts.push(`${name}=${name === "element" ? coordinates(current(), value).join(",") : value}`);
    }
    return `#${parts.join("&")}`;
  }
  function restore() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const index = (name, count, none) => {
      const value = Number(asked.get(name) ?? none);
      return Number.isInteger(value) && value >= 0 && value < count ? value : none;
    };
    state.other = index("other", layouts.length, data.compared && layouts.length > 1 ? 1 : -1);
    state.color = asked.get("color") ?? "";
    state.lead = (asked.get("lead") ?? "").split(",").filter(Boolean).map(Number);
    choose(index("layout", layouts.length, 0));
    const layout = current();
    if (!layout.bases) return;
    state.bit = index("bit", layout.bits.length, -1);
    state.selected = null;
    const place = asked.get("element")?.split(",").map(Number);
    if (place?.length === layout.shape.length && place.every((part, i) => Number.isInteger(part) && part >= 0 && part < layout.shape[i])) {
      state.selected = { element: layout.flat(place) };
    } else {
      const chosen = {};
      for (const input of layout.inputs) if (asked.has(input.name)) chosen[input.name] = index(input.name, input.size, 0);
      if (Object.keys(chosen).length) state.selected = chosen;
    }
    kept = state.selected !== null;
    redraw();
  }
  
  function update() {
    if (!current().bases) return;
    history.replaceState(null, "", fragment());
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; redraw(); });
  }
  function cellAt(id, event) {
    const grid = grids[id], box = at(id).getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - grid.margin) / grid.cell), row = Math.floor((event.clientY - box.top - 20) / grid.high);
    return row >= 0 && column >= 0 && row < grid.rows && column < grid.columns ? [row, column] : null;
  }
  function meant(id, event) {
    const cell = cellAt(id, event), layout = current();
    if (!cell) return null;
    if (id !== "hardware") {
      const value = grids[id].element(...cell);
      return value < layout.size ? { element: value } : null;
    }
    const place = grids[id].place(...cell);
    if (!(place >= 0 && place < layout.places.length)) return null;
    // A single register of one thread; with Shift its whole thread, with Alt its whole warp.
    const parts = split(layout, place);
    if (isRegisters(layout) && event.altKey) return { warp: parts.warp, block: parts.block };
    if (isRegisters(layout) && event.shiftKey) return { lane: parts.lane, warp: parts.warp, block: parts.block };
    return parts;
  }
  for (const id of ["tensor", "second", "hardware"]) {
    at(id).addEventListener("mousemove", (event) => { if (!kept) { pointed = id; state.selected = meant(id, event); update(); } });
    at(id).addEventListener("mouseleave", () => { if (!kept) { state.selected = null; update(); } });
    at(id).addEventListener("click", (event) => {
      pointed = id;
      state.selected = meant(id, event);
      kept = state.selected !== null && !kept;
      update();
    });
  }
  // The two pictures of a comparison show the same part.
  const [left, right] = ["tensor", "second"].map((id) => at(id).parentElement);
  for (const [from, to] of [[left, right], [right, left]]) {
    from.addEventListener("scroll", () => { to.scrollLeft = from.scrollLeft; to.scrollTop = from.scrollTop; });
  }
  at("layout").addEventListener("change", () => { state.selected = null; kept = false; state.bit = -1; state.lead = []; choose(Number(at("layout").value)); update(); });
  at("other").addEventListener("change", () => { state.other = Number(at("other").value); update(); });
  at("color").addEventListener("change", () => { state.color = at("color").value; update(); });
  const step = (by) => { const count = current().bits.length; state.selected = null; kept = false; state.bit = state.bit < 0 ? (by > 0 ? 0 : count - 1) : (state.bit + by + count) % count; update(); };
  at("next").addEventListener("click", () => step(1));
  at("previous").addEventListener("click", () => step(-1));
  at("none").addEventListener("click", () => { state.bit = -1; update(); });
  at("bases").addEventListener("click", (event) => { const bit = event.target.dataset?.bit; if (bit !== undefined) { state.bit = Number(bit); state.selected = null; kept = false; update(); } });
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", restore);
  window.addEventListener("resize", update);
  dark.addEventListener("change", update);
  options(at("layout"), layouts.map((item, i) => [i, item.title]), 0);
  restore();
  at("layout").value = String(state.layout);
})();
