// The terminal's signing key. The secret exists only in the memory of this page, and the key is
// deleted when the page is left, so that the simulator leaves no keys behind.

const MASK = "••••••••••••";

/** Sends a form to a page of the simulator. */
export async function post(path, fields, csrf) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "X-CSRF-Token": csrf, "HX-Request": "true", "HX-Current-URL": location.href },
    body: new URLSearchParams(fields),
    keepalive: true,
  });
  const redirect = response.headers.get("HX-Redirect");
  if (redirect) location.assign(redirect);
  return response;
}

/** The key can be created once the admin has verified a second factor. */
export class VerificationError extends Error {}

/**
 * `getTerminal()` returns the selected terminal: `{id, processor}`. `onVerified()` is called when a
 * key was created after the admin has verified a second factor.
 */
export function createKeyring(csrf, getTerminal, onVerified) {
  const element = (id) => document.getElementById(id);
  const verifyForm = element("verify");
  let key = null;

  function showKey() {
    element("key").hidden = key === null;
    element("key-empty").hidden = key !== null;
    element("key-id").textContent = key?.id ?? "";
    setRevealed(false);
  }

  function setRevealed(isRevealed) {
    element("key-secret").textContent = isRevealed && key ? key.secret : MASK;
    element("key-reveal").textContent = isRevealed ? translate("Hide") : translate("Reveal");
    element("key-reveal").setAttribute("aria-pressed", String(isRevealed));
  }

  /** Shows the prompt for a second factor, which the server sent instead of a key. */
  async function showPrompt(response) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const slot = verifyForm.querySelector("[data-step-up]");
    slot.replaceChildren(page.querySelector(".step-up"));
    verifyForm.hidden = false;
    slot.querySelector("input:not([type=hidden]), button, a").focus();
    throw new VerificationError(translate("Verify your identity below to create the signing key."));
  }

  async function getKey() {
    if (key) return key;
    const { id, processor } = getTerminal();
    const proof = Object.fromEntries(new FormData(verifyForm));
    const response = await post("/simulator/pos/keys", { processor_id: processor, terminal_id: id, ...proof }, csrf);
    if (response.headers.has("HX-Retarget")) await showPrompt(response);
    verifyForm.hidden = true;
    verifyForm.querySelector("[data-step-up]").replaceChildren();
    if (!response.ok || response.headers.has("HX-Redirect")) {
      throw new Error(translate("The signing key could not be created (status {status}).", { status: response.status }));
    }
    const created = await response.json();
    key = { id: created.api_key_id, secret: created.hmac_secret, processor };
    showKey();
    return key;
  }

  const toFields = ({ id, processor }) => ({ processor_id: processor, api_key_id: id });

  async function deleteKey() {
    const deleted = key;
    key = null;
    showKey();
    if (deleted) await post("/simulator/pos/keys/delete", toFields(deleted), csrf).catch(() => {});
  }

  // Deleting needs the session, so the key is deleted before a form such as sign-out is submitted.
  async function deleteKeyBeforeSubmit(event) {
    if (!key || event.defaultPrevented) return;
    event.preventDefault();
    await deleteKey();
    event.target.submit();
  }

  function deleteKeyOnLeave() {
    if (key) navigator.sendBeacon("/simulator/pos/keys/delete", new URLSearchParams({ ...toFields(key), csrf }));
    key = null;
  }

  element("key-reveal").addEventListener("click", (event) => {
    setRevealed(event.currentTarget.getAttribute("aria-pressed") !== "true");
  });
  verifyForm.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation();
    getKey().then(onVerified).catch(() => {});
  });
  addEventListener("submit", deleteKeyBeforeSubmit);
  addEventListener("pagehide", deleteKeyOnLeave);
  addEventListener("pageshow", (event) => { if (event.persisted) showKey(); });
  return { getKey, deleteKey };
}
