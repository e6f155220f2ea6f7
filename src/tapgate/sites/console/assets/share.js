// Shares a text, such as a receipt or an invitation, with another app of the device. Browsers that
// cannot share copy the text.
"use strict";

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-share]");
  if (!button) return;
  const text = button.dataset.share;
  try {
    if (navigator.share) await navigator.share({ text });
    else {
      await navigator.clipboard.writeText(text);
      const label = button.querySelector("span");
      label.textContent = translate("Copied");
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error; // the person closed the list of apps
  }
});
