// Sends signed requests and shows request and response in the inspector.
import { buildCurlCommand, buildSignedPost } from "./signing.js";

/** Returns `{ok, status, body, replayed}`; throws if there is no response. */
export async function sendSigned(key, path, value) {
  const request = await buildSignedPost(key, path, value);
  showRequest(request);
  const { method, headers } = request;
  // The signature alone authenticates the request: no cookie is sent.
  const response = await fetch(path, { method, headers, body: request.body, credentials: "omit" });
  const body = await response.json();
  const replayed = response.headers.get("Idempotent-Replayed") === "true";
  showResponse(request, response, body, replayed);
  document.dispatchEvent(new CustomEvent("pos:response", { detail: { path, value, status: response.status, body, replayed } }));
  return { ok: response.ok, status: response.status, body, replayed };
}

function setText(id, text) {
  document.getElementById(id).textContent = text;
}

function showRequest(request) {
  document.getElementById("inspector-empty").hidden = true;
  document.getElementById("inspector").hidden = false;
  setText("inspector-status", `${request.method} ${request.path} …`);
  setText("inspector-signed", request.signed);
  setText("inspector-headers", Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`).join("\n"));
  setText("inspector-response", "");
  const command = buildCurlCommand(location.origin, request);
  setText("inspector-curl", command);
  document.getElementById("inspector-copy").dataset.copy = command;
}

function showResponse(request, response, body, replayed) {
  setText("inspector-status", `${request.method} ${request.path} → ${response.status}${replayed ? ", Idempotent-Replayed: true" : ""}`);
  setText("inspector-response", JSON.stringify(body, null, 2));
}
