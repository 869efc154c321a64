"use strict";
// Whatever comes from the run is put into the page as text, never as HTML.
(() => {
  const ROW = 24, TIME = 84, EXTRA = 12;
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // Events: from columns to arrays, and their texts with the numbers in their gaps.
  const columns = data.events, count = columns.lane.length;
  const position = sums(columns.position), at = sums(columns.at);
  const texts = new Array(count), haystack = new Array(count);
  const parts = columns.texts.map((text) => text.split("\x7f"));
  const indexOf = new Map();
  for (let i = 0, used = 0; i < count; i++) {
    const pieces = parts[columns.text[i]];
    let text = pieces[0];
    for (let gap = 1; gap < pieces.length; gap++) text += columns.numbers[used++] + pieces[gap];
    texts[i] = text;
    haystack[i] = `${data.lanes[columns.lane[i]]} ${text} ${data.kinds[columns.kind[i]][0]} ${timeText(at[i])}`.toLowerCase();
    indexOf.set(position[i], i);
  }
  const starts = new Int32Array(data.changes.length);
  data.changes.forEach((change, i) => { starts[i] = change[0]; });

  const state = { text: "", lanes: new Set(), kinds: new Set(), partition: "", routine: false, event: -1, finding: 0 };
  let shown = new Int32Array(0), chain = new Map();

  function sums(differences) {
    const found = new Float64Array(differences.length);
    differences.reduce((sum, difference, i) => (found[i] = sum + difference), 0);
    return found;
  }
  function timeText(us) { return `${(us / 1e6).toFixed(3)}s`; }

  // Filter
  function filter() {
    const phrase = state.text.trim().toLowerCase();
    const tests = [phrase, ...phrase.split(/\s+/)].map(contains);
    const isName = data.lanes.includes(phrase);
    const hidden = data.lanes.map((lane) => state.lanes.has(lane));
    const without = data.kinds.map(([kind]) => state.kinds.has(kind));
    const partition = data.partitions.indexOf(state.partition);
    const found = new Int32Array(count);
    let length = 0;
    for (let i = 0; i < count; i++) {
      const linked = chain.has(position[i]);
      if (columns.routine[i] === "1" && !state.routine && !linked) continue;
      if (without[columns.kind[i]]) continue;
      if (hidden[columns.lane[i]] && (columns.to[i] < 0 || hidden[columns.to[i]] || columns.routine[i] === "1")) continue;
      if (partition >= 0 && columns.partition[i] >= 0 && columns.partition[i] !== partition) continue;
      if (phrase && !tests[0](haystack[i]) && !(tests.length > 2 && !isName && tests.every((test, n) => !n || test(haystack[i])))) continue;
      found[length++] = i;
    }
    shown = found.subarray(0, length);
    $("count").textContent = `${length} of ${count} events`;
    $("created").hidden = !data.created || state.routine;
    layOut();
    drawOverview();
    remember();
    document.documentElement.dataset.shown = String(length);
  }
  function contains(word) {
    // "broker 1" is not part of "broker 10", and "m1" not of "m12".
    if (!/\d$/.test(word)) return (text) => text.includes(word);
    const whole = new RegExp(`${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?!\\d)`);
    return (text) => text.includes(word) && whole.test(text);
  }

  // The list: only the rows that can be seen are in the page.
  const LANE = Math.max(18, Math.min(48, 340 / data.lanes.length));
  const list = $("list"), rows = $("rows"), trackWidth = data.lanes.length * LANE;
  function layOut() {
    $("space").style.height = `${shown.length * ROW}px`;
    draw(true);
  }
  let drawnFrom = -1, drawnTo = -1;
  function draw(anew) {
    const height = list.clientHeight || 600;
    const from = Math.max(0, Math.floor(list.scrollTop / ROW) - EXTRA);
    const to = Math.min(shown.length, Math.ceil((list.scrollTop + height) / ROW) + EXTRA);
    if (!anew && from === drawnFrom && to === drawnTo) return;
    [drawnFrom, drawnTo] = [from, to];
    const made = document.createDocumentFragment();
    for (let k = from; k < to; k++) made.append(row(shown[k], k));
    rows.replaceChildren(made);
    rows.style.transform = `translateY(${from * ROW}px)`;
    if (!shown.length) rows.replaceChildren(element("div", { className: "empty", textContent: "No event matches. Esc clears the filter." }));
  }
  function row(i, k) {
    const kind = data.kinds[columns.kind[i]][0];
    const own = columns.lane[i], to = columns.to[i];
    const track = element("span", { className: "track" });
    track.style.width = `${trackWidth}px`;
    data.lanes.forEach((_, lane) => {
      const life = element("i", { className: "life" });
      life.style.left = `${middle(lane)}px`;
      track.append(life);
    });
    if (to >= 0 && to !== own) {
      const inbound = /^(appended|copied) /.test(texts[i]);
      const right = (to > own) !== inbound;
      const arrow = element("i", { className: `arrow ${right ? "right" : "left"}` });
      arrow.style.left = `${Math.min(middle(own), middle(to)) + 5}px`;
      arrow.style.width = `${Math.abs(middle(own) - middle(to)) - 10}px`;
      track.append(arrow);
    }
    const dot = element("i", { className: "dot", title: data.lanes[own] });
    dot.style.left = `${middle(own)}px`;
    dot.style.background = `var(--${kind})`;
    track.append(dot);
    const link = chain.get(position[i]);
    const what = element("span", { className: "what", textContent: texts[i], title: link ? `${texts[i]}\n${link}` : texts[i] });
    if (columns.routine[i] !== "1") what.style.color = `var(--${kind})`;
    const repeated = k > 0 && at[shown[k - 1]] === at[i] && k !== drawnFrom;
    const made = element("div", { className: "row", id: `event-${position[i]}` },
      element("span", { className: "time", textContent: repeated ? "" : timeText(at[i]), title: `${timeText(at[i])} · ${data.kinds[columns.kind[i]][1]}` }),
      track,
      element("span", { className: "who", textContent: data.lanes[own] }),
      what);
    made.setAttribute("role", "option");
    made.setAttribute("aria-setsize", shown.length);
    made.setAttribute("aria-posinset", k + 1);
    made.setAttribute("aria-selected", position[i] === state.event);
    made.classList.toggle("chosen", position[i] === state.event);
    made.classList.toggle("chain", chain.has(position[i]));
    made.classList.toggle("routine", columns.routine[i] === "1");
    made.dataset.position = position[i];
    return made;
  }
  function middle(lane) { return lane * LANE + LANE / 2; }

  function choose(wanted, { scroll = true, keep = false } = {}) {
    if (wanted < 0 || !indexOf.has(wanted)) return;
    state.event = wanted;
    if (scroll) {
      let k = indexInShown(wanted);
      if (k < 0 && !keep) { clearFilters(); k = indexInShown(wanted); }
      const top = k * ROW;
      if (k >= 0 && (top < list.scrollTop + ROW || top > list.scrollTop + list.clientHeight - 2 * ROW)) {
        list.scrollTop = Math.max(0, top - list.clientHeight / 3);
      }
    }
    list.setAttribute("aria-activedescendant", `event-${wanted}`);
    draw(true);
    showMoment();
    markChain();
    drawOverview();
    remember();
  }
  function indexInShown(wanted) {
    let low = 0, high = shown.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (position[shown[half]] < wanted) low = half + 1; else high = half;
    }
    return low < shown.length && position[shown[low]] === wanted ? low : -1;
  }
  function step(by) {
    if (!shown.length) return;
    let k = 0;
    while (k < shown.length && position[shown[k]] < state.event) k++;
    const there = k < shown.length && position[shown[k]] === state.event;
    k = there ? k + by : by > 0 ? k : k - 1;
    choose(position[shown[Math.max(0, Math.min(shown.length - 1, k))]]);
  }

  // The replicas at an event: the changes up to it, one after the other.
  function stateAt(wanted) {
    const lives = {}, partitions = data.partitions.map(() => ({ znode: null, replicas: {}, acked: new Map(), read: new Map() }));
    for (let n = 0; n < data.changes.length && starts[n] <= wanted; n++) {
      const [, number, what, life] = data.changes[n];
      if (number < 0) { lives[what] = life; continue; }
      const partition = partitions[number], now = starts[n] === wanted;
      if (what.z) partition.znode = what.z;
      for (const [broker, change] of Object.entries(what.r || {})) replay(partition, broker, change, n, now);
      for (const [offset, value] of what.k || []) partition.acked.set(`${offset} ${value}`, true);
      for (const [offset, value] of what.d || []) partition.read.set(`${offset} ${value}`, true);
    }
    return { lives, partitions };
  }
  function replay(partition, broker, change, n, now) {
    const replica = partition.replicas[broker] ||= { hw: 0, flushed: 0, open: 0, role: "", epoch: -1, log: [], gone: new Map(), touched: new Set() };
    if (change.c !== undefined) {
      replica.log.slice(change.c).forEach((entry, i) => {
        if (!entry) return;
        replica.gone.set(change.c + i, [...(replica.gone.get(change.c + i) || []), entry]);
        if (now) replica.touched.add(change.c + i);
      });
      replica.log.length = change.c;
    }
    for (const entry of change.a || []) {
      if (now) replica.touched.add(replica.log.length);
      replica.log.push(entry);
    }
    for (const offset of change.h || []) {
      replica.gone.set(offset, [...(replica.gone.get(offset) || []), replica.log[offset]]);
      if (now) replica.touched.add(offset);
      replica.log[offset] = null;
    }
    for (const [offset, entry] of change.p || []) {
      while (replica.log.length < offset) replica.log.push(null);
      if (now) replica.touched.add(offset);
      replica.log[offset] = entry;
    }
    if (change.h) while (replica.log.length && !replica.log[replica.log.length - 1]) replica.log.pop();
    if (change.s) [replica.hw, replica.flushed, replica.open, replica.role, replica.epoch] = change.s;
    if (change.w) {
      if (now && change.w[0] > replica.hw) for (let o = replica.hw; o < change.w[0]; o++) replica.touched.add(o);
      [replica.hw, replica.flushed] = change.w;
    }
  }
  function showMoment() {
    const moment = $("moment"), i = indexOf.get(state.event);
    if (i === undefined) {
      moment.replaceChildren(element("p", { className: "legend", textContent: "Choose an event with a click or the arrow keys to see the replicas' logs at that moment." }));
      return;
    }
    const of = columns.partition[i] >= 0 ? columns.partition[i] : Math.max(0, momentPartition);
    momentPartition = of;
    const { lives, partitions } = stateAt(state.event);
    const title = element("h2", { textContent: `${data.partitions[of] ?? "The cluster"} at ${timeText(at[i])}` });
    const said = element("p", {}, element("b", { textContent: `${data.lanes[columns.lane[i]]}: ` }), texts[i]);
    const link = chain.get(state.event);
    if (link) said.append(element("br"), element("i", { textContent: link }));
    moment.replaceChildren(title, said);
    if (partitions[of]) moment.append(...replicaTable(partitions[of], lives));
  }
  let momentPartition = -1;

  function replicaTable(partition, lives) {
    const brokers = Object.keys(partition.replicas).sort((a, b) => a - b);
    const found = [];
    if (partition.znode) {
      const [leader, epoch, isr] = partition.znode;
      found.push(element("p", { textContent: `in ZooKeeper: ${leader < 0 ? "no leader" : `leader ${leader}`}, epoch ${epoch}, ISR [${isr.join(", ")}]` }));
    }
    const table = element("table", { className: "replicas" });
    const head = element("tr", {}, element("th", { textContent: "offset" }));
    for (const broker of brokers) {
      const replica = partition.replicas[broker], life = lives[broker] ?? 0;
      const how = life === 0 ? "down" : life === 2 ? "paused" : replica.open ? replica.role || "no role yet" : "starting";
      const cell = element("th", {}, `broker ${broker} `, element("small", { textContent: `${how}${replica.epoch >= 0 && replica.role ? `, epoch ${replica.epoch}` : ""}` }),
        element("br"), element("small", { textContent: `LEO ${replica.log.length} · HW ${replica.open ? replica.hw : "-"} · flushed ${replica.flushed}` }));
      cell.classList.toggle("down", life === 0);
      head.append(cell);
    }
    table.append(element("thead", {}, head));
    const body = element("tbody");
    const replicas = brokers.map((broker) => partition.replicas[broker]);
    const end = Math.max(0, ...replicas.map((replica) => Math.max(replica.log.length, ...[...replica.gone.keys()].map((offset) => offset + 1))));
    let same = [];
    const flush = () => {
      // A few rows before what differs are worth more than a line that says that they are not there.
      if (same.length > 3) {
        body.append(element("tr", { className: "fold" }, element("td", { colSpan: brokers.length + 1, textContent: `offsets ${same[0]} to ${same[same.length - 2]}: committed, and equal on all replicas` })));
        same = same.slice(-1);
      }
      for (const offset of same) body.append(logRow(partition, replicas, offset, lives, brokers));
      same = [];
    };
    for (let offset = 0; offset < end; offset++) {
      const entries = replicas.map((replica) => replica.log[offset]);
      const plain = entries.every((entry) => entry && entry[0] === entries[0][0] && entry[1] === entries[0][1])
        && replicas.every((replica) => (!replica.open || offset < replica.hw) && !replica.touched.has(offset) && !replica.gone.has(offset));
      if (plain) { same.push(offset); continue; }
      flush();
      body.append(logRow(partition, replicas, offset, lives, brokers));
    }
    flush();
    if (!end) body.append(element("tr", { className: "fold" }, element("td", { colSpan: brokers.length + 1, textContent: "no records yet" })));
    table.append(body);
    found.push(element("div", { className: "scroll" }, table),
      element("p", { className: "legend", textContent: "✓ acknowledged · ◉ read · italics: above the high watermark · dotted line: not flushed · red ground: replicas differ · struck out: no longer there · framed: by this event" }));
    return found;
  }
  function logRow(partition, replicas, offset, lives, brokers) {
    const line = element("tr", {}, element("td", { className: "off", textContent: String(offset) }));
    const present = replicas.map((replica) => replica.log[offset]).filter(Boolean);
    const different = present.some((entry) => entry[0] !== present[0][0] || entry[1] !== present[0][1]) ;
    replicas.forEach((replica, n) => {
      const cell = element("td"), entry = replica.log[offset];
      if (entry) {
        const [value, epoch, producer, sequence] = entry, key = `${offset} ${value}`;
        const record = element("span", { textContent: data.values[value] });
        record.classList.toggle("uncommitted", Boolean(replica.open) && offset >= replica.hw);
        record.classList.toggle("unflushed", offset >= replica.flushed);
        cell.append(record, element("small", { textContent: ` e${epoch}${producer >= 0 ? ` p${producer}#${sequence}` : ""}${partition.acked.has(key) ? " ✓" : ""}${partition.read.has(key) ? " ◉" : ""}` }));
      }
      for (const gone of replica.gone.get(offset) || []) {
        if (entry && gone[0] === entry[0] && gone[1] === entry[1]) continue;
        cell.append(" ", element("s", { textContent: data.values[gone[0]] }), element("small", { textContent: ` e${gone[1]}${partition.acked.has(`${offset} ${gone[0]}`) ? " ✓" : ""}` }));
      }
      cell.classList.toggle("down", (lives[brokers[n]] ?? 0) === 0);
      cell.classList.toggle("differs", different || (!entry && (replica.gone.has(offset) || present.length > 0)));
      cell.classList.toggle("touched", replica.touched.has(offset));
      line.append(cell);
    });
    return line;
  }

  // Findings
  function showFindings() {
    const section = $("findings");
    section.replaceChildren(element("h2", { textContent: data.findings.length ? "Findings" : "This run has no findings." }));
    for (const finding of data.findings) {
      const box = element("details", { className: finding.judged.startsWith("permitted") ? "permitted" : "" });
      box.dataset.number = finding.number;
      box.append(element("summary", {}, element("b", { textContent: `${finding.number} ${finding.title}` }), `: ${finding.judged}`));
      const links = element("ol");
      for (const link of finding.chain) {
        if (link.position === null) { links.append(element("li", {}, element("p", { textContent: `${link.at_ms === null ? "" : `${timeText(link.at_ms * 1000)} `}${link.text}` }))); continue; }
        const button = element("button", { type: "button" }, element("time", { textContent: timeText(link.at_ms * 1000) }), element("span", { textContent: link.text }));
        button.dataset.position = link.position;
        button.addEventListener("click", () => { openFinding(finding.number); choose(link.position); });
        links.append(element("li", {}, button));
      }
      box.append(links);
      for (const text of finding.prevented_by) box.append(element("p", { className: "prevented", textContent: `prevented by ${text}` }));
      box.addEventListener("toggle", () => {
        if (box.open && state.finding !== finding.number) openFinding(finding.number);
        else if (!box.open && state.finding === finding.number) openFinding(0);
      });
      section.append(box);
    }
  }
  function openFinding(number) {
    if (state.finding === number) return;
    state.finding = number;
    for (const box of document.querySelectorAll("#findings details")) box.open = Number(box.dataset.number) === number;
    const finding = data.findings.find((one) => one.number === number);
    chain = new Map((finding ? finding.chain : []).filter((link) => link.position !== null).map((link) => [link.position, link.text]));
    filter();
  }
  function markChain() {
    for (const button of document.querySelectorAll("#findings button")) button.classList.toggle("chosen", Number(button.dataset.position) === state.event);
  }
  function nextLink(forward) {
    if (!chain.size && data.findings.length) openFinding(data.findings[0].number);
    const links = [...chain.keys()].sort((a, b) => a - b);
    const next = forward ? links.find((one) => one > state.event) : links.reverse().find((one) => one < state.event);
    if (next !== undefined) choose(next);
  }

  // All of it at a glance
  const canvas = $("overview");
  function drawOverview() {
    const width = canvas.clientWidth || 800, height = 40, scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    if (service) drawService();
    const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    if (!context || !count) return;
    context.scale(scale, scale);
    const colors = data.kinds.map(([kind]) => style.getPropertyValue(`--${kind}`).trim());
    const top = Math.max(1, data.lanes.length), first = at[0], span = Math.max(1, at[count - 1] - first);
    const tall = (height - 4) / top;
    const x = (us) => 2 + (us - first) / span * (width - 4);
    context.globalAlpha = .75;
    const drawn = new Int32Array(top * data.kinds.length).fill(-1);
    for (const i of shown) {
      const here = Math.round(x(at[i])), which = columns.lane[i] * data.kinds.length + columns.kind[i];
      // Of a thousand events on one spot one is seen.
      if (drawn[which] === here) continue;
      drawn[which] = here;
      context.fillStyle = colors[columns.kind[i]];
      context.fillRect(here, 2 + columns.lane[i] * tall, 1.5, Math.max(1.5, tall - 1));
    }
    context.globalAlpha = 1;
    for (const wanted of chain.keys()) {
      context.fillStyle = style.getPropertyValue("--chain-edge").trim();
      context.fillRect(x(at[indexOf.get(wanted)] ?? first) - 1, 0, 2, height);
    }
    const i = indexOf.get(state.event);
    if (i !== undefined) {
      context.fillStyle = style.getPropertyValue("--accent").trim();
      context.fillRect(x(at[i]) - 1, 0, 2, height);
    }
  }
  const timeUnder = (event, surface) => at[0] + (event.offsetX - 2) / (surface.clientWidth - 4) * (at[count - 1] - at[0]);
  function chooseNear(wanted) {
    let best = -1;
    for (const i of shown) if (best < 0 || Math.abs(at[i] - wanted) < Math.abs(at[best] - wanted)) best = i;
    if (best >= 0) choose(position[best]);
  }
  canvas.addEventListener("click", (event) => chooseNear(timeUnder(event, canvas)));

  // How clients were served, above the same times
  const service = data.service, strip = $("service").querySelector("canvas"), caption = $("service").querySelector("figcaption");
  function drawService() {
    const width = strip.clientWidth || 800, height = 34, scale = window.devicePixelRatio || 1;
    strip.width = width * scale;
    strip.height = height * scale;
    const context = strip.getContext("2d"), style = getComputedStyle(document.documentElement);
    if (!context || !count) return;
    context.scale(scale, scale);
    const first = at[0], span = Math.max(1, at[count - 1] - first);
    const x = (us) => 2 + (us - first) / span * (width - 4);
    context.globalAlpha = .22;
    context.fillStyle = style.getPropertyValue("--bad").trim();
    for (const [from, to] of service.outages) context.fillRect(x(from), 0, Math.max(1.5, x(to) - x(from)), height);
    context.globalAlpha = 1;
    // A burst after an outage would make everything else look like nothing.
    const sorted = service.counts.filter(Boolean).sort((a, b) => a - b), usual = sorted[Math.ceil(sorted.length * .9) - 1] || 1;
    context.fillStyle = style.getPropertyValue("--ack").trim();
    service.counts.forEach((acks, n) => {
      if (!acks) return;
      const tall = Math.min(1, acks / usual) * (height - 4), from = x(n * service.bucket);
      context.fillRect(from, height - 1 - tall, Math.max(1, x((n + 1) * service.bucket) - from - .5), tall);
    });
  }
  function say(us) {
    const here = us === null ? [] : service.outages.filter(([from, to]) => from <= us && us <= to);
    const n = us === null ? -1 : Math.floor(us / service.bucket);
    caption.textContent = here.length
      ? here.map(([from, to, partition, why]) => `${partition}: no ack for ${timeText(to - from)} from ${timeText(from)} on: ${why}`).join(" · ")
      : n >= 0 && n < service.counts.length ? `${service.counts[n]} acks in ${timeText(service.bucket)} at ${timeText(n * service.bucket)}`
      : `acks over time; red: ${service.outages.length} outages, when a partition acknowledged nothing`;
  }
  if (service) {
    $("service").hidden = false;
    strip.addEventListener("mousemove", (event) => say(timeUnder(event, strip)));
    strip.addEventListener("mouseleave", () => say(null));
    strip.addEventListener("click", (event) => chooseNear(timeUnder(event, strip)));
    say(null);
  }

  // Controls
  function chips(fieldset, names, off, titles = [], colored = false) {
    names.forEach((name, n) => {
      const chip = element("button", { type: "button", className: "chip", textContent: name, title: titles[n] ? `${titles[n]} (double click: only this)` : "double click: only this" });
      chip.dataset.name = name;
      if (colored) chip.style.setProperty("--dot", `var(--${name})`);
      chip.addEventListener("click", () => { if (!off.delete(name)) off.add(name); press(); filter(); });
      chip.addEventListener("dblclick", () => { names.forEach((other) => off.add(other)); off.delete(name); press(); filter(); });
      fieldset.append(chip);
    });
  }
  function press() {
    for (const chip of document.querySelectorAll(".chip")) {
      const off = chip.parentElement.id === "lanes" ? state.lanes : state.kinds;
      chip.setAttribute("aria-pressed", String(!off.has(chip.dataset.name)));
    }
  }
  function clearFilters() {
    state.text = "";
    state.partition = "";
    state.lanes.clear();
    state.kinds.clear();
    const i = indexOf.get(state.event);
    if (i !== undefined && columns.routine[i] === "1") state.routine = true;
    showControls();
    filter();
  }
  function showControls() {
    $("text").value = state.text;
    $("partition").value = state.partition;
    $("routine").checked = state.routine;
    press();
  }
  function theme(dark) {
    document.documentElement.classList.toggle("dark", dark);
    drawOverview();
  }

  // The address has what is shown, so that it can be passed on.
  let quiet = true;
  function remember() {
    if (quiet) return;
    const words = new URLSearchParams();
    if (state.text) words.set("filter", state.text);
    if (state.lanes.size) words.set("without", [...state.lanes].join(","));
    if (state.kinds.size) words.set("not", [...state.kinds].join(","));
    if (state.partition) words.set("partition", state.partition);
    if (state.routine) words.set("routine", "1");
    if (state.finding) words.set("finding", state.finding);
    if (state.event >= 0) words.set("event", state.event);
    const hash = `#${words}`;
    if (hash !== location.hash) try { history.replaceState(null, "", hash); } catch { /* a page without an address */ }
  }
  function recall() {
    const words = new URLSearchParams(location.hash.slice(1));
    state.text = words.get("filter") || "";
    state.lanes.clear();
    state.kinds.clear();
    (words.get("without") || "").split(",").filter((name) => data.lanes.includes(name)).forEach((name) => state.lanes.add(name));
    (words.get("not") || "").split(",").filter((name) => data.kinds.some(([kind]) => kind === name)).forEach((name) => state.kinds.add(name));
    state.partition = data.partitions.includes(words.get("partition")) ? words.get("partition") : "";
    state.routine = words.get("routine") === "1";
    if (words.get("theme")) theme(words.get("theme") === "dark");
    quiet = true;
    showControls();
    // An address that says nothing shows what was found first.
    const plain = !words.has("finding") && !words.has("event") && data.findings.length > 0;
    openFinding(plain ? data.findings[0].number : Number(words.get("finding")) || 0);
    filter();
    if (words.has("event")) choose(Number(words.get("event")), { keep: true });
    else if (plain && chain.size) choose(Math.min(...chain.keys()), { keep: true });
    else showMoment();
    quiet = false;
  }

  for (const [name, value] of data.run) {
    $("run").append(element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value, className: value === "violated" ? value : "" })));
  }
  $("partition").append(new Option("all", ""), ...data.partitions.map((name) => new Option(name, name)));
  chips($("lanes"), data.lanes, state.lanes);
  chips($("kinds"), data.kinds.map(([kind]) => kind), state.kinds, data.kinds.map(([, what]) => what), true);
  data.lanes.forEach((lane, n) => {
    const head = element("span", { textContent: lane, title: lane });
    head.style.left = `${TIME + middle(n)}px`;
    $("heads").append(head);
  });
  showFindings();
  if (data.created) $("created").textContent = `${data.created}; “routine events” shows each`;
  theme(matchMedia("(prefers-color-scheme: dark)").matches);

  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("text").addEventListener("input", () => { state.text = $("text").value; filter(); });
  $("partition").addEventListener("change", () => { state.partition = $("partition").value; filter(); });
  $("routine").addEventListener("change", () => { state.routine = $("routine").checked; filter(); });
  $("theme").addEventListener("click", () => theme(!document.documentElement.classList.contains("dark")));
  $("keys").addEventListener("click", () => $("help").showModal());
  list.addEventListener("scroll", () => draw(false), { passive: true });
  list.addEventListener("click", (event) => {
    const line = event.target.closest(".row");
    if (line) choose(Number(line.dataset.position), { scroll: false });
  });
  addEventListener("resize", () => { draw(true); drawOverview(); });
  addEventListener("hashchange", recall);
  const page = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const keys = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), j: () => step(1), k: () => step(-1),
    PageDown: () => step(page()), PageUp: () => step(-page()),
    Home: () => shown.length && choose(position[shown[0]]), End: () => shown.length && choose(position[shown[shown.length - 1]]),
    n: () => nextLink(true), p: () => nextLink(false), "/": () => $("text").focus(),
    r: () => { state.routine = !state.routine; showControls(); filter(); },
    t: () => theme(!document.documentElement.classList.contains("dark")),
    "?": () => $("help").showModal(), Escape: () => { clearFilters(); list.focus(); },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const typing = event.target.matches("input[type=search], select");
    if (typing && event.key !== "Escape") return;
    if (event.target.matches("button, summary") && ["Enter", " "].includes(event.key)) return;
    if (/^[1-9]$/.test(event.key)) openFinding(Number(event.key));
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });

  recall();
  document.documentElement.dataset.ready = "1";
})();
