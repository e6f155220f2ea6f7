// Conversations as this tab remembers them. What came in is always read from the messenger anew;
// what was sent from here is kept, in this tab only, beside the message that it followed.

const KEPT = "tapgate-phone";
const MOST_KEPT = 100;

export class Thread {
  constructor({ phone, name, own = [] }) {
    this.phone = phone;
    this.name = name || phone;
    this.own = own;
    this.messages = new Map();
    this.entries = []; // both, in the order in which they are shown
    this.loaded = false;
    this.awaiting = false;
    this.movedAt = 0;
  }

  // Whether there was anything new.
  take(messages) {
    const fresh = messages.filter(({ id }) => !this.messages.has(id));
    for (const message of fresh) {
      this.messages.set(message.id, message);
      this.entries.push(message);
      if (!this.loaded) this.entries.push(...this.own.filter(({ after }) => after === message.id));
    }
    if (!this.loaded) {
      this.entries.unshift(...this.own.filter(({ after }) => !this.messages.has(after)));
      this.loaded = true;
    }
    if (!fresh.length) return false;
    for (const entry of this.own) if (entry.state === "sent") entry.state = "read";
    this.awaiting = false;
    this.movedAt = Date.now();
    return true;
  }

  say(entry) {
    const last = this.entries.findLast(({ parts }) => parts);
    const said = { ...entry, at: Date.now(), after: last?.id || null, state: "sending" };
    this.own.push(said);
    this.entries.push(said);
    this.awaiting = true;
    this.movedAt = Date.now();
    return said;
  }

  get lastWords() {
    const last = this.entries.at(-1);
    if (!last) return "";
    if (!last.parts) return last.text || "Picture";
    const part = last.parts.at(-1);
    const content = part?.[part.type] || {};
    const words = content.body?.text || content.body || content.text || content.filename || "";
    return words.replaceAll("*", "");
  }
}

export function restored() {
  try {
    const { threads, active } = JSON.parse(sessionStorage.getItem(KEPT)) || {};
    return { threads: (threads || []).map((one) => new Thread(one)), active };
  } catch {
    return { threads: [] };
  }
}

export function keep(threads, active) {
  const shown = threads.map(({ phone, name, own }) => ({
    phone,
    name,
    own: own.slice(-MOST_KEPT).map(({ picture, ...rest }) => (picture ? { ...rest, text: rest.text || "Picture" } : rest)),
  }));
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ threads: shown, active: active?.phone }));
  } catch {
    // A full or closed store is no reason to stop talking.
  }
}
