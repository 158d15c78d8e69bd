/** Two translations side by side: which token of the new one stands for which of the old one. */

/** For each new token: the old one that it repeats or stands for (−1 if none), and whether it repeats it. */
export interface Aligned {
  partner: number[];
  isSame: boolean[];
}

/** Align by the longest common subsequence; what differs between two common tokens is paired in order. */
export function align(before: string[], after: string[]): Aligned {
  // `!`: the table has a row and a column more than there are words.
  const table = Array.from({ length: before.length + 1 }, () => new Array<number>(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      table[i]![j] = before[i] === after[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!);
  const [partner, isSame] = [after.map(() => -1), after.map(() => false)];
  let [i, j] = [0, 0];
  const gap: { old: number[]; fresh: number[] } = { old: [], fresh: [] };
  const close = () => {
    gap.fresh.forEach((place, k) => (partner[place] = gap.old[k] ?? -1));
    [gap.old, gap.fresh] = [[], []];
  };
  while (i < before.length || j < after.length)
    if (i < before.length && j < after.length && before[i] === after[j]) {
      close();
      [partner[j], isSame[j]] = [i++, true];
      j++;
    } else if (j === after.length || (i < before.length && table[i + 1]![j]! >= table[i]![j + 1]!)) gap.old.push(i++);
    else gap.fresh.push(j++);
  close();
  return { partner, isSame };
}

/** A token without the sign of the space before it. */
export const bare = (token: string) => token.replace(/^\u2581/, "");

/** A text in pieces, a token each, with what stands before it: a space, or nothing. */
export function piecesOf(text: string, tokens: string[]): { before: string; word: string; place: number }[] {
  let at = 0;
  return tokens.flatMap((token, place) => {
    const word = bare(token);
    // A blank cannot be chosen.
    const found = word.trim() ? text.indexOf(word, at) : -1;
    if (found < 0) return [];
    const before = text.slice(at, found);
    at = found + word.length;
    return [{ before, word, place }];
  });
}
