// Live example and graph in the fee dialog. The server computes the fees that count.
"use strict";

(() => {
  const WIDTH = 400;
  const HEIGHT = 112;
  const POINTS = 160;

  const locale = document.documentElement.lang;
  // In French, a comma is the decimal separator; with a point too, the last one is.
  const parse = (text) => {
    let digits = (text || "").replace(/\s/g, "");
    if (locale === "fr" && digits.lastIndexOf(",") > digits.lastIndexOf(".")) digits = digits.replaceAll(".", "").replace(",", ".");
    const value = Number(digits.replaceAll(",", ""));
    return (text || "").trim() === "" || Number.isNaN(value) ? null : value;
  };

  function readTiers(form) {
    const tiers = [...form.querySelectorAll("[data-tier]")].map((row) => {
      const values = {};
      for (const input of row.querySelectorAll("input")) {
        values[input.name.replace(/_(\d+|last)$/, "")] = parse(input.value);
      }
      values.isLast = row.querySelector("[name=rate_last]") !== null;
      return values;
    });
    return tiers.filter((tier) => tier.isLast || tier.up_to !== null);
  }

  function calculate(tiers, isReceiver, amount) {
    const tier = tiers.find((each) => each.isLast || amount <= each.up_to);
    if (!tier) return 0;
    const share = Math.round((tier.rate || 0) * amount) / 100;
    let fee = Math.max(tier.minimum || 0, (tier.fixed || 0) + share);
    if (tier.maximum !== null && tier.maximum !== undefined) fee = Math.min(fee, tier.maximum);
    return isReceiver ? Math.min(fee, amount) : fee;
  }

  function draw(form) {
    const tiers = readTiers(form);
    const isReceiver = form.elements.payer.value === "receiver";
    const amount = parse(form.querySelector("[data-fee-amount]").value) || 0;
    const compute = (value) => calculate(tiers, isReceiver, value);
    const format = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    const unit = form.querySelector("[data-fee-amount]").nextElementSibling.textContent;
    form.querySelector("[data-fee-result]").textContent = `${format.format(compute(amount))} ${unit}`;
    const bounds = tiers.map((tier) => tier.up_to || 0);
    const end = Math.max(amount * 2, ...bounds.map((bound) => bound * 1.25), 1);
    const values = Array.from({ length: POINTS + 1 }, (_, index) => (end * index) / POINTS);
    const top = Math.max(...values.map(compute), compute(amount), 0.01);
    const place = (value) => [(value / end) * WIDTH, 4 + HEIGHT - (compute(value) / top) * HEIGHT];
    const path = values.map((value) => place(value).map((part) => part.toFixed(1)).join(" ")).join("L");
    const graph = form.querySelector("[data-fee-graph]");
    graph.querySelector(".fee-line").setAttribute("d", `M${path}`);
    const [x, y] = place(amount);
    graph.querySelector("circle").setAttribute("cx", x);
    graph.querySelector("circle").setAttribute("cy", y);
  }

  const findForm = (element) => {
    const form = element.closest?.("form");
    return form?.querySelector("[data-fee]") ? form : null;
  };

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      const form = findForm(event.target);
      if (form) draw(form);
    });
  }
  document.addEventListener("htmx:afterSwap", (event) => {
    const form = event.detail.target.querySelector?.("form:has([data-fee])");
    if (form) draw(form);
  });
})();
