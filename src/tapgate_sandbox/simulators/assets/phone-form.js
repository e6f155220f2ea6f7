// The PIN form. Like the provider's client, the page encrypts the PIN with the messenger's public
// key, so that no other server and no log can contain it.

import { RequestError } from "./phone-api.js";
import { createElement } from "./phone-bubbles.js";
import { Sheet } from "./phone-sheet.js";

const FIELDS = ["code", "pin", "new_pin", "repeated_pin"];
const PIN_DIGITS = 4;
const CODE_DIGITS = 6;

export class PinForm {
  #token = null;
  #isBusy = false;
  #activeInput = null;

  /** `element(id)` finds a part of the handset; `onSuccess(token)` gets the completed form. */
  constructor(api, element, onSuccess) {
    this.element = element;
    this.channel = new EncryptedChannel(api);
    this.onSuccess = onSuccess;
    this.form = element("pin-form");
    this.sheet = new Sheet(this.form, element("chat"), () => this.#reset());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.element("pad").addEventListener("click", (event) => this.#press(event.target.closest("button")));
  }

  async open(token, opener) {
    this.#reset();
    this.#token = token;
    this.sheet.open(opener);
    this.form.querySelector("[data-close-sheet]").focus();
    await this.#request({ action: "INIT" });
  }

  get #inputs() {
    return [...this.element("pin-fields").querySelectorAll("input")];
  }

  // Removes everything that was entered from the page.
  #reset() {
    this.#token = null;
    this.#activeInput = null;
    for (const input of this.#inputs) input.value = "";
    this.element("pin-fields").replaceChildren();
    this.element("pin-title").textContent = translate("PIN");
    this.element("pin-text").textContent = translate("Loading…");
    this.#showError("");
    this.element("pin-send").hidden = this.element("pad").hidden = true;
  }

  async #submit() {
    const inputs = this.#inputs;
    const missing = inputs.find((input) => !isComplete(input));
    if (this.#isBusy) return;
    if (missing) {
      missing.focus();
      return;
    }
    const data = Object.fromEntries(inputs.map((input) => [input.name, input.value]));
    for (const input of inputs) input.value = "";
    await this.#request({ action: "data_exchange", data });
  }

  async #request(content) {
    const token = this.#token;
    this.#isBusy = true;
    this.element("pin-send").disabled = true;
    try {
      const response = await this.channel.request({ version: "3.0", flow_token: token, ...content });
      if (this.#token !== token) return;
      this.#handleResponse(response, token);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (this.#token === token) this.#showError(error.message);
    } finally {
      this.#isBusy = false;
      this.element("pin-send").disabled = false;
    }
  }

  #handleResponse(response, token) {
    if (response.error_msg) {
      this.element("pin-text").textContent = "";
      this.element("pin-fields").replaceChildren();
      this.element("pin-send").hidden = this.element("pad").hidden = true;
      this.#showError(response.error_msg);
      this.form.querySelector("[data-close-sheet]").focus();
    } else if (response.screen === "SUCCESS") {
      this.sheet.close();
      this.onSuccess(token);
    } else {
      this.#show(response.data);
    }
  }

  #show(data) {
    this.element("pin-title").textContent = data.heading;
    this.element("pin-text").textContent = data.text.replaceAll("*", "");
    this.element("pin-send").textContent = data.button;
    this.element("pin-send").hidden = this.element("pad").hidden = false;
    const names = FIELDS.filter((name) => `${name}_label` in data);
    this.element("pin-fields").replaceChildren(...names.map((name) => this.#createField(name, data)));
    this.#showError(data.error_message || "");
    this.#focusInput(this.#inputs[0]);
  }

  #createField(name, data) {
    const label = createElement("label", "", data[`${name}_label`]);
    const input = createElement("input", "digits");
    Object.assign(input, { type: "password", name, id: `${this.form.id}-${name}`, maxLength: name === "code" ? CODE_DIGITS : PIN_DIGITS, autocomplete: "off" });
    input.inputMode = matchMedia("(pointer: coarse)").matches ? "none" : "numeric";
    input.setAttribute("aria-describedby", this.element("pin-problem").id);
    if (name !== "code") input.placeholder = data.hint;
    label.htmlFor = input.id;
    input.addEventListener("focus", () => { this.#activeInput = input; });
    input.addEventListener("input", () => {
      input.value = input.value.replace(/\D/g, "").slice(0, input.maxLength);
      this.#advance(input);
    });
    return createElement("div", "field", label, input);
  }

  #press(button) {
    const input = this.#activeInput;
    if (!button || !input) return;
    if ("delete" in button.dataset) input.value = input.value.slice(0, -1);
    else input.value = (input.value + button.dataset.digit).slice(0, input.maxLength);
    this.#advance(input);
  }

  #advance(input) {
    if (!isComplete(input)) return;
    const next = this.#inputs.find((candidate) => !isComplete(candidate));
    if (next) this.#focusInput(next);
  }

  #focusInput(input) {
    this.#activeInput = input;
    input?.focus();
  }

  #showError(message) {
    const target = this.element("pin-problem");
    target.textContent = message;
    target.hidden = !message;
  }
}

function isComplete(input) {
  return input.value.length === input.maxLength;
}

// Encrypts each request with a new key. The response uses the same key, with every bit of the
// initialization vector flipped.
class EncryptedChannel {
  #key = null;

  constructor(api) {
    this.api = api;
  }

  async request(content) {
    if (!globalThis.crypto?.subtle) {
      throw new RequestError(translate("Your browser can encrypt PINs only on localhost or over https. Open this page there."));
    }
    const first = await this.#send(content);
    if (first.status !== 421) return first.content;
    this.#key = null; // the messenger's key has changed
    const second = await this.#send(content);
    if (second.status === 421) throw new RequestError(translate("The messenger could not decrypt the form. Check its form key."));
    return second.content;
  }

  async #send(content) {
    this.#key ??= await this.#loadPublicKey();
    const secret = crypto.getRandomValues(new Uint8Array(16));
    const vector = crypto.getRandomValues(new Uint8Array(16));
    const aes = await crypto.subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt", "decrypt"]);
    const plain = new TextEncoder().encode(JSON.stringify(content));
    const { status, body } = await this.api.submitForm({
      encrypted_aes_key: toBase64(await crypto.subtle.encrypt({ name: "RSA-OAEP" }, this.#key, secret)),
      encrypted_flow_data: toBase64(await crypto.subtle.encrypt({ name: "AES-GCM", iv: vector }, aes, plain)),
      initial_vector: toBase64(vector),
    });
    if (status === 421) return { status };
    const flipped = vector.map((byte) => byte ^ 0xff);
    try {
      const decrypted = await crypto.subtle.decrypt({ name: "AES-GCM", iv: flipped }, aes, fromBase64(body));
      return { status, content: JSON.parse(new TextDecoder().decode(decrypted)) };
    } catch {
      throw new RequestError(translate("The messenger's response could not be read. Try again in a moment."));
    }
  }

  async #loadPublicKey() {
    const pem = await this.api.getFormKey();
    if (!pem) throw new RequestError(translate("PIN forms are turned off. If you are asked for your PIN, send it as a message."));
    const der = fromBase64(pem.replace(/-----[A-Z ]+-----|\s/g, ""));
    return crypto.subtle.importKey("spki", der, { name: "RSA-OAEP", hash: "SHA-256" }, false, ["encrypt"]);
  }
}

function toBase64(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

function fromBase64(encoded) {
  return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
}
