/** Numbers that describe a head's weights. They say what it attends to, not what it is for. */

import { itemAt } from "../model/items";
import { argmax, row, sizesOf, type Tensor } from "../model/tensor";
import { siteOf, type HeadPlace, type Trace } from "./trace";

export interface Figures {
  place: HeadPlace;
  entropy: number;
  confidence: number;
  distance: number;
  specials: number;
  /** Of cross-attention compared with a head that was taught word links; null for others. */
  alignment: number | null;
}

const SPECIAL = new Set(["<s>", "</s>", "<pad>"]);

export const FIGURE_NAMES = {
  entropy: "how evenly it looks: entropy of a row",
  confidence: "largest weight of a row",
  distance: "how many tokens away it looks",
  specials: "weight on start and end",
  alignment: "alignment error",
} as const;

/**
 * The share of the rows that look most at another source word than the taught head does in the same
 * row. Rows that predict the end have no link.
 */
function alignmentError(trace: Trace, place: HeadPlace, taught: HeadPlace): number | null {
  if (place.part !== "decoder" || place.kind !== "cross") return null;
  const most = (one: HeadPlace, q: number) => argmax(row(trace.matrix(`${siteOf(one)}.weights`, one.head)!, q));
  const rows = trace.records.predictedTokens.flatMap((token, q) => (SPECIAL.has(token) ? [] : [q]));
  return rows.length ? rows.filter((q) => most(place, q) !== most(taught, q)).length / rows.length : null;
}

export function figuresOf(trace: Trace, place: HeadPlace, taught: HeadPlace | null = null): Figures {
  const weights = trace.matrix(`${siteOf(place)}.weights`, place.head)!;
  const columns = trace.columns(place);
  const total = { entropy: 0, confidence: 0, distance: 0, specials: 0 };
  const [rows] = sizesOf(weights, 2);
  for (let q = 0; q < rows; q++) {
    const line = row(weights, q);
    let largest = 0;
    line.forEach((weight, k) => {
      if (weight > 0) total.entropy -= weight * Math.log(weight);
      largest = Math.max(largest, weight);
      total.distance += weight * Math.abs(k - q);
      if (SPECIAL.has(columns[k] ?? "")) total.specials += weight;
    });
    total.confidence += largest;
  }
  const mean = (value: number) => value / rows;
  return {
    place,
    entropy: mean(total.entropy),
    confidence: mean(total.confidence),
    distance: mean(total.distance),
    specials: mean(total.specials),
    alignment: taught && trace.hasWeights(taught) ? alignmentError(trace, place, taught) : null,
  };
}

/**
 * The token that at least half of a head's weight rests on: a sentence's end, a target's start; or
 * empty. Rows that belong there do not count, as in `HeadView.rests_on` of Python.
 */
export function restsOn(trace: Trace, place: HeadPlace): string {
  const weights = trace.matrix(`${siteOf(place)}.weights`, place.head);
  if (!weights) return "";
  const [rows, columns] = sizesOf(weights, 2);
  const isTarget = place.part === "decoder" && place.kind === "self";
  const key = isTarget ? 0 : columns - 1;
  const first = isTarget ? 1 : 0;
  const last = isTarget ? rows : rows - 1;
  let total = 0;
  for (let q = first; q < last; q++) total += itemAt(row(weights, q), key);
  const token = trace.columns(place)[key] ?? "";
  return last - first > 1 && total >= (last - first) / 2 && SPECIAL.has(token) ? token : "";
}

/** Of the most possible entropy; of a weight: the rule of `pellucid.inside.heads.head_habits`. */
const [EVEN, SINGLE] = [0.95, 0.99];
const COPIES = [", mostly the word just read", ", mostly the word before that"];

/** What most of a head's rows do that have a choice: `even`, `look-up` or nothing, and a sentence of it. */
export function habitOf(trace: Trace, place: HeadPlace): { name: "" | "even" | "look-up"; sentence: string } {
  const weights = trace.matrix(`${siteOf(place)}.weights`, place.head);
  const isCausal = place.part === "decoder" && place.kind === "self";
  const [size, columns] = weights ? sizesOf(weights, 2) : [0, 0];
  let rows = 0;
  let even = 0;
  const back: number[] = [];
  for (let q = 0; q < size; q++) {
    const seen = isCausal ? q + 1 : columns;
    if (seen < 2) continue;
    rows++;
    const line = row(weights!, q);
    let entropy = 0;
    line.forEach((weight) => (entropy -= weight > 0 ? weight * Math.log(weight) : 0));
    if (entropy > EVEN * Math.log(seen)) even++;
    const most = argmax(line);
    if (itemAt(line, most) > SINGLE) back.push(q - most);
  }
  if (rows > 1 && 2 * even > rows)
    return { name: "even", sentence: `Even in ${even} of ${rows} rows: there it looks at all words alike, and is idle.` };
  if (rows < 2 || 2 * back.length <= rows) return { name: "", sentence: "" };
  const what = (isCausal && COPIES.find((_, far) => 2 * back.filter((one) => one === far).length > back.length)) || "";
  return { name: "look-up", sentence: `A look-up in ${back.length} of ${rows} rows: there it takes one word only${what}.` };
}

/** The head of one kind whose rows point most clearly at words; of all heads if there is none. */
export function clearestHead(trace: Trace, part = "decoder", kind = "cross"): HeadPlace | null {
  // Every change of the state asks again, and a long sentence has millions of weights.
  let known = clearest.get(trace);
  if (!known) clearest.set(trace, (known = new Map()));
  const name = `${part}.${kind}`;
  if (!known.has(name)) known.set(name, findClearest(trace, part, kind));
  return known.get(name) ?? null;
}

const clearest = new WeakMap<Trace, Map<string, HeadPlace | null>>();

function findClearest(trace: Trace, part: string, kind: string): HeadPlace | null {
  const all = trace.heads().filter((one) => trace.hasWeights(one));
  const cross = all.filter((one) => one.part === part && one.kind === kind);
  let best: HeadPlace | null = trace.heads()[0] ?? null;
  let most = -Infinity;
  for (const place of cross.length ? cross : all) {
    const clear = clarity(trace.matrix(`${siteOf(place)}.weights`, place.head)!, trace.columns(place));
    if (clear > most) [best, most] = [place, clear];
  }
  return best;
}

function clarity(weights: Tensor, columns: string[]): number {
  let total = 0;
  const [rows] = sizesOf(weights, 2);
  for (let q = 0; q < rows; q++) {
    let largest = 0;
    row(weights, q).forEach((weight, k) => {
      if (!SPECIAL.has(columns[k] ?? "")) largest = Math.max(largest, weight);
    });
    total += largest;
  }
  return total / rows;
}
