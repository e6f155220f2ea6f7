// The phone: whose it is, what is said, what is shown.

import { bubbles, make, ownBubble, showState } from "./phone-bubbles.js";
import { PinForm } from "./phone-form.js";
import { Line, Trouble } from "./phone-line.js";
import { Sheet, restingPlace } from "./phone-sheet.js";
import { Thread, keep, restored } from "./phone-threads.js";

const find = (id) => document.getElementById(id);
const page = find("phone");
const line = new Line(page.dataset.csrf);
const behind = find("behind");
const sheet = new Sheet(find("sheet"), behind);
const pinForm = new PinForm(line, behind, (token) => say({ text: "PIN entered", kind: "lock" }, { form: token }));

const NUMBER = /^\+[1-9]\d{5,14}$/;
const LARGEST_PICTURE = 5 * 1024 * 1024;
const AWAITING_MS = 400;
const LIVELY_MS = 1000;
const IDLE_MS = 4000;
const LIVELY_FOR_MS = 15_000;
const PATIENCE_MS = 30_000;
const SUGGESTED = ["menu", "balance", "help"];

let { threads, active } = restored();
let timer = 0;
let picture = null;
// Until the messenger says otherwise: what is shown is kept, and a PIN must not be.
let textPins = true;

// Looking for what came in

async function look() {
  clearTimeout(timer);
  const thread = active;
  if (!thread) return;
  if (document.hidden) return;
  try {
    const messages = await line.messages(thread.phone);
    const isFirst = !thread.loaded;
    if (thread.take(messages) || isFirst) show(thread);
    if (find("trouble").dataset.passes) complain("");
  } catch (trouble) {
    fail(trouble, "by itself");
  }
  if (thread.awaiting && Date.now() - thread.movedAt > PATIENCE_MS) thread.awaiting = false;
  showPresence();
  clearTimeout(timer);
  timer = setTimeout(look, pace(active));
}

function pace(thread) {
  if (thread.awaiting) return AWAITING_MS;
  return Date.now() - thread.movedAt < LIVELY_FOR_MS ? LIVELY_MS : IDLE_MS;
}

function fail(trouble, passes = "") {
  if (!(trouble instanceof Trouble)) throw trouble;
  complain(trouble.message, passes);
}

// What passes by itself is taken back as soon as it has; the rest when something else is done.
function complain(sentence, passes = "") {
  const place = find("trouble");
  if (place.textContent === sentence) return;
  place.dataset.passes = passes;
  place.textContent = sentence;
  place.hidden = !sentence;
}

// Saying something

async function say(entry, message) {
  const thread = active;
  if (!thread) return complain("Choose whose phone this is first.");
  const said = thread.say(entry);
  complain("");
  show(thread);
  try {
    await line.send(thread.phone, message);
    if (said.state === "sending") said.state = "sent";
  } catch (trouble) {
    said.state = "failed";
    thread.awaiting = false;
    fail(trouble);
  }
  show(thread);
  look();
}

const tap = {
  option: (option, kind) => say({ text: option.title }, { tapped: { id: option.id, title: option.title, kind } }),
  list: openList,
  form: (token, opener) => pinForm.open(token, opener),
};

function openList(action, opener) {
  find("sheet-title").textContent = action.button;
  const parts = [];
  for (const { title, rows } of action.sections) {
    if (title) parts.push(make("h3", "", title));
    parts.push(...rows.map(rowOf));
  }
  find("sheet-rows").replaceChildren(...parts);
  sheet.open(opener);
  find("sheet-rows").querySelector("button").focus();
}

function rowOf(row) {
  const button = make("button", "row", make("strong", "", row.title));
  button.type = "button";
  if (row.description) button.append(make("span", "", row.description));
  button.addEventListener("click", () => {
    sheet.shut(restingPlace());
    tap.option(row, "list");
  });
  return button;
}

find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = find("words").value.trim();
  if (picture) {
    say({ picture }, { picture });
    removePicture();
  }
  if (!words) return;
  find("words").value = "";
  // Where PINs are written as messages, they are not shown either.
  const shown = textPins ? words.replace(/(?<!\d)\d{4}(?!\d)/g, "••••") : words;
  say({ text: shown }, { text: words });
});

// Pictures

find("attach").addEventListener("click", () => find("file").click());
find("file").addEventListener("change", () => {
  const [file] = find("file").files;
  find("file").value = "";
  if (!file) return;
  if (!["image/jpeg", "image/png"].includes(file.type)) return complain("Only JPEG and PNG pictures can be sent.");
  if (file.size > LARGEST_PICTURE) return complain("A picture may have at most 5 MB.");
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    picture = reader.result;
    find("preview-picture").src = picture;
    find("preview-name").textContent = file.name;
    find("preview").hidden = false;
    find("log").scrollTop = find("log").scrollHeight;
    complain("");
    find("words").focus();
  });
  reader.readAsDataURL(file);
});
find("preview-remove").addEventListener("click", () => {
  removePicture();
  find("attach").focus();
});

