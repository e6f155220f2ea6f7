// Page behavior beyond htmx: the action dialog, times, copying, upload progress, error messages,
// and preserving focus and scroll position when part of a page changes.
"use strict";

(() => {
  // Texts of the page's language, which `texts/{language}.js` has loaded. English texts are their own keys.
  window.translate = (text, values = {}) =>
    (window.consoleTexts?.[text] ?? text).replace(/{(\w+)}/g, (_, name) => values[name]);

  const UNREACHABLE = translate("Can't reach the server. Check your connection and try again.");
  const dialog = () => document.getElementById("dialog");
  const { lang, dataset: { timezone: timeZone } } = document.documentElement;
  const buildFormat = (options) => new Intl.DateTimeFormat(lang, { ...options, timeZone });
  const clock = buildFormat({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const clockWithSeconds = buildFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const day = buildFormat({ day: "numeric", month: "short" });
  const dayOfYear = buildFormat({ day: "numeric", month: "short", year: "numeric" });
  const calendarDay = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeZone: "UTC" });
  const fullTime = buildFormat({ dateStyle: "full", timeStyle: "long" });
  const relative = new Intl.RelativeTimeFormat(lang, { numeric: "auto" });

  // Returns "Today", "Yesterday", "Nov 14," or, in another year, "Nov 14, 2025,". Within a sentence
  // or after a colon, it is "today" or "yesterday".
  function formatDay(moment, isInSentence) {
    const date = dayOfYear.format(moment);
    for (const days of [0, -1]) {
      if (date !== dayOfYear.format(Date.now() + days * 86400000)) continue;
      const word = relative.format(days, "day");
      return isInSentence ? word : word[0].toUpperCase() + word.slice(1);
    }
    const year = dayOfYear.formatToParts(moment).find(({ type }) => type === "year").value;
    const thisYear = dayOfYear.formatToParts().find(({ type }) => type === "year").value;
    return `${year === thisYear ? day.format(moment) : date},`;
  }

  function showTimes(root) {
    for (const element of root.querySelectorAll("time[datetime]:not([title])")) {
      const moment = new Date(element.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      if (/^\d{4}-\d\d-\d\d$/.test(element.dateTime)) {
        element.textContent = calendarDay.format(moment);
        continue;
      }
      const isInSentence =
        element.closest(".changes") || /[\p{L}:,]\s*$/u.test(element.previousSibling?.textContent ?? "");
      const time = ("seconds" in element.dataset ? clockWithSeconds : clock).format(moment);
      const text = `${formatDay(moment, isInSentence)} ${time}`;
      // The server has rendered the same text, except within sentences and before it knows the zone.
      if (element.textContent !== text) element.textContent = text;
      element.title = fullTime.format(moment);
    }
  }

  // --- Error messages ---

  // An open dialog covers the page, so it has its own element for error messages.
  function showProblem(text = "") {
    const container = document.getElementById(dialog()?.open ? "dialog-problem" : "problem");
    if (!container || container.textContent === text) return;
    container.replaceChildren();
    if (!text) return;
    const message = document.createElement("p");
    message.className = "problem";
    message.textContent = text;
    container.append(message);
    message.scrollIntoView({ block: "nearest" });
  }

  function isUnreachableShown() {
    return ["problem", "dialog-problem"].some((id) => document.getElementById(id)?.textContent === UNREACHABLE);
  }

  // Returns the message of an error response: the API's JSON, an HTML fragment, or a whole page,
  // in which only the message itself counts. A parsed page shows what is for browsers without scripts.
  function extractMessage(text) {
    try {
      const { message, error } = JSON.parse(text);
      return message || error;
    } catch {
      const { body } = new DOMParser().parseFromString(text, "text/html");
      for (const part of body.querySelectorAll("noscript")) part.remove();
      const main = body.querySelector("main");
      const parts = main ? [...main.querySelectorAll("p.problem, .stop > h1, .stop > .lead")] : [body];
      const message = parts.map((part) => part.textContent.trim()).filter(Boolean).join(" ");
      return message || translate("The request failed. Try again.");
    }
  }

  // --- Dialog ---

  let isDialogArriving = false;

  function openDialog() {
    isDialogArriving = false;
    if (!dialog().open) dialog().showModal();
    const problem = dialog().querySelector("[aria-invalid], .problem");
    const first = dialog().querySelector("input:not([type=hidden]), select, textarea, button, a");
    const invalid = dialog().querySelector("[aria-invalid]");
    const focused = invalid?.matches("fieldset") ? invalid.querySelector("input") : invalid || first;
    focused?.focus();
    if (focused?.matches("input[type=text]")) focused.select(); // what is typed replaces a suggested value
    if (problem) problem.scrollIntoView({ block: "nearest" });
  }

  function emptyDialog() {
    // The close event fires later, when another form may already be open or about to open.
    if (dialog().open || isDialogArriving) return;
    document.getElementById("dialog-body").replaceChildren();
    document.getElementById("dialog-problem").replaceChildren();
  }

  // Keep the form disabled after success, until the next page has loaded.
  function keepDisabled(form) {
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
    const label = button.querySelector("span") || button; // a button with a symbol hides its label
    button.dataset.label ??= label.textContent;
    label.textContent = translate("Copied");
    button.classList.add("copied");
    setTimeout(() => {
      label.textContent = button.dataset.label;
      button.classList.remove("copied");
    }, 1500);
  }

  // --- Avoid changing content under a pressed pointer ---

  let pressed = false;
  const submitted = new WeakMap();

  // Leaving a field triggers `change` with the values that `input` has already submitted.
  function isUnchanged(form, event) {
    const filters = String(new URLSearchParams(new FormData(form)));
    if (event?.type !== "submit" && submitted.get(form) === filters) return true;
    submitted.set(form, filters);
    return false;
  }

  // --- Preserved state: open elements, focus, loaded rows ---

  const getLabel = (element) =>
    element.id || element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;

  // An automatic refresh must not close open elements or move the focus.
  function captureState(root) {
    const opened = [...root.querySelectorAll("details[open]")].map(({ id }) => id);
    const active = root.contains(document.activeElement) ? document.activeElement : null;
    return () => {
      for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
      if (!active) return;
      const counterpart = [...root.querySelectorAll(active.tagName)].find((candidate) => getLabel(candidate) === getLabel(active));
      counterpart?.focus({ preventScroll: true });
    };
  }

  // The button is replaced by the rows it loads: move the focus to the first new row.
  function focusFirstAfter(row) {
    return () => row?.nextElementSibling?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  function saveHistoryState(values) {
    history.replaceState({ ...history.state, ...values }, "");
  }

  // Restore the loaded rows and the scroll position when the user returns to a list.
  function restoreList({ pages, height = 0 }) {
    const button = document.querySelector(".more button");
    isRestoring = pages > 0 && button !== null;
    if (isRestoring) {
      document.addEventListener("htmx:afterSettle", () => restoreList({ pages: pages - 1, height }), { once: true });
      button.click();
    } else if (height) scrollTo(0, height);
  }

  let isRestoring = false;
  let restore = null;

  // --- Files ---

  function showProgress(form, { loaded, total }) {
    const bar = form.querySelector("progress[data-upload]");
    // After the upload, progress events report the download of the response.
    if (!bar || !total || bar.position < 0) return;
    bar.hidden = false;
    bar.max = total;
    bar.value = loaded;
    const note = form.querySelector("[data-upload-note]");
    if (!note) return;
    const percent = Math.floor((100 * loaded) / total);
    note.textContent = percent < 100 ? translate("{percent}% uploaded", { percent }) : translate("Uploaded. Checking rows…");
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
      tooLarge
        ? translate("File is larger than {mebibytes} MiB. Choose a smaller file.", { mebibytes })
        : size ? "" : translate("File is empty. Choose another file."),
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
    if (masked) note.append(`${translate("Personal data hidden: the file includes restricted customers.")} `);
    if (!cursor) return;
    const next = document.createElement("a");
    address.searchParams.set("cursor", cursor);
    next.href = address;
    next.dataset.download = "";
    next.textContent = translate("Download next file");
    note.append(`${translate("The export continues in another file.")} `, next);
  }

  // Request the parts of a list one after another, show the number of rows, and save one file.
  async function downloadAll(link) {
    if (link.getAttribute("aria-disabled")) return;
    const note = document.getElementById("download-note");
    const address = new URL(link.href);
    const parts = [];
    let rows = 0;
    address.search = location.search;
    address.searchParams.delete("cursor");
    link.setAttribute("aria-disabled", "true");
    try {
      for (;;) {
        const current = { "HX-Request": "true", "HX-Current-URL": location.href, "X-Language": lang };
        const response = await fetch(address, { headers: current });
        if (response.headers.has("HX-Redirect")) return location.assign(response.headers.get("HX-Redirect"));
        if (!response.ok) return showProblem(extractMessage(await response.text()));
        parts.push(await response.blob());
        rows += Number(response.headers.get("X-Rows"));
        const cursor = response.headers.get("X-Next-Cursor");
        const count = rows.toLocaleString(lang);
        note.textContent = cursor
          ? translate("{count} rows so far…", { count })
          : translate("{count} rows exported.", { count });
        if (!cursor) {
          const match = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "");
          save(new Blob(parts, { type: "text/csv" }), match ? match[1] : "export.csv");
          return showProblem();
        }
        address.searchParams.set("cursor", cursor);
      }
    } catch {
      showProblem(UNREACHABLE);
    } finally {
      link.removeAttribute("aria-disabled");
    }
  }

  // Download with fetch to read the headers that state whether the export is complete.
  async function download(link) { // a link, or a form whose fields are the query
    if (link.getAttribute("aria-disabled")) return;
    const address = new URL(link.href || link.action);
    if (link.matches("form")) address.search = new URLSearchParams(new FormData(link));
    if (link.dataset.download === "listed") address.search = location.search;
    link.setAttribute("aria-disabled", "true");
    try {
      const current = { "HX-Request": "true", "HX-Current-URL": location.href, "X-Language": lang };
      const response = await fetch(address, { headers: current });
      if (response.headers.has("HX-Redirect")) location.assign(response.headers.get("HX-Redirect"));
      else if (!response.ok) showProblem(extractMessage(await response.text()));
      else {
        const match = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "");
        save(await response.blob(), match ? match[1] : "export.csv");
        showProblem();
        noteDownload(address, {
          cursor: response.headers.get("X-Next-Cursor"),
          masked: response.headers.has("X-Masked"),
        });
      }
    } catch {
      showProblem(UNREACHABLE);
    } finally {
      link.removeAttribute("aria-disabled");
    }
  }

  // --- Event handlers ---

  document.addEventListener("DOMContentLoaded", () => {
    // The token of an invitation link is in the fragment, which is not sent to the server.
    const token = document.querySelector("input[data-fragment]");
    if (token && location.hash) token.value = location.hash.slice(1);
    showTimes(document);
    dialog()?.addEventListener("close", emptyDialog);
    // Escape must not close a dialog with a secret that is shown only once.
    dialog()?.addEventListener("cancel", (event) => {
      if (dialog().querySelector("[data-saved]")) event.preventDefault();
    });
  });
  window.addEventListener("load", () => {
    if (history.state?.pages) restoreList(history.state);
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) dialog()?.close();
  });
  window.addEventListener("pagehide", () => {
    if (history.state?.pages) saveHistoryState({ height: scrollY });
  });

  document.addEventListener("click", (event) => {
    const copied = event.target.closest("[data-copy]");
    if (copied) copy(copied);
    if (event.target.closest("[data-close]")) dialog().close();
    if (event.target.closest("[data-print]")) window.print();
    const file = event.target.closest("a[data-download]");
    if (file) {
      event.preventDefault();
      if (file.dataset.download === "all") downloadAll(file);
      else download(file);
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-download]")) {
      event.preventDefault();
      download(event.target);
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
    if (!elt.matches("form.filters")) return;
    // Typing in a picker loads suggestions. The list changes once a record is chosen.
    const isSuggesting = triggeringEvent?.type === "input" && triggeringEvent.target.matches("[role=combobox]");
    if (isSuggesting || isUnchanged(elt, triggeringEvent)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    // An automatic refresh must not remove a message that the user may be reading.
    if (event.detail.requestConfig.triggeringEvent) showProblem();
  });
  // Show an error message and keep the page, including all input.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (xhr.status >= 400) {
      event.detail.shouldSwap = false;
      showProblem(extractMessage(xhr.responseText));
    } else if (target.matches(".more") && !isRestoring) {
      restore = focusFirstAfter(target.previousElementSibling);
      saveHistoryState({ pages: (history.state?.pages || 0) + 1 });
    } else if (target.id === "figures") {
      if (pressed) event.detail.shouldSwap = false;
      else restore = captureState(target);
    }
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "dialog-body") isDialogArriving = true;
  });
  // Fields react to what is typed only after the new content has settled.
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.id === "dialog-body") openDialog();
    restore?.();
    restore = null;
  });
  // Only the new element: each row of a long list is announced separately.
  document.addEventListener("htmx:load", ({ detail: { elt } }) => showTimes(elt));
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form");
    if (form && event.detail.lengthComputable) showProgress(form, event.detail);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    endProgress(event.target);
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) keepDisabled(event.target);
    if (event.detail.successful && isUnreachableShown()) showProblem();
  });
  document.addEventListener("htmx:responseError", (event) => submitted.delete(event.target));
  document.addEventListener("htmx:sendError", (event) => {
    submitted.delete(event.target);
    showProblem(UNREACHABLE);
  });
})();
