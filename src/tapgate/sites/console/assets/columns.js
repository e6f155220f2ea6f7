// Hides columns of a list that the viewer does not need. The choice lasts until the tab is closed.
"use strict";

(() => {
  const STORAGE_KEY = "tapgate-columns";

  const findTable = () => document.getElementById("rows")?.closest("table");

  function readChoices() {
    try {
      return JSON.parse(sessionStorage.getItem(STORAGE_KEY)) || {};
    } catch {
      return {};
    }
  }

  function listHeads(table) {
    return [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  }

  // Of a list with many loaded pages, only the rows from `first` are new.
  function apply(table, first = 0) {
    const hidden = new Set(readChoices()[location.pathname]);
    const heads = listHeads(table);
    for (let index = first; index < table.rows.length; index += 1) {
      const row = table.rows[index];
      if (row.cells.length !== heads.length) continue; // a message, or the button for more rows
      heads.forEach((head, column) => { row.cells[column].hidden = hidden.has(head); });
    }
  }

  function buildChoice(table) {
    const details = document.createElement("details");
    details.className = "dropdown columns";
    const summary = document.createElement("summary");
    summary.className = "button";
    summary.textContent = translate("Columns");
    const panel = document.createElement("div");
    details.append(summary, panel);
    const hidden = new Set(readChoices()[location.pathname]);
    for (const head of listHeads(table).slice(1).filter(Boolean)) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = head;
      box.checked = !hidden.has(head);
      label.append(box, ` ${head}`);
      panel.append(label);
    }
    details.addEventListener("change", () => {
      const boxes = [...details.querySelectorAll("input")];
      const choices = readChoices();
      choices[location.pathname] = boxes.filter((box) => !box.checked).map((box) => box.value);
      sessionStorage.setItem(STORAGE_KEY, JSON.stringify(choices));
      apply(table);
    });
    return details;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const table = findTable();
    if (!table?.tHead || listHeads(table).length < 3) return;
    document.querySelector("main > .head .actions").prepend(buildChoice(table));
    apply(table);
    let applied = table.rows.length;
    document.body.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
      apply(table, target.matches(".more") ? applied - 1 : 0);
      applied = table.rows.length;
    });
  });
})();
