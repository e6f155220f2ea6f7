// Shows the branding of the form in the preview while it is edited.
"use strict";

(() => {
  const COLOR = /^#[0-9a-f]{6}$/i;

  function paint(preview, color) {
    if (COLOR.test(color)) preview.style.setProperty("--accent", color);
  }

  function update(form) {
    const preview = form.querySelector("[data-brand-preview]");
    paint(preview, form.elements.color.value);
    for (const part of preview.querySelectorAll("[data-brand]")) {
      part.textContent = form.elements[part.dataset.brand].value;
    }
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
