// The table of `softstack suite`: sorts by the heading that is pressed, shows the rows whose boxes are ticked,
// and one of the measures. What is shown is in the address, so that a view can be passed on.
"use strict";
const FIELDS = ["task", "memory", "controller", "recipe"];
const table = document.querySelector("table.sortable");
const rows = [...table.tBodies[0].rows];
const heads = [...table.tHead.rows[0].cells];
const boxes = [...document.querySelectorAll(".filters input")];
const measure = document.getElementById("measure");
let sorted = { column: -1, down: true };

function numberOf(cell) {
  const text = cell.dataset[measure.value] ?? cell.dataset.sort;
  return text === undefined ? NaN : Number(text === "inf" ? Infinity : text);
}

function order(a, b) {
  const [x, y] = [a, b].map((row) => row.cells[sorted.column]);
  const [p, q] = [numberOf(x), numberOf(y)];
  if (Number.isNaN(p) && Number.isNaN(q)) return x.textContent.localeCompare(y.textContent);
  if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) ? 1 : -1; // what is empty comes last
  return p - q;
}

function show() {
  const ticked = Object.fromEntries(
    FIELDS.map((field) => [field, new Set(boxes.filter((b) => b.name === field && b.checked).map((b) => b.value))]),
  );
  let count = 0;
  for (const row of rows) {
    row.hidden = !FIELDS.every((field) => ticked[field].has(row.dataset[field]));
    count += !row.hidden;
    for (const cell of row.querySelectorAll("td.share")) {
      const text = cell.dataset[measure.value]; // rounded once, where the page was made
      cell.textContent = text === "inf" ? "-" : text;
    }
  }
  document.getElementById("count").textContent = `${count} of ${rows.length} cells`;
  if (sorted.column >= 0) {
    const line = [...rows].sort((a, b) => (sorted.down ? -1 : 1) * order(a, b));
    const empty = (row) => row.cells[sorted.column].textContent === "";
    table.tBodies[0].append(...line.filter((row) => !empty(row)), ...line.filter(empty));
  }
  heads.forEach((head, k) => {
    head.setAttribute("aria-sort", k !== sorted.column ? "none" : sorted.down ? "descending" : "ascending");
  });
  remember();
}

function remember() {
  const words = FIELDS.flatMap((field) => {
    const own = boxes.filter((box) => box.name === field);
    return own.every((box) => box.checked) ? [] : [`${field}=${own.filter((b) => b.checked).map((b) => b.value).join(",")}`];
  });
  if (measure.value !== "own") words.push(`show=${measure.value}`);
  if (sorted.column >= 0) words.push(`sort=${sorted.down ? "-" : ""}${heads[sorted.column].textContent.trim()}`);
  history.replaceState(null, "", words.length ? `#${words.join("&")}` : location.pathname + location.search);
}

function recall(hash) {
  for (const word of decodeURIComponent(hash.slice(1)).split("&").filter(Boolean)) {
    const [name, value = ""] = word.split("=");
    if (FIELDS.includes(name)) {
      for (const box of boxes.filter((b) => b.name === name)) box.checked = value.split(",").includes(box.value);
    } else if (name === "show") {
      measure.value = value;
    } else if (name === "sort") {
      const down = value.startsWith("-");
      sorted = { column: heads.findIndex((head) => head.textContent.trim() === value.slice(down ? 1 : 0)), down };
    }
  }
}

heads.forEach((head, k) =>
  head.firstChild.addEventListener("click", () => {
    const words = k < FIELDS.length; // names are read from A to Z, numbers from the best
    sorted = { column: k, down: sorted.column === k ? !sorted.down : !words };
    show();
  }),
);
for (const box of [...boxes, measure]) box.addEventListener("change", show);
for (const link of document.querySelectorAll('a[href^="#task="]')) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    for (const box of boxes) box.checked = true;
    recall(link.hash);
    show();
    document.getElementById("cells").scrollIntoView({ behavior: "smooth" });
  });
}
recall(location.hash);
show();
