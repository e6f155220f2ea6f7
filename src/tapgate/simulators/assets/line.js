// Sends what the terminal signed, and shows it as it went over the line.
import { curl, signedPost } from "./signing.js";

/** `{ok, status, answer, replayed}`; throws where there is no answer. */
export async function exchange(key, path, value) {
  const request = await signedPost(key, path, value);
  showRequest(request);
  const { method, headers, body } = request;
  // Only the signature says who asks: no cookie goes along.
  const response = await fetch(path, { method, headers, body, credentials: "omit" });
  const answer = await response.json();
  const replayed = response.headers.get("Idempotent-Replayed") === "true";
  showAnswer(request, response, answer, replayed);
  return { ok: response.ok, status: response.status, answer, replayed };
}

function put(id, text) {
  document.getElementById(id).textContent = text;
}

function showRequest(request) {
  document.getElementById("line-none").hidden = true;
  document.getElementById("line").hidden = false;
  put("line-status", `${request.method} ${request.path} …`);
  put("line-signed", request.signed);
  put("line-headers", Object.entries(request.headers).map(([name, text]) => `${name}: ${text}`).join("\n"));
  put("line-answer", "");
  const line = curl(location.origin, request);
  put("line-curl", line);
  document.getElementById("line-copy").dataset.copy = line;
}

function showAnswer(request, response, answer, replayed) {
  put("line-status", `${request.method} ${request.path} → ${response.status}${replayed ? ", Idempotent-Replayed: true" : ""}`);
  put("line-answer", JSON.stringify(answer, null, 2));
}
