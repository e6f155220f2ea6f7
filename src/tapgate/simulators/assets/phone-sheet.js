// What slides over the chat from below: it has the focus until it is shut, and gives it back.

// Where the focus goes when there is nothing to go back to. On a real phone a text field would open
// the keyboard over the answer.
export function restingPlace() {
  return document.getElementById(matchMedia("(pointer: coarse)").matches ? "log" : "words");
}

export class Sheet {
  #opener = null;

  constructor(element, behind, shut = () => {}) {
    this.element = element;
    this.behind = behind;
    this.onShut = shut;
    element.querySelector("[data-shut]").addEventListener("click", () => this.shut());
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.shut();
      if (event.key === "Tab") this.#keepInside(event);
    });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  open(opener) {
    this.#opener = opener;
    this.element.hidden = false;
    this.behind.inert = true;
  }

  shut(focused = this.#opener) {
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.behind.inert = false;
    this.onShut();
    focused?.focus();
  }

  #keepInside(event) {
    const inside = [...this.element.querySelectorAll("button:not(:disabled), input")]
      .filter((one) => one.getClientRects().length);
    const [first, last] = [inside[0], inside[inside.length - 1]];
    const [from, to] = event.shiftKey ? [first, last] : [last, first];
    if (document.activeElement === from) {
      event.preventDefault();
      to.focus();
    }
  }
}
