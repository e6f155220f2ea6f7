// "Try it": sends a request to this gateway with the credential that the reader enters. Credentials
// stay in the memory of this page.
import { CREDENTIALS, buildHeaders } from "./credentials.js";

const KINDS = { apiKey: "bearer", adminToken: "login", posSignature: "pos", partnerSignature: "partner", serviceSignature: "service" };
const RESPONSE_HEADERS = ["X-Request-ID", "Idempotent-Replayed", "Retry-After", "ETag"];
const MAX_SHOWN = 200_000;
const hasSandbox = document.getElementById("sandbox") !== null;

function create(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** What was entered, by kind of credential; shared by all operations on the page. */
const entered = {};

/** Keys and sample values of the demo, for signed-in administrators of a sandbox. */
let demo = null;
async function loadDemo() {
  if (!hasSandbox || demo) return;
  try {
    const response = await fetch("/simulator/try-it");
    if (!response.ok || response.redirected) return;
    demo = await response.json();
    for (const [kind, values] of Object.entries(demo.credentials)) entered[kind] ??= values;
  } catch { /* the reader enters a credential */ }
}

/** Replaces sample values by those of the demo, and uses a new idempotency key. */
function personalize(request) {
  const values = demo?.values ?? {};
  const fill = (name, value) => (name in values ? values[name] : value);
  const body = request.body && Object.fromEntries(
    Object.entries(request.body).map(([name, value]) => [name, fill(name, value)]).filter(([, value]) => value !== null));
  if (body && request.isIdempotent) body.request_id = crypto.randomUUID();
  const isSubscriber = /\/(subscribers|balance)\/\{/.test(request.path);
  const parameters = request.parameters.map((item) => {
    const name = item.name === "id" && isSubscriber ? "subscriber_id" : item.name;
    return { ...item, example: item.in === "path" || item.required ? fill(name, item.example) : "" };
  });
  return { body, parameters };
}

class TryDialog {
  constructor() {
    this.title = create("h2", { id: "try-title" });
    this.path = create("code");
    this.kind = create("select");
    this.credential = create("div", { className: "values" });
    this.values = create("div", { className: "values" });
    this.note = create("p", { className: "note" });
    this.note.setAttribute("role", "status");
    this.send = create("button", { className: "send", textContent: "Send request" });
    this.outcome = create("p", { className: "outcome" });
    this.outcome.setAttribute("role", "status");
    this.response = create("pre", { tabIndex: 0 });
    this.response.setAttribute("role", "region");
    this.response.setAttribute("aria-label", "Response");
    const close = create("button", { type: "button", textContent: "Close" });
    const form = create("form", { method: "dialog" },
      create("div", { className: "try-request" },
        create("label", {}, "Send as", this.kind), this.credential, this.note, this.values, this.send),
      create("div", { className: "try-response" }, create("h3", { textContent: "Response" }), this.outcome, this.response));
    this.dialog = create("dialog", { className: "try" },
      create("header", {}, create("div", {}, this.title, this.path), close), form);
    this.dialog.setAttribute("aria-labelledby", "try-title");
    document.body.append(this.dialog);
    close.addEventListener("click", () => this.dialog.close());
    this.kind.addEventListener("change", () => this.showCredential());
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
  }

  async open(request, title) {
    await loadDemo();
    this.request = request;
    const { body, parameters } = personalize(request);
    this.title.textContent = title;
    this.path.textContent = `${request.method} ${request.path}`;
    const kinds = request.schemes.map((scheme) => KINDS[scheme]);
    const sorted = [...kinds].sort((one, other) => (other in entered) - (one in entered));
    this.kind.replaceChildren(...(sorted.length ? sorted : [""]).map((kind) => create("option", { value: kind, textContent: CREDENTIALS[kind].label })));
    this.showCredential();
    this.inputs = parameters.map((item) => ({ ...item, input: create("input", { value: item.example, required: item.required, autocomplete: "off", spellcheck: false, placeholder: item.required ? "" : "Optional" }) }));
    this.body = body ? create("textarea", { value: JSON.stringify(body, null, 2), spellcheck: false }) : null;
    this.values.replaceChildren(
      ...this.inputs.map(({ name, input }) => create("label", {}, name, input)),
      ...(this.body ? [create("label", {}, "Body", this.body)] : []));
    this.outcome.replaceChildren("Send the request to see the response.");
    this.response.textContent = "";
    this.dialog.showModal();
    this.send.focus();
  }

  showCredential() {
    const kind = this.kind.value;
    this.credential.replaceChildren(...CREDENTIALS[kind].fields.map(([name, label, isHidden]) => {
      const input = create("input", { type: isHidden ? "password" : "text", autocomplete: "off", spellcheck: false, value: entered[kind]?.[name] ?? "" });
      input.addEventListener("input", () => { entered[kind] = { ...entered[kind], [name]: input.value.trim() }; });
      return create("label", {}, label, input);
    }));
    this.note.replaceChildren(...this.describe(kind));
  }

  describe(kind) {
    if (!kind) return ["This operation is public."];
    if (demo?.credentials[kind]) return ["Filled in with the key of the demo. The request runs on this gateway."];
    const kept = "The credential stays in this page and is forgotten when you leave it. The request runs on this gateway.";
    if (!hasSandbox || demo) return [kept];
    return [create("a", { href: "/console/sign-in", textContent: "Sign in to the console" }), " to use the demo's keys here, or enter a credential. ", kept];
  }

  buildTarget() {
    let path = this.request.path;
    const query = new URLSearchParams();
    for (const { name, in: place, input } of this.inputs) {
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(name, input.value);
    }
    return { path, query: query.toString() };
  }

  async submit() {
    const { method } = this.request;
    const { path, query } = this.buildTarget();
    const body = this.body ? this.body.value : "";
    this.send.disabled = true;
    const started = performance.now();
    try {
      const headers = await buildHeaders(this.kind.value, entered[this.kind.value] ?? {}, { method, path, query, body });
      const response = await fetch(query ? `${path}?${query}` : path, { method, headers, credentials: "omit", ...(this.body ? { body } : {}) });
      await this.show(response, Math.round(performance.now() - started));
    } catch (error) {
      this.outcome.replaceChildren(create("strong", { className: "failed", textContent: "Not sent" }), error.message);
      this.response.textContent = "";
    } finally {
      this.send.disabled = false;
    }
  }

  async show(response, milliseconds) {
    const headers = RESPONSE_HEADERS.filter((name) => response.headers.has(name)).map((name) => create("span", { className: "quiet", textContent: `${name}: ${response.headers.get(name)}` }));
    this.outcome.replaceChildren(
      create("strong", { className: response.ok ? "" : "failed", textContent: `${response.status} ${response.statusText}`.trim() }),
      create("span", { textContent: `${milliseconds} ms` }), ...headers);
    const isText = /json|text|csv/.test(response.headers.get("content-type") ?? "");
    const text = isText ? await response.text() : `${(await response.arrayBuffer()).byteLength} bytes`;
    this.response.textContent = format(text).slice(0, MAX_SHOWN);
  }
}

function format(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

let dialog = null;
for (const button of document.querySelectorAll(".try-it")) {
  button.hidden = false;
  button.setAttribute("aria-label", `Try it: ${button.dataset.title}`);
  button.addEventListener("click", () => {
    dialog ??= new TryDialog();
    dialog.open(JSON.parse(button.dataset.request), button.dataset.title);
  });
}
