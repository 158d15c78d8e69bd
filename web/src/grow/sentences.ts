/** The sentences that a model grows on, as words and as numbers. */

import carried from "./sentences.json";
import { itemAt } from "../model/items";
import type { Sizes } from "./model";

export interface Pair {
  source: number[];
  /** What the decoder reads, from the start token on. */
  reads: number[];
  /** What it should write, up to the end token. */
  writes: number[];
}

export const START = 0;
export const END = 1;

const split = (pairs: string[]) => pairs.map((pair) => pair.split("|").map((text) => text.split(" ")));
const [learned, fresh, watched] = [split(carried.learned), split(carried.fresh), split(carried.watched)];
const wordsOf = (side: number) => ["<s>", "</s>", ...new Set([...learned, ...fresh, ...watched].flatMap((pair) => itemAt(pair, side)))];
export const SOURCE_WORDS = wordsOf(0);
export const TARGET_WORDS = wordsOf(1);

const idsOf = (words: string[]) => new Map(words.map((word, id) => [word, id]));
const sourceIds = idsOf(SOURCE_WORDS);
const targetIds = idsOf(TARGET_WORDS);
/** The English *it*. */
export const IT = sourceIds.get("it")!;
export const idOf = (word: string) => targetIds.get(word)!;

function encode(pair: string[][]): Pair {
  const [source, target] = [itemAt(pair, 0), itemAt(pair, 1)];
  const ids = target.map((word) => targetIds.get(word)!);
  return { source: [...source.map((word) => sourceIds.get(word)!), END], reads: [START, ...ids], writes: [...ids, END] };
}

export const LEARNED = learned.map(encode);
export const FRESH = fresh.map(encode);
export const WATCHED = watched.map(encode);
export const SIZES: Sizes = { width: 16, inner: 32, heads: 4, sourceWords: SOURCE_WORDS.length, targetWords: TARGET_WORDS.length };
