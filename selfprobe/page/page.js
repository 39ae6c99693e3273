// Tables sort at a click on a heading (or Enter), and long ones can be filtered; a link opens what it leads to; paper has
// what is unfolded; a picture becomes a PNG when it is asked for. The page is whole without it.
"use strict";
const unfold = () => { for (let at = document.getElementById(location.hash.slice(1)); at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true; };
addEventListener("hashchange", () => { unfold(); document.getElementById(location.hash.slice(1))?.scrollIntoView(); });
unfold();
for (const links of document.querySelectorAll("figcaption")) {
  const png = Object.assign(document.createElement("a"), { className: "png", textContent: "PNG", href: "#" });
  png.addEventListener("click", () => {
    const image = links.parentElement.querySelector("img"), canvas = document.createElement("canvas"), times = 3;
    if (png.download) return;
    canvas.width = times * image.naturalWidth; canvas.height = times * image.naturalHeight;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    png.download = links.querySelector("a").getAttribute("href").replace(/^.*\/|\.svg$/g, "") + ".png"; png.href = canvas.toDataURL("image/png");
  });
  links.append(png);
}
const number = (text) => { const found = text.replace(/−/g, "-").match(/^[<>≤≥p= ]*([-+]?(\d+\.?\d*|\.\d+))/); return found ? Number(found[1]) : null; };
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  if (rows.length < 3) continue;
  heads.forEach((head, at) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending", key = (row) => row.cells[at].textContent.trim();
      const numeric = rows.some((row) => number(key(row)) !== null) && rows.every((row) => number(key(row)) !== null || /^[–?-]?(\s*\(.*)?$/.test(key(row)));
      const order = (one, other) => {
        if (!numeric) return key(one).localeCompare(key(other), undefined, { numeric: true });
        const [a, b] = [number(key(one)), number(key(other))];
        return a === null || b === null ? (a === null) - (b === null) : a - b;
      };
      const sorted = [...rows].sort(order), none = numeric ? sorted.filter((row) => number(key(row)) === null) : [];
      body.append(...(down ? [...sorted.filter((row) => !none.includes(row)).reverse(), ...none] : sorted));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  });
  if (rows.length > 12) {
    const filter = Object.assign(document.createElement("input"), { type: "search", placeholder: "show rows with …" });
    filter.setAttribute("aria-label", "show rows with");
    filter.addEventListener("input", () => rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase()); }));
    table.before(filter);
  }
}
