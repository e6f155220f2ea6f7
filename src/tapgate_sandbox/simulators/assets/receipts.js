// The receipts, stored per tab in session storage. They contain no PIN and no secret.
const STORAGE_KEY = "tapgate.business.merchants.pos.receipts";
const MAX_RECEIPTS = 20;

export function createReceiptList(onRefund) {
  const list = document.getElementById("receipts");
  const template = document.getElementById("receipt");
  const timeFormat = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
  let receipts = load();

  function load() {
    try {
      return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "[]");
    } catch {
      return [];
    }
  }

  function render(receipt) {
    const item = template.content.cloneNode(true);
    for (const element of item.querySelectorAll("[data-field]")) {
      const value = receipt[element.dataset.field];
      element.textContent = element.dataset.field === "when" ? timeFormat.format(new Date(value)) : value;
    }
    for (const element of item.querySelectorAll("[data-if]")) element.hidden = !receipt[element.dataset.if];
    const link = item.querySelector("[data-link]");
    link.href = `/console/transactions/${encodeURIComponent(receipt.transaction)}`;
    item.querySelector("[data-refund]").addEventListener("click", () => onRefund(receipt));
    return item;
  }

  function show() {
    document.getElementById("receipts-empty").hidden = receipts.length > 0;
    list.replaceChildren(...receipts.map(render));
  }

  function save() {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(receipts));
    show();
  }

  /** Adds a receipt, unless the transaction already has one (a replayed response). */
  function print(receipt) {
    if (receipts.some(({ transaction }) => transaction === receipt.transaction)) return;
    receipts = [receipt, ...receipts].slice(0, MAX_RECEIPTS);
    save();
    list.firstElementChild.classList.add("new");
  }

  /** Sets the refundable amount of a payment; null if nothing is left. */
  function setRefundable(transaction, refundable) {
    const receipt = receipts.find((item) => item.transaction === transaction);
    if (receipt) receipt.refundable = refundable;
    save();
  }

  show();
  return { print, setRefundable };
}
