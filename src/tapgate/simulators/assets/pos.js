// The terminal: what is on its screen, and what its keys do.
import { amounts } from "./amounts.js";
import { cardChooser, masked, realCards } from "./cards.js";
import { keyring } from "./keys.js";
import { exchange } from "./line.js";
import { receiptRoll } from "./receipts.js";
import { declined } from "./words.js";

const part = (id) => document.getElementById(id);
const root = part("pos");
if (root) switchOn();

function switchOn() {
  if (!globalThis.crypto?.subtle) {
    part("insecure").hidden = false;
    for (const button of part("device").querySelectorAll("button, input")) button.disabled = true;
    return;
  }

  const PIN_DIGITS = 4;
  const MOST_DIGITS = 12;
  const money = amounts(root.dataset.currency, Number(root.dataset.decimals));
  const keys = keyring(root.dataset.csrf, terminal);
  const roll = receiptRoll(startRefund);
  const cards = cardChooser((card) => {
    part("tap-words").textContent = card.holder ? `Tap ${card.holder}'s card` : `Tap card ${card.serial}`;
  });
  realCards(tapReal);

  let mode = "payment";
  let screen = "amount"; // amount, tap, pin, busy, done
  let minor = "";
  let pin = "";
  let order = null; // {path, value, onDone}: what is being asked, or was asked last
  let refunded = null; // the receipt that a refund is of

  function terminal() {
    const { value, dataset } = part("terminal").selectedOptions[0];
    return { id: value, processor: dataset.processor, merchant: dataset.merchant, name: dataset.name };
  }

  function show(title, main, note = "", tone = "") {
    part("screen-title").textContent = title;
    part("screen-main").textContent = main;
    part("screen-note").textContent = note;
    part("screen").className = `screen ${tone}`;
    part("device").dataset.screen = screen;
    part("terminal").disabled = screen === "busy"; // the answer is for the one that asked
    part("again").hidden = screen !== "done" || !order?.value.request_id;
    part("fresh").hidden = screen !== "done";
  }

  function start() {
    [minor, pin, order, refunded] = ["", "", null, null];
    if (mode === "payment") return askAmount();
    askTap(mode === "balance" ? "The balance is told to whoever knows the PIN." : "");
  }

  function askAmount(note = "") {
    screen = "amount";
    const title = refunded ? `Refund of ${refunded.amount}` : "Amount";
    show(title, money.shown(minor || "0"), note || (minor ? "OK goes on." : `Type it in the smallest coins: 3 5 0 0 is ${money.shown("3500")}.`));
  }

  function askTap(note = "") {
    screen = "tap";
    const title = { payment: "To pay", balance: "Balance", lookup: "Look up" }[mode];
    show(title, mode === "payment" ? money.shown(minor) : "Tap card", note || "Hold the card to the terminal, or press OK.");
  }

  function askPin(note = "", tone = "") {
    screen = "pin";
    const dots = "●".repeat(pin.length) + "○".repeat(PIN_DIGITS - pin.length);
    show("PIN", dots, note || `${pin.length} of ${PIN_DIGITS} digits.`, tone);
  }

  function setMode(wanted) {
    mode = wanted;
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
    start();
  }

  function tap() {
    if (screen === "busy") return;
    if (!cards.chosen) return show("Card", "–", "Choose a card first.");
    if (screen === "done" || screen === "pin") return;
    if (mode === "payment" && (refunded || !minor)) return askAmount("Type an amount first.");
    moveCard();
    order = ordered(cards.chosen);
    if (mode === "balance" || (mode === "payment" && part("with-pin").checked)) return askPin();
    carryOut();
  }

  function moveCard() {
    part("tap").classList.remove("tapped");
    void part("tap").offsetWidth; // so that the movement begins anew
    part("tap").classList.add("tapped");
  }

  function ordered(card) {
    if (mode === "balance") return { path: "/api/v1/pos/verify-card", value: { card_serial: card.serial }, onDone: tellBalance };
    if (mode === "lookup") return { path: "/api/v1/pos/lookup-card", value: { card_identifier: card.serial }, onDone: tellCard };
    return {
      path: "/api/v1/pos/payment",
      value: { request_id: crypto.randomUUID(), card_serial: card.serial, amount: money.plain(minor) },
      card,
      onDone: approved,
    };
  }

  async function carryOut() {
    screen = "busy";
    show("One moment", "…");
    try {
      finish(await exchange(await keys.current(), order.path, order.value));
    } catch (problem) {
      screen = "done";
      const words = problem instanceof TypeError ? "No answer came. Send the same request again: nothing is paid twice." : problem.message;
      show("No answer", "–", words, "bad");
    }
  }

  function finish(result) {
    pin = "";
    const code = result.answer.code;
    if (!result.ok && code === "PIN_REQUIRED") return askPin("This payment needs the PIN.");
    if (!result.ok && code === "INVALID_PIN") return askPin(`Declined. ${declined(result.answer)} Type it again, or cancel.`, "bad");
    screen = "done";
    if (!result.ok) return show("✕ Declined", code ?? String(result.status), declined(result.answer), "bad");
    order.onDone(result);
  }

  const oncemore = (result) => (result.replayed ? " Answered before: this is the same transaction, and no money moved again." : "");

  function approved(result) {
    const { answer } = result;
    const held = answer.status === "under_review";
    const words = held ? answer.message : `Approval code ${answer.approval_code}. Left in the wallet: ${answer.remaining_balance}.`;
    show(held ? "▲ Held for review" : "✓ Approved", answer.amount, words + oncemore(result), held ? "warn" : "good");
    roll.print({
      ...paper("Payment", answer, masked(order.card.serial)),
      approval: answer.approval_code,
      refundable: held ? null : answer.amount,
    });
  }

  function paper(kind, answer, card) {
    const { id, merchant, name } = terminal();
    const status = answer.status.replaceAll("_", " ");
    return { kind, merchant, terminal: name, terminalId: id, when: Date.now(), card, amount: answer.amount, status, transaction: answer.transaction_id };
  }

  function startRefund(receipt) {
    if (screen === "busy") return;
    if (terminal().id !== receipt.terminalId) {
      part("terminal").value = receipt.terminalId; // only who was paid can give back
      changeTerminal();
    }
    setMode("payment");
    refunded = receipt;
    minor = money.minorOf(receipt.refundable);
    askAmount("All that is left. OK gives it back; clear it to give back less.");
    part("device").scrollIntoView({ block: "nearest" });
  }

  function refund() {
    const of = refunded;
    order = {
      path: "/api/v1/pos/refund",
      value: {
        request_id: crypto.randomUUID(),
        original_transaction_id: of.transaction,
        amount: money.plain(minor),
        reason: "Given back at the terminal",
      },
      onDone: (result) => gaveBack(result, of),
    };
    carryOut();
  }

  function gaveBack(result, of) {
    const { answer } = result;
    const left = Number(money.minorOf(answer.refundable_amount)) > 0;
    show("✓ Refunded", answer.amount, `Left to refund: ${answer.refundable_amount}.${oncemore(result)}`, "good");
    if (!result.replayed) roll.leave(of.transaction, left ? answer.refundable_amount : null);
    roll.print({ ...paper("Refund", answer, of.card), approval: null, refundable: null });
  }

  function tellBalance({ answer }) {
    show(answer.is_active ? "✓ Balance" : "✕ Not active", answer.balance ?? "–", `${answer.holder_name ?? "Nobody"}. ${answer.message}.`, answer.is_active ? "good" : "bad");
  }

  function tellCard({ answer }) {
    const active = answer.status === "ACTIVE";
    show(active ? "✓ Card found" : "▲ Card found", answer.card_serial, `${answer.holder_name ?? "Nobody's"} · ${answer.status.toLowerCase()}`, active ? "good" : "warn");
  }

  /** A real card is looked up by its UID, as a real terminal does; then it is tapped. */
  async function tapReal(uid) {
    if (screen === "busy") return;
    try {
      const result = await exchange(await keys.current(), "/api/v1/pos/lookup-card", { card_identifier: uid });
      if (!result.ok) return show("✕ Card", uid, declined(result.answer), "bad");
      cards.choose({ serial: result.answer.card_serial, holder: result.answer.holder_name });
      part("nfc-says").textContent = `${uid} is card ${result.answer.card_serial}.`;
      if (screen === "tap" || (screen === "amount" && minor && !refunded)) tap();
    } catch (problem) {
      part("nfc-says").textContent = `The card could not be looked up. ${problem.message}`;
    }
  }

  function changeTerminal() {
    keys.putAway();
    part("device-merchant").textContent = terminal().merchant;
    part("device-name").textContent = terminal().name;
    start();
  }

  function typeAmount(digits) {
    const typed = (minor + digits).replace(/^0+/, "");
    if (typed.length <= MOST_DIGITS) minor = typed;
    askAmount();
  }

  function typePin(digit) {
    if (digit.length === 1 && pin.length < PIN_DIGITS) pin += digit;
    askPin();
  }

  function ok() {
    if (screen === "amount" && !minor) return askAmount("Type an amount first.");
    if (screen === "amount") return refunded ? refund() : askTap();
    if (screen === "tap") return tap();
    if (screen === "done") return start();
    if (screen !== "pin") return;
    if (pin.length < PIN_DIGITS) return askPin(`A PIN has ${PIN_DIGITS} digits.`);
    order.value.pin = pin;
    carryOut();
  }

  function erase(all) {
    if (screen === "pin") {
      pin = all ? "" : pin.slice(0, -1);
      askPin();
    } else if (screen === "amount" || (screen === "tap" && mode === "payment")) {
      minor = all ? "" : minor.slice(0, -1);
      askAmount();
    }
  }

  function press(key) {
    if (screen === "busy") return;
    if (key === "ok") return ok();
    if (key === "cancel") return start();
    if (key === "clear" || key === "back") return erase(key === "clear");
    if (screen === "done") start();
    if (screen === "pin") typePin(key);
    else if (screen === "amount") typeAmount(key);
  }

  const TYPED = { Enter: "ok", Escape: "cancel", Backspace: "back" };

  function typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || part("dialog").open) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const isDigit = /^\d$/.test(event.key);
    const key = isDigit ? event.key : TYPED[event.key];
    if (!key || (key === "ok" && event.target.closest("button, a, summary"))) return;
    event.preventDefault();
    // Who types digits means the terminal, so the next Enter is its OK, wherever the focus was.
    if (isDigit) part("device").focus({ preventScroll: true });
    press(key);
  }

  for (const button of document.querySelectorAll("[data-press]")) {
    button.addEventListener("mousedown", (event) => event.preventDefault()); // Enter stays OK
    button.addEventListener("click", () => press(button.dataset.press));
  }
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => { if (screen !== "busy") setMode(button.dataset.mode); });
  }
  part("tap").addEventListener("mousedown", (event) => event.preventDefault());
  part("tap").addEventListener("click", tap);
  part("again").addEventListener("click", carryOut);
  part("fresh").addEventListener("click", start);
  part("terminal").addEventListener("change", changeTerminal);
  document.addEventListener("keydown", typed);
  changeTerminal();
}