function removePicture() {
  picture = null;
  find("preview").hidden = true;
  find("preview-picture").removeAttribute("src");
}

// Showing a conversation

function show(thread) {
  keep(threads, active);
  showConversations();
  if (thread !== active) return;
  const log = find("log");
  if (log.dataset.phone !== thread.phone) {
    log.dataset.phone = thread.phone;
    log.replaceChildren();
    thread.shown = new Map();
  }
  log.querySelector(".suggested")?.remove();
  log.querySelector(".typing")?.remove();
  for (const entry of thread.entries) showEntry(log, thread, entry);
  if (!thread.entries.length && thread.loaded) log.append(suggestions());
  showPresence();
  log.scrollTop = log.scrollHeight;
}

// Only what is new is put in, so that screen readers tell that and nothing else.
function showEntry(log, thread, entry) {
  const bubble = thread.shown.get(entry);
  if (!bubble) {
    const made = entry.parts ? bubbles(entry, tap) : [ownBubble(entry)];
    log.append(...made);
    thread.shown.set(entry, made[0]);
  } else if (!entry.parts) showState(bubble, entry.state);
}

function suggestions() {
  const place = make("div", "suggested", make("p", "quiet", "Say hello, or try one of these:"));
  for (const words of SUGGESTED) {
    const button = make("button", "", words);
    button.type = "button";
    button.addEventListener("click", () => {
      restingPlace().focus();
      say({ text: words }, { text: words });
    });
    place.append(button);
  }
  return place;
}

function showPresence() {
  const typing = Boolean(active?.awaiting);
  find("presence").textContent = typing ? "typing …" : "online";
  const log = find("log");
  const dots = log.querySelector(".typing");
  if (typing && !dots) {
    const made = make("div", "bubble typing", make("span"), make("span"), make("span"));
    made.setAttribute("aria-hidden", "true");
    log.append(made);
    log.scrollTop = log.scrollHeight;
  } else if (!typing) dots?.remove();
}

// Whose phone

function use(person) {
  let thread = threads.find(({ phone }) => phone === person.phone);
  if (!thread) threads.unshift((thread = new Thread(person)));
  if (person.name) thread.name = person.name;
  active = thread;
  thread.shown = null;
  find("log").removeAttribute("data-phone");
  sheet.shut();
  pinForm.sheet.shut();
  removePicture();
  complain("");
  find("whose-name").textContent = thread.name;
  find("own-number").textContent = thread.phone;
  show(thread);
  look();
}

function showConversations() {
  const buttons = threads.map((thread) => {
    const button = personButton({ name: thread.name, phone: thread.lastWords.slice(0, 60) || thread.phone }, () => use(thread));
    if (thread === active) button.setAttribute("aria-current", "true");
    return make("li", "", button);
  });
  const list = find("conversations");
  const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...buttons);
  if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
}

function personButton({ name, phone }, act) {
  const button = make("button", "", make("strong", "", name), make("span", "", phone));
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

let searching = 0;
find("who").addEventListener("input", () => {
  clearTimeout(searching);
  searching = setTimeout(search, 250);
});
find("who").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  find("found").querySelector("button")?.click();
});

async function search() {
  const asked = find("who").value.trim();
  if (!asked) return showFound([], "");
  try {
    const people = await line.people(asked);
    if (asked !== find("who").value.trim()) return;
    const number = asked.replace(/[\s().-]/g, "");
    const known = people.some(({ phone }) => phone === number);
    if (NUMBER.test(number) && !known) people.unshift({ name: "New number", phone: number, isNew: true });
    showFound(people, people.length ? "" : "Nobody is called that. A new number begins with + and its country.");
  } catch (trouble) {
    fail(trouble);
  }
}

function showFound(people, note) {
  const choose = ({ name, phone, isNew }) => () => {
    find("who").value = "";
    showFound([], "");
    use({ phone, name: isNew ? phone : name });
    if (isSmall()) find("whose").open = false;
    restingPlace().focus();
  };
  find("found").replaceChildren(...people.map((one) => make("li", "", personButton(one, choose(one)))));
  find("found-note").textContent = note;
}

function isSmall() {
  return matchMedia("(max-width: 50rem)").matches;
}

// The start

document.addEventListener("visibilitychange", look);
if (isSmall()) find("whose").open = false;
active = threads.find(({ phone }) => phone === active) || threads[0];
if (!active && page.dataset.phone) active = new Thread({ phone: page.dataset.phone, name: page.dataset.name });
if (active) use(active);
else complain("Choose whose phone this is: search for somebody, or type a new number.");
line.formKey().then((key) => { textPins = !key; }, () => {});
