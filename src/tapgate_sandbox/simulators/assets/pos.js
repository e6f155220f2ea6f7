// The terminal: its screen and its keys.
import { createAmountFormatter } from "./amounts.js";
import { createCardPicker, listenForPhysicalCards, maskSerial, translateStatus } from "./cards.js";
import { describeError } from "./error-texts.js";
import { createKeyring, VerificationError } from "./keys.js";
import { createReceiptList } from "./receipts.js";
import { sendSigned } from "./request-inspector.js";
import { createSoftwareCards } from "./software-cards.js";

const element = (id) => document.getElementById(id);
const root = element("pos");
if (root) startTerminal();

function startTerminal() {
  if (!globalThis.crypto?.subtle) {
    element("insecure").hidden = false;
    for (const button of element("device").querySelectorAll("button, input")) button.disabled = true;
    return;
  }

  const PIN_DIGITS = 4;
  const MAX_AMOUNT_DIGITS = 12;
  const CLONE_CODES = new Set(["CARD_NOT_GENUINE", "CARD_PROOF_USED"]);
  const amounts = createAmountFormatter(root.dataset.currency, Number(root.dataset.decimals));
  const keyring = createKeyring(root.dataset.csrf, getTerminal, () => isUnverified && submit());
  const receipts = createReceiptList(startRefund);
  const softwareCards = createSoftwareCards(root.dataset.csrf, (card) => cards.select(card));
  const cards = createCardPicker((card) => {
    const { holder, serial } = card;
    const ofHolder = card.isClone ? translate("Tap the clone of {holder}'s card", { holder }) : translate("Tap {holder}'s card", { holder });
    const ofSerial = card.isClone ? translate("Tap the clone of card {serial}", { serial }) : translate("Tap card {serial}", { serial });
    element("tap-label").textContent = holder ? ofHolder : ofSerial;
    softwareCards.show(card);
  });
  listenForPhysicalCards(tapPhysicalCard);

  let mode = "payment";
  let screen = "amount"; // amount, tap, pin, busy, done
  let minor = "";
  let pin = "";
  let request = null; // {path, value, onSuccess}: the current or the last request
  let isUnverified = false; // whether the request waits for the admin's second factor
  let refundedReceipt = null; // the receipt of the payment to refund
  let isPrefilled = false; // whether the next digit replaces the amount

  function getTerminal() {
    const { value, dataset } = element("terminal").selectedOptions[0];
    return { id: value, processor: dataset.processor, merchant: dataset.merchant, name: dataset.name };
  }

  function show(title, main, note = "", tone = "") {
    element("screen-title").textContent = title;
    element("screen-main").textContent = main;
    element("screen-note").textContent = note;
    element("screen").className = `screen ${tone}`;
    element("device").dataset.screen = screen;
    element("terminal").disabled = screen === "busy"; // the response belongs to this terminal
    element("replay").hidden = screen !== "done" || !request?.value.request_id;
    element("new-payment").hidden = screen !== "done";
    element("view-card").hidden = true;
  }

  function reset() {
    [minor, pin, request, refundedReceipt, isUnverified, isPrefilled] = ["", "", null, null, false, false];
    if (mode === "payment") return askAmount();
    askTap(mode === "balance" ? translate("The balance requires the cardholder's PIN.") : "");
  }

  function askAmount(note = "") {
    screen = "amount";
    const title = refundedReceipt ? translate("Refund of {amount}", { amount: refundedReceipt.amount }) : translate("Amount");
    show(title, amounts.format(minor || "0"), note || (minor ? translate("Press OK to continue.") : translate("Enter digits only: 3500 = {amount}.", { amount: amounts.format("3500") })));
  }

  function askTap(note = "") {
    screen = "tap";
    const title = { payment: translate("Amount due"), balance: translate("Balance"), lookup: translate("Look up") }[mode];
    show(title, mode === "payment" ? amounts.format(minor) : translate("Tap card"), note || translate("Tap the card or press OK."));
  }

  function askPin(note = "", tone = "") {
    screen = "pin";
    const dots = "●".repeat(pin.length) + "○".repeat(PIN_DIGITS - pin.length);
    show(translate("PIN"), dots, note || translate("{count} of {total} digits.", { count: pin.length, total: PIN_DIGITS }), tone);
  }

  function setMode(newMode) {
    mode = newMode;
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
    reset();
  }

  async function tap() {
    const card = cards.selected;
    if (screen === "busy") return;
    if (!card) return show(translate("Card"), "–", translate("Select a card first."));
    if (screen === "done" || screen === "pin") return;
    if (mode === "payment" && (refundedReceipt || !minor)) return askAmount(translate("Enter an amount first."));
    animateTap();
    screen = "busy";
    show(translate("Reading card"), "…");
    try {
      request = buildRequest(card, await softwareCards.tap(card));
    } catch (error) {
      screen = "done";
      return show(`✕ ${translate("Card")}`, "–", error.message, "bad");
    }
    if (mode === "balance" || (mode === "payment" && element("with-pin").checked)) return askPin();
    submit();
  }

  function animateTap() {
    element("tap").classList.remove("tapped");
    void element("tap").offsetWidth; // restarts the animation
    element("tap").classList.add("tapped");
  }

  /** `proof` is undefined if the card does not sign its taps. */
  function buildRequest(card, proof) {
    if (mode === "balance") return { path: "/api/v1/pos/verify-card", value: { card_serial: card.serial, card_proof: proof }, card, onSuccess: showBalance };
    if (mode === "lookup") return { path: "/api/v1/pos/lookup-card", value: { card_identifier: card.serial, card_proof: proof }, card, onSuccess: showCard };
    return {
      path: "/api/v1/pos/payment",
      value: { request_id: crypto.randomUUID(), card_serial: card.serial, card_proof: proof, amount: amounts.toDecimal(minor) },
      card,
      onSuccess: showPayment,
    };
  }

  async function submit() {
    screen = "busy";
    isUnverified = false;
    show(translate("Processing"), "…");
    try {
      showResult(await sendSigned(await keyring.getKey(), request.path, request.value));
    } catch (error) {
      screen = "done";
      isUnverified = error instanceof VerificationError;
      if (isUnverified) return show(translate("Verify your identity"), "–", error.message, "warn");
      const note = error instanceof TypeError ? translate("The outcome is unknown. Replay the request to get it. It is executed only once.") : error.message;
      show(translate("No response"), "–", note, "bad");
    }
  }

  function showResult(result) {
    pin = "";
    const code = result.body.code;
    if (!result.ok && code === "PIN_REQUIRED") return askPin(describeError(result.body));
    if (!result.ok && code === "INVALID_PIN") return askPin(translate("Declined. {reason} Try again or cancel.", { reason: describeError(result.body) }), "bad");
    screen = "done";
    if (result.ok) return request.onSuccess(result);
    show(`✕ ${translate("Declined")}`, request.value.amount ? amounts.format(minor) : "–", describeError(result.body), "bad");
    if (CLONE_CODES.has(code)) showCardLink(request.card.serial);
  }

  /** Links to the card in the console, which shows the alert about a clone. */
  function showCardLink(serial) {
    element("view-card").href = `/console/cards/${encodeURIComponent(serial)}`;
    element("view-card").hidden = false;
  }

  const replayNote = (result) => (result.replayed ? ` ${translate("Replayed: same transaction, no money moved.")}` : "");

  function showPayment(result) {
    const { body } = result;
    softwareCards.setPaid(request.card, request.value.card_proof);
    const isHeld = body.status === "under_review";
    const note = isHeld
      ? translate("The payment waits for a review. No money moved yet.")
      : translate("Approval code {code}. Remaining balance: {balance}.", { code: body.approval_code, balance: body.remaining_balance });
    show(isHeld ? `▲ ${translate("Held for review")}` : `✓ ${translate("Approved")}`, body.amount, note + replayNote(result), isHeld ? "warn" : "good");
    receipts.print({
      ...buildReceipt(translate("Payment"), body, maskSerial(request.card.serial)),
      approval: body.approval_code,
      refundable: isHeld ? null : body.amount,
    });
  }

  function buildReceipt(kind, body, card) {
    const { id, merchant, name } = getTerminal();
    const status = { completed: translate("Completed"), under_review: translate("Under review") }[body.status] ?? body.status.replaceAll("_", " ");
    return { kind, merchant, terminal: name, terminalId: id, when: Date.now(), card, amount: body.amount, status, transaction: body.transaction_id };
  }

  function startRefund(receipt) {
    if (screen === "busy") return;
    if (getTerminal().id !== receipt.terminalId) {
      element("terminal").value = receipt.terminalId; // only the merchant that was paid can refund
      changeTerminal();
    }
    setMode("payment");
    refundedReceipt = receipt;
    minor = amounts.toMinorUnits(receipt.refundable);
    isPrefilled = true;
    askAmount(translate("Press OK to refund this amount, or enter less."));
    element("device").scrollIntoView({ block: "nearest" });
  }

  function refund() {
    const receipt = refundedReceipt;
    request = {
      path: "/api/v1/pos/refund",
      value: {
        request_id: crypto.randomUUID(),
        original_transaction_id: receipt.transaction,
        amount: amounts.toDecimal(minor),
        reason: "Refunded at the terminal",
      },
      onSuccess: (result) => showRefund(result, receipt),
    };
    submit();
  }

  function showRefund(result, receipt) {
    const { body } = result;
    const isPartial = Number(amounts.toMinorUnits(body.refundable_amount)) > 0;
    show(`✓ ${translate("Refunded")}`, body.amount, translate("Still refundable: {amount}.", { amount: body.refundable_amount }) + replayNote(result), "good");
    if (!result.replayed) receipts.setRefundable(receipt.transaction, isPartial ? body.refundable_amount : null);
    receipts.print({ ...buildReceipt(translate("Refund"), body, receipt.card), approval: null, refundable: null });
  }

  function showBalance({ body }) {
    show(body.is_active ? `✓ ${translate("Balance")}` : `✕ ${translate("Not active")}`, body.balance ?? "–", `${body.holder_name ?? translate("Unassigned")} · ${body.is_active ? translate("Card is active.") : translate("Card is not active.")}`, body.is_active ? "good" : "bad");
  }

  function showCard({ body }) {
    const isActive = body.status === "ACTIVE";
    show(`${isActive ? "✓" : "▲"} ${translate("Card found")}`, body.card_serial, `${body.holder_name ?? translate("Unassigned")} · ${translateStatus(body.status)}`, isActive ? "good" : "warn");
  }

  /** Looks a physical card up by its proof or its UID, as a real terminal does, then taps it. */
  async function tapPhysicalCard({ uid, url }) {
    if (screen === "busy") return;
    const proof = url && { url };
    try {
      const value = proof ? { card_proof: proof } : { card_identifier: uid };
      const result = await sendSigned(await keyring.getKey(), "/api/v1/pos/lookup-card", value);
      if (!result.ok) return show(`✕ ${translate("Card")}`, uid, describeError(result.body), "bad");
      const { card_serial: serial, holder_name: holder } = result.body;
      cards.select({ serial, holder, signs: Boolean(proof), proof });
      element("nfc-status").textContent = proof ? translate("Signed tap of card {serial}.", { serial }) : translate("UID {uid} is card {serial}.", { uid, serial });
      if (screen === "tap" || (screen === "amount" && minor && !refundedReceipt)) tap();
    } catch (error) {
      element("nfc-status").textContent = translate("Card lookup failed. {reason}", { reason: error.message });
    }
  }

  function changeTerminal() {
    keyring.deleteKey();
    element("device-merchant").textContent = getTerminal().merchant;
    element("device-name").textContent = getTerminal().name;
    reset();
  }

  function typeAmount(digits) {
    const typed = ((isPrefilled ? "" : minor) + digits).replace(/^0+/, "");
    isPrefilled = false;
    if (typed.length <= MAX_AMOUNT_DIGITS) minor = typed;
    askAmount();
  }

  function typePin(digit) {
    if (digit.length === 1 && pin.length < PIN_DIGITS) pin += digit;
    askPin();
  }

  function pressOk() {
    if (screen === "amount" && !minor) return askAmount(translate("Enter an amount first."));
    if (screen === "amount") return refundedReceipt ? refund() : askTap();
    if (screen === "tap") return tap();
    if (screen === "done") return reset();
    if (screen !== "pin") return;
    if (pin.length < PIN_DIGITS) return askPin(translate("Enter all {count} digits.", { count: PIN_DIGITS }));
    request.value.pin = pin;
    submit();
  }

  function erase(all) {
    if (screen === "pin") {
      pin = all ? "" : pin.slice(0, -1);
      askPin();
    } else if (screen === "amount" || (screen === "tap" && mode === "payment")) {
      minor = all ? "" : minor.slice(0, -1);
      isPrefilled = false;
      askAmount();
    }
  }

  function press(key) {
    if (screen === "busy") return;
    if (key === "ok") return pressOk();
    if (key === "cancel") return reset();
    if (key === "clear" || key === "back") return erase(key === "clear");
    if (screen === "done") reset();
    if (screen === "pin") typePin(key);
    else if (screen === "amount") typeAmount(key);
  }

  const KEYS_BY_NAME = { Enter: "ok", Escape: "cancel", Backspace: "back" };

  function onKeyDown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || element("dialog").open) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const isDigit = /^\d$/.test(event.key);
    const key = isDigit ? event.key : KEYS_BY_NAME[event.key];
    if (!key || (key === "ok" && event.target.closest("button, a, summary"))) return;
    event.preventDefault();
    // Digits are meant for the terminal, so it takes the focus and the next Enter is its OK.
    if (isDigit) element("device").focus({ preventScroll: true });
    press(key);
  }

  for (const button of document.querySelectorAll("[data-press]")) {
    button.addEventListener("mousedown", (event) => event.preventDefault()); // Enter stays OK
    button.addEventListener("click", () => press(button.dataset.press));
  }
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => { if (screen !== "busy") setMode(button.dataset.mode); });
  }
  element("tap").addEventListener("mousedown", (event) => event.preventDefault());
  element("tap").addEventListener("click", tap);
  element("replay").addEventListener("click", submit);
  element("new-payment").addEventListener("click", reset);
  element("terminal").addEventListener("change", changeTerminal);
  document.addEventListener("keydown", onKeyDown);
  changeTerminal();
}
