// Menus of actions and toasts. A menu is a <details> element, so it also opens without this script.
"use strict";

(() => {
  const TOAST_MILLISECONDS = 6000;
  const MARGIN = 8;

  // The top layer keeps the menu visible in a table that scrolls.
  function place(menu) {
    const panel = menu.querySelector("div");
    panel.popover = "manual";
    panel.showPopover();
    const { top, bottom, right } = menu.getBoundingClientRect();
    const { width, height } = panel.getBoundingClientRect();
    const below = bottom + 4 + height <= innerHeight || top < height;
    const left = Math.max(MARGIN, Math.min(right, innerWidth - MARGIN) - width);
    panel.style.position = "fixed";
    panel.style.inset = `${below ? bottom + 4 : top - 4 - height}px auto auto ${left}px`;
  }

  function closeMenus(except = null) {
    for (const menu of document.querySelectorAll(".dropdown[open]")) {
      if (menu !== except) menu.open = false;
    }
  }

  function moveFocus(menu, key) {
    const items = [...menu.querySelectorAll("div button, div a")];
    const index = items.indexOf(document.activeElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1 + (index < 0), Home: 0, End: -1 }[key];
    items.at(next % items.length)?.focus();
  }

  function dismissLater(toast) {
    setTimeout(() => {
      if (toast.matches(":hover, :focus-within")) dismissLater(toast);
      else toast.remove();
    }, TOAST_MILLISECONDS);
  }

  document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".dropdown")) return;
    if (!event.target.open) event.target.querySelector("div").hidePopover?.();
    else {
      closeMenus(event.target);
      place(event.target);
    }
  }, true);
  document.addEventListener("click", (event) => {
    const menu = event.target.closest(".dropdown");
    if (menu && event.target.closest("label")) return; // several can be chosen
    // A chosen item closes its menu, and the dialog that it opens returns the focus to the menu.
    if (menu && !event.target.closest("summary")) menu.querySelector("summary").focus();
    closeMenus(event.target.closest("summary") ? menu : null);
    event.target.closest("[data-dismiss]")?.closest(".toast").remove();
  });
  document.addEventListener("keydown", (event) => {
    const menu = document.activeElement?.closest(".dropdown[open]");
    if (!menu) return;
    if (event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) {
      event.preventDefault();
      moveFocus(menu, event.key);
    }
  });
  document.addEventListener("focusin", ({ target }) => closeMenus(target.closest(".dropdown")));
  document.addEventListener("scroll", () => closeMenus(), { passive: true });
  addEventListener("resize", () => closeMenus());
  document.addEventListener("DOMContentLoaded", () => {
    for (const toast of document.querySelectorAll(".toast")) dismissLater(toast);
  });

  // A saved reply is inserted into the reply's field, where it can be changed.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-insert]");
    const field = button && document.getElementById(button.dataset.insert);
    if (!field) return;
    field.value = [field.value.trim(), button.dataset.text].filter(Boolean).join("\n\n");
    field.focus();
  });
})();
