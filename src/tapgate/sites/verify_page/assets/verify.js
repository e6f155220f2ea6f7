// Checks an inclusion proof. Nothing is sent: the page may not open connections.
"use strict";

class InvalidProof extends Error {}

function encodeCanonically(value) {
  if (Array.isArray(value)) return `[${value.map(encodeCanonically).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${encodeCanonically(value[name])}`).join(",")}}`;
}

const encodeText = (text) => new TextEncoder().encode(text);
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function fromHex(text) {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new InvalidProof("root");
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}

async function hash(...parts) {
  const data = Uint8Array.from(parts.flatMap((part) => Array.from(part)));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
}

async function computeRoot(leaf, path) {
  let node = await hash([0], encodeText(encodeCanonically(leaf)));
  for (const step of path) {
    const sibling = fromHex(step.hash);
    if (step.side !== "left" && step.side !== "right") throw new InvalidProof("root");
    node = step.side === "left" ? await hash([1], sibling, node) : await hash([1], node, sibling);
  }
  return toHex(node);
}

async function importKey(text) {
  if (!globalThis.crypto?.subtle) throw new InvalidProof("unsupported");
  try {
    return await crypto.subtle.importKey("raw", fromBase64(text), { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    throw new InvalidProof(error.name === "NotSupportedError" ? "unsupported" : "keys");
  }
}

async function verifyDay(day, keys) {
  const found = keys.find((key) => key.key_id === day.key_id);
  if (!found) throw new InvalidProof("key");
  const key = await importKey(found.public_key);
  const { signature, totals, ...signed } = day;
  const content = encodeText(encodeCanonically(signed));
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, key, fromBase64(signature), content))) {
    throw new InvalidProof("signature");
  }
  if (totals !== undefined) {
    const digest = await hash(encodeText(encodeCanonically(totals)));
    if (toHex(digest) !== day.totals_hash) throw new InvalidProof("totals");
  }
}

// Returns what the proof proves, or throws InvalidProof with the name of the reason.
async function verifyProof(proof, keys) {
  try {
    const { leaf, path, day } = proof;
    if (leaf.id !== proof.transaction_id) throw new InvalidProof("transaction");
    await verifyDay(day, keys);
    if ((await computeRoot(leaf, path)) !== day.merkle_root) throw new InvalidProof("root");
    return { id: leaf.id, date: day.date, key: day.key_id };
  } catch (error) {
    if (error instanceof InvalidProof) throw error;
    throw new InvalidProof("proof");
  }
}

// Returns the proof that a link contains after its #, which browsers do not send.
async function unpack(text) {
  try {
    const packed = new Blob([fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"))]);
    return await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).text();
  } catch {
    throw new InvalidProof("link");
  }
}

function parse(text, reason) {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidProof(reason);
  }
}

function parseKeys(text) {
  const { keys } = parse(text, "keys");
  if (!Array.isArray(keys)) throw new InvalidProof("keys");
  return keys;
}

function startPage() {
  const texts = JSON.parse(document.body.dataset.texts);
  const find = (id) => document.getElementById(id);
  const format = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  find("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) find("proof").value = await file.text();
  });
  const show = async (readProof) => {
    const result = find("result");
    try {
      const proof = parse(await readProof(), "json");
      const proved = await verifyProof(proof, parseKeys(find("keys").value));
      result.textContent = format(texts.valid, proved);
      result.className = "valid";
    } catch (error) {
      const reason = texts[`reason.${error.message}`] ?? error.message;
      result.textContent = format(texts.invalid, { reason });
      result.className = "invalid";
    }
  };
  const openLink = () => show(async () => {
    const proof = await unpack(location.hash.slice(1));
    find("proof").value = proof;
    find("save").href = URL.createObjectURL(new Blob([proof], { type: "application/json" }));
    find("save").hidden = false;
    return proof;
  });
  find("verify").addEventListener("click", () => show(async () => find("proof").value));
  addEventListener("hashchange", openLink);
  if (location.hash.length > 1) openLink();
}

if (typeof document === "undefined") {
  globalThis.verifyProof = verifyProof;
} else {
  startPage();
}
