"use strict";
(() => {
  const root = document.documentElement;

  // Light or dark, as the reader likes it.
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Tables that a click on a heading sorts.
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order);
  };
  const before = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (down ? -1 : 1) * before(value(a, column), value(b, column)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // Parts of a figure say what they are, and light up with their row of the table.
  const light = (part, on) => {
    const section = part.closest("section");
    for (const other of section.querySelectorAll("[data-key]")) {
      if (other.dataset.key === part.dataset.key) other.classList.toggle("on", on);
    }
    const drawn = [...section.querySelectorAll("svg [data-key]")].find(
      (other) => other.dataset.key === part.dataset.key,
    );
    if (!drawn) return;
    const readout = drawn.closest("figure").querySelector(".readout");
    readout.textContent = drawn.querySelector("title").textContent;
    readout.hidden = false;
  };
  for (const part of document.querySelectorAll("[data-key]")) {
    part.addEventListener("pointerenter", () => light(part, true));
    part.addEventListener("pointerleave", () => light(part, false));
  }
})();
