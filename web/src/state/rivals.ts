/** A written word and the one that it is compared with: the other pronoun, or the likeliest other word. */

import { itemAt } from "../model/items";
import { largest, logSumExp } from "../model/tensor";
import type { Answer, Source } from "../trace/source";
import { align, type Aligned } from "./align";

const PAIRS = [
  ["il", "elle"],
  ["ils", "elles"],
  ["Il", "Elle"],
  ["Ils", "Elles"],
  ["er", "sie"],
  ["Er", "Sie"],
];
/** A pronoun, maybe after another word as in *qu'il*. */
const PRONOUN = /^(.*['’])?(elle|il|elles|ils|er|sie|es)$/i;
export const SOURCE_PRONOUN = /^(it|they|them|he|she)$/i;

/** The pronoun of a token, in small letters, and the other one of its pair; null if the token is none. */
export function pronounOf(token: string): { pronoun: string; other: string; pair: string[] } | null {
  const pronoun = PRONOUN.exec(token)?.[2]?.toLowerCase();
  const pair = PAIRS.find((one) => one.includes(pronoun ?? ""));
  return pair ? { pronoun: pronoun!, other: pair.find((one) => one !== pronoun)!, pair } : null;
}

/** The place of the pronoun to ask about: the first, if possible one of a pair, but not that of *il y a*; −1 if there is none. */
export function pronounPlace(tokens: string[]): number {
  const isOne = (token: string, at: number) => PRONOUN.test(token) && !/^(n['’])?y$/.test(tokens[at + 1] ?? "");
  const paired = tokens.findIndex((token, at) => isOne(token, at) && pronounOf(token));
  return paired < 0 ? tokens.findIndex(isOne) : paired;
}

export const pronounIn = (tokens: string[]) => pronounOf(tokens[pronounPlace(tokens)] ?? "");

export interface Chance {
  id: number;
  token: string;
  share: number;
}

const idsOf = new WeakMap<Source, Map<string, number>>();

/** The side of its pair on which a pronoun stands: 0 or 1; −1 for any other word. */
export function sideOf(token = ""): number {
  const pronoun = PRONOUN.exec(token)?.[2];
  return Math.max(-1, ...PAIRS.map((pair) => pair.indexOf(pronoun ?? "")));
}

/** Whether one pronoun became the other, whatever stands before it: *qu'elle* and *il*, but not *elle*. */
export const isTurned = (before = "", after = "") => sideOf(before) >= 0 && sideOf(after) >= 0 && sideOf(before) !== sideOf(after);

/** Where each word of the old translation stands in the new one; for one that is gone, where it would stand. */
export function placesOf({ partner, isSame }: Aligned, before: string[], after: string[]): number[] {
  return before.map((token, word) => {
    const found = partner.indexOf(word);
    const place = found >= 0 ? found : Math.min(partner.findLastIndex((old) => old >= 0 && old < word) + 1, after.length - 1);
    if (sideOf(token) < 0) return place;
    // A pronoun may be joined to another word now, or no longer: *que il* or *car il* for *qu'elle*, *qu'il* for *et elle*.
    return [place, place + 1, place - 1].find((one) => sideOf(after[one] ?? "") >= 0 && (one === place || !isSame[one])) ?? place;
  });
}

/** The id of the other pronoun of a pair; undefined if the word is none, or the model does not know it. */
export function otherPronoun(source: Source, token: string, size: number): number | undefined {
  const [, before = "", pronoun] = PRONOUN.exec(token) ?? [];
  const pair = PAIRS.find((one) => one.includes(pronoun ?? ""));
  if (!pair) return undefined;
  let known = idsOf.get(source);
  // A server names only the words that it has sent.
  if (!known || source.isRemote) idsOf.set(source, (known = new Map(Array.from({ length: size }, (_, id) => [source.token(id), id]))));
  return known.get(before + pair.find((one) => one !== pronoun)!);
}

/** The other pronoun, as a word; empty if a word is none, or its row has no logits. */
export function rivalOf(source: Source, { trace }: Answer, token = ""): string {
  const logits = trace.vector("decoder.logits", 0);
  const id = logits ? otherPronoun(source, token, logits.length) : undefined;
  return id === undefined ? "" : source.token(id);
}

/** A word, its rival, and another word. */
type Chances = [Chance, Chance, Chance];

/** A word and its rival, as likely as a row of an answer finds them, and the likeliest other word; null without logits. */
export function chancesAt(source: Source, base: Answer, row: number, { trace }: Answer, place: number): Chances | null {
  const [before, after] = [base.trace.vector("decoder.logits", row), trace.vector("decoder.logits", place)];
  if (!before || !after) return null;
  const { predictedTokens, predictedIds } = base.trace.records;
  const { predictedTokens: tokens, predictedIds: ids } = trace.records;
  const normalizer = logSumExp(after);
  const [own, now] = [sideOf(predictedTokens[row]), sideOf(tokens[place])];
  // Where another pronoun stands, as *il* after *que* for *qu'elle*, it and its rival are asked about.
  const isPair = own >= 0 && now >= 0;
  const id = isPair ? ids[place] : predictedIds[row];
  const token = isPair ? tokens[place] : predictedTokens[row];
  if (id === undefined || token === undefined) return null;
  // `!`: a vocabulary has more words than are asked for.
  const rival = otherPronoun(source, token, after.length) ?? largest(before, 2).find((one) => one !== id)!;
  const isExchanged = own >= 0 && now === 1 - own;
  const other = largest(after, 3).find((one) => one !== id && one !== rival)!;
  const chance = (id: number) => ({ id, token: source.token(id), share: Math.exp(itemAt(after, id) - normalizer) });
  return [chance(isExchanged ? rival : id), chance(isExchanged ? id : rival), chance(other)];
}

/**
 * What a change took from each word of a translation, as the log of a factor: of the odds of a pronoun against the
 * other one, else of the word's probability. Not a number where no pronoun is left to choose.
 */
export function lossesOf(source: Source, base: Answer, answer: Answer): number[] {
  const [before, after] = [base.trace.records, answer.trace.records];
  return placesOf(align(before.predictedTokens, after.predictedTokens), before.predictedTokens, after.predictedTokens).map((place, row) => {
    const [own, now] = [chancesAt(source, base, row, base, row), chancesAt(source, base, row, answer, place)];
    if (!own || !now) {
      // Without logits: another word leaves at most the rest of its probability.
      const was = before.logProbabilities[row] ?? NaN;
      const log = after.logProbabilities[place] ?? NaN;
      return was - (before.predictedIds[row] === after.predictedIds[place] ? log : Math.log1p(-Math.min(Math.exp(log), 1 - 1e-9)));
    }
    if (!rivalOf(source, base, before.predictedTokens[row])) return Math.log(own[0].share / now[0].share);
    const isLeft = sideOf(after.predictedTokens[place]) >= 0 || 2 * (now[0].share + now[1].share) >= own[0].share + own[1].share;
    return isLeft ? Math.log(own[0].share / own[1].share) - Math.log(now[0].share / now[1].share) : NaN;
  });
}
