/** A written word and the one that it is compared with: the other pronoun, or the likeliest other word. */

import { itemAt } from "../model/items";
import { largest, logSumExp } from "../model/tensor";
import type { Answer, Source } from "../trace/source";
import { align, bare, type Aligned } from "./align";

const PAIRS = [
  ["il", "elle"],
  ["ils", "elles"],
  ["Il", "Elle"],
  ["Ils", "Elles"],
  ["er", "sie"],
  ["Er", "Sie"],
];
/** A pronoun, maybe after another word as in *qu'il*. */
const PRONOUN = /^▁?(.*['’])?(elle|il|elles|ils|er|sie|es)$/i;
export const SOURCE_PRONOUN = /^▁?(it|they|them|he|she)$/i;

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

/** A word without the sign of a space and what is elided before it: *elle* of *qu'elle*. */
const formOf = (token = "") => token.replace(/^(.*['’]|▁)/, "").toLowerCase();

/** The id of the other gender or number of a written word, the likeliest if there are several; undefined if there is none. */
export function rivalId(source: Source, { trace }: Answer, row: number): number | undefined {
  const ids = source.rivals?.[trace.records.predictedIds[row] ?? -1] ?? [];
  const logits = ids.length && trace.vector("decoder.logits", row);
  return logits ? [...ids].sort((a, b) => itemAt(logits, b) - itemAt(logits, a))[0] : undefined;
}

/** That form, as a word; empty if a word has none, or its row no logits. */
export function rivalOf(source: Source, answer: Answer, row: number): string {
  const id = rivalId(source, answer, row);
  return id === undefined ? "" : bare(source.token(id));
}

const formsOf = new WeakMap<Answer, string[]>();

/** The rival of each word of an answer, without what is elided before it. */
export function rivalForms(source: Source, answer: Answer): string[] {
  const found = formsOf.get(answer) ?? answer.trace.records.predictedIds.map((_, row) => formOf(rivalOf(source, answer, row)));
  formsOf.set(answer, found);
  return found;
}

/** Whether a word became its rival, whatever stands before it: *qu'elle* and *il*. */
export const isTurned = (rival = "", after = "") => Boolean(rival) && formOf(after) === rival;

/** Where each word of the old translation stands in the new one; for one that is gone, where it would stand. */
export function placesOf({ partner }: Aligned, before: string[], after: string[], rivals: string[]): number[] {
  return before.map((token, word) => {
    const found = partner.indexOf(word);
    const place = found >= 0 ? found : Math.min(partner.findLastIndex((old) => old >= 0 && old < word) + 1, after.length - 1);
    if (!rivals[word]) return place;
    // It or its rival may be joined to another word now, or no longer, and stand elsewhere.
    const forms = [formOf(token), rivals[word]];
    const all = after.flatMap((one, at) => (forms.includes(formOf(one)) ? [at] : []));
    return all.sort((a, b) => Math.abs(a - place) - Math.abs(b - place))[0] ?? place;
  });
}

/** A word, its rival, and another word. */
type Chances = [Chance, Chance, Chance];

/** A word and its rival, as likely as a row of an answer finds them, and the likeliest other word; null without logits. */
export function chancesAt(source: Source, base: Answer, row: number, { trace }: Answer, place: number): Chances | null {
  const [before, after] = [base.trace.vector("decoder.logits", row), trace.vector("decoder.logits", place)];
  const { predictedTokens: tokens, predictedIds: ids } = trace.records;
  let own = base.trace.records.predictedIds[row];
  const now = ids[place];
  if (!before || !after || own === undefined || now === undefined) return null;
  // `!`: a vocabulary has more words than are asked for.
  let rival = rivalId(source, base, row) ?? largest(before, 2).find((one) => one !== own)!;
  const [form, other] = [formOf(base.trace.records.predictedTokens[row]), formOf(source.token(rival))];
  // Where a form stands after another elided word, as *il* after *que* for *qu'elle*, it and its rival are asked about.
  const isOwn = formOf(tokens[place]) === form;
  const joined = source.rivals?.[now]?.find((id) => formOf(source.token(id)) === (isOwn ? other : form));
  if (joined !== undefined && (isOwn || formOf(tokens[place]) === other)) [own, rival] = isOwn ? [now, joined] : [joined, now];
  const normalizer = logSumExp(after);
  const third = largest(after, 3).find((one) => one !== own && one !== rival)!;
  const chance = (id: number) => ({ id, token: source.token(id), share: Math.exp(itemAt(after, id) - normalizer) });
  return [chance(own), chance(rival), chance(third)];
}

/**
 * What a change took from each word of a translation, as the log of a factor: of its odds against its rival,
 * else of its probability. Not a number where neither the word nor its rival stands.
 */
export function lossesOf(source: Source, base: Answer, answer: Answer): number[] {
  const [before, after] = [base.trace.records, answer.trace.records];
  const rivals = rivalForms(source, base);
  return placesOf(align(before.predictedTokens, after.predictedTokens), before.predictedTokens, after.predictedTokens, rivals).map(
    (place, row) => {
      const [own, now] = [chancesAt(source, base, row, base, row), chancesAt(source, base, row, answer, place)];
      if (!own || !now) {
        // Without logits: another word leaves at most the rest of its probability.
        const was = before.logProbabilities[row] ?? NaN;
        const log = after.logProbabilities[place] ?? NaN;
        return was - (before.predictedIds[row] === after.predictedIds[place] ? log : Math.log1p(-Math.min(Math.exp(log), 1 - 1e-9)));
      }
      const rival = rivals[row];
      if (!rival) return Math.log(own[0].share / now[0].share);
      const stands = formOf(after.predictedTokens[place]);
      const isThere = stands === rival || stands === formOf(before.predictedTokens[row]);
      return isThere ? Math.log(own[0].share / own[1].share) - Math.log(now[0].share / now[1].share) : NaN;
    },
  );
}
