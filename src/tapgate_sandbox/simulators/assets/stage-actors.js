// Acts that play on the terminal and the phones by pressing their keys, as a person would.

const KEY_MS = 220;
const STEP_MS = 500;
const MAX_WAIT_MS = 20_000;
const element = (id) => document.getElementById(id);
const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** Waits until `find()` returns something, and returns it; undefined after the time. */
async function waitFor(find, milliseconds = MAX_WAIT_MS) {
  const end = Date.now() + milliseconds;
  while (Date.now() < end) {
    const found = find();
    if (found) return found;
    await wait(100);
  }
  return undefined;
}

const getScreen = () => element("device").dataset.screen;

async function press(...keys) {
  for (const key of keys) {
    document.querySelector(`[data-press="${key}"]`).click();
    await wait(KEY_MS);
  }
}

export function createActors({ phones, ledger, clonedCard }) {
  const [payer, recipient] = phones;

  function chooseCard(serial) {
    document.querySelector(`[data-example="${serial}"]`).click();
  }

  async function typeAmount(minor) {
    document.querySelector('[data-mode="payment"]').click();
    await press("cancel", ...minor, "ok");
  }

  /** Taps the chosen card, enters the PIN if the terminal asks for it, and waits for the result. */
  async function tap(pin) {
    element("tap").click();
    await waitFor(() => ["done", "pin"].includes(getScreen()));
    if (getScreen() === "pin" && pin) {
      await press(...pin, "ok");
      await waitFor(() => getScreen() === "done");
    }
  }

  async function enterAmount() {
    chooseCard(payer.card);
    await typeAmount("3500");
  }

  const tapCard = () => tap(payer.pin);

  async function pay() {
    await enterAmount();
    await wait(STEP_MS);
    await tapCard();
  }

  /** Sends money from one phone to the other, and answers the chat's questions. */
  async function send() {
    const received = ledger.next((transaction) => transaction.call, MAX_WAIT_MS * 2);
    payer.handset.sendText(translate("send 5 to {phone}", { phone: recipient.phone }));
    let isSent = false;
    received.then(() => { isSent = true; });
    const answered = new Set();
    await waitFor(() => { answer(payer, answered); return isSent; }, MAX_WAIT_MS * 2);
    recipient.handset.poll();
  }

  /** Presses the first button of the last message, or enters the PIN, once each. Lists stay closed. */
  function answer({ section, id, pin }, answered) {
    const form = element(`${id}-pin-form`);
    const inputs = [...form.querySelectorAll("input")];
    if (!form.hidden && inputs.length && !inputs[0].value && !answered.has(inputs[0])) {
      answered.add(inputs[0]);
      for (const digit of pin) form.querySelector(`[data-digit="${digit}"]`).click();
      setTimeout(() => element(`${id}-pin-send`).click(), STEP_MS);
      return;
    }
    if (!form.hidden) return;
    const groups = section.querySelectorAll(".log > *");
    const last = groups[groups.length - 1];
    const button = last?.querySelector(".choices button:not(.opens-list)");
    if (!button || answered.has(last)) return;
    answered.add(last);
    setTimeout(() => button.click(), STEP_MS);
  }

  /** The real card pays and its counter runs; the copy has only the last tap and is refused. */
  async function cloneCard() {
    await payWithSigningCard();
    await makeCopy();
    await tapCopy();
    element("clone-scene").hidden = true;
    chooseCard(payer.card);
  }

  async function payWithSigningCard() {
    element("clone-scene").hidden = false;
    element("stage-alert").hidden = true;
    element("copied-card").classList.remove("refused");
    element("copied-counter").textContent = "–";
    say(translate("The real card signs every tap, and its counter runs."));
    chooseCard(clonedCard);
    await typeAmount("200");
    await tap(findPin());
    await wait(STEP_MS * 2);
  }

  async function makeCopy() {
    say(translate("A thief copies everything that a reader can read: the number and the last tap."));
    element("clone").click();
    element("copied-counter").textContent = element("real-counter").textContent;
    await wait(STEP_MS * 3);
  }

  async function tapCopy() {
    await typeAmount("200");
    await tap(findPin());
    element("copied-card").classList.add("refused");
    document.body.classList.add("alarm");
    setTimeout(() => document.body.classList.remove("alarm"), 600);
    say(translate("The copy is refused: this tap was already used, and it has no keys for the next one."));
    ledger.expectAlert(clonedCard);
    await waitFor(() => !element("stage-alert").hidden);
    await wait(STEP_MS * 8);
  }

  function findPin() {
    return phones.find(({ card }) => card === clonedCard)?.pin;
  }

  function say(text) {
    element("clone-text").textContent = text;
  }

  function showCounter({ serial, isClone, counter }) {
    if (serial !== clonedCard || isClone || counter === undefined) return;
    const shown = element("real-counter");
    shown.textContent = counter;
    shown.classList.remove("ran");
    void shown.offsetWidth; // restarts the animation
    shown.classList.add("ran");
  }

  function end() {
    element("stage-alert").hidden = true;
  }

  return { enterAmount, tapCard, pay, send, cloneCard, showCounter, end, wait };
}
