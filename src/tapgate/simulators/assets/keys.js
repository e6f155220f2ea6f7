// The terminal's signing key. Its secret is in this page's memory and nowhere else, and the key is
// deleted with the page: a simulator leaves no keys behind.

const MASK = "••••••••••••";

async function post(path, fields, csrf) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "X-CSRF-Token": csrf, "HX-Request": "true", "HX-Current-URL": location.href },
    body: new URLSearchParams(fields),
    keepalive: true,
  });
  const there = response.headers.get("HX-Redirect");
  if (there) location.assign(there);
  return response;
}

/** `terminal()` says for which one: `{id, processor}`. */
export function keyring(csrf, terminal) {
  const part = (id) => document.getElementById(id);
  let key = null;

  function show() {
    part("key").hidden = key === null;
    part("key-none").hidden = key !== null;
    part("key-id").textContent = key?.id ?? "";
    reveal(false);
  }

  function reveal(whether) {
    part("key-secret").textContent = whether && key ? key.secret : MASK;
    part("key-reveal").textContent = whether ? "Hide" : "Reveal";
    part("key-reveal").setAttribute("aria-pressed", String(whether));
  }

  async function current() {
    if (key) return key;
    const { id, processor } = terminal();
    const response = await post("/simulator/pos/keys", { processor_id: processor, terminal_id: id }, csrf);
    if (!response.ok || response.headers.has("HX-Redirect")) {
      throw new Error(`No key could be made for this terminal (${response.status}).`);
    }
    const made = await response.json();
    key = { id: made.api_key_id, secret: made.hmac_secret, processor };
    show();
    return key;
  }

  const named = (gone) => ({ processor_id: gone.processor, api_key_id: gone.id });

  async function putAway() {
    const gone = key;
    key = null;
    show();
    if (gone) await post("/simulator/pos/keys/delete", named(gone), csrf).catch(() => {});
  }

  // Whoever has signed out may not delete it any more: first the key, then the form.
  async function putAwayBefore(event) {
    if (!key) return;
    event.preventDefault();
    await putAway();
    event.target.submit();
  }

  function leave() {
    if (key) navigator.sendBeacon("/simulator/pos/keys/delete", new URLSearchParams({ ...named(key), csrf }));
    key = null;
  }

  part("key-reveal").addEventListener("click", (event) => {
    reveal(event.currentTarget.getAttribute("aria-pressed") !== "true");
  });
  addEventListener("submit", putAwayBefore);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) show(); });
  return { current, putAway };
}
