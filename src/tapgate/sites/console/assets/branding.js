// Shows the branding of the form in the preview while it is edited.
"use strict";

(() => {
  const COLOR = /^#[0-9a-f]{6}$/i;

  function paint(preview, color) {
    if (COLOR.test(color)) preview.style.setProperty("--accent", color);
  }

  function showLogo(preview, file) {
    const url = URL.createObjectURL(file);
    for (const image of preview.querySelectorAll(".logo")) image.src = url;
  }

  /** The form has either the logo or the other values. */
  function update(form) {
    const preview = form.querySelector("[data-brand-preview]");
    const { color } = form.elements;
    if (color) paint(preview, color.value);
    for (const part of preview.querySelectorAll("[data-brand]")) {
      const field = form.elements.namedItem(part.dataset.brand);
      if (field) part.textContent = field.value;
    }
    const file = form.querySelector("input[data-picture]")?.files[0];
    if (file) showLogo(preview, file);
  }

  function start(root) {
    for (const preview of root.querySelectorAll("[data-brand-preview]")) paint(preview, preview.dataset.color);
  }

  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form:has([data-brand-preview])");
    if (form) update(form);
  });
  document.addEventListener("htmx:afterSwap", ({ detail }) => start(detail.target));
  start(document);
})();
