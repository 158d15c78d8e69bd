/** What changes did: each is made, the sentence is decoded again, and the French is compared. */

import { writeChange, type Change } from "../model/changes";
import type { Answer, Source } from "../trace/source";
import { siteOf, type HeadPlace } from "../trace/trace";
import { argmax, row as rowOf } from "../model/tensor";
import { align } from "./align";
import type { State } from "./link";
import { isTurned, lossesOf, placesOf, rivalForms } from "./rivals";

/** Needed: the chosen French word changes, a pronoun to the other one. Elsewhere: only others do. Vain: none does. */
export type Fate = "needed" | "elsewhere" | "vain";

export interface Verdict {
  fate: Fate;
  /** What stands in the place of the chosen word; empty if nothing does. */
  instead: string;
  /** What the word lost, as in `lossesOf`. */
  loss: number;
}

/** What verdicts read of the page: the question, the answers to it, and the chosen word in each of the two. */
export interface Asked {
  readonly state: State;
  readonly source: Source | undefined;
  readonly unchanged: Answer | null;
  readonly answer: Answer | null;
  readonly word: number;
  readonly now: number;
}

export const FATES: Record<Fate, string> = {
  needed: "needed",
  elsewhere: "changes other words",
  vain: "looked at in vain",
};

/** A word is needed if it takes at least so much from the chosen one, and at least this share of the most. */
export const [LEAST_LOSS, LEAST_SHARE] = [Math.log(2), 0.6];
/** A line of less weight is not drawn until a reader asks for it. */
export const LEAST_WEIGHT = 0.08;

const keyOf = (changes: Change[]) => changes.map(writeChange).join("; ");

export class Verdicts {
  /** The French under each list of changes that was tried, and what each word lost. */
  private tried = $state.raw(new Map<string, { tokens: string[]; losses: number[] }>());
  /** What a recording measured, and the words that it hid. */
  private recorded = $state.raw<{ words: string[]; costs: number[][] } | null>(null);
  progress = $state.raw<{ name: string; done: number; of: number } | null>(null);
  /** Whether a reader stopped what was tried, or it failed: nothing begins by itself again. */
  isStopped = $state(false);
  private number = 0;
  /** The source words, each to be hidden. */
  readonly words = $derived.by(() => this.recorded?.words ?? this.app.unchanged?.trace.records.sourceTokens.slice(0, -1) ?? []);
  /** What each French word loses without each source word; empty until all were hidden. */
  readonly costs = $derived.by(() => {
    const all =
      this.recorded?.costs ??
      this.words.flatMap((_, position) => this.tried.get(keyOf([hide(position)])) ?? []).map(({ losses }) => losses);
    return all.length === this.words.length ? all : [];
  });

  constructor(private readonly app: Asked) {}

  /** Forget everything, for another sentence. */
  reset(): void {
    this.cancel();
    this.tried = new Map();
    this.recorded = null;
    this.isStopped = false;
  }

  cancel(): void {
    this.number++;
    this.progress = null;
  }

  stop(): void {
    this.cancel();
    this.isStopped = true;
  }

  /** What a change did to the chosen word, next to all that are in force; null if it was not tried. */
  of(changes: Change[], inForce = this.app.state.changes): Verdict | null {
    const base = inForce.length ? this.app.answer : this.app.unchanged;
    const found = this.tried.get(keyOf([...inForce, ...changes]));
    if (!base || !found) return null;
    const [before, after] = [base.trace.records.predictedTokens, found.tokens];
    const word = inForce.length ? this.app.now : this.app.word;
    const loss = found.losses[word] ?? NaN;
    if (before.join(" ") === after.join(" ")) return { fate: "vain", instead: "", loss };
    const aligned = align(before, after);
    const rivals = rivalForms(this.app.source!, base);
    const [place, rival] = [placesOf(aligned, before, after, rivals)[word] ?? -1, rivals[word]];
    const isPartner = aligned.partner[place] === word;
    const isKept = isPartner && aligned.isSame[place];
    const isThere = isPartner || isTurned(rival, after[place]);
    const isNeeded = rival ? isTurned(rival, after[place]) : !isKept;
    return { fate: isNeeded ? "needed" : "elsewhere", instead: isKept || !isThere ? "" : (after[place] ?? ""), loss };
  }

