// What pages need beyond htmx: the dialog of acts, times in the viewer's zone, copying, progress.
"use strict";

(() => {
  const dialog = () => document.getElementById("dialog");
  const shortTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const longTime = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

  function showTimes(root) {
    for (const element of root.querySelectorAll("time[datetime]:not([title])")) {
      const moment = new Date(element.getAttribute("datetime"));
      if (Number.isNaN(moment.getTime())) continue;
      element.textContent = shortTime.format(moment);
      element.title = longTime.format(moment);
    }
  }

  function openDialog() {
    if (!dialog().open) dialog().showModal();
    const wrong = dialog().querySelector("[aria-invalid], .problem");
    const first = dialog().querySelector("input:not([type=hidden]), select, textarea, button, a");
    (dialog().querySelector("[aria-invalid]") || first)?.focus();
    if (wrong) wrong.scrollIntoView({ block: "nearest" });
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const text = button.parentElement.querySelector("code");
      if (text) getSelection().selectAllChildren(text);
      return;
    }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  function showProgress(form, { loaded, total }) {
    const bar = form.querySelector("progress[data-upload]");
    if (!bar || !total) return;
    bar.hidden = false;
    bar.max = total;
    bar.value = loaded;
    const note = form.querySelector("[data-upload-note]");
    if (!note) return;
    const percent = Math.floor((100 * loaded) / total);
    note.textContent = percent < 100 ? `${percent} % sent` : "Sent. Looking at the rows …";
    if (percent >= 100) bar.removeAttribute("value");
  }

  document.addEventListener("DOMContentLoaded", () => {
    showTimes(document);
    dialog()?.addEventListener("close", () => {
      document.getElementById("dialog-body").replaceChildren();
    });
    // Escape must not lose what is shown only once.
    dialog()?.addEventListener("cancel", (event) => {
      if (dialog().querySelector("[data-kept]")) event.preventDefault();
    });
  });

  document.addEventListener("click", (event) => {
    const copied = event.target.closest("[data-copy]");
    if (copied) copy(copied);
    if (event.target.closest("[data-close]")) dialog().close();
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "dialog-body") openDialog();
  });
  document.addEventListener("htmx:load", (event) => showTimes(event.detail.elt.parentElement || document));
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form");
    if (form && event.detail.lengthComputable) showProgress(form, event.detail);
  });
  document.addEventListener("htmx:sendError", () => {
    const place = document.getElementById("problem");
    const note = document.createElement("p");
    note.className = "problem";
    note.textContent = "The server does not answer. Nothing was sent twice; try again in a moment.";
    place?.replaceChildren(note);
  });
})();
