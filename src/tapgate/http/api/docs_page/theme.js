// Before the page is painted: the theme that the guide's switch chose, or that of the system.
"use strict";

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("tapgate-theme"); } catch { /* not stored */ }
  const apply = () => root.classList.toggle("dark-mode", chosen === "dark" || (chosen !== "light" && system.matches));
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  system.addEventListener("change", apply);
  apply();
})();
