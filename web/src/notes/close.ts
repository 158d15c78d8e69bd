/** Words of a vocabulary that are most like a word: the rules of `pellucid.text.outside`. */

const MOST_CLOSE = 3;
/** Letters at the beginning that two words of one stem share at least. */
const STEM = 4;

/** Find three words at most, the closest first: other capitals, the same stem, one or two letters. */
export function closeWords(word: string, vocabulary: Iterable<string>): string[] {
  const lowered = word.toLowerCase();
  const scores = new Map<string, [score: number, other: string]>();
  for (const other of vocabulary) {
    const near = other.toLowerCase();
    if (other === word || (isAscii(lowered) && !isAscii(near))) continue;
    let score = near === lowered ? 0 : hasStemOf(lowered, near) ? 1 + Math.abs(near.length - lowered.length) / 10 : NaN;
    if (Number.isNaN(score)) score = 1.5 + distance(lowered, near, word.length < 5 ? 1 : 2);
    // Of two spellings that differ in capitals, the one written like the word is closer.
    score += 0.05 * Number(isUpper(other) !== isUpper(word));
    const known = scores.get(near);
    if (score < Infinity && (!known || compare([score, other], known) < 0)) scores.set(near, [score, other]);
  }
  return [...scores.values()].sort(compare).slice(0, MOST_CLOSE).map(([, other]) => other);
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text);
const isUpper = (text: string) => /^\p{Lu}/u.test(text);
const compare = (a: [number, string], b: [number, string]) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1);

/** Tell whether two words begin alike and differ only in a short ending. */
function hasStemOf(word: string, other: string): boolean {
  let shared = 0;
  while (shared < Math.min(word.length, other.length) && word[shared] === other[shared]) shared++;
  const [least, most] = [word.length, other.length].sort((a, b) => a - b);
  return shared >= STEM && most - shared <= 3 && least - shared <= 2;
}

/** Count the letters to add, drop, change or exchange; infinite if there are more than `most`. */
function distance(word: string, other: string, most: number): number {
  if (Math.abs(word.length - other.length) > most) return Infinity;
  let [last, before, row] = [[], [], Array.from({ length: other.length + 1 }, (_, j) => j)] as number[][];
  for (let i = 1; i <= word.length; i++) {
    [last, before, row] = [before, row, [i]];
    for (let j = 1; j <= other.length; j++) {
      let best = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + Number(word[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1]) best = Math.min(best, last[j - 2] + 1);
      row.push(best);
    }
    if (Math.min(...row) > most) return Infinity;
  }
  return row[other.length] <= most ? row[other.length] : Infinity;
}
