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

  function say(...nodes) {
    document.getElementById("problem")?.replaceChildren(...nodes);
  }

  function paragraph(text, name) {
    const made = document.createElement("p");
    made.className = name;
    made.textContent = text;
    return made;
  }

  function checkSize(input) {
    const { size } = input.files[0] || { size: 1 };
    const mebibytes = Math.floor(input.dataset.largest / 2 ** 20);
    const tooLarge = size > input.dataset.largest;
    input.setCustomValidity(
      tooLarge ? `This file is larger than ${mebibytes} MiB.` : size ? "" : "This file is empty.",
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

  function tellOfNext(address, cursor) {
    const note = document.getElementById("download-note");
    if (!note) return;
    note.replaceChildren();
    note.className = cursor ? "notice" : "";
    if (!cursor) return;
    const next = document.createElement("a");
    address.searchParams.set("cursor", cursor);
    next.href = address;
    next.dataset.download = "";
    next.textContent = "Download the next part";
    note.append("There are more rows than one file holds. ", next);
  }

  // A file that is fetched here can say that it is not all; one that the browser fetches cannot.
  async function download(link) {
    if (link.getAttribute("aria-disabled")) return;
    const address = new URL(link.href);
    if (link.dataset.download === "listed") address.search = location.search;
    link.setAttribute("aria-disabled", "true");
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" } });
      if (answer.headers.has("HX-Redirect")) location.assign(answer.headers.get("HX-Redirect"));
      else if (!answer.ok) say(paragraph(plain(await answer.text()), "problem"));
      else {
        const named = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
        save(await answer.blob(), named ? named[1] : "export.csv");
        say();
        tellOfNext(address, answer.headers.get("X-Next-Cursor"));
      }
    } catch {
      say(paragraph("The server does not answer. Try again in a moment.", "problem"));
    } finally {
      link.removeAttribute("aria-disabled");
    }
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

  document.addEventListener("DOMContentLoaded", () => {
    showTimes(document);
    dialog()?.addEventListener("close", () => {
      // Told a moment later: by then another form may be in it.
      if (!dialog().open) document.getElementById("dialog-body").replaceChildren();
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
    const file = event.target.closest("a[data-download]");
    if (file) {
      event.preventDefault();
      download(file);
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("input[data-largest]")) checkSize(event.target);
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "dialog-body") openDialog();
  });
  document.addEventListener("htmx:load", (event) => showTimes(event.detail.elt.parentElement || document));
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form");
    if (form && event.detail.lengthComputable) showProgress(form, event.detail);
  });
  document.addEventListener("htmx:beforeRequest", () => say());
  // What is refused before any page is asked, such as too much at once, is no part of one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (!(xhr.getResponseHeader("Content-Type") || "").startsWith("application/json")) return;
    event.detail.shouldSwap = false;
    say(paragraph(plain(xhr.responseText), "problem"));
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const bar = event.target.querySelector?.("progress[data-upload]");
    if (!bar) return;
    bar.hidden = true;
    const note = event.target.querySelector("[data-upload-note]");
    if (note) note.textContent = "";
  });
  document.addEventListener("htmx:sendError", () => {
    say(paragraph("The server does not answer. Nothing was sent twice; try again in a moment.", "problem"));
  });
})();
