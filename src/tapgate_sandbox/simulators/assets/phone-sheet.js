// A sheet that slides over the chat. It keeps the focus until it is closed, and then returns it.

export class Sheet {
  #opener = null;

  constructor(element, background, onClose = () => {}) {
    this.element = element;
    this.background = background;
    this.onClose = onClose;
    element.querySelector("[data-close-sheet]").addEventListener("click", () => this.close());
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      if (event.key === "Tab") this.#trapFocus(event);
    });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  open(opener) {
    this.#opener = opener;
    this.element.hidden = false;
    this.background.inert = true;
  }

  close(focusTarget = this.#opener) {
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.background.inert = false;
    this.onClose();
    focusTarget?.focus();
  }

  #trapFocus(event) {
    const focusable = [...this.element.querySelectorAll("button:not(:disabled), input")]
      .filter((item) => item.getClientRects().length);
    const [first, last] = [focusable[0], focusable[focusable.length - 1]];
    const [from, to] = event.shiftKey ? [first, last] : [last, first];
    if (document.activeElement === from) {
      event.preventDefault();
      to.focus();
    }
  }
}
