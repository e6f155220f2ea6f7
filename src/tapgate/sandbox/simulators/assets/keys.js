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

/** `getTerminal()` returns the selected terminal: `{id, processor}`. */
export function createKeyring(csrf, getTerminal) {
  const element = (id) => document.getElementById(id);
  let key = null;

  function showKey() {
    element("key").hidden = key === null;
    element("key-empty").hidden = key !== null;
    element("key-id").textContent = key?.id ?? "";
    setRevealed(false);
  }

  function setRevealed(isRevealed) {
    element("key-secret").textContent = isRevealed && key ? key.secret : MASK;
    element("key-reveal").textContent = isRevealed ? "Hide" : "Reveal";
    element("key-reveal").setAttribute("aria-pressed", String(isRevealed));
  }

  async function getKey() {
    if (key) return key;
    const { id, processor } = getTerminal();
    const response = await post("/simulator/pos/keys", { processor_id: processor, terminal_id: id }, csrf);
    if (!response.ok || response.headers.has("HX-Redirect")) {
      throw new Error(`The signing key could not be created (status ${response.status}).`);
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
    if (!key) return;
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
  addEventListener("submit", deleteKeyBeforeSubmit);
  addEventListener("pagehide", deleteKeyOnLeave);
  addEventListener("pageshow", (event) => { if (event.persisted) showKey(); });
  return { getKey, deleteKey };
}
