/** Numbers and tokens as a reader sees them. */

const MINUS = "\u2212";

export function number(value: number, digits = 3): string {
  if (value === -Infinity) return `${MINUS}∞`;
  if (value === Infinity) return "∞";
  if (Number.isNaN(value)) return "not a number";
  const text = value.toFixed(digits);
  // A number that rounds to 0 has no sign.
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", MINUS);
}

export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** How many times as much, in two digits: 2.1, 28,000, 190 million, or 2.7 × 10⁹. */
export function times(factor: number): string {
  if (!Number.isFinite(factor)) return "more than 10³⁰⁸";
  const rounded = Number(factor.toPrecision(2));
  if (rounded < 1e9) return rounded < 1e6 ? rounded.toLocaleString("en") : `${rounded / 1e6} million`;
  const [digits, power = ""] = factor.toExponential(1).split("e+");
  return `${digits} × 10${Array.from(power, (digit) => RAISED[Number(digit)]).join("")}`;
}

/** How many times less likely something is for what it lost of its log-probability, or more likely; empty if hardly. */
export const lost = (cost: number) => (cost >= 0.2 ? `÷ ${times(Math.exp(cost))}` : cost <= -0.2 ? `× ${times(Math.exp(-cost))}` : "");

/** A difference in few signs: 0, or 3e-8. */
export function tiny(value: number): string {
  return value === 0 ? "0" : value.toExponential(0).replace("e-", "e" + MINUS);
}

/** A number in a small cell. */
export function inCell(value: number, isShare: boolean): string {
  if (value === -Infinity) return `${MINUS}∞`;
  if (isShare) return value >= 0.005 ? value.toFixed(2).replace(/^0\./, ".") : "";
  const size = Math.abs(value);
  return number(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Rows as CSV: texts are quoted, numbers are not. */
export function csv(rows: (string | number)[][]): string {
  const cell = (value: string | number) => (typeof value === "number" ? String(value) : `"${value.replaceAll('"', '""')}"`);
  return rows.map((row) => row.map(cell).join(",")).join("\n");
}

/** Quote a text for a shell, if it needs quotes. */
export const quoted = (text: string) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
