"use strict";
(() => {
  const night = matchMedia("(prefers-color-scheme: dark)");
  const swaps = JSON.parse(document.getElementById("swaps").textContent);
  const PER_PAGE = 10, AXIS = 70, LETTER = 7.5, SYMBOL = 32;

  // Charts ---------------------------------------------------------------------------------------

  function coloured(value) {
    if (typeof value === "string") return night.matches && swaps[value] || value;
    if (Array.isArray(value)) return value.map(coloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, coloured(inner)]));
  }

  function labels(value) {
    if (value === null || typeof value !== "object") return [];
    const own = Array.isArray(value.domain) ? value.domain.filter((label) => typeof label === "string") : [];
    return own.concat(...Object.values(value).map(labels));
  }

  // As many names of a legend on a line as there is room for.
  function fitted(spec, width) {
    const longest = Math.max(1, ...labels(spec).map((label) => label.length));
    spec.config.legend.columns = Math.max(1, Math.floor((width - AXIS) / (longest * LETTER + SYMBOL)));
    return spec;
  }

  async function draw(chart) {
    const place = chart.querySelector(".drawing");
    const spec = fitted(coloured(JSON.parse(chart.querySelector("script").textContent)), chart.clientWidth);
    const options = { actions: false, renderer: "svg", ast: false, tooltip: { theme: "custom" } };
    await vegaEmbed(place, spec, options);
    chart.dataset.drawn = night.matches ? "dark" : "light";
  }

  async function drawAll() {
    for (const chart of document.querySelectorAll(".chart")) await draw(chart);
  }

  // Listings -------------------------------------------------------------------------------------

  function element(name, properties = {}, ...inside) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  }

  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const number = (text) => parseFloat(text.replace("−", "-").replace(/,/g, ""));

  function compared(column, falling) {
    const sign = falling ? -1 : 1;
    if (!column.number) return (a, b) => sign * order.compare(a, b);
    return (a, b) => {
      const [x, y] = [number(a), number(b)];
      // What is not a number comes last either way.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return sign * (x - y);
    };
  }

  function cell(text, column, better) {
    const moved = column.signed ? Math.sign(number(text)) * better : 0;
    const kind = [column.number ? "number" : "name", moved > 0 ? "gained" : moved < 0 ? "lost" : ""];
    return element("td", { textContent: text, title: column.number ? "" : text, className: kind.join(" ") });
  }

  function listing(place) {
    const told = JSON.parse(place.querySelector("script").textContent);
    let { by, falling } = told, page = 0, sought = "", shown = told.rows;

    const search = element("input", { type: "search", placeholder: told.search });
    search.setAttribute("aria-label", told.search);
    const count = element("span");
    count.setAttribute("role", "status");
    const heads = told.columns.map((column, i) => {
      const button = element("button", { type: "button", textContent: column.title });
      button.addEventListener("click", () => {
        falling = by === i ? !falling : column.number;
        by = i; page = 0;
        arrange();
      });
      const head = element("th", { scope: "col", className: column.number ? "number" : "" }, button);
      return head;
    });
    const body = element("tbody");
    const back = element("button", { type: "button", textContent: "Previous" });
    const on = element("button", { type: "button", textContent: "Next" });
    const where = element("span");
    const pager = element("div", { className: "pager" }, back, where, on);
    back.addEventListener("click", () => { page -= 1; fill(); });
    on.addEventListener("click", () => { page += 1; fill(); });
    search.addEventListener("input", () => { sought = search.value.trim().toLowerCase(); page = 0; arrange(); });

    function arrange() {
      const compare = compared(told.columns[by], falling);
      shown = sought ? told.rows.filter((row) => row[0].toLowerCase().includes(sought)) : told.rows.slice();
      shown.sort((a, b) => compare(a[by], b[by]) || order.compare(a[0], b[0]));
      heads.forEach((head, i) => {
        head.setAttribute("aria-sort", i !== by ? "none" : falling ? "descending" : "ascending");
      });
      fill();
    }

    function fill() {
      const pages = Math.max(1, Math.ceil(shown.length / PER_PAGE));
      body.replaceChildren(...shown.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(line));
      count.textContent = `${shown.length.toLocaleString("en")} of ${told.rows.length.toLocaleString("en")}`;
      where.textContent = `${page + 1} of ${pages}`;
      back.disabled = page === 0;
      on.disabled = page >= pages - 1;
      pager.hidden = pages === 1;
    }

    function line(row) {
      return element("tr", {}, ...row.map((text, i) => cell(text, told.columns[i], told.better)));
    }

    const table = element("table", {}, element("caption", { textContent: told.title }),
      element("thead", {}, element("tr", {}, ...heads)), body);
    place.append(element("div", { className: "tools" }, search, count), element("div", { className: "wide" }, table), pager);
    arrange();
  }

  // ----------------------------------------------------------------------------------------------

  document.querySelectorAll(".listing").forEach(listing);
  document.querySelectorAll(".chart").forEach((chart) => chart.append(element("div", { className: "drawing", style: "width:100%" })));
  if (typeof vegaEmbed === "function") {
    night.addEventListener("change", drawAll);
    drawAll();
  }
})();
