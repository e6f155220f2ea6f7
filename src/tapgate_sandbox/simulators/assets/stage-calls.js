// The API call of the last act, in the language that the reader has chosen.

const STORAGE_KEY = "tapgate-stage";
const element = (id) => document.getElementById(id);

export function createCallPanel(csrf) {
  const inputs = [...document.querySelectorAll("[name=call-language]")];
  let call = null;

  function render() {
    if (!call) return;
    const language = inputs.find((input) => input.checked).value;
    element("call-name").textContent = `${call.method} ${call.path}`;
    element("call-code").textContent = call.samples[language];
    element("call-reference").href = call.page;
    element("call-reference").hidden = false;
  }

  function show(shown) {
    call = shown;
    render();
  }

  /** Shows a request that the terminal has sent. */
  async function showRequest(path, body) {
    try {
      const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
      const response = await fetch("/stage/call", { method: "POST", headers, body: JSON.stringify({ path, body }) });
      if (response.ok) show(await response.json());
    } catch {
      // The inspector has the request too.
    }
  }

  let remembered = null;
  try { remembered = sessionStorage.getItem(STORAGE_KEY); } catch { /* not stored */ }
  for (const input of inputs) {
    if (input.value === remembered) input.checked = true;
    input.addEventListener("change", () => {
      try { sessionStorage.setItem(STORAGE_KEY, input.value); } catch { /* not stored */ }
      render();
    });
  }
  return { show, showRequest };
}
