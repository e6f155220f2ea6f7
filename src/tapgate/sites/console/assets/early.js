// Repeats the last click or submission that was made while the other scripts were still loading.
// Without it, a button on a slow connection would do nothing. Also tells the server the time zone,
// so that pages arrive with local times.
"use strict";

(() => {
  const timeZone = document.documentElement.dataset.timezone || Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `tapgate_timezone=${timeZone}; Path=/; Max-Age=31536000; SameSite=Strict${secure}`;

  let repeat = () => {};

  function postpone(event) {
    const isClick = event.type === "click";
    const element = event.target.closest(isClick ? "button[hx-get], button[hx-post]" : "form[hx-post]");
    if (!element) return;
    event.preventDefault();
    event.stopPropagation();
    repeat = () => (isClick ? element.click() : element.requestSubmit(event.submitter));
  }

  for (const type of ["click", "submit"]) document.addEventListener(type, postpone, true);
  document.addEventListener("DOMContentLoaded", () =>
    setTimeout(() => {
      for (const type of ["click", "submit"]) document.removeEventListener(type, postpone, true);
      repeat();
    }),
  );
})();
