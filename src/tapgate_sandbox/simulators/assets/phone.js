// The page of the phone simulator: selects the customer, and lists the conversations.

import { PhoneApi } from "./phone-api.js";
import { createElement } from "./phone-bubbles.js";
import { createHandset } from "./phone-handset.js";
import { Thread, loadThreads, saveThreads } from "./phone-threads.js";

const element = (id) => document.getElementById(id);
const root = element("phone");
const api = new PhoneApi(root.dataset.csrf);
const handset = createHandset("", api, { onShow: showConversations });

const PHONE_NUMBER = /^\+[1-9]\d{5,14}$/;
const SEARCH_DELAY_MS = 250;
const smallScreen = matchMedia("(max-width: 50rem)");

const { threads, active } = loadThreads();

function selectPerson(person) {
  let thread = threads.find(({ phone }) => phone === person.phone);
  if (!thread) threads.unshift((thread = new Thread(person)));
  if (person.name) thread.name = person.name;
  element("person-name").textContent = thread.name;
  handset.select(thread);
}

function showConversations() {
  saveThreads(threads, handset.active);
  const items = threads.map((thread) => {
    const button = createPersonButton({ name: thread.name, phone: thread.preview.slice(0, 60) || thread.phone }, () => selectPerson(thread));
    if (thread === handset.active) button.setAttribute("aria-current", "true");
    return createElement("li", "", button);
  });
  const list = element("conversations");
  const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...items);
  if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
}

function createPersonButton({ name, phone }, onClick) {
  const button = createElement("button", "", createElement("strong", "", name), createElement("span", "", phone));
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}

let searchTimer = 0;
element("person-search").addEventListener("input", () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(search, SEARCH_DELAY_MS);
});
element("person-search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  element("results").querySelector("button")?.click();
});

async function search() {
  const text = element("person-search").value.trim();
  if (!text) return showResults([], "");
  try {
    const people = await api.searchPeople(text);
    if (text !== element("person-search").value.trim()) return;
    const number = text.replace(/[\s().-]/g, "");
    const isKnown = people.some(({ phone }) => phone === number);
    if (PHONE_NUMBER.test(number) && !isKnown) people.unshift({ name: translate("New number"), phone: number, isNew: true });
    showResults(people, people.length ? "" : translate("No customers match. Start a new number with + and the country code."));
  } catch (error) {
    handset.handleError(error);
  }
}

function showResults(people, note) {
  const createHandler = ({ name, phone, isNew }) => () => {
    element("person-search").value = "";
    showResults([], "");
    selectPerson({ phone, name: isNew ? phone : name });
    if (smallScreen.matches) element("person").open = false;
    handset.focus();
  };
  element("results").replaceChildren(...people.map((person) => createElement("li", "", createPersonButton(person, createHandler(person)))));
  element("results-note").textContent = note;
}

// Startup

element("person").open = !smallScreen.matches;
smallScreen.addEventListener("change", () => { element("person").open = !smallScreen.matches; });
const parameters = new URLSearchParams(location.search);
const initial = !parameters.has("phone") && (threads.find(({ phone }) => phone === active) || threads[0]);
if (initial) selectPerson(initial);
else if (root.dataset.phone) selectPerson({ phone: root.dataset.phone, name: root.dataset.name });
else handset.showError(translate("Search for a customer or enter a new number to start."));
// The page of a tapped card continues here with a message.
const draft = parameters.get("text");
if (draft) {
  element("message").value = draft;
  history.replaceState(null, "", location.pathname);
}
