// Requests of the page to its own server, which forwards them to the messenger.

/** A failed request; the message is shown to the user. */
export class RequestError extends Error {}

export class PhoneApi {
  constructor(csrf) {
    this.csrf = csrf;
  }

  async searchPeople(search) {
    return (await this.#request(`people?${new URLSearchParams({ search })}`)).people;
  }

  async listMessages(phone) {
    return (await this.#request(`messages?${new URLSearchParams({ to: phone })}`)).messages;
  }

  sendMessage(phone, message) {
    return this.#post("send", { from: phone, ...message });
  }

  async getFormKey() {
    return (await this.#request("form-key")).key;
  }

  submitForm(envelope) {
    return this.#post("form", envelope);
  }

  #post(path, body) {
    return this.#request(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": this.csrf },
      body: JSON.stringify(body),
    });
  }

  async #request(path, options = {}) {
    let response;
    try {
      response = await fetch(`/simulator/phone/${path}`, options);
    } catch {
      throw new RequestError(translate("The server is not responding. Try again in a moment."));
    }
    if (!(response.headers.get("content-type") || "").startsWith("application/json")) {
      throw new RequestError(translate("Something went wrong, or your session expired. Reload the page."));
    }
    const body = await response.json();
    if (body.problem) throw new RequestError(body.problem);
    return body;
  }
}
