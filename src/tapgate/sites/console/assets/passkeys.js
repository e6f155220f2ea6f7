// Passkeys: sign in, create a passkey, and prove one for a sensitive action.
//
// A credential is put into a hidden field as JSON, and its form is submitted.
"use strict";

(() => {
  const OPTIONS = `${document.documentElement.dataset.site}/passkey-options`;

  const decode = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const encode = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  class PasskeyError extends Error {}

  function requireSite(domain) {
    if (location.hostname === domain || location.hostname.endsWith(`.${domain}`)) return;
    throw new PasskeyError(translate("Passkeys work only on {domain}. Open this page there.", { domain }));
  }

  async function fetchOptions() {
    const headers = { "HX-Request": "true", "X-Language": document.documentElement.lang };
    const response = await fetch(OPTIONS, { method: "POST", headers });
    const text = await response.text();
    if (response.ok) return JSON.parse(text);
    throw new PasskeyError(new DOMParser().parseFromString(text, "text/html").body.textContent.trim());
  }

  function buildCredential({ id, rawId, type, response }, names) {
    const values = names.map((name) => [name, response[name] && encode(response[name])]);
    return { id, rawId: encode(rawId), type, response: Object.fromEntries(values) };
  }

  async function prove() {
    const options = await fetchOptions();
    requireSite(options.rpId);
    const publicKey = { ...options, challenge: decode(options.challenge), allowCredentials: [] };
    const credential = await navigator.credentials.get({ publicKey });
    return buildCredential(credential, ["clientDataJSON", "authenticatorData", "signature", "userHandle"]);
  }

  async function create(options) {
    requireSite(options.rp.id);
    const publicKey = {
      ...options,
      challenge: decode(options.challenge),
      user: { ...options.user, id: decode(options.user.id) },
      excludeCredentials: options.excludeCredentials.map((item) => ({ ...item, id: decode(item.id) })),
    };
    const credential = await navigator.credentials.create({ publicKey });
    return buildCredential(credential, ["clientDataJSON", "attestationObject"]);
  }

  function describe(error) {
    if (error instanceof PasskeyError) return error.message;
    if (error.name === "InvalidStateError") return translate("This device already has a passkey for your account.");
    if (error.name === "NotAllowedError") return translate("No passkey was used. Try again.");
    if (error instanceof TypeError) return translate("Can't reach the server. Check your connection and try again.");
    return translate("This browser can't use the passkey. Try another browser or device.");
  }

  function showProblem(form, text) {
    const problem = form.querySelector("[data-passkey-problem]");
    problem.textContent = text;
    problem.hidden = !text;
  }

  async function submit(button, fieldName, getCredential) {
    const { form } = button;
    showProblem(form, "");
    button.disabled = true;
    try {
      if (!window.PublicKeyCredential) throw new PasskeyError(translate("This browser or address does not support passkeys."));
      form.elements.namedItem(fieldName).value = JSON.stringify(await getCredential());
    } catch (error) {
      showProblem(form, describe(error));
      return;
    } finally {
      button.disabled = false;
    }
    if (button.hasAttribute("formaction")) {
      form.action = button.formAction;
      form.noValidate = true;
    }
    form.requestSubmit();
    form.elements.namedItem(fieldName).value = "";
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-passkey-proof], [data-passkey-create]");
    if (!button) return;
    const { passkeyProof, passkeyCreate } = button.dataset;
    if (passkeyCreate === undefined) {
      submit(button, passkeyProof, prove);
    } else if (button.form.reportValidity()) {
      submit(button, "credential", () => create(JSON.parse(passkeyCreate)));
    }
  });
  document.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target.matches("[data-step-up]")) detail.target.querySelector("input:not([type=hidden]), textarea, button, a").focus();
  });
})();
