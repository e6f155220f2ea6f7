// The stage: connects the terminal and two phones with the live ledger, and plays scenes on them.

import { PhoneApi } from "./phone-api.js";
import { createHandset } from "./phone-handset.js";
import { Thread } from "./phone-threads.js";
import { createActors } from "./stage-actors.js";
import { createCallPanel } from "./stage-calls.js";
import { watchLedger } from "./stage-ledger.js";
import { createTour } from "./stage-tour.js";

const element = (id) => document.getElementById(id);
const root = element("stage");
const calls = createCallPanel(root.dataset.csrf);
const ledger = watchLedger((transaction) => { if (transaction.call) calls.show(transaction.call); });
const api = new PhoneApi(root.dataset.csrf);
const phones = ["a", "b"].map(openPhone);
const BUZZ_MS = 1500;

function openPhone(name) {
  const section = element(`${name}-phone`);
  const handset = createHandset(`${name}-`, api, {
    onReceive: () => {
      section.classList.add("buzz");
      setTimeout(() => section.classList.remove("buzz"), BUZZ_MS);
    },
  });
  handset.select(new Thread({ phone: section.dataset.phone, name: section.dataset.name }));
  return { ...section.dataset, id: name, section, handset };
}

document.addEventListener("pos:response", ({ detail }) => {
  calls.showRequest(detail.path, detail.value);
  ledger.expect();
  for (const { handset } of phones) handset.poll();
});
document.addEventListener("pos:card", ({ detail }) => actors.showCounter(detail));

const actors = createActors({ phones, ledger, clonedCard: root.dataset.clone });
const scenes = { pay: actors.pay, send: actors.send, clone: actors.cloneCard };
let isPlaying = false;

/** Plays one scene at a time. */
async function play(scene) {
  if (isPlaying) return;
  isPlaying = true;
  root.classList.add("playing");
  try {
    await scene();
  } finally {
    isPlaying = false;
    root.classList.remove("playing");
  }
}

for (const [name, scene] of Object.entries(scenes)) element(`scene-${name}`)?.addEventListener("click", () => play(scene));
element("open-phone").addEventListener("click", () => element("phone-dialog").showModal());
createTour({ actors, play, hasClone: Boolean(root.dataset.clone) });
