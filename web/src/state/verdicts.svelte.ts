/** What changes did: each is made, the sentence is decoded again, and the French is compared. */

import type { Snippet } from "svelte";
import { writeChange, type Change } from "../model/changes";
import type { Answer } from "../trace/source";
import { siteOf, type HeadPlace } from "../trace/trace";
import { row as rowOf } from "../model/tensor";
import { align } from "./align";
import type { App } from "./app.svelte";

/** Needed: the chosen French word changes. Elsewhere: only others do. Vain: none does. */
export type Fate = "needed" | "elsewhere" | "vain";

export interface Verdict {
  fate: Fate;
  /** What stands in the place of the chosen word; empty if nothing does. */
  instead: string;
}

/** What a picture of a head is given. */
export interface Picture {
  app: App;
  answer: Answer;
  fateOf: (row: number, column: number) => Fate | undefined;
  onpoint: (row: number, column: number) => void;
  onopen: () => void;
  /** What stands below it. */
  below: Snippet;
}

export const FATES: Record<Fate, string> = {
  needed: "needed",
  elsewhere: "changes other words",
  vain: "looked at in vain",
};

/** A word is needed if the prediction becomes at least so many times less likely without it: e ** this. */
export const LEAST_COST = Math.log(2);

const keyOf = (changes: Change[]) => changes.map(writeChange).join("; ");

export class Verdicts {
  /** The French under each list of changes that was tried. */
  private tried = $state.raw(new Map<string, string[]>());
  /** How much log-probability each French word loses, by source position, without that source word. */
  costs = $state.raw<number[][]>([]);
  /** Those source words. */
  words = $state.raw<string[]>([]);
  progress = $state.raw<{ name: string; done: number; of: number } | null>(null);
  private number = 0;

  constructor(private readonly app: App) {}

  /** Forget everything, for another sentence. */
  reset(): void {
    this.cancel();
    this.tried = new Map();
    this.costs = [];
  }

  cancel(): void {
    this.number++;
    this.progress = null;
  }

  /** What a change did to the chosen word, next to all that are in force; null if it was not tried. */
  of(changes: Change[], inForce = this.app.state.changes): Verdict | null {
    const base = inForce.length ? this.app.answer : this.app.unchanged;
    const after = this.tried.get(keyOf([...inForce, ...changes]));
    if (!base || !after) return null;
    const before = base.trace.records.predictedTokens;
    if (before.join(" ") === after.join(" ")) return { fate: "vain", instead: "" };
    const word = inForce.length ? this.app.now : this.app.word;
    const { partner, isSame } = align(before, after);
    const place = partner.indexOf(word);
    const isKept = place >= 0 && isSame[place];
    return { fate: isKept ? "elsewhere" : "needed", instead: isKept || place < 0 ? "" : after[place] };
  }

  /** Try several lists of changes, each next to all that are in force. */
  async try(name: string, all: Change[][], inForce = this.app.state.changes): Promise<void> {
    const { source, unchanged } = this.app;
    if (!source?.isLive || !unchanged) return;
    const due = all.map((one) => [...inForce, ...one]).filter((one) => !this.tried.has(keyOf(one)));
    const number = ++this.number;
    const { text, decoding, prefix } = this.app.state;
    for (const [done, changes] of due.entries()) {
      this.progress = { name, done, of: due.length };
      // The page stays responsive between two decodings.
      await new Promise((ready) => setTimeout(ready));
      if (number !== this.number) return;
      const answer = await source.ask({ text, decoding, prefix, changes }).catch(() => null);
      if (number !== this.number) return;
      if (!answer) break;
      this.tried = new Map(this.tried).set(keyOf(changes), answer.trace.records.predictedTokens);
    }
    this.progress = null;
  }

  /** Cut each head in turn. */
  tryHeads(): Promise<void> {
    return this.try("heads", (this.app.answer?.trace.heads() ?? []).map((one) => [cutHead(one)]));
  }

  /** Hide each source word in turn, and keep what each French word loses; a recording has that measured. */
  async measureCosts(unchanged: Answer, delay = 0): Promise<void> {
    const { source } = this.app;
    if (!source || this.costs.length) return;
    const { predictedIds: target, logProbabilities: before, sourceTokens } = unchanged.trace.records;
    const number = ++this.number;
    if (!source.isLive) {
      if (!source.measures.includes("occlusion")) return;
      const { map, columns } = await source.measure("occlusion", unchanged.trace, 0);
      this.words = columns.filter((word) => word !== "</s>");
      this.costs = this.words.map((_, at) => Array.from({ length: map.rows }, (_, row) => map.data[row * map.columns + at]));
      return;
    }
    this.words = sourceTokens.slice(0, -1);
    const costs: number[][] = [];
    const { text, decoding } = this.app.state;
    for (const position of this.words.keys()) {
      this.progress = { name: "words", done: position, of: this.words.length };
      await new Promise((ready) => setTimeout(ready, position ? 0 : delay));
      if (number !== this.number) return;
      const answer = await source.ask({ text, decoding, prefix: [], changes: [hide(position)], target }).catch(() => null);
      if (number !== this.number) return;
      if (!answer) break;
      costs.push(answer.trace.records.logProbabilities.map((log, row) => before[row] - log));
    }
    // What could not be measured is not asked for again.
    this.costs = costs.length ? costs : [[]];
    this.progress = null;
  }

  /** The source words that a French word needs most, the most needed first. */
  needs(word: number): { position: number; cost: number }[] {
    const all = this.costs.map((cost, position) => ({ position, cost: cost[word] ?? 0 })).sort((a, b) => b.cost - a.cost);
    const least = Math.max(LEAST_COST, 0.4 * (all[0]?.cost ?? 0));
    return all.filter(({ cost }) => cost >= least).slice(0, 3);
  }

  /** In how many French words the largest weight of a head of cross-attention names the word that is needed most. */
  score(place: HeadPlace): { named: number; of: number } | null {
    const { unchanged } = this.app;
    if (place.kind !== "cross" || !this.costs.length || !unchanged) return null;
    const weights = unchanged.trace.matrix(`${siteOf(place)}.weights`, place.head);
    if (!weights) return null;
    const rows = unchanged.trace.records.predictedTokens.flatMap((token, row) => (token.startsWith("<") || !this.needs(row).length ? [] : [row]));
    const most = (row: number) => rowOf(weights, row).reduce((best, weight, at, all) => (weight > all[best] ? at : best), 0);
    return { named: rows.filter((row) => most(row) === this.needs(row)[0].position).length, of: rows.length };
  }
}

export const hide = (position: number): Change => ({ verb: "word", position });
export const cutHead = (place: HeadPlace): Change => ({ verb: "cut", place: { ...place, isEdge: false } });
export const cutLine = (place: HeadPlace, query: number, key: number): Change => ({ verb: "cut", place: { ...place, isEdge: true, query, key } });