  /** The French tokens under changes that were tried. */
  written(changes: Change[]): string[] | undefined {
    return this.tried.get(keyOf(changes))?.tokens;
  }

  /** Ask about each of several things, until an answer fails or `keep` says true; tells whether nobody stopped it. */
  async each<T, R>(
    name: string,
    all: T[],
    ask: (one: T) => Promise<R>,
    keep: (answer: R, one: T) => boolean | void,
    delay = 0,
  ): Promise<boolean> {
    const number = ++this.number;
    for (const [done, one] of all.entries()) {
      this.progress = { name, done, of: all.length };
      // The page stays responsive between two decodings.
      await new Promise((ready) => setTimeout(ready, done ? 0 : delay));
      if (number !== this.number) return false;
      const answer = await ask(one).catch(() => null);
      if (number !== this.number) return false;
      this.isStopped ||= answer === null;
      if (answer === null || keep(answer, one)) break;
    }
    this.progress = null;
    return true;
  }

  /** Try several lists of changes, each next to all that are in force; tells whether nobody stopped it. */
  async try(name: string, all: Change[][], inForce = this.app.state.changes, delay = 0): Promise<boolean> {
    const { source, unchanged, answer } = this.app;
    if (!source?.isLive || !unchanged || !answer) return false;
    const due = all.map((one) => [...inForce, ...one]).filter((one) => !this.tried.has(keyOf(one)));
    const { text, from, to, decoding, prefix } = this.app.state;
    const keep = (found: Answer, changes: Change[]) => {
      const losses = lossesOf(source, inForce.length ? answer : unchanged, found);
      this.tried = new Map(this.tried).set(keyOf(changes), { tokens: found.trace.records.predictedTokens, losses });
    };
    return this.each(name, due, (changes) => source.ask({ text, from, to, decoding, prefix, changes }), keep, delay);
  }

  /** Cut each head in turn. */
  tryHeads(): Promise<boolean> {
    return this.try(
      "heads",
      (this.app.answer?.trace.heads() ?? []).map((one) => [cutHead(one)]),
    );
  }

  /** Hide each source word in turn; a recording has measured something like it. */
  async measureCosts(unchanged: Answer, delay = 0): Promise<void> {
    const { source } = this.app;
    if (!source || this.costs.length) return;
    if (source.isLive)
      return void (await this.try(
        "words",
        this.words.map((_, position) => [hide(position)]),
        [],
        delay,
      ));
    this.isStopped = true;
    if (!source.measures.includes("occlusion")) return;
    const { map, columns } = await source.measure("occlusion", unchanged.trace, 0);
    const words = columns.filter((word) => word !== "</s>");
    this.recorded = {
      words,
      costs: words.map((_, at) => Array.from({ length: map.rows }, (_, row) => map.data[row * map.columns + at] ?? NaN)),
    };
  }

  /** The source words that a French word needs most, the most needed first. */
  needs(word: number): { position: number; cost: number }[] {
    const all = this.costs
      .map((cost, position) => ({ position, cost: cost[word] ?? 0 }))
      .filter(({ cost }) => cost >= LEAST_LOSS)
      .sort((a, b) => b.cost - a.cost);
    const most = all[0]?.cost ?? 0;
    return all.filter(({ cost }) => cost >= LEAST_SHARE * most).slice(0, 3);
  }

  /** In how many French words the largest weight of a head of cross-attention names the word that is needed most. */
  score(place: HeadPlace): { named: number; of: number } | null {
    const { unchanged } = this.app;
    if (place.kind !== "cross" || !this.costs.length || !unchanged) return null;
    const weights = unchanged.trace.matrix(`${siteOf(place)}.weights`, place.head);
    if (!weights) return null;
    const rows = unchanged.trace.records.predictedTokens.flatMap((token, row) =>
      token.startsWith("<") || !this.needs(row).length ? [] : [row],
    );
    const most = (row: number) => argmax(rowOf(weights, row));
    return { named: rows.filter((row) => most(row) === this.needs(row)[0]?.position).length, of: rows.length };
  }
}

export const hide = (position: number): Change => ({ verb: "word", position });
export const cutHead = (place: HeadPlace): Change => ({ verb: "cut", place: { ...place, isEdge: false } });
export const cutLine = (place: HeadPlace, query: number, key: number): Change => ({
  verb: "cut",
  place: { ...place, isEdge: true, query, key },
});
