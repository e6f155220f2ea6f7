// Theme switch, search as you type, language tabs, copy buttons and checklists of the guide.
"use strict";

(() => {
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;
  const store = {
    get(name) { try { return localStorage.getItem(name); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, value); } catch { /* not persisted */ } },
  };
  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // Before the page is painted, so that it does not flash in the other theme.
  const applyTheme = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  applyTheme(store.get("tapgate-theme"));

  const addThemeSwitch = () => {
    const button = document.getElementById("theme");
    const current = () => root.dataset.theme ?? "system";
    const icons = { system: "◐", light: "☀", dark: "☾" };
    const label = () => {
      button.textContent = icons[current()];
      button.title = `Theme: ${current()}`;
      button.setAttribute("aria-label", button.title);
    };
    button.addEventListener("click", () => {
      const next = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length];
      applyTheme(next);
      store.set("tapgate-theme", next);
      label();
    });
    label();
    button.hidden = false;
  };

  const addSearch = () => {
    const input = document.getElementById("search");
    const found = document.getElementById("found");
    let timer, controller;
    const close = () => { found.hidden = true; };
    const links = () => [...found.querySelectorAll("a")];
    const search = async () => {
      controller?.abort();
      controller = new AbortController();
      const query = input.value.trim();
      if (query.length < 2) return close();
      try {
        const url = `/guide/search?fragment=1&q=${encodeURIComponent(query)}`;
        const response = await fetch(url, { signal: controller.signal });
        if (!response.ok) return;
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        found.replaceChildren(...page.body.children);
        found.hidden = false;
      } catch (error) {
        if (error.name !== "AbortError") close();
      }
    };
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
    input.addEventListener("focus", () => { if (found.children.length) found.hidden = false; });
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.matches?.("input, textarea, select");
      if ((event.key === "/" && !isTyping) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        input.focus();
        input.select();
      } else if (event.key === "Escape") {
        close();
      } else if (["ArrowDown", "ArrowUp"].includes(event.key) && !found.hidden && event.target.closest(".search")) {
        event.preventDefault();
        const stops = [input, ...links()];
        const step = event.key === "ArrowDown" ? 1 : -1;
        stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
      }
    });
    document.addEventListener("click", (event) => { if (!event.target.closest(".search")) close(); });
  };

  const addCopyButtons = () => {
    for (const block of document.querySelectorAll(".code:not([data-language=output])")) {
      const button = element("button", { type: "button", textContent: "Copy" });
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(block.querySelector("code").textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Select the text to copy it";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      block.append(button);
    }
  };

  // The chosen language applies to all tabs, and to the next visit.
  const rememberLanguage = () => {
    const inputs = () => document.querySelectorAll(".tab-list input");
    const choose = (language) => {
      for (const input of inputs()) if (input.value === language) input.checked = true;
    };
    const chosen = store.get("tapgate-language");
    if (chosen) choose(chosen);
    document.addEventListener("change", ({ target }) => {
      if (!target.matches(".tab-list input")) return;
      const list = target.closest(".tab-list");
      const before = list.getBoundingClientRect().top;
      choose(target.value);
      store.set("tapgate-language", target.value);
      scrollBy({ top: list.getBoundingClientRect().top - before, behavior: "instant" }); // the tabs above may have another height
    });
  };

  const addChecklists = () => {
    document.querySelectorAll("input.task").forEach((box, number) => {
      const item = box.closest("li");
      box.setAttribute("aria-label", item.textContent.trim().slice(0, 80));
      const name = `tapgate-task:${location.pathname}:${number}`;
      box.checked = store.get(name) === "done";
      box.addEventListener("change", () => store.set(name, box.checked ? "done" : ""));
    });
  };

  const followHeadings = () => {
    const links = new Map([...document.querySelectorAll(".toc a, .operations a")].map((link) => [link.hash.slice(1), link]));
    const mark = (id) => links.forEach((link, name) => {
      if (name === id) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
    const observer = new IntersectionObserver((entries) => {
      const visible = entries.find((entry) => entry.isIntersecting);
      if (visible) mark(visible.target.id);
    }, { rootMargin: "-70px 0px -70% 0px" });
    for (const id of links.keys()) {
      const heading = document.getElementById(decodeURIComponent(id));
      if (heading) observer.observe(heading);
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    addThemeSwitch();
    addSearch();
    rememberLanguage();
    addCopyButtons();
    addChecklists();
    followHeadings();
    const side = document.querySelector(".side");
    const current = side.querySelector("[aria-current]");
    if (current) side.scrollTop = current.offsetTop - side.clientHeight / 2;
  });
})();
