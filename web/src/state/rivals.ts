/** A written word and the one that it is compared with: the other pronoun, or the likeliest other word. */

import { largest, logSumExp } from "../model/tensor";
import type { Answer, Source } from "../trace/source";

const PAIRS = [["il", "elle"], ["ils", "elles"], ["Il", "Elle"], ["Ils", "Elles"], ["er", "sie"], ["Er", "Sie"]];
/** A pronoun, maybe after another word as in *qu'il*. */
const PRONOUN = /^(.*['’])?(elle|il|elles|ils|er|sie|es)$/i;
export const SOURCE_PRONOUN = /^(it|they|them|he|she)$/i;

/** The pronoun of a token, in small letters, and the other one of its pair; null if the token is none. */
export function pronounOf(token: string): { pronoun: string; other: string; pair: string[] } | null {
  const pronoun = PRONOUN.exec(token)?.[2].toLowerCase();
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

/** The id of the other pronoun of a pair; undefined if the word is none, or the model does not know it. */
export function otherPronoun(source: Source, token: string, size: number): number | undefined {
  const [, before = "", pronoun] = PRONOUN.exec(token) ?? [];
  const pair = PAIRS.find((one) => one.includes(pronoun));
  if (!pair) return undefined;
  let known = idsOf.get(source);
  // A server names only the words that it has sent.
  if (!known || source.isRemote) idsOf.set(source, (known = new Map(Array.from({ length: size }, (_, id) => [source.token(id), id]))));
  return known.get(before + pair.find((one) => one !== pronoun)!);
}

/** How likely a row finds each of some tokens; null if the answer does not hold that. */
export function chances(source: Source, { trace }: Answer, row: number, ids: number[]): Chance[] | null {
  const logits = trace.vector("decoder.logits", row);
  if (!logits) return null;
  const normalizer = logSumExp(logits);
  return ids.map((id) => ({ id, token: source.token(id), share: Math.exp(logits[id] - normalizer) }));
}

/** The token to compare a written one with. */
export function rivalOf(source: Source, { trace }: Answer, row: number): number | null {
  const logits = trace.vector("decoder.logits", row);
  if (!logits) return null;
  const { predictedTokens, predictedIds } = trace.records;
  const pronoun = otherPronoun(source, predictedTokens[row], logits.length);
  return pronoun ?? largest(logits, 2).find((id) => id !== predictedIds[row]) ?? null;
}
