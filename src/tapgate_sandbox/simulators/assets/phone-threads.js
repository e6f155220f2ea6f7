// Conversations of this tab. Received messages are always read from the messenger. Sent messages
// are stored in this tab only, each with the ID of the message that it followed.

const STORAGE_KEY = "tapgate-phone";
const MAX_STORED_MESSAGES = 100;

export class Thread {
  constructor({ phone, name, own = [] }) {
    this.phone = phone;
    this.name = name || phone;
    this.own = own;
    this.messages = new Map();
    this.entries = []; // received and sent messages, in display order
    this.loaded = false;
    this.awaitingReply = false;
    this.lastActivityAt = 0;
  }

  /** Adds received messages; returns whether any of them was new. */
  addReceived(messages) {
    const newMessages = messages.filter(({ id }) => !this.messages.has(id));
    for (const message of newMessages) {
      this.messages.set(message.id, message);
      this.entries.push(message);
      if (!this.loaded) this.entries.push(...this.own.filter(({ after }) => after === message.id));
    }
    if (!this.loaded) {
      this.entries.unshift(...this.own.filter(({ after }) => !this.messages.has(after)));
      this.loaded = true;
    }
    if (!newMessages.length) return false;
    for (const entry of this.own) if (entry.state === "sent") entry.state = "read";
    this.awaitingReply = false;
    this.lastActivityAt = Date.now();
    return true;
  }

  /** Adds a message of the user and returns its entry. */
  addSent(content) {
    const last = this.entries.findLast(({ parts }) => parts);
    const entry = { ...content, at: Date.now(), after: last?.id || null, state: "sending" };
    this.own.push(entry);
    this.entries.push(entry);
    this.awaitingReply = true;
    this.lastActivityAt = Date.now();
    return entry;
  }

  /** The text of the last message, for the list of conversations. */
  get preview() {
    const last = this.entries.at(-1);
    if (!last) return "";
    if (!last.parts) return last.text || translate("Image");
    const part = last.parts.at(-1);
    const content = part?.[part.type] || {};
    const text = content.body?.text || content.body || content.text || content.filename || "";
    return text.replaceAll("*", "");
  }
}

export function loadThreads() {
  try {
    const { threads, active } = JSON.parse(sessionStorage.getItem(STORAGE_KEY)) || {};
    return { threads: (threads || []).map((stored) => new Thread(stored)), active };
  } catch {
    return { threads: [] };
  }
}

export function saveThreads(threads, active) {
  const stored = threads.map(({ phone, name, own }) => ({
    phone,
    name,
    own: own.slice(-MAX_STORED_MESSAGES).map(({ picture, ...rest }) => (picture ? { ...rest, text: rest.text || translate("Image") } : rest)),
  }));
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ threads: stored, active: active?.phone }));
  } catch {
    // Storage is full or disabled: the chat works without it.
  }
}
