// The roll of receipts. It outlives a look at another page, not the tab; no PIN and no secret is on it.
const KEPT = "tapgate.pos.receipts";
const MOST = 20;

export function receiptRoll(onRefund) {
  const roll = document.getElementById("receipts");
  const paper = document.getElementById("receipt");
  const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  let receipts = kept();

  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    } catch {
      return [];
    }
  }

  function printed(receipt) {
    const sheet = paper.content.cloneNode(true);
    for (const place of sheet.querySelectorAll("[data-of]")) {
      const value = receipt[place.dataset.of];
      place.textContent = place.dataset.of === "when" ? time.format(new Date(value)) : value;
    }
    for (const place of sheet.querySelectorAll("[data-if]")) place.hidden = !receipt[place.dataset.if];
    const link = sheet.querySelector("[data-link]");
    link.href = `/console/transactions/${encodeURIComponent(receipt.transaction)}`;
    sheet.querySelector("[data-refund]").addEventListener("click", () => onRefund(receipt));
    return sheet;
  }

  function show() {
    document.getElementById("roll-none").hidden = receipts.length > 0;
    roll.replaceChildren(...receipts.map(printed));
  }

  function keep() {
    sessionStorage.setItem(KEPT, JSON.stringify(receipts));
    show();
  }

  /** One paper for one transaction, however often its answer came. */
  function print(receipt) {
    if (receipts.some((one) => one.transaction === receipt.transaction)) return;
    receipts = [receipt, ...receipts].slice(0, MOST);
    keep();
    roll.firstElementChild.classList.add("new");
  }

  /** What is left of a payment after a refund; null: nothing. */
  function leave(transaction, refundable) {
    const found = receipts.find((one) => one.transaction === transaction);
    if (found) found.refundable = refundable;
    keep();
  }

  show();
  return { print, leave };
}
