// Palette: remembers the IDs of opened records, and presses the button that `#do=` names.
"use strict";

(() => {
  const STORAGE_KEY = "tapgate-recent";
  const MAX_RECENT = 6;
  const RECORD = /^\/console\/(?:subscribers|cards|transactions|agents|processors|partners|support|compliance\/alerts)\/([\w-]+)$/;

  function readRecent() {
    return (sessionStorage.getItem(STORAGE_KEY) || "").split(",").filter(Boolean);
  }

  function remember() {
    const id = RECORD.exec(location.pathname)?.[1];
    const others = readRecent().filter((other) => other !== id);
    if (id && !["upload", "next"].includes(id)) {
      sessionStorage.setItem(STORAGE_KEY, [id, ...others].slice(0, MAX_RECENT).join(","));
    }
    const field = document.getElementById("find-recent");
    if (field) field.value = others.slice(0, MAX_RECENT - 1).join(",");
  }

  function act() {
    const name = /^#do=([\w.]+)$/.exec(location.hash)?.[1];
    if (!name) return;
    history.replaceState(history.state, "", location.pathname + location.search);
    const button = document.querySelector(`button[hx-get^="/console/actions/${name}"]`);
    button?.click();
  }

  document.addEventListener("DOMContentLoaded", remember);
  document.addEventListener("palette:act", act);
  window.addEventListener("load", act);
})();
