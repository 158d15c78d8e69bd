/** Signs that a translation loops or invents: the rules of `pellucid.translate.judging`. */

import { itemAt } from "../model/items";
import { argmax, row, sum } from "../model/tensor";
import type { HeadPlace, Trace } from "../trace/trace";
import type { Flag } from "./notes";

/** Mean log-probabilities of a token: below, a translation is a guess, or its attention is looked at. */
const UNSURE = -1.2;
/** A log-probability of one token below which it is a guess too, if the middle one of all is above the second. */
const [HESITATING, SURE] = [Math.log(0.15), Math.log(0.9)];
const DOUBTFUL = -1;
const LONGEST_PERIOD = 24;
const RUN = 4;
/** Words less than in the source, and the log-probability of a token, from which links are read; the least weight of a link. */
const [FEWER_WORDS, HESITANT, LEAST_LINK] = [2, -1, 0.1];
const [FEWEST_TOKENS, FEWEST_WORDS, STUCK] = [8, 3, 0.8];

export interface Judged {
  source: string;
  sourceIds: number[];
  /** The translation: its text, its tokens and their log-probabilities. */
  text: string;
  ids: number[];
  logs: number[];
  isFinished: boolean;
  isSample?: boolean;
  /** By the most tokens of a source: the tokens of the longest target of training. */
  longestTargets?: Record<string, number>;
}

/** Find the reasons to read a translation again. */
export function judge({ source, sourceIds, text, ids, logs, isFinished, isSample, longestTargets = {} }: Judged): Flag[] {
  if (!text.trim()) return ["empty"];
  const flags: Flag[] = [];
  if (repeats(sourceIds, ids)) flags.push("repeats");
  const bounds = Object.keys(longestTargets)
    .map(Number)
    .filter((bound) => bound >= lengthBound(sourceIds.length));
  // A fifth and three tokens more than ever seen: another spelling does not make the difference.
  const longest = longestTargets[Math.min(...bounds)];
  if (longest !== undefined && ids.length > 1.2 * longest + 3) flags.push("long");
  if (!isFinished) flags.push("unfinished");
  if (!/\p{L}/u.test(source) && (text.match(/[\p{L}\p{Nl}\p{No}]{2,}/gu) ?? []).length >= 3) flags.push("invented");
  const ordered = [...logs].sort((a, b) => a - b);
  const middle = (itemAt(ordered, (ordered.length - 1) >> 1) + itemAt(ordered, ordered.length >> 1)) / 2;
  if (!isSample && (sum(logs) / ids.length < UNSURE || (itemAt(ordered, 0) < HESITATING && middle > SURE))) flags.push("unsure");
  return flags;
}

/** Tell whether a doubtful translation attends to one word of its source nearly all the time. */
export function isStuck(trace: Trace, words: string[]): boolean {
  const { logProbabilities: logs } = trace.records;
  const owners = ownersOf(words);
  if (sum(logs) / logs.length >= DOUBTFUL || logs.length < FEWEST_TOKENS || (owners.at(-1) ?? -1) + 1 < FEWEST_WORDS) return false;
  const heads = trace
    .heads()
    .filter(({ kind }) => kind === "cross")
    .map((one) => trace.matrix(`decoder.${one.layer}.cross.weights`, one.head)!);
  const counts = new Map<number, number>();
  logs.forEach((_, t) => {
    const lines = heads.map((matrix) => row(matrix, t));
    const most = argmax(owners.map((_, m) => sum(lines.map((line) => itemAt(line, m)))));
    const owner = itemAt(owners, most);
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  });
  return Math.max(...counts.values()) >= STUCK * logs.length;
}

/** Find the word of each token: one without a space before it belongs to the word before. */
function ownersOf(words: string[]): number[] {
  let owner = -1;
  return words.map((word) => (word.startsWith("\uffed") && owner >= 0 ? owner : ++owner));
}

/** Words that deny, by language: those of `pellucid.languages.negations`. */
const NEGATIONS: Record<string, RegExp> = {
  en: /\b(?:not|never|no|nobody|nothing|neither|nor|without|cannot|none)\b|\wn['’]t\b/i,
  fr: /(?<!\p{L})(?:ne|pas|jamais|aucune?|non|sans|rien|personne|ni)(?!\p{L})|(?<!\p{L})n['’]/iu,
  de: /\b(?:nicht|nichts|nie|niemals|niemand\w*|kein\w*|ohne|weder|noch|nein)\b/i,
};

/** Tell whether a source denies and its translation does not, if both languages are known. */
export function losesNegation(source: string, target: string, languages: { source: string; target: string }): boolean {
  const [ofSource, ofTarget] = [NEGATIONS[languages.source], NEGATIONS[languages.target]];
  return !!ofSource && !!ofTarget && ofSource.test(source) && !ofTarget.test(target);
}

/** Tell whether a short or hesitant translation has no word that the head of word links links to some word of its source. */
export function isPartial(trace: Trace, taught: HeadPlace | null, source: string, words: string[], tokens: string[]): boolean {
  const { logProbabilities: logs, predictedTokens, text } = trace.records;
  const count = (line: string) => line.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
  if (!taught || (count(text) - count(source) > -FEWER_WORDS && Math.min(...logs) > HESITANT)) return false;
  const weights = trace.matrix(`decoder.${taught.layer}.cross.weights`, taught.head);
  if (!weights) return false;
  const most = new Map<number, number>();
  // A row that predicts a mark links nothing: its weight rests on what was not said.
  const rows = logs.slice(0, -1).flatMap((_, t) => (/[\p{L}\p{N}]/u.test(predictedTokens[t] ?? "") ? [row(weights, t)] : []));
  ownersOf(words).forEach((owner, m) => {
    // A mark may be left out.
    if (/[\p{L}\p{N}]/u.test(tokens[m] ?? "")) most.set(owner, Math.max(most.get(owner) ?? 0, ...rows.map((line) => itemAt(line, m))));
  });
  return [...most.values()].some((weight) => weight < LEAST_LINK);
}

/** Round a length up to the bound of its class: exact up to 8, then in steps of about a fifth. */
export function lengthBound(length: number): number {
  if (length <= 8) return length;
  const step = 2 ** Math.max(0, (length - 1).toString(2).length - 3);
  return Math.ceil(length / step) * step;
}

/** Tell whether a target says something again and again that its source does not. */
export function repeats(source: number[], target: number[]): boolean {
  const periods = (tokens: number[]) => Array.from({ length: Math.min(LONGEST_PERIOD, tokens.length >> 1) }, (_, i) => i + 1);
  const usual = Math.max(1, ...periods(source).map((period) => copies(source, period)));
  if (periods(target).some((period) => copies(target, period) >= Math.max(usual + 1, period === 1 ? 4 : period < 5 ? 3 : 2))) return true;
  return mostAlike(target) >= Math.max(3, 1 + mostAlike(source));
}

/** Count how often some sequence of so many tokens stands there in a row, at most. */
function copies(tokens: number[], period: number): number {
  let [longest, run] = [0, 0];
  for (let i = period; i < tokens.length; i++) {
    run = tokens[i] === tokens[i - period] ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return 1 + Math.floor(longest / period);
}

/** Count the most frequent sequence of four tokens. */
function mostAlike(tokens: number[]): number {
  const counts = new Map<string, number>();
  for (let i = 0; i + RUN <= tokens.length; i++) {
    const key = tokens.slice(i, i + RUN).join();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
