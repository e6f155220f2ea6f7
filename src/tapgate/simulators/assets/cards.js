// Which card is held to the terminal: chosen from a list, or a real one where the browser can read it.

const PAUSE = 200; // between the last letter typed and the question

export function cardChooser(onChosen) {
  const search = document.getElementById("card-search");
  const list = document.getElementById("cards");
  const count = document.getElementById("card-count");
  let chosen = null;
  let asked = 0;
  let timer = 0;

  function choose(card) {
    chosen = card;
    document.getElementById("plastic-serial").textContent = masked(card.serial);
    for (const button of list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.serial === card.serial));
    }
    onChosen(card);
  }

  function item(card) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.serial = card.serial;
    button.setAttribute("aria-pressed", String(chosen?.serial === card.serial));
    const name = document.createElement("strong");
    name.textContent = card.holder_name ?? "Nobody's card";
    const rest = document.createElement("span");
    const kind = card.type === "CHILD" ? ", a child's" : "";
    rest.textContent = `${card.serial}${kind}${card.status === "ACTIVE" ? "" : ` · ${card.status.toLowerCase()}`}`;
    button.append(name, rest);
    button.addEventListener("click", () => choose({ serial: card.serial, holder: card.holder_name }));
    const place = document.createElement("li");
    place.append(button);
    return place;
  }

  async function find() {
    const mine = ++asked;
    const response = await fetch(`/simulator/pos/cards?${new URLSearchParams({ search: search.value })}`);
    const found = response.ok && !response.redirected ? await response.json() : [];
    if (mine !== asked) return; // somebody typed on meanwhile
    list.replaceChildren(...found.map(item));
    const many = found.length === 1 ? "1 card" : `${found.length} cards`;
    count.textContent = found.length ? many : "No card is like that. Try another name or number.";
    if (!chosen && found.length && found[0].status === "ACTIVE") {
      choose({ serial: found[0].serial, holder: found[0].holder_name });
    }
  }

  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, PAUSE);
  });
  const example = document.getElementById("example");
  const take = () => choose({ serial: example.dataset.serial, holder: example.dataset.holder });
  example?.addEventListener("click", take);
  if (example) take();
  find();
  return { choose, get chosen() { return chosen; } };
}

/** `DEMO-000001` -> `•••• 0001`. */
export function masked(serial) {
  return `•••• ${serial.slice(-4)}`;
}

/** Hears the UIDs of real cards, from the first press of its button on. */
export function realCards(onUid) {
  if (!("NDEFReader" in window)) return;
  const says = document.getElementById("nfc-says");
  document.getElementById("nfc-none").hidden = true;
  document.getElementById("nfc").hidden = false;
  document.getElementById("nfc-tap").addEventListener("click", async () => {
    try {
      const reader = new NDEFReader();
      reader.addEventListener("reading", ({ serialNumber }) => {
        says.textContent = serialNumber ? `Read ${serialNumber}.` : "This card does not say its number.";
        if (serialNumber) onUid(serialNumber.toUpperCase());
      });
      reader.addEventListener("readingerror", () => { says.textContent = "The card could not be read. Hold it still."; });
      await reader.scan();
      says.textContent = "Hold a card to the back of this device.";
    } catch (problem) {
      const refused = problem.name === "NotAllowedError";
      says.textContent = refused ? "The browser was not allowed to read cards." : "This device cannot read cards now: is NFC on?";
    }
  });
}
