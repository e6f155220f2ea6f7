// Encodes a selected photo as a data URL in a hidden field, the format that the API expects.
"use strict";

(() => {
  const MAX_BYTES = 5 * 1024 * 1024;

  function read(file) {
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
  }

  async function encode(input) {
    const [file] = input.files;
    const field = input.form.elements.namedItem(input.dataset.picture);
    const button = input.form.querySelector("button[type=submit]");
    input.setCustomValidity(file && file.size > MAX_BYTES ? translate("File is larger than 5 MB. Choose a smaller file.") : "");
    field.value = "";
    if (!file || !input.reportValidity()) return;
    button.disabled = true;
    try {
      field.value = await read(file);
    } catch {
      input.setCustomValidity(translate("Can't read this file. Choose another file."));
      input.reportValidity();
    } finally {
      button.disabled = false;
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("input[data-picture]")) encode(event.target);
  });
})();
