// Money as digits: minor units in a text, never a float.

export function amounts(currency, decimals) {
  /** `3500` -> `35.00`, as the interface takes it. */
  function plain(minor) {
    const digits = minor.padStart(decimals + 1, "0");
    const whole = digits.slice(0, digits.length - decimals);
    return decimals ? `${whole}.${digits.slice(-decimals)}` : whole;
  }

  /** `123450` -> `1,234.50 SLE`. */
  function shown(minor) {
    const [whole, part] = plain(minor).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return `${part === undefined ? grouped : `${grouped}.${part}`} ${currency}`;
  }

  /** `1,234.50 SLE`, as receipts have it -> `123450`. */
  function minorOf(text) {
    const [whole, part = ""] = text.split(" ")[0].replaceAll(",", "").split(".");
    return (whole + part.slice(0, decimals).padEnd(decimals, "0")).replace(/^0+(?=\d)/, "");
  }

  return { plain, shown, minorOf };
}
