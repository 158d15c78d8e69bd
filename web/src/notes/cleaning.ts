/** Lines as `pellucid translate` prepares them: without edges, in characters that the model knows. */

import { isSpace, trim, type WordTokenizer } from "../model/tokenizer";

/** Marks that are often written in one of several ways; a model may have learned only one of them. */
const ALTERNATIVES: [marks: string, candidates: string[]][] = [
  ["\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", ["'", "’"]],
  ["\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", ['"', "”"]],
  ["\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63", ["-", "–"]],
  ["'", ["’"]],
  ['"', ["”"]],
  ["-", ["–", "‐"]],
];
const INVISIBLE = /[\p{Cf}\p{Cc}\ufe00-\ufe0f\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800]/u;

export interface Cleaned {
  text: string;
  /** Characters that were replaced or left out, each once. */
  changed: Set<string>;
  /** Those that remain, though the model has never seen them. */
  unknown: Set<string>;
}

/** Name a character for a message, as far as a browser can. */
export function characterName(character: string): string {
  const point = `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
  if (isSpace(character) || INVISIBLE.test(character)) return point;
  return `${/\p{M}/u.test(character) ? "◌" : ""}${character} ${point}`;
}

export class Cleaner {
  private readonly known: Set<string>;

  /** `known` has every character that the model knows. */
  constructor(
    known: string,
    private readonly tokenizer: WordTokenizer,
  ) {
    this.known = new Set(known);
  }

  clean(line: string): Cleaned {
    const [changed, unknown] = [new Set<string>(), new Set<string>()];
    const whole = this.tokenizer.normalized(trim(line));
    let [text, last] = ["", ""];
    let wasSpace = true; // no space at the start that the line did not have
    let wasReplaced = false;
    for (const letter of whole) {
      const isUnknown = !this.known.has(letter);
      const standIn = isUnknown ? this.standIn(letter) : letter;
      if (isUnknown) (standIn === null ? unknown : changed).add(letter);
      else if (letter === " " && wasReplaced) continue; // one space for both
      const put: string = isUnknown && standIn === " " && wasSpace ? "" : (standIn ?? letter);
      text += put;
      wasSpace = put.endsWith(" ") || (wasSpace && !put);
      wasReplaced = wasSpace && (isUnknown || wasReplaced);
      last = letter;
    }
    return { text: this.known.has(last) ? text : trim(text), changed, unknown };
  }

  /** What to write in place of a character; null if there is nothing. */
  private standIn(letter: string): string | null {
    if (isSpace(letter) || letter === "\u2581") return " ";
    if (INVISIBLE.test(letter)) return "";
    const same = trim(this.tokenizer.normalized(letter.normalize("NFKC")));
    const others = ALTERNATIVES.find(([marks]) => marks.includes(letter))?.[1] ?? [];
    const isKnown = (text: string) => text && text !== letter && [...text].every((one) => this.known.has(one));
    return [same, ...others].find(isKnown) ?? null;
  }
}
