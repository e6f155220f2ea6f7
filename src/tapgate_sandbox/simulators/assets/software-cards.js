// Cards in software: chips that sign their taps, and clones without the chip's keys.
import { createChip, toHex } from "./ntag424.js";
import { post } from "./keys.js";

const element = (id) => document.getElementById(id);

/** `onChange(card)` is called with the clone, or with the original card again. */
export function createSoftwareCards(csrf, onChange) {
  const chips = new Map(); // by serial
  const paidTaps = new Map(); // the last tap that a payment consumed, by serial
  let shown = null;

  async function loadChip(serial) {
    if (!chips.has(serial)) {
      const response = await post("/simulator/pos/chip", { serial }, csrf);
      if (!response.ok) throw new Error(translate("The keys of this card are available only in development. Use a physical card."));
      chips.set(serial, createChip(await response.json()));
    }
    return chips.get(serial);
  }

  const draw = (bytes) => toHex(crypto.getRandomValues(new Uint8Array(bytes)));

  /** Returns the proof of a tap; undefined if the card does not sign its taps. */
  async function tap(card) {
    if (card.proof || !card.signs) return card.proof; // read from a physical card
    if (card.isClone) return paidTaps.get(card.serial) ?? { picc_data: draw(16), cmac: draw(8) };
    const proof = await (await loadChip(card.serial)).tap();
    show(card);
    return proof;
  }

  function describe(card) {
    if (card.isClone && card.signs) {
      return paidTaps.has(card.serial)
        ? translate("Clone: has the card's number and its last tap, but not its keys.")
        : translate("Clone: has the card's number and a forged signature, but not its keys.");
    }
    if (card.isClone) return translate("Clone: has the UID. Nothing distinguishes it from the original.");
    if (!card.signs) return translate("UID only: anyone who reads this card can copy it.");
    const counter = chips.get(card.serial)?.counter;
    return counter === undefined
      ? translate("Signs every tap (NTAG 424 DNA).")
      : translate("Signs every tap (NTAG 424 DNA). Counter: {counter}.", { counter });
  }

  /** Shows the chip of the selected card. */
  function show(card) {
    shown = card;
    element("chip").hidden = Boolean(card.proof);
    element("chip-status").textContent = describe(card);
    element("clone").textContent = card.isClone ? translate("Use the original card") : translate("Clone this card");
    element("tap").classList.toggle("cloned", Boolean(card.isClone));
    document.dispatchEvent(new CustomEvent("pos:card", { detail: { ...card, counter: chips.get(card.serial)?.counter } }));
  }

  element("clone").addEventListener("click", () => onChange({ ...shown, isClone: !shown.isClone }));
  return { tap, show, setPaid: (card, proof) => { if (proof && !card.isClone) paidTaps.set(card.serial, proof); } };
}
