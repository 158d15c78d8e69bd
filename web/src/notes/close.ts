/** Words outside a vocabulary, and those that are most like them: the rules of `pellucid.text.outside`. */

import { itemAt } from "../model/items";
import { JOINER, trim, type WordTokenizer } from "../model/tokenizer";

const MOST_CLOSE = 3;
const MOST_WORDS = 10;
export const SHOUTED = "; text in capitals is unlike the text that the model learned from: use small letters";
/** Letters at the beginning that two words of one stem share at least. */
const STEM = 4;

/** List the words of a line that a vocabulary lacks; a known word joined to a sign comes with the sign. */
export function unknownWords(tokens: string[], tokenizer: WordTokenizer): string[] {
  const found = tokens.flatMap((token, i) => {
    if (tokenizer.has(token)) return [];
    const word = bare(token);
    const before = tokens[i - 1];
    return [trim(before !== undefined && tokenizer.has(word) ? bare(before) + word : word)];
  });
  return [...new Set(found.filter(Boolean))];
}

/** Word what the vocabulary lacks: `"kitten" (close: "bitten"), "zebra" (nothing close)`. */
export function sayUnknownWords(words: string[], tokenizer: WordTokenizer): string {
  const said = words.slice(0, MOST_WORDS).map((word) => `${quote(word)} (${sayClose(word, tokenizer)})`);
  if (words.length > MOST_WORDS) said.push(`and ${words.length - MOST_WORDS} more`);
  const shouted = words.filter((word) => word.length > 1 && isShouted(word));
  const folded = shouted.filter((word) => tokenizer.has(word.toLowerCase()) || tokenizer.has(capitalized(word)));
  return said.join(", ") + (folded.length > 1 && 2 * folded.length >= words.length ? SHOUTED : "");
}

function sayClose(word: string, tokenizer: WordTokenizer): string {
  const { hint, others } = closeTo(word, tokenizer);
  const list = others.map((other) => `"${other}"`).join(", ");
  return [hint || "close", list].filter(Boolean).join(": ");
}

/** Find what to write instead of a word, and say what else there is to say about it. */
export function closeTo(word: string, tokenizer: WordTokenizer): { others: string[]; hint: string } {
  if (tokenizer.has(JOINER + word)) return { others: [], hint: "known without the space before it" };
  const letters = word.replace(/^[^\p{L}\p{N}]+/u, "");
  if (tokenizer.has(letters)) return { others: [letters], hint: "known with a space before it" };
  // To a sign every other sign is close, which helps nobody.
  const others = letters ? closeWords(word, tokenizer.words) : [];
  return { others, hint: others.length ? "" : "nothing close" };
}

/** Find three words at most, the closest first: other capitals, the same stem, one or two letters. */
export function closeWords(word: string, vocabulary: Iterable<string>): string[] {
  const lowered = word.toLowerCase();
  const beginsUpper = isUpper(word) && ([...word].length === 1 || !isShouted(word));
  // To a letter or a number every other is close, which helps nobody.
  const isShort = (lowered.match(/\p{L}/gu) ?? []).length < 2;
  const scores = new Map<string, [score: number, other: string]>();
  for (const other of vocabulary) {
    const near = other.toLowerCase();
    if (other === word || (isShort && near !== lowered) || (isAscii(lowered) && !isAscii(near))) continue;
    let score = near === lowered ? 0 : hasStemOf(lowered, near) ? 1 + Math.abs(near.length - lowered.length) / 10 : NaN;
    if (Number.isNaN(score)) score = 1.5 + distance(lowered, near, word.length < 5 ? 1 : 2);
    // Of two spellings that differ in capitals, the one written like the word is closer.
    score += 0.05 * Number(isUpper(other) !== beginsUpper);
    const known = scores.get(near);
    if (score < Infinity && (!known || compare([score, other], known) < 0)) scores.set(near, [score, other]);
  }
  return [...scores.values()]
    .sort(compare)
    .slice(0, MOST_CLOSE)
    .map(([, other]) => other);
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text);
const isUpper = (text: string) => /^\p{Lu}/u.test(text);
const isShouted = (text: string) => text !== text.toLowerCase() && text === text.toUpperCase();
const capitalized = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase();
const bare = (token: string) => (token.length > 1 && token.startsWith(JOINER) ? token.slice(1) : token);
const quote = (word: string) => (word.includes('"') ? `'${word}'` : `"${word}"`);
const compare = (a: [number, string], b: [number, string]) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1);

/** Tell whether two words begin alike and differ only in a short ending. */
function hasStemOf(word: string, other: string): boolean {
  let shared = 0;
  while (shared < Math.min(word.length, other.length) && word[shared] === other[shared]) shared++;
  const most = Math.max(word.length, other.length);
  const least = Math.min(word.length, other.length);
  return shared >= STEM && most - shared <= 3 && least - shared <= 2;
}

/** Count the letters to add, drop, change or exchange; infinite if there are more than `most`. */
function distance(word: string, other: string, most: number): number {
  if (Math.abs(word.length - other.length) > most) return Infinity;
  let last: number[] = [];
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, j) => j);
  // `!`: a row has one place more than the other word has letters, and `last` is read from the second row on.
  for (let i = 1; i <= word.length; i++) {
    [last, before, row] = [before, row, [i]];
    for (let j = 1; j <= other.length; j++) {
      let best = Math.min(before[j]! + 1, row[j - 1]! + 1, before[j - 1]! + Number(word[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1]) best = Math.min(best, last[j - 2]! + 1);
      row.push(best);
    }
    if (Math.min(...row) > most) return Infinity;
  }
  const found = itemAt(row, other.length);
  return found <= most ? found : Infinity;
}
