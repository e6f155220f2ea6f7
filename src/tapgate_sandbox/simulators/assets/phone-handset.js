// A handset: sends the messages of one customer and renders the conversation.

import { RequestError } from "./phone-api.js";
import { createElement, renderReceived, renderSent, showState } from "./phone-bubbles.js";
import { PinForm } from "./phone-form.js";
import { Sheet } from "./phone-sheet.js";

const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const POLL_AWAITING_REPLY_MS = 400;
const POLL_ACTIVE_MS = 1000;
const POLL_IDLE_MS = 4000;
const ACTIVE_PERIOD_MS = 15_000;
const REPLY_TIMEOUT_MS = 30_000;
const SUGGESTIONS = ["menu", translate("balance"), translate("help")];

/**
 * Starts the handset whose elements have IDs with the prefix. `onShow(thread)` is called after a
 * conversation has changed, and `onReceive(messages)` when new messages have arrived.
 */
export function createHandset(prefix, api, { onShow = () => {}, onReceive = () => {} } = {}) {
  const element = (id) => document.getElementById(prefix + id);
  const chat = element("chat");
  const sheet = new Sheet(element("sheet"), chat);
  const pinForm = new PinForm(api, element, (token) => {
    focus();
    send({ text: translate("PIN entered"), kind: "lock" }, { form: token });
  });

  let active = null; // the thread that is shown
  let pollTimer = 0;
  let picture = null;
  // Assumed until the messenger's form key is known: PINs may be sent as text, so they are masked.
  let masksPins = true;

  // On a phone, focusing the text field would open the keyboard over the reply.
  function focus() {
    element(matchMedia("(pointer: coarse)").matches ? "log" : "message").focus();
  }

  // Receiving

  async function poll() {
    clearTimeout(pollTimer);
    const thread = active;
    if (!thread) return;
    if (document.hidden) return;
    try {
      const messages = await api.listMessages(thread.phone);
      const isFirstPoll = !thread.loaded;
      const added = thread.addReceived(messages);
      if (added || isFirstPoll) show(thread);
      if (added && !isFirstPoll) onReceive(messages);
      if (element("chat-error").dataset.temporary) showError("");
    } catch (error) {
      handleError(error, "temporary");
    }
    if (thread.awaitingReply && Date.now() - thread.lastActivityAt > REPLY_TIMEOUT_MS) thread.awaitingReply = false;
    showPresence();
    clearTimeout(pollTimer);
    pollTimer = setTimeout(poll, getPollInterval(active));
  }

  function getPollInterval(thread) {
    if (thread.awaitingReply) return POLL_AWAITING_REPLY_MS;
    return Date.now() - thread.lastActivityAt < ACTIVE_PERIOD_MS ? POLL_ACTIVE_MS : POLL_IDLE_MS;
  }

  function handleError(error, temporary = "") {
    if (!(error instanceof RequestError)) throw error;
    showError(error.message, temporary);
  }

  // A temporary error is removed by the next successful poll, any other by the next action.
  function showError(message, temporary = "") {
    const target = element("chat-error");
    if (target.textContent === message) return;
    target.dataset.temporary = temporary;
    target.textContent = message;
    target.hidden = !message;
  }

  // Sending

  async function send(content, message) {
    const thread = active;
    if (!thread) return showError(translate("Select a customer first."));
    const entry = thread.addSent(content);
    showError("");
    show(thread);
    try {
      await api.sendMessage(thread.phone, message);
      if (entry.state === "sending") entry.state = "sent";
    } catch (error) {
      entry.state = "failed";
      thread.awaitingReply = false;
      handleError(error);
    }
    show(thread);
    poll();
  }

  const sendText = (text) => send({ text }, { text });

  const tapHandlers = {
    option: (option, kind) => send({ text: option.title }, { tapped: { id: option.id, title: option.title, kind } }),
    list: openList,
    form: (token, opener) => pinForm.open(token, opener),
  };

  function openList(action, opener) {
    element("sheet-title").textContent = action.button;
    const parts = [];
    for (const { title, rows } of action.sections) {
      if (title) parts.push(createElement("h3", "", title));
      parts.push(...rows.map(createRow));
    }
    element("sheet-rows").replaceChildren(...parts);
    sheet.open(opener);
    element("sheet-rows").querySelector("button").focus();
  }

  function createRow(row) {
    const button = createElement("button", "row", createElement("strong", "", row.title));
    button.type = "button";
    if (row.description) button.append(createElement("span", "", row.description));
    button.addEventListener("click", () => {
      sheet.close();
      focus();
      tapHandlers.option(row, "list");
    });
    return button;
  }

  element("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = element("message").value.trim();
    if (picture) {
      send({ picture }, { picture });
      removePicture();
    }
    if (!text) return;
    element("message").value = "";
    const displayed = masksPins ? text.replace(/(?<!\d)\d{4}(?!\d)/g, "••••") : text;
    send({ text: displayed }, { text });
  });

  // Images

  element("attach").addEventListener("click", () => element("file").click());
  element("file").addEventListener("change", () => {
    const [file] = element("file").files;
    element("file").value = "";
    if (!file) return;
    if (!["image/jpeg", "image/png"].includes(file.type)) return showError(translate("Only JPEG and PNG images are supported."));
    if (file.size > MAX_IMAGE_BYTES) return showError(translate("Images can be up to 5 MB."));
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      picture = reader.result;
      element("preview-picture").src = picture;
      element("preview-name").textContent = file.name;
      element("preview").hidden = false;
      element("log").scrollTop = element("log").scrollHeight;
      showError("");
      element("message").focus();
    });
    reader.readAsDataURL(file);
  });
  element("preview-remove").addEventListener("click", () => {
    removePicture();
    element("attach").focus();
  });

  function removePicture() {
    picture = null;
    element("preview").hidden = true;
    element("preview-picture").removeAttribute("src");
  }

  // Rendering a conversation

  function show(thread) {
    onShow(thread);
    if (thread !== active) return;
    const log = element("log");
    if (log.dataset.phone !== thread.phone) {
      log.dataset.phone = thread.phone;
      log.replaceChildren();
      thread.bubbles = new Map();
    }
    log.querySelector(".suggestions")?.remove();
    log.querySelector(".typing")?.remove();
    for (const entry of thread.entries) showEntry(log, thread, entry);
    if (!thread.entries.length && thread.loaded) log.append(createSuggestions());
    showPresence();
    log.scrollTop = log.scrollHeight;
  }

  // Only new messages are inserted, so that screen readers announce nothing else.
  function showEntry(log, thread, entry) {
    const bubble = thread.bubbles.get(entry);
    if (!bubble) {
      const bubbles = entry.parts ? renderReceived(entry, tapHandlers) : [renderSent(entry)];
      log.append(...bubbles);
      thread.bubbles.set(entry, bubbles[0]);
    } else if (!entry.parts) showState(bubble, entry.state);
  }

  function createSuggestions() {
    const suggestions = createElement("div", "suggestions", createElement("p", "quiet", translate("Say hello, or try one of these:")));
    for (const text of SUGGESTIONS) {
      const button = createElement("button", "", text);
      button.type = "button";
      button.addEventListener("click", () => {
        focus();
        sendText(text);
      });
      suggestions.append(button);
    }
    return suggestions;
  }

  function showPresence() {
    const isTyping = Boolean(active?.awaitingReply);
    element("presence").textContent = isTyping ? translate("typing…") : translate("online");
    const log = element("log");
    const typingBubble = log.querySelector(".typing");
    if (isTyping && !typingBubble) {
      const bubble = createElement("div", "bubble typing", createElement("span"), createElement("span"), createElement("span"));
      bubble.setAttribute("aria-hidden", "true");
      log.append(bubble);
      log.scrollTop = log.scrollHeight;
    } else if (!isTyping) typingBubble?.remove();
  }

  /** Shows another customer's conversation. */
  function select(thread) {
    active = thread;
    thread.bubbles = null;
    element("log").removeAttribute("data-phone");
    sheet.close();
    pinForm.sheet.close();
    removePicture();
    showError("");
    element("own-number").textContent = thread.phone;
    show(thread);
    poll();
  }

  document.addEventListener("visibilitychange", poll);
  api.getFormKey().then((key) => { masksPins = !key; }, () => {});
  return { select, sendText, poll, focus, handleError, showError, get active() { return active; } };
}
