// Formats and parses amounts as strings of minor units, never as floats.

export function createAmountFormatter(currency, decimals) {
  /** `3500` -> `35.00`, as the API accepts it. */
  function toDecimal(minor) {
    const digits = minor.padStart(decimals + 1, "0");
    const whole = digits.slice(0, digits.length - decimals);
    return decimals ? `${whole}.${digits.slice(-decimals)}` : whole;
  }

  /** `123450` -> `1,234.50 SLE`. */
  function format(minor) {
    const [whole, fraction] = toDecimal(minor).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return `${fraction === undefined ? grouped : `${grouped}.${fraction}`} ${currency}`;
  }

  /** `1,234.50 SLE`, as on receipts -> `123450`. */
  function toMinorUnits(text) {
    const [whole, fraction = ""] = text.split(" ")[0].replaceAll(",", "").split(".");
    return (whole + fraction.slice(0, decimals).padEnd(decimals, "0")).replace(/^0+(?=\d)/, "");
  }

  return { toDecimal, format, toMinorUnits };
}
