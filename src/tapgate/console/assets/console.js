// What pages need beyond htmx: the dialog of acts, times in the viewer's zone, copying, progress,
// problems told where they are seen, and that nobody loses their place when a part of a page changes.
"use strict";

(() => {
  const UNREACHABLE = "Can't reach the server. Check your connection and try again.";
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

  // --- What went wrong ---

  // An open dialog hides the rest of the page from everybody, so it has a place of its own.
  function say(text = "") {
    const place = document.getElementById(dialog()?.open ? "dialog-problem" : "problem");
    if (!place || place.textContent === text) return;
    place.replaceChildren();
    if (!text) return;
    const said = document.createElement("p");
    said.className = "problem";
    said.textContent = text;
    place.append(said);
    said.scrollIntoView({ block: "nearest" });
  }

  function saysUnreachable() {
    return ["problem", "dialog-problem"].some((id) => document.getElementById(id)?.textContent === UNREACHABLE);
  }

  // What a refusal says: it comes as a part of a page, or as the API's own answer.
  function plain(text) {
    try {
      const { message, error } = JSON.parse(text);
      return message || error;
    } catch {
      return new DOMParser().parseFromString(text, "text/html").body.textContent.trim();
    }
  }

  // --- The dialog ---

  function openDialog() {
    if (!dialog().open) dialog().showModal();
    const wrong = dialog().querySelector("[aria-invalid], .problem");
    const first = dialog().querySelector("input:not([type=hidden]), select, textarea, button, a");
    const marked = dialog().querySelector("[aria-invalid]");
    (marked?.matches("fieldset") ? marked.querySelector("input") : marked || first)?.focus();
    if (wrong) wrong.scrollIntoView({ block: "nearest" });
  }

  function emptyDialog() {
    // Told a moment later: by then another form may be in it.
    if (dialog().open) return;
    document.getElementById("dialog-body").replaceChildren();
    document.getElementById("dialog-problem").replaceChildren();
  }

  // What is done is done: until the next page is there, the form must not look as if it waited.
  function stayBusy(form) {
    form.classList.add("htmx-request");
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const text = button.parentElement.querySelector("code");
      if (text) getSelection().selectAllChildren(text);
      return;
    }
    button.dataset.label ??= button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
  }

  // --- Nothing changes under the pointer of somebody who is about to click ---

  let pressed = false;
  const asked = new WeakMap();

  // Leaving a field says once more what was said while typing: that list is there already.
  function isAskedAlready(form, event) {
    const filters = String(new URLSearchParams(new FormData(form)));
    if (event?.type !== "submit" && asked.get(form) === filters) return true;
    asked.set(form, filters);
    return false;
  }

  // --- Places: what is opened, where the keyboard is, how much of a list is shown ---

  const nameOf = (element) =>
    element.id || element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;

  // What follows by itself must not close what somebody reads, nor take the keyboard from it.
  function placesIn(root) {
    const opened = [...root.querySelectorAll("details[open]")].map(({ id }) => id);
    const active = root.contains(document.activeElement) ? document.activeElement : null;
    return () => {
      for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
      if (!active) return;
      const same = [...root.querySelectorAll(active.tagName)].find((one) => nameOf(one) === nameOf(active));
      same?.focus({ preventScroll: true });
    };
  }

  // The button is gone with what it brought: the keyboard goes on at the first new row.
  function firstAfter(row) {
    return () => row?.nextElementSibling?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  function remember(values) {
    history.replaceState({ ...history.state, ...values }, "");
  }

  // Whoever comes back to a list finds as much of it as they had, where they were in it.
  function showAgain({ pages, height = 0 }) {
    const button = document.querySelector(".more button");
    comesBack = pages > 0 && button !== null;
    if (comesBack) {
      document.addEventListener("htmx:afterSettle", () => showAgain({ pages: pages - 1, height }), { once: true });
      button.click();
    } else if (height) scrollTo(0, height);
  }

  let comesBack = false;
  let restore = null;

  // --- Files ---

  function showProgress(form, { loaded, total }) {
    const bar = form.querySelector("progress[data-upload]");
    // Once all is sent, what is told is how much of the answer has come.
    if (!bar || !total || bar.position < 0) return;
    bar.hidden = false;
    bar.max = total;
    bar.value = loaded;
    const note = form.querySelector("[data-upload-note]");
    if (!note) return;
    const percent = Math.floor((100 * loaded) / total);
    note.textContent = percent < 100 ? `${percent}% uploaded` : "Uploaded. Checking rows…";
    if (percent >= 100) bar.removeAttribute("value");
  }

  function endProgress(form) {
    const bar = form.querySelector?.("progress[data-upload]");
    if (!bar) return;
    bar.hidden = true;
    bar.value = 0;
    const note = form.querySelector("[data-upload-note]");
    if (note) note.textContent = "";
  }

  function checkSize(input) {
    const { size } = input.files[0] || { size: 1 };
    const mebibytes = Math.floor(input.dataset.largest / 2 ** 20);
    const tooLarge = size > input.dataset.largest;
    input.setCustomValidity(
      tooLarge ? `File is larger than ${mebibytes} MiB. Choose a smaller file.` : size ? "" : "File is empty. Choose another file.",
    );
    input.reportValidity();
  }

  function save(content, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function noteDownload(address, { cursor, masked }) {
    const note = document.getElementById("download-note");
    if (!note) return;
    note.replaceChildren();
    note.className = cursor || masked ? "notice" : "";
    if (masked) note.append("Personal data hidden: the file includes restricted customers. ");
    if (!cursor) return;
    const next = document.createElement("a");
    address.searchParams.set("cursor", cursor);
    next.href = address;
    next.dataset.download = "";
    next.textContent = "Download next file";
    note.append("The export continues in another file. ", next);
  }

  // A file that is fetched here can say that it is not all; one that the browser fetches cannot.
  async function download(link) {
    if (link.getAttribute("aria-disabled")) return;
    const address = new URL(link.href);
    if (link.dataset.download === "listed") address.search = location.search;
    link.setAttribute("aria-disabled", "true");
    try {
      const current = { "HX-Request": "true", "HX-Current-URL": location.href };
      const answer = await fetch(address, { headers: current });
      if (answer.headers.has("HX-Redirect")) location.assign(answer.headers.get("HX-Redirect"));
      else if (!answer.ok) say(plain(await answer.text()));
      else {
        const named = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
        save(await answer.blob(), named ? named[1] : "export.csv");
        say();
        noteDownload(address, {
          cursor: answer.headers.get("X-Next-Cursor"),
          masked: answer.headers.has("X-Masked"),
        });
      }
    } catch {
      say(UNREACHABLE);
    } finally {
      link.removeAttribute("aria-disabled");
    }
  }

  // --- When ---

  document.addEventListener("DOMContentLoaded", () => {
    showTimes(document);
    dialog()?.addEventListener("close", emptyDialog);
    // Escape must not lose what is shown only once.
    dialog()?.addEventListener("cancel", (event) => {
      if (dialog().querySelector("[data-kept]")) event.preventDefault();
    });
  });
  window.addEventListener("load", () => {
    if (history.state?.pages) showAgain(history.state);
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) dialog()?.close();
  });
  window.addEventListener("pagehide", () => {
    if (history.state?.pages) remember({ height: scrollY });
  });

  document.addEventListener("click", (event) => {
    const copied = event.target.closest("[data-copy]");
    if (copied) copy(copied);
    if (event.target.closest("[data-close]")) dialog().close();
    const file = event.target.closest("a[data-download]");
    if (file) {
      event.preventDefault();
      download(file);
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("input[data-largest]")) checkSize(event.target);
  });

  document.addEventListener("pointerdown", () => { pressed = true; });
  for (const ended of ["pointerup", "pointercancel"]) {
    document.addEventListener(ended, () => { pressed = false; });
  }

  document.addEventListener("htmx:confirm", (event) => {
    const { elt, triggeringEvent } = event.detail;
    if (elt.matches("form.filters") && isAskedAlready(elt, triggeringEvent)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    // What follows by itself takes away no sentence that somebody may be reading.
    if (event.detail.requestConfig.triggeringEvent) say();
  });
  // A refusal is told; what is on the page stays, with all that was typed.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (xhr.status >= 400) {
      event.detail.shouldSwap = false;
      say(plain(xhr.responseText));
    } else if (target.matches(".more") && !comesBack) {
      restore = firstAfter(target.previousElementSibling);
      remember({ pages: (history.state?.pages || 0) + 1 });
    } else if (target.id === "figures") {
      if (pressed) event.detail.shouldSwap = false;
      else restore = placesIn(target);
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "dialog-body") openDialog();
  });
  document.addEventListener("htmx:afterSettle", () => {
    restore?.();
    restore = null;
  });
  document.addEventListener("htmx:load", (event) => showTimes(event.detail.elt.parentElement || document));
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form");
    if (form && event.detail.lengthComputable) showProgress(form, event.detail);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    endProgress(event.target);
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) stayBusy(event.target);
    if (event.detail.successful && saysUnreachable()) say();
  });
  document.addEventListener("htmx:responseError", (event) => asked.delete(event.target));
  document.addEventListener("htmx:sendError", (event) => {
    asked.delete(event.target);
    say(UNREACHABLE);
  });
})();
