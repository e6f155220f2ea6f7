// Search box and pickers: a text input with suggestions below it (ARIA combobox with a list box).
// htmx loads the suggestions; without this script, a form submits the text and the server finds the record.
"use strict";

(() => {
  const SEARCH_ID = "find-input";
  const MARGIN = 8;

  const getList = (input) => document.getElementById(input.getAttribute("aria-controls"));
  const getInput = (list) => document.querySelector(`[aria-controls="${list.id}"]`);
  const getOptions = (list) => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];
  const getActive = (input) => document.getElementById(input.getAttribute("aria-activedescendant") || "");
  const isOpen = (input) => input.getAttribute("aria-expanded") === "true";
  // Suggestions for an earlier text must not be chosen.
  const isCurrent = (input) => getList(input).querySelector("[data-text]")?.dataset.text === input.value.trim();

  function activate(input, option) {
    for (const other of getOptions(getList(input))) other.setAttribute("aria-selected", String(other === option));
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  // The list is in the top layer, so that neither the sidebar nor a dialog clips it.
  function place(input) {
    const list = getList(input);
    const box = input.getBoundingClientRect();
    const width = Math.min(Math.max(box.width, 26 * 16), innerWidth - 2 * MARGIN);
    const below = innerHeight - box.bottom - 2 * MARGIN;
    list.style.width = `${width}px`;
    list.style.left = `${Math.max(MARGIN, Math.min(box.left, innerWidth - width - MARGIN))}px`;
    list.style.maxHeight = `${Math.max(below, box.top - 2 * MARGIN) - MARGIN}px`;
    const isAbove = below < 180 && box.top > below;
    list.style.top = isAbove ? "auto" : `${box.bottom + MARGIN / 2}px`;
    list.style.bottom = isAbove ? `${innerHeight - box.top + MARGIN / 2}px` : "auto";
  }

  function open(input) {
    const list = getList(input);
    if (!list.firstElementChild || !isCurrent(input)) return;
    if (!list.matches(":popover-open")) list.showPopover();
    place(input);
    input.setAttribute("aria-expanded", "true");
    activate(input, getOptions(list)[0]);
  }

  function close(input) {
    const list = getList(input);
    if (list.matches(":popover-open")) list.hidePopover();
    input.setAttribute("aria-expanded", "false");
    activate(input, null);
  }

  function choose(input, option) {
    if (option.dataset.fill) return fill(input, option.dataset.fill);
    close(input);
    if (option.href) openEntry(option.href);
    else {
      input.value = option.dataset.label;
      setChosenId(input, option.dataset.value);
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }

  // An action of the palette that needs a record: the next words find the record.
  function fill(input, text) {
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // A link to an action on this page does not load the page again.
  function openEntry(href) {
    const isHere = new URL(href).pathname === location.pathname && href.includes("#do=");
    location.assign(href);
    if (isHere) document.dispatchEvent(new Event("palette:act"));
  }

  // A picker submits the ID of the chosen record with the text, which is its name.
  function setChosenId(input, id) {
    const chosen = document.getElementById(input.dataset.chosen || "");
    if (chosen) chosen.value = id;
  }

  function move(input, step) {
    const options = getOptions(getList(input));
    if (!options.length) return;
    const next = options.indexOf(getActive(input)) + step;
    activate(input, options[(next + options.length) % options.length]);
  }

  function handleKey(event) {
    const input = event.target;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen(input)) open(input);
      else move(input, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && isOpen(input) && isCurrent(input) && getActive(input)) {
      event.preventDefault();
      choose(input, getActive(input));
    } else if (event.key === "Escape" && isOpen(input)) {
      event.preventDefault(); // and do not close the dialog of the form
      event.stopPropagation();
      close(input);
      input.form?.classList.remove("palette");
    } else if (event.key === "Tab") close(input);
  }

  function focusSearch(event) {
    const input = document.getElementById(SEARCH_ID);
    const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
    if (!input || !isShortcut || document.querySelector("dialog:modal")) return;
    event.preventDefault();
    input.form.classList.add("palette");
    input.focus();
    input.select();
    input.dispatchEvent(new Event("palette"));
  }

  document.addEventListener("keydown", (event) => {
    focusSearch(event);
    if (event.target.matches?.("[role=combobox]")) handleKey(event);
  }, true);
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[role=combobox]")) return;
    setChosenId(event.target, "");
    close(event.target);
  });
  document.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    const input = target.matches("[role=listbox]") && getInput(target);
    if (input && document.activeElement === input) open(input);
  });
  document.addEventListener("focusout", (event) => {
    if (!event.target.matches("[role=combobox]")) return;
    close(event.target);
    event.target.form?.classList.remove("palette");
  });
  // Keep the focus in the input while an option is pressed.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("[role=listbox]")) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]:not([aria-disabled])");
    if (option?.href?.includes("#do=")) event.preventDefault();
    if (option && (!option.href || option.href.includes("#do="))) choose(getInput(option.closest("[role=listbox]")), option);
  });
  addEventListener("resize", () => {
    const input = document.activeElement;
    if (input?.matches("[role=combobox]") && isOpen(input)) place(input);
  });

  const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
  document.addEventListener("DOMContentLoaded", () => {
    const hint = document.querySelector(".find kbd");
    if (hint) hint.textContent = isApple ? "⌘K" : "Ctrl K";
  });
})();
