// Lets the viewer hide columns of a list, and add those that the list does not show at first: their
// cells have the class `extra`. The choice for each list lasts until the tab is closed.
"use strict";

(() => {
  const STORAGE_KEY = "tapgate-columns";
  const MIN_COLUMNS = 5; // a smaller table fits every window

  const findTable = () => document.getElementById("rows")?.closest("table");

  // Path -> column name -> whether it is shown. Columns without an entry have their default.
  function readChoices() {
    try {
      const choices = JSON.parse(sessionStorage.getItem(STORAGE_KEY));
      return choices && typeof choices === "object" ? choices : {};
    } catch {
      return {};
    }
  }

  function listColumns(table) {
    const chosen = readChoices()[location.pathname] || {};
    return [...table.tHead.rows[0].cells].map((cell) => {
      const name = cell.textContent.trim();
      const isExtra = cell.classList.contains("extra");
      return { name, isExtra, isShown: chosen[name] ?? !isExtra };
    });
  }

  // Of a list with many loaded pages, only the rows from `first` are new.
  function apply(table, first = 0) {
    const columns = listColumns(table);
    for (let number = first; number < table.rows.length; number += 1) {
      const row = table.rows[number];
      if (row.cells.length !== columns.length) continue; // a message, or the button for more rows
      columns.forEach(({ isExtra, isShown }, index) => {
        const cell = row.cells[index];
        if (isExtra) cell.classList.toggle("shown", isShown);
        else cell.hidden = !isShown;
      });
    }
  }

  function saveChoices(boxes) {
    const choices = readChoices();
    choices[location.pathname] = Object.fromEntries(boxes.map((box) => [box.value, box.checked]));
    try {
      sessionStorage.setItem(STORAGE_KEY, JSON.stringify(choices));
    } catch {
      // Without storage, the choice lasts until the page is left.
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
    for (const { name, isShown } of listColumns(table).slice(1).filter((column) => column.name)) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = name;
      box.checked = isShown;
      label.append(box, ` ${name}`);
      panel.append(label);
    }
    details.addEventListener("change", () => {
      saveChoices([...details.querySelectorAll("input")]);
      apply(table);
    });
    return details;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const table = findTable();
    if (!table?.tHead || listColumns(table).length < MIN_COLUMNS) return;
    document.querySelector("main > .head .actions").prepend(buildChoice(table));
    apply(table);
    let applied = table.rows.length;
    document.body.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
      apply(table, target.matches(".more") ? applied - 1 : 0);
      applied = table.rows.length;
    });
  });
})();
