// This script of the dashboard draws charts from the numbers in the tables of a page, and adds keyboard shortcuts. Every page also works
// without the script.
"use strict";

(() => {
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const whole = new Intl.NumberFormat("en");
  // labels returns the texts of the marks of an axis. All texts have the same number of decimals: the smallest number that shows every mark
  // exactly.
  function labels(marks) {
    for (let digits = 0; digits < 5; digits++) {
      const format = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: digits });
      const isExact = n => {
        const unit = [1e12, 1e9, 1e6, 1e3].find(u => Math.abs(n) >= u) ?? 1;
        return Math.abs(Number((n / unit).toFixed(digits)) * unit - n) < 1e-6 * unit;
      };
      if (marks.every(isExact)) return marks.map(n => format.format(n).replace("K", "k"));
    }
    return marks.map(n => whole.format(n));
  }
  // rounded returns a range of values for an axis. The range contains the numbers low and high, and begins and ends at a mark of the
  // axis.
  function rounded(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 2.5, 5, 10].find(n => n * power >= rough) * power);
    return [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  }
  const day = 86400;
  const seconds = text => Date.parse(text + "T00:00:00Z") / 1000;
  const numberIn = cell => {
    const text = cell?.querySelector("data")?.value ?? "";
    return text === "" ? null : Number(text);
  };

  // readTable returns the days of the chart's period, and one point of a metric for each day. A day without a row in the table has the value
  // null, so that the line has a gap.
  function readTable(figure, metric = figure.dataset.metric) {
    const attribute = figure.dataset.view === "gain" ? "gain" : "of";
    const rows = new Map();
    for (const row of figure.querySelectorAll("tr[data-day]")) {
      const cell = row.querySelector(`td[data-${attribute}="${metric}"]`);
      rows.set(seconds(row.dataset.day), { value: numberIn(cell), quality: row.dataset.quality ?? cell?.dataset.quality ?? "", row });
    }
    const days = [], points = [];
    for (let at = seconds(figure.dataset.start); at <= seconds(figure.dataset.end); at += day) {
      days.push(at);
      points.push(rows.get(at) ?? { value: null, quality: "", row: null });
    }
    return { days, points };
  }

  // isComputed returns true if a point was not fetched: it was computed from other points, or it has the counts of an earlier day.
  const isComputed = point => point.quality === "interpolated" || point.quality === "carried";

  // shortened returns at most the first 24 characters of a text, and "…" if the text is longer. An emoji is one character, also if it has several
  // code points.
  const characters = Intl.Segmenter && new Intl.Segmenter();
  const shortened = text => {
    const all = characters ? [...characters.segment(text)].map(part => part.segment) : [...text];
    return all.length > 24 ? all.slice(0, 24).join("").trimEnd() + "…" : text;
  };

  // An axis of dates has at most six marks.
  const dates = { space: (_u, _axis, _low, _high, width) => Math.max(70, width / 5), values: (_, at) => at.map(t => new Date(t * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" })) };
  const axisOf = () => ({ stroke: colour("muted"), grid: { stroke: colour("border"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" });

  // wholeSteps are the distances that the marks of an axis of counts can have. A count is never a fraction.
  const wholeSteps = Array.from({ length: 19 }, (_, n) => [1, 2, 2.5, 5].map(step => step * 10 ** n)).flat().filter(Number.isInteger);

  // withNeighbours returns true if the point with index n, or a point beside it, was computed. A line of these points meets the line of the
  // measured points.
  const withNeighbours = (points, n) => isComputed(points[n]) || [n - 1, n + 1].some(m => points[m] && isComputed(points[m]));

  // lonePoints returns the indexes of the known values of a series whose neighbours are both unknown. No line leads to such a value, so the chart
  // shows it as a dot.
  const lonePoints = (u, series) => {
    const values = u.data[series], isUnknown = n => (values[n] ?? null) === null;
    return values.map((_, n) => n).filter(n => !isUnknown(n) && isUnknown(n - 1) && isUnknown(n + 1));
  };
  const dots = { show: true, size: 6, filter: lonePoints };

  // labelLines writes the number of each line of a comparison beside the last point of the line. Numbers that would overlap are moved down.
  function labelLines(u, lines, colours) {
    const scale = devicePixelRatio, height = 14 * scale, { ctx } = u;
    const ends = lines.map((line, n) => ({ n, last: line.findLastIndex(value => value !== null) })).filter(({ last }) => last >= 0)
      .map(({ n, last }) => ({ n, x: u.valToPos(u.data[0][last], "x", true), y: u.valToPos(lines[n][last], "y", true) })).sort((a, b) => a.y - b.y || a.n - b.n);
    ctx.save();
    ctx.font = `600 ${12 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    let lowest = -Infinity;
    for (const { n, x, y } of ends) {
      const at = Math.max(y, lowest + height);
      ctx.fillStyle = colours[n];
      ctx.fillText(String(n + 1), x + 6 * scale, at);
      lowest = at;
    }
    ctx.restore();
  }

  // drawCompared draws all metrics of a figure as lines. Each line is scaled so that its highest value is 100. The colour and the dashes of each
  // line are those of its swatch above the chart. The parts with computed days are dotted.
  function drawCompared(figure) {
    const plot = figure.querySelector(".plot"), readout = figure.querySelector(".readout");
    const names = [...figure.querySelectorAll("thead th[data-metric]")];
    const tables = names.map(name => readTable(figure, name.dataset.metric));
    const scaled = tables.map(({ points }) => {
      const highest = Math.max(...points.map(p => p.value ?? 0));
      return points.map(p => p.value === null || highest <= 0 ? null : 100 * p.value / highest);
    });
    plot.replaceChildren();
    const styles = [...document.querySelectorAll(".swatch")].map(swatch => getComputedStyle(swatch));
    const colours = styles.map(style => style.stroke), dashes = styles.map(style => (style.strokeDasharray.match(/[\d.]+/g) ?? []).map(Number));
    const measured = scaled.map((line, m) => line.map((value, n) => isComputed(tables[m].points[n]) ? null : value));
    const computed = scaled.map((line, m) => line.map((value, n) => withNeighbours(tables[m].points, n) ? value : null));
    // If all values are far above 0, the axis begins a little below the lowest value, so that lines close to each other can be told apart.
    const known = scaled.flat().filter(value => value !== null), lowest = Math.min(...known, 98);
    const margin = (100 - lowest) * 0.05, range = lowest < 50 ? [Math.min(0, lowest), 105] : [lowest - margin, 100 + margin];
    figure.querySelector(".axis").textContent = [range[0] > 0 && "The axis does not begin at 0.",
      tables.some(({ points }) => points.some(isComputed)) && "Dotted: calculated from the fetches before and after."].filter(Boolean).join(" ");
    // showDay shows the numbers of the day with index n. The element <bdi> prevents that a right-to-left caption moves the number of another video.
    const showDay = n => {
      readout.replaceChildren();
      if (n === undefined) return;
      readout.append(new Date(tables[0].days[n] * 1000).toISOString().slice(0, 10));
      tables.forEach(({ points }, m) => {
        const caption = document.createElement("bdi");
        caption.textContent = shortened(names[m].textContent);
        readout.append(" · " + (m + 1) + " ", caption, ": " + (points[n].value === null ? "no number" : whole.format(points[n].value)));
      });
    };
    const last = tables[0].days.length - 1;
    showDay(last);
    new uPlot({
      width: plot.clientWidth, height: 256, tzDate: at => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } }, padding: [8, 24, 0, 0], scales: { y: { range: () => range } },
      axes: [{ ...axisOf(), ...dates, size: 32 }, { ...axisOf(), size: 60, space: 45, values: (_, at) => at.map(n => Number(n.toFixed(2)) + " %") }],
      series: [{}, ...scaled.map((_, n) => ({ stroke: colours[n], width: 2, dash: dashes[n], points: { ...dots, fill: colours[n] } })),
        ...scaled.map((_, n) => ({ stroke: colours[n], width: 2, dash: [2, 5], points: { show: false } }))],
      hooks: { setCursor: [u => { showDay(u.cursor.idx ?? last); }], draw: [u => labelLines(u, scaled, colours)] },
    }, [tables[0].days, ...measured, ...computed], plot);
  }

  // draw draws the chart of a figure. It replaces an earlier chart of the figure. A figure without known numbers has no place for a chart.
  function draw(figure) {
    if (!figure.querySelector(".plot")) return;
    if (figure.hasAttribute("data-compared")) {
      drawCompared(figure);
      return;
    }
    const plot = figure.querySelector(".plot"), readout = figure.querySelector(".readout");
    const { days, points } = readTable(figure);
    const view = figure.dataset.view; // total, gain (the change of each day) or day (counts of single days)
    const gain = view !== "total"; // true if the chart has columns instead of a line
    const solid = points.map(p => isComputed(p) ? null : p.value);
    // The dashed line also has the measured points beside the computed ones, so that the two lines meet.
    const dashed = points.map((p, n) => (gain ? isComputed(p) : withNeighbours(points, n)) ? p.value : null);
    const corrected = points.map(p => p.quality === "corrected" ? p.value : null);
    const joined = points.map(p => p.row?.dataset.joined ? p.value : null); // days on which videos joined the collection
    const known = points.filter(p => p.value !== null);
    plot.replaceChildren();
    const axis = axisOf();
    const bars = gain && uPlot.paths.bars({ size: [0.7, 40] });
    const values = known.map(p => p.value), lowest = Math.min(...values), highest = Math.max(...values);
    // The axis of changes begins at 0 or below. The axis of totals begins a little below the lowest total. It begins below 0 only if a total is negative.
    const margin = Math.max(1, (highest === lowest ? Math.abs(lowest) : highest - lowest) * 0.05);
    const range = gain ? rounded(Math.min(0, lowest), Math.max(1, highest)) : rounded(lowest < 0 ? lowest - margin : Math.max(0, lowest - margin), highest + margin);
    figure.querySelector(".axis").textContent = [range[0] > 0 && "The axis does not begin at 0.",
      points.some(isComputed) && (figure.hasAttribute("data-sums") ? "Dashed: no video was fetched." : "Dashed: calculated from the fetches before and after."),
      corrected.some(v => v !== null) && "Ring: lower than before.", joined.some(v => v !== null) && "Ring: videos were added on this day, or count from the next day."].filter(Boolean).join(" ");
    const last = points.findLastIndex(p => p.value !== null);
    const describe = n => {
      const p = points[n];
      if (!p || p.value === null) return n === undefined ? "" : new Date(days[n] * 1000).toISOString().slice(0, 10) + " · no number";
      const cells = p.row ? [...p.row.cells] : [];
      const more = p.row?.hasAttribute("data-note") ? p.row.dataset.note : p.quality ? cells.slice(-3).map(c => c.textContent.trim()).filter(Boolean).join(" · ") : "";
      const other = view === "day" ? "" : p.row?.querySelector(`td[data-${gain ? "of" : "gain"}="${figure.dataset.metric}"] data`)?.textContent ?? "";
      const sign = view === "gain" && p.value > 0 ? "+" : "";
      const members = p.row?.dataset.joined ? p.row.dataset.joined + (p.row.dataset.joined === "1" ? " video added" : " videos added") : "";
      return [new Date(days[n] * 1000).toISOString().slice(0, 10), sign + whole.format(p.value), other && (gain ? "total " : "per day ") + other, members, more].filter(Boolean).join(" · ");
    };
    readout.textContent = describe(last);
    const series = [{},
      { stroke: colour("accent"), width: 2, fill: gain ? colour("accent") : range[0] > 0 ? undefined : colour("bar"), paths: bars || undefined, points: gain ? { show: false } : { ...dots, fill: colour("accent") } },
      { stroke: colour("accent"), width: 2, dash: [4, 4], paths: bars || undefined, points: { show: false } },
      { stroke: colour("warn"), width: 0, paths: () => null, points: { show: true, size: 10, width: 2, fill: colour("surface") } },
      { stroke: colour("accent"), width: 0, paths: () => null, points: { show: true, size: 8, width: 2, fill: colour("surface") } },
    ];
    new uPlot({
      width: plot.clientWidth, height: 256, tzDate: at => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } }, padding: [8, 24, 0, 0],
      scales: { x: { range: (_, first, last) => gain || first === last ? [first - day / 2, last + day / 2] : [first, last] }, y: { range: () => range } },
      axes: [{ ...axis, ...dates, size: 32 },
        { ...axis, size: (_, texts) => Math.max(60, 16 + 7 * Math.max(0, ...(texts ?? []).map(text => text.length))), space: 45, incrs: wholeSteps, values: (_, at) => labels(at) }],
      series,
      hooks: { setCursor: [u => { readout.textContent = describe(u.cursor.idx ?? last); }] },
    }, [days, solid, dashed, corrected, joined], plot);
  }

  // The head of a table stays in view, unless the table is wider than the page and scrolls in its own box.
  const findWideTables = () => {
    for (const box of document.querySelectorAll(".wide")) box.classList.remove("fits");
    for (const box of document.querySelectorAll(".wide")) box.classList.toggle("fits", box.scrollWidth <= box.clientWidth);
  };
  const figures = () => document.querySelectorAll("figure.chart");
  const drawAll = () => figures().forEach(draw);
  // The times in the table are localised first, because the readout of a chart has the text of the table.
  for (const shown of ["DOMContentLoaded", "htmx:afterSettle"]) {
    document.addEventListener(shown, () => {
      localise();
      findWideTables();
      drawAll();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) {
      width = innerWidth;
      findWideTables();
      drawAll();
    }
  });

  // Times are shown in the time zone of the visitor. Without the script, they are UTC.
  const local = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });
  function localise() {
    for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) {
      const text = local.format(new Date(time.dateTime));
      time.dataset.local = "";
      time.title = text + " (" + time.title + ")";
      if (time.hasAttribute("data-clock")) time.textContent = text;
    }
  }

  // A filter takes effect when it is changed with the mouse or by touch. With the keyboard, the visitor presses Enter or the button of the form,
  // because each arrow key in a list changes the value. Without this script, the visitor must press the button.
  let usesPointer = false; // true if the last press was not on the keyboard
  addEventListener("pointerdown", () => { usesPointer = true; }, true);
  addEventListener("keydown", () => { usesPointer = false; }, true);
  document.addEventListener("change", event => {
    if (usesPointer && event.target.matches("form[data-live] select, form[data-live] input[type=checkbox]")) event.target.form.requestSubmit();
  });

  // A last day in the past closes a share page. The form says so before it is sent.
  document.addEventListener("input", event => {
    if (event.target.name !== "last_day") return;
    const day = event.target.value, today = new Date().toISOString().slice(0, 10);
    event.target.form.querySelector(".over").hidden = day === "" || day >= today;
  });

  // isChanged returns true if the visitor has changed a form field that is not sent yet.
  function isChanged(field) {
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (field.tagName === "SELECT") return field.selectedIndex !== Math.max(0, [...field.options].findIndex(option => option.defaultSelected));
    return field.type !== "hidden" && field.value !== field.defaultValue;
  }
  // isInUse returns true if the visitor uses the page. This is so if a part of the page has the focus, a menu or the search dialog is open, a field
  // is changed, or text is selected.
  function isInUse() {
    const main = document.getElementById("content");
    return (main.contains(document.activeElement) && document.activeElement !== main) || main.querySelector("details[open]") !== null ||
      document.querySelector("dialog[open]") !== null || !getSelection().isCollapsed || [...main.querySelectorAll("input, select, textarea")].some(isChanged);
  }
  // A page that waits for numbers is not replaced while the visitor uses it. htmx tries again after the next interval.
  document.addEventListener("htmx:beforeRequest", event => {
    if (event.target.matches("[data-wait]") && isInUse()) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", event => {
    if (event.detail.requestConfig.elt.matches("[data-wait]") && isInUse()) event.detail.shouldSwap = false;
  });
  // A form that changes data is sent only once, even after a double click. Empty fields of a filter form are left out of the URL.
  document.addEventListener("submit", event => {
    if ((event.submitter?.formMethod || event.target.method) !== "get") { // a button can have another method than its form
      if (event.target.dataset.sent) event.preventDefault();
      event.target.dataset.sent = "true";
      return;
    }
    for (const field of event.target.elements) if (field.name && field.value === "") field.disabled = true;
  });
  // After "back", a browser can show a page from its memory. If the session has ended since then, the visitor gets the sign-in page instead.
  addEventListener("pageshow", async event => {
    const signOut = document.querySelector(".top form[method=post]"), palette = document.querySelector("#palette form");
    if (!event.persisted || !signOut || !palette) return;
    const answer = await fetch(palette.action, { redirect: "manual", cache: "no-store" }).catch(() => null);
    if (answer?.type === "opaqueredirect") location.replace(signOut.action.replace(/logout$/, "login"));
  });
  addEventListener("pageshow", event => {
    if (event.persisted) document.querySelectorAll("form[data-live]").forEach(form => form.reset()); // after "back", the form shows the filters of the page's URL
    document.querySelectorAll("form[data-sent]").forEach(form => delete form.dataset.sent);
    document.querySelectorAll("form[method=get] :disabled, form.search :disabled").forEach(field => { field.disabled = false; });
  });

  // A box above a list of videos or accounts chooses all of them. showChoice sets this box and the text beside it, which screen readers read out after a change.
  function showChoice() {
    const line = document.querySelector("[data-choose]"), boxes = [...document.querySelectorAll("input.pick")];
    if (!line) return;
    const chosen = boxes.filter(box => box.checked).length, all = line.querySelector("input"), status = line.querySelector("[role=status]");
    const text = chosen > 0 ? `${chosen} of ${boxes.length} chosen` : status.textContent && "Nothing is chosen";
    line.hidden = false;
    for (const button of line.querySelectorAll("button")) button.hidden = chosen === 0;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    if (status.textContent !== text) status.textContent = text;
  }
  for (const shown of ["DOMContentLoaded", "htmx:afterSettle"]) document.addEventListener(shown, showChoice);
  addEventListener("pageshow", showChoice); // after "back", the browser checks the boxes again
  document.addEventListener("change", event => {
    if (event.target.matches("[data-choose] input")) {
      for (const box of document.querySelectorAll("input.pick")) box.checked = event.target.checked;
    } else if (!event.target.matches("input.pick")) {
      return;
    }
    showChoice();
  });

  document.addEventListener("keydown", event => {
    const search = document.getElementById("search"), palette = document.getElementById("palette");
    const typing = event.target.closest("input, textarea, select");
    if (palette && event.key === "k" && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      if (!palette.open) palette.showModal();
      palette.querySelector("input").select();
    } else if (search && event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "Enter" && event.target.matches("form[data-live] select")) {
      event.preventDefault(); // some browsers do not send a form when Enter is pressed in a list
      event.target.form.requestSubmit();
    } else if (palette?.open && event.key === "Escape") {
      event.preventDefault(); // otherwise, the first Escape only empties the search field
      palette.close();
    } else if (palette?.open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const stops = [palette.querySelector("input"), ...palette.querySelectorAll("#found a")];
      const at = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      stops[(at + stops.length) % stops.length].focus();
    } else if (palette?.open && event.key === "Enter" && event.target.matches("#palette input")) {
      const first = palette.querySelector("#found a");
      if (!first) return; // without results, the form shows the page of results
      event.preventDefault();
      first.click();
    }
  });
  document.addEventListener("click", async event => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    // Browsers have no clipboard at addresses that begin with http://, except localhost.
    const isCopied = await navigator.clipboard?.writeText(button.dataset.copy).then(() => true, () => false);
    if (!isCopied) getSelection().selectAllChildren(button.previousElementSibling); // the element before the button has the text
    button.textContent = isCopied ? "Copied" : "Selected. Press Ctrl-C or ⌘-C";
  });
})();
