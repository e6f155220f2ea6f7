// The guided tour of about two minutes. Each step plays an act and continues by itself, until the
// reader continues: then the tour waits for the reader.

const STEP_MS = 13_000;
const element = (id) => document.getElementById(id);

export function createTour({ actors, play, hasClone }) {
  const steps = [
    { spot: "stage-terminal", text: translate("This is a terminal in a shop. The cashier types an amount: 35.00."), act: actors.enterAmount },
    { spot: "stage-terminal", text: translate("The customer taps a card. The terminal signs the request, and the payment is approved."), act: actors.tapCard },
    { spot: "a-phone", text: translate("The customer's phone buzzes with the receipt.") },
    { spot: "stage-ledger", text: translate("Every payment is double-entry: what one account pays, another receives. Debits equal credits, always.") },
    { spot: "stage-call", text: translate("This is the request that the terminal sent. Choose curl, Python or TypeScript.") },
    { spot: "a-phone", text: translate("Customers send money in the chat. The PIN is encrypted in the phone."), act: actors.send },
    { spot: "b-phone", text: translate("The other phone buzzes at once: the money is there.") },
    { spot: "stage-terminal", text: translate("A thief clones a card. The real card's counter runs; the copy is refused, and an alert goes to the staff."), act: hasClone ? actors.cloneCard : null, needsClone: true },
    { spot: "stage-call", text: translate("Your turn: tap, chat, or open a real phone. The console shows the same ledger.") },
  ].filter(({ needsClone }) => !needsClone || hasClone);
  let place = -1;
  let timer = 0;
  let isManual = false;

  function clear() {
    clearTimeout(timer);
    for (const area of document.querySelectorAll(".spot")) area.classList.remove("spot");
  }

  function stop() {
    clear();
    place = -1;
    element("tour").hidden = true;
    actors.end();
    element("tour-start").focus();
  }

  async function show(index) {
    clear();
    if (index >= steps.length) return stop();
    place = index;
    const { spot, text, act } = steps[index];
    element("tour-step").textContent = `${index + 1} / ${steps.length}`;
    element("tour-text").textContent = text;
    element("tour-progress").style.width = `${((index + 1) / steps.length) * 100}%`;
    element("tour-next").textContent = index + 1 === steps.length ? translate("Finish") : translate("Next");
    element(spot).classList.add("spot");
    element(spot).scrollIntoView({ block: "nearest" });
    const isLast = index + 1 === steps.length;
    if (act) {
      element("tour-next").disabled = true;
      await play(act);
      element("tour-next").disabled = false;
    }
    if (place === index && !isLast && !isManual) timer = setTimeout(() => show(index + 1), act ? STEP_MS / 2 : STEP_MS);
  }

  element("tour-start").addEventListener("click", () => {
    isManual = false;
    element("tour").hidden = false;
    element("tour-next").focus();
    show(0);
  });
  element("tour-next").addEventListener("click", () => {
    isManual = true;
    show(place + 1);
  });
  element("tour-stop").addEventListener("click", stop);
}
