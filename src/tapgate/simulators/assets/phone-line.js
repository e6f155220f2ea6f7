// What the page asks of its own server, which passes it on to the messenger.

export class Trouble extends Error {}

export class Line {
  constructor(csrf) {
    this.csrf = csrf;
  }

  async people(search) {
    return (await this.#ask(`people?${new URLSearchParams({ search })}`)).people;
  }

  async messages(phone) {
    return (await this.#ask(`messages?${new URLSearchParams({ to: phone })}`)).messages;
  }

  send(phone, message) {
    return this.#post("send", { from: phone, ...message });
  }

  async formKey() {
    return (await this.#ask("form-key")).key;
  }

  exchange(envelope) {
    return this.#post("form", envelope);
  }

  #post(path, body) {
    return this.#ask(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": this.csrf },
      body: JSON.stringify(body),
    });
  }

  async #ask(path, options = {}) {
    let answer;
    try {
      answer = await fetch(`/simulator/phone/${path}`, options);
    } catch {
      throw new Trouble("The server does not answer. Try again in a moment.");
    }
    if (!(answer.headers.get("content-type") || "").startsWith("application/json")) {
      throw new Trouble("You are no longer signed in, or something went wrong here. Load the page again.");
    }
    const read = await answer.json();
    if (read.problem) throw new Trouble(read.problem);
    return read;
  }
}
