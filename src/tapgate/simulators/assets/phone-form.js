// The form for a PIN. This page is the provider's client: it encrypts what is entered for the
// messenger's public key, so that no server on the way, and no log, ever sees it.

import { make } from "./phone-bubbles.js";
import { Trouble } from "./phone-line.js";
import { Sheet, restingPlace } from "./phone-sheet.js";

const FIELDS = ["pin", "new_pin", "repeated_pin"];
const DIGITS = 4;
const find = (id) => document.getElementById(id);

export class PinForm {
  #token = null;
  #busy = false;
  #field = null;

  constructor(line, behind, sent) {
    this.exchange = new Exchange(line);
    this.sent = sent;
    this.form = find("pin-form");
    this.sheet = new Sheet(this.form, behind, () => this.#forget());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    find("pad").addEventListener("click", (event) => this.#press(event.target.closest("button")));
  }

  async open(token, opener) {
    this.#forget();
    this.#token = token;
    this.sheet.open(opener);
    this.form.querySelector("[data-shut]").focus();
    await this.#ask({ action: "INIT" });
  }

  get #inputs() {
    return [...find("pin-fields").querySelectorAll("input")];
  }

  // Nothing of what was entered stays in the page.
  #forget() {
    this.#token = null;
    this.#field = null;
    for (const input of this.#inputs) input.value = "";
    find("pin-fields").replaceChildren();
    find("pin-title").textContent = "PIN";
    find("pin-text").textContent = "One moment …";
    this.#complain("");
    find("pin-send").hidden = find("pad").hidden = true;
  }

  async #submit() {
    const inputs = this.#inputs;
    const missing = inputs.find((input) => input.value.length !== DIGITS);
    if (this.#busy) return;
    if (missing) {
      missing.focus();
      return;
    }
    const data = Object.fromEntries(inputs.map((input) => [input.name, input.value]));
    for (const input of inputs) input.value = "";
    await this.#ask({ action: "data_exchange", data });
  }

  async #ask(request) {
    const token = this.#token;
    this.#busy = true;
    find("pin-send").disabled = true;
    try {
      const answer = await this.exchange.ask({ version: "3.0", flow_token: token, ...request });
      if (this.#token !== token) return;
      this.#answered(answer, token);
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      if (this.#token === token) this.#complain(trouble.message);
    } finally {
      this.#busy = false;
      find("pin-send").disabled = false;
    }
  }

  #answered(answer, token) {
    if (answer.error_msg) {
      find("pin-text").textContent = "";
      find("pin-fields").replaceChildren();
      find("pin-send").hidden = find("pad").hidden = true;
      this.#complain(answer.error_msg);
      this.form.querySelector("[data-shut]").focus();
    } else if (answer.screen === "SUCCESS") {
      this.sheet.shut(restingPlace());
      this.sent(token);
    } else {
      this.#show(answer.data);
    }
  }

  #show(data) {
    find("pin-title").textContent = data.heading;
    find("pin-text").textContent = data.text.replaceAll("*", "");
    find("pin-send").textContent = data.button;
    find("pin-send").hidden = find("pad").hidden = false;
    const names = FIELDS.filter((name) => `${name}_label` in data);
    find("pin-fields").replaceChildren(...names.map((name) => this.#field_of(name, data)));
    this.#complain(data.error_message || "");
    this.#enter(this.#inputs[0]);
  }

  #field_of(name, data) {
    const label = make("label", "", data[`${name}_label`]);
    const input = make("input", "digits");
    Object.assign(input, { type: "password", name, id: `form-${name}`, maxLength: DIGITS, autocomplete: "off" });
    input.inputMode = matchMedia("(pointer: coarse)").matches ? "none" : "numeric";
    input.setAttribute("aria-describedby", "pin-problem");
    input.placeholder = data.hint;
    label.htmlFor = input.id;
    input.addEventListener("focus", () => { this.#field = input; });
    input.addEventListener("input", () => {
      input.value = input.value.replace(/\D/g, "").slice(0, DIGITS);
      this.#filled(input);
    });
    return make("div", "field", label, input);
  }

  #press(button) {
    const input = this.#field;
    if (!button || !input) return;
    if ("delete" in button.dataset) input.value = input.value.slice(0, -1);
    else input.value = (input.value + button.dataset.digit).slice(0, DIGITS);
    this.#filled(input);
  }

  #filled(input) {
    if (input.value.length !== DIGITS) return;
    const next = this.#inputs.find((one) => one.value.length !== DIGITS);
    if (next) this.#enter(next);
  }

  #enter(input) {
    this.#field = input;
    input?.focus();
  }

  #complain(sentence) {
    const place = find("pin-problem");
    place.textContent = sentence;
    place.hidden = !sentence;
  }
}

// One request under a key of its own; the answer comes under the same key, with every bit of the
// initial vector flipped.
class Exchange {
  #key = null;

  constructor(line) {
    this.line = line;
  }

  async ask(request) {
    if (!globalThis.crypto?.subtle) {
      throw new Trouble("Your browser encrypts only on localhost or over https. Open this page at one of those.");
    }
    const first = await this.#once(request);
    if (first.status !== 421) return first.answer;
    this.#key = null; // the messenger has another one by now
    const second = await this.#once(request);
    if (second.status === 421) throw new Trouble("The messenger cannot read this form. Is its key another one?");
    return second.answer;
  }

  async #once(request) {
    this.#key ??= await this.#publicKey();
    const secret = crypto.getRandomValues(new Uint8Array(16));
    const vector = crypto.getRandomValues(new Uint8Array(16));
    const aes = await crypto.subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt", "decrypt"]);
    const plain = new TextEncoder().encode(JSON.stringify(request));
    const { status, body } = await this.line.exchange({
      encrypted_aes_key: text(await crypto.subtle.encrypt({ name: "RSA-OAEP" }, this.#key, secret)),
      encrypted_flow_data: text(await crypto.subtle.encrypt({ name: "AES-GCM", iv: vector }, aes, plain)),
      initial_vector: text(vector),
    });
    if (status === 421) return { status };
    const flipped = vector.map((byte) => byte ^ 0xff);
    try {
      const opened = await crypto.subtle.decrypt({ name: "AES-GCM", iv: flipped }, aes, bytes(body));
      return { status, answer: JSON.parse(new TextDecoder().decode(opened)) };
    } catch {
      throw new Trouble("The messenger's answer cannot be read. Try again in a moment.");
    }
  }

  async #publicKey() {
    const pem = await this.line.formKey();
    if (!pem) throw new Trouble("The messenger has no forms here. Send the PIN as a message, if it asks for that.");
    const der = bytes(pem.replace(/-----[A-Z ]+-----|\s/g, ""));
    return crypto.subtle.importKey("spki", der, { name: "RSA-OAEP", hash: "SHA-256" }, false, ["encrypt"]);
  }
}

function text(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

function bytes(encoded) {
  return Uint8Array.from(atob(encoded), (sign) => sign.charCodeAt(0));
}
