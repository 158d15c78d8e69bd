/** Text to tokens and back, for vocabularies of whole words. */

import type { TokenizerConfig } from "./config";
import { itemAt } from "./items";

/** The sign of a token without a space before it. */
export const JOINER = "\uffed";

const SPECIAL = new Set(["<pad>", "<unk>", "<s>", "</s>"]);

// White space as Python counts it: JavaScript's \s differs by a few control characters.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = "[\\p{L}\\p{N}\\p{M}]+";
const CUTTER = new RegExp(`[${SPACE}]+|${WORD}(?:['\\u2019\\u2010\\u2011\\u200c\\u200d-]${WORD})*|.`, "gsu");
const IS_SPACE = new RegExp(`^[${SPACE}]`, "u");
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");

export const isSpace = (character: string) => IS_SPACE.test(character);
export const trim = (text: string) => text.replace(EDGES, "");

/** Cut a text into tokens, so that `joinWords` gives it back exactly. */
export function splitWords(text: string): string[] {
  if (!text) return [];
  const tokens: string[] = [];
  let hasSpace = false;
  const whole = ` ${text}`;
  for (const match of whole.matchAll(CUTTER)) {
    const piece = match[0];
    if (isSpace(piece)) {
      hasSpace = piece.endsWith(" ") && match.index + piece.length < whole.length;
      for (const space of hasSpace ? piece.slice(0, -1) : piece) tokens.push(JOINER + space);
    } else {
      tokens.push(hasSpace ? piece : JOINER + piece);
      hasSpace = false;
    }
  }
  return tokens;
}

/** Cut a text into words, without punctuation and white space. */
export function bareWords(text: string): string[] {
  return [...text.matchAll(CUTTER)].map((match) => match[0]).filter((piece) => !isSpace(piece) && !/^\p{P}/u.test(piece));
}

export function joinWords(tokens: string[]): string {
  const text = tokens.map((token) => (token.length > 1 && token.startsWith(JOINER) ? token.slice(1) : ` ${token}`)).join("");
  return text.startsWith(" ") ? text.slice(1) : text;
}

/** The form of a token that a reader sees. */
export function plain(token: string): string {
  if (token.length > 1 && token.startsWith(JOINER)) return visible(token.slice(1));
  return visible(token);
}

function visible(text: string): string {
  if (text === " ") return "␣";
  if (text === "\t") return "⇥";
  return text;
}

export interface Encoded {
  ids: number[];
  tokens: string[];
  /** The words as typed, one a token, without the end. */
  words: string[];
}

export class WordTokenizer {
  private readonly ids: Map<string, number>;
  private readonly textless: Set<number>;
  /** The words and signs of the source, without joiners. */
  readonly words: string[];

  constructor(
    readonly config: TokenizerConfig,
    readonly source: string[],
    readonly target: string[],
  ) {
    this.ids = new Map(source.map((token, id) => [token, id]));
    this.words = [...new Set(source.filter((token) => !SPECIAL.has(token)).map((token) => token.replace(/^\uffed(?=.)/su, "")))];
    this.textless = new Set([config.pad_id, config.bos_id ?? -1, config.eos_id]);
  }

  has(word: string): boolean {
    return this.ids.has(word) && !SPECIAL.has(word);
  }

  normalized(text: string): string {
    const cased = this.config.lowercase ? text.toLowerCase() : text;
    if (/^[\x00-\x7f]*$/.test(cased)) return cased;
    const whole = cased.replace(/\p{Surrogate}/gu, "\ufffd");
    if (this.config.normalization === "none") return whole;
    return whole.normalize(this.config.normalization === "nfc" ? "NFC" : "NFKC");
  }

  encodeSource(text: string): Encoded {
    const cut = this.config.drop_punctuation ? bareWords : splitWords;
    const words = cut(this.normalized(text));
    const ids = words.map((word) => this.ids.get(word) ?? this.config.unk_id);
    ids.push(this.config.eos_id);
    return { ids, tokens: ids.map((id) => itemAt(this.source, id)), words };
  }

  decodeTarget(ids: number[]): string {
    return joinWords(ids.filter((id) => !this.textless.has(id)).map((id) => itemAt(this.target, id)));
  }
}
