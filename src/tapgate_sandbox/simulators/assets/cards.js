// Selects the card to tap: from a search, or a physical card where the browser supports NFC.

const SEARCH_DELAY_MS = 200;

export function createCardPicker(onSelect) {
  const search = document.getElementById("card-search");
  const list = document.getElementById("cards");
  const count = document.getElementById("card-count");
  let selected = null;
  let latestSearch = 0;
  let timer = 0;

  function select(card) {
    selected = card;
    document.getElementById("card-image-serial").textContent = maskSerial(card.serial);
    for (const button of list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.serial === card.serial));
    }
    onSelect(card);
  }

  function createItem(card) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.serial = card.serial;
    button.setAttribute("aria-pressed", String(selected?.serial === card.serial));
    const name = document.createElement("strong");
    name.textContent = card.holder_name ?? translate("Unassigned");
    const details = document.createElement("span");
    const signs = card.authenticity === "sun";
    const type = `${card.type === "CHILD" ? ` · ${translate("child card")}` : ""}${signs ? ` · ${translate("signs taps")}` : ""}`;
    details.textContent = `${card.serial}${type}${card.status === "ACTIVE" ? "" : ` · ${translateStatus(card.status)}`}`;
    button.append(name, details);
    button.addEventListener("click", () => select({ serial: card.serial, holder: card.holder_name, signs }));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }

  async function runSearch() {
    const number = ++latestSearch;
    const response = await fetch(`/simulator/pos/cards?${new URLSearchParams({ search: search.value })}`);
    const cards = response.ok && !response.redirected ? await response.json() : [];
    if (number !== latestSearch) return; // a newer search has started
    list.replaceChildren(...cards.map(createItem));
    const total = cards.length === 1 ? translate("1 card") : translate("{count} cards", { count: cards.length });
    count.textContent = cards.length ? (search.value.trim() ? total : translate("Newest cards")) : translate("No cards match. Try another name or number.");
    if (!selected && cards.length && cards[0].status === "ACTIVE") {
      select({ serial: cards[0].serial, holder: cards[0].holder_name, signs: cards[0].authenticity === "sun" });
    }
  }

  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(runSearch, SEARCH_DELAY_MS);
  });
  const examples = [...document.querySelectorAll("[data-example]")];
  const selectExample = ({ dataset }) => select({ serial: dataset.example, holder: dataset.holder, signs: dataset.signs === "yes" });
  for (const example of examples) example.addEventListener("click", () => selectExample(example));
  if (examples.length) selectExample(examples[0]);
  runSearch();
  return { select, get selected() { return selected; } };
}

const STATUSES = {
  ACTIVE: translate("active"),
  BLOCKED: translate("blocked"),
  EXPIRED: translate("expired"),
  LOST: translate("lost"),
  UNASSIGNED: translate("unassigned"),
};

export function translateStatus(status) {
  return STATUSES[status] ?? status.toLowerCase();
}

/** `DEMO-000001` -> `•••• 0001`. */
export function maskSerial(serial) {
  return `•••• ${serial.slice(-4)}`;
}

/** The URL that a chip added its proof to; undefined if there is none. */
function findTapUrl(message) {
  const urls = Array.from(message?.records ?? []).filter(({ recordType }) => recordType === "url");
  return urls.map(({ data }) => new TextDecoder().decode(data)).find((url) => /[?&]picc_data=/.test(url));
}

/** Reports the UID and the URL of physical cards once the user has started the NFC reader. */
export function listenForPhysicalCards(onRead) {
  if (!("NDEFReader" in window)) return;
  const status = document.getElementById("nfc-status");
  document.getElementById("nfc-unsupported").hidden = true;
  document.getElementById("nfc").hidden = false;
  document.getElementById("nfc-tap").addEventListener("click", async () => {
    try {
      const reader = new NDEFReader();
      reader.addEventListener("reading", ({ serialNumber, message }) => {
        const url = findTapUrl(message);
        status.textContent = serialNumber || url ? translate("Read {serialNumber}.", { serialNumber }) : translate("This card has no readable UID.");
        if (serialNumber || url) onRead({ uid: serialNumber.toUpperCase(), url });
      });
      reader.addEventListener("readingerror", () => { status.textContent = translate("The card could not be read. Hold it still and try again."); });
      await reader.scan();
      status.textContent = translate("Hold a card to the back of this device.");
    } catch (error) {
      const denied = error.name === "NotAllowedError";
      status.textContent = denied ? translate("NFC access is blocked. Allow it in the browser settings.") : translate("NFC is not available. Check that it is turned on.");
    }
  });
}
