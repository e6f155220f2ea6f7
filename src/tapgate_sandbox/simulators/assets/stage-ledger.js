// The live ledger: polls for new transactions and shows their entries.

const POLL_EXPECTING_MS = 500;
const POLL_IDLE_MS = 2500;
const EXPECTING_MS = 12_000;
const MAX_SHOWN = 30;
const element = (id) => document.getElementById(id);
const language = document.documentElement.lang;
const timeFormat = new Intl.DateTimeFormat(language, { timeStyle: "medium", hourCycle: "h23" });

/** `620000.00` -> `620,000.00`. The decimals are those of the API. */
function formatAmount(amount) {
  const digits = amount.split(".")[1]?.length ?? 0;
  return Number(amount).toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function create(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function renderTransaction(transaction) {
  const { id, amount, currency, entries } = transaction;
  const link = create("a", "", `${transaction.from ?? "–"} → ${transaction.to ?? "–"}`);
  link.href = `/console/transactions/${encodeURIComponent(id)}`;
  const rows = entries.flatMap((entry) => [
    renderRow(translate("Debit"), entry.debit, entry.amount),
    renderRow(translate("Credit"), entry.credit, entry.amount),
  ]);
  const item = create("li", transaction.status === "failed" ? "failed" : "",
    create("p", "entry-head", link, create("span", "money", `${formatAmount(amount)} ${currency}`)),
    create("p", "when", [timeFormat.format(new Date(transaction.created_at)), transaction.failure_code].filter(Boolean).join(" · ")));
  if (rows.length) item.append(create("table", "", create("tbody", "", ...rows)));
  return item;
}

function renderRow(side, name, amount) {
  return create("tr", "", create("td", "", side), create("td", "", name), create("td", "", formatAmount(amount)));
}

/** `onTransaction(transaction)` is called for each new transaction. */
export function watchLedger(onTransaction) {
  const list = element("entries");
  let newest = "";
  let isFirst = true;
  let expectingUntil = 0;
  let timer = 0;
  let clonedCard = "";
  const listeners = new Set([onTransaction]);

  async function poll() {
    clearTimeout(timer);
    if (document.hidden) return;
    try {
      const response = await fetch(`/stage/feed?${new URLSearchParams({ after: newest, card: clonedCard })}`);
      if (response.ok && !response.redirected) show(await response.json());
    } catch {
      // The next poll shows what this one missed.
    }
    clearTimeout(timer);
    timer = setTimeout(poll, Date.now() < expectingUntil ? POLL_EXPECTING_MS : POLL_IDLE_MS);
  }

  function show({ transactions, alert }) {
    for (const transaction of [...transactions].reverse()) {
      if (transaction.id <= newest) continue;
      newest = transaction.id;
      list.prepend(renderTransaction(transaction));
      if (!isFirst) for (const listener of listeners) listener(transaction);
    }
    while (list.children.length > MAX_SHOWN) list.lastElementChild.remove();
    element("entries-empty").hidden = list.children.length > 0;
    isFirst = false;
    if (alert && clonedCard) showAlert(alert);
  }

  function showAlert(alert) {
    element("stage-alert").href = `/console/compliance/alerts/${encodeURIComponent(alert.id)}`;
    element("stage-alert").hidden = false;
    clonedCard = "";
  }

  /** Polls faster for a while, because something was sent. */
  function expect() {
    expectingUntil = Date.now() + EXPECTING_MS;
    poll();
  }

  /** Shows the alert for a cloned card once there is one. */
  function expectAlert(card) {
    clonedCard = card;
    expect();
  }

  /** Resolves with the next transaction that matches, or null after the time. */
  function next(matches, milliseconds) {
    return new Promise((resolve) => {
      const finish = (transaction) => { listeners.delete(listener); clearTimeout(limit); resolve(transaction); };
      const listener = (transaction) => { if (matches(transaction)) finish(transaction); };
      const limit = setTimeout(() => finish(null), milliseconds);
      listeners.add(listener);
      expect();
    });
  }

  document.addEventListener("visibilitychange", poll);
  poll();
  return { expect, expectAlert, next };
}
