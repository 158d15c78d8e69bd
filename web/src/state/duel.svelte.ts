/** The duel: the reader predicts a pronoun and the English word that decides it, and the page finds out who is right. */

import { joinWords, plain, splitWords } from "../model/tokenizer";
import { itemAt } from "../model/items";
import { dot, row, sum } from "../model/tensor";
import { OtherModel } from "../trace/other_model";
import type { Answer, Source } from "../trace/source";
import { siteOf } from "../trace/trace";
import type { Data } from "./data";
import type { State } from "./link";
import { pronounIn, pronounOf, pronounPlace, SOURCE_PRONOUN } from "./rivals";
import { hide, type Asked, type Verdicts } from "./verdicts.svelte";

/** The most words and signs of a sentence: each of them is hidden, taken out and exchanged. */
const LONGEST = 24;
/** How many words are tried in place of one, and how many are put between two. */
const [ALIKE, INSERTED] = [6, 8];
const WORD = /^\p{L}/u;
const OTHER_GENDER: Record<string, string> = { f: "m", m: "f" };

export const PLAYERS = ["You", "The nearest noun", "The largest weight", "A word attends most to itself"];

export const DUELS = [
  "The pizza came out of the oven and it tasted good.",
  "The dog ate the soup because it was hungry.",
  "The cake was next to the soup and it was cold.",
  "The baby ate the cake because it was good.",
  "The car was behind the bus because it was slow.",
  "The horse saw the cow and it was hungry.",
];

/** A prediction: the position of the deciding word, and the pronoun; −1 and "" if there is none. */
interface Guess {
  word: number;
  pronoun: string;
}

/** For each player, whether word and pronoun were right; null if it predicts none. */
interface Round {
  text: string;
  isWord: boolean[];
  isPronoun: (boolean | null)[];
}

/** A sentence with one word out, in or exchanged, the position of the word, and what to say of it. */
interface Edit {
  text: string;
  at: number;
  verb: "out" | "in" | "exchanged";
  word: string;
  other: string;
}

/** What a duel needs of the page besides: what it carries for duels, the words hidden so far, and its link. */
interface Played extends Asked {
  readonly data: Pick<Data, "duel">;
  readonly verdicts: Verdicts;
  set(change: Partial<State>): void;
}

export class Duel {
  /** Rounds of this visit: each sentence counts once. */
  rounds = $state.raw<Round[]>([]);
  /** The first change that turns the pronoun, with the French after it. */
  found = $state.raw<(Edit & { french: string }) | null>(null);
  /** How many changes were tried. */
  numTried = $state(0);
  /** What is going on: words are hidden, changes are tried, or the end, reached or not. */
  phase = $state<"" | "hiding" | "changing" | "done" | "stopped">("");
  /** The answer that was looked at, and the text that the reader has predicted. */
  private about: Answer | null = null;
  private predicted = "";

  constructor(private readonly app: Played) {}

  get guess(): Guess & { isTold: boolean } {
    const [pronoun = "", word = "", told] = this.app.state.duel.split(",");
    const isWord = /^\d+$/.test(word) && Number(word) < this.words.length;
    return {
      pronoun,
      word: isWord ? Number(word) : -1,
      isTold: told === "told" && isWord && Boolean(this.written?.pair.includes(pronoun)),
    };
  }

  /** The English words and signs, without the end. */
  get words(): string[] {
    return this.app.unchanged?.trace.records.sourceTokens.slice(0, -1) ?? [];
  }

  /** The pronoun that the model writes, and its pair. */
  get written(): ReturnType<typeof pronounOf> {
    return pronounIn(this.app.unchanged?.trace.records.predictedTokens ?? []);
  }

  /** Why there is no duel about the sentence, in a sentence; empty if there is one. */
  get refusal(): string {
    const { app, words } = this;
    if (app.unchanged?.notes.missing.length)
      return "There is no duel about a sentence with words that the model does not know. Exchange them.";
    if (words.length > LONGEST)
      return `A duel takes at most ${LONGEST} words and signs, but this sentence has ${words.length}. Shorten it.`;
    if (!words.some((one) => SOURCE_PRONOUN.test(one)))
      return "This sentence has no pronoun such as it, so there is nothing to predict. Add one.";
    return this.written
      ? ""
      : "The model writes no pronoun such as il or elle for this sentence, so there is nothing to predict. Try another one.";
  }

  /** The pronoun that the model writes without a word; undefined if that was not tried. */
  without(position: number): string | undefined {
    const tokens = this.app.verdicts.written([hide(position)]);
    return tokens && (pronounIn(tokens)?.pronoun ?? "");
  }

  /** The words without which the model writes the other pronoun; if there are none, the one whose change turns it. */
  get deciding(): number[] {
    const hidden = [...this.words.keys()].filter((at) => this.written && this.without(at) === this.written.other);
    return hidden.length || !this.found || this.found.verb === "in" ? hidden : [this.found.at];
  }

  /** Predict, and have it judged. */
  answer(): void {
    this.predicted = this.app.state.text;
    this.app.set({ duel: `${this.app.state.duel.split(",").slice(0, 2).join()},told` });
  }

  /** Find out what decides: hide each word, then look for the smallest change that turns the pronoun. */
  async judge(answer: Answer, isAgain = false): Promise<void> {
    const { verdicts, source } = this.app;
    if ((this.about === answer && !isAgain) || !source?.model || !this.written) return;
    [this.about, this.found, this.numTried, this.phase] = [answer, null, 0, "hiding"];
    const { other } = this.written;
    const isHere = () => this.about === answer && this.app.unchanged === answer;
    const isHidden = await verdicts.try(
      "duel",
      this.words.map((_, at) => [hide(at)]),
      [],
    );
    if (!isHere()) return;
    if (!isHidden) return void (this.phase = "stopped");
    this.count(answer);
    this.phase = "changing";
    // Only the words are wanted, which takes half the time of an answer.
    const model = new OtherModel(source.model.carried, source.model.transformer);
    const all = edits(source, answer.text, this.app.data.duel?.genders ?? {});
    const isDone = await verdicts.each(
      "duel",
      all,
      ({ text }) => model.write(text),
      (french, edit) => {
        this.numTried++;
        const isTurned = pronounIn(splitWords(french))?.pronoun === other;
        if (isTurned) this.found = { ...edit, french };
        return isTurned;
      },
    );
    if (!isHere()) return;
    this.phase = isDone ? "done" : "stopped";
    this.count(answer);
  }

  /** Keep the score of what was predicted, once it is known which words decide. */
  private count(answer: Answer): void {
    const { predicted } = this;
    if (!this.deciding.length || predicted !== this.app.state.text || this.rounds.some(({ text }) => text === predicted)) return;
    const players = [this.guess, ...this.rules(answer)];
    const isWord = players.map(({ word }) => this.deciding.includes(word));
    this.rounds = [
      ...this.rounds,
      { text: predicted, isWord, isPronoun: players.map(({ pronoun }) => (pronoun ? pronoun === this.written?.pronoun : null)) },
    ];
  }

  /** What three rules of thumb predict. */
  private rules({ trace }: Answer): Guess[] {
    const { words, app } = this;
    const genders = app.data.duel?.genders ?? {};
    const pronoun = words.findIndex((one) => SOURCE_PRONOUN.test(one));
    const noun = words.findLastIndex((one, at) => at < pronoun && one.toLowerCase() in genders);
    const line = pronounPlace(trace.records.predictedTokens);
    const heads = trace
      .heads()
      .filter(({ kind }) => kind === "cross")
      .map((one) => row(trace.matrix(`${siteOf(one)}.weights`, one.head)!, line));
    const sums = words.map((one, at) => (WORD.test(one) ? sum(heads.map((weights) => itemAt(weights, at))) : 0));
    const gender = noun < 0 ? -1 : Number(genders[itemAt(words, noun).toLowerCase()] === "f");
    return [
      { word: noun, pronoun: this.written?.pair[gender] ?? "" },
      ...[sums.indexOf(Math.max(...sums)), pronoun].map((word) => ({ word, pronoun: "" })),
    ];
  }
}

/** All sentences to try: one word exchanged, the words that are most alike to the model first; one word out; one word in. */
function edits(source: Source, text: string, genders: Record<string, string>): Edit[] {
  const { tokenizer, transformer, carried } = source.model!;
  const { words, ids } = tokenizer.encodeSource(text);
  const known = carried.source_vocabulary.flatMap((word, id) => (WORD.test(word) ? [{ word, id }] : []));
  const frequent = known.filter(({ word }) => !isUpper(word) && !SOURCE_PRONOUN.test(word)).slice(0, INSERTED);
  const wordAt = (at: number) => plain(itemAt(words, at));
  const places = [...words.keys()].filter((at) => WORD.test(wordAt(at)) && !/^(it|they|them)$/i.test(wordAt(at)));
  const edit = (verb: Edit["verb"], at: number, numOut: number, put: string[]): Edit => {
    const word = wordAt(at);
    return {
      text: joinWords([
        ...words.slice(0, at),
        ...put.map((one) => (numOut ? itemAt(words, at).replace(word, one) : one)),
        ...words.slice(at + numOut),
      ]),
      at,
      verb,
      word,
      other: put[0] ?? "",
    };
  };
  const genderOf = (word: string) => genders[word.toLowerCase()];
  const table = transformer.embedding("encoder");
  const size = (a: Float32Array) => Math.sqrt(dot(a, a));
  const alike = places.flatMap((at) => {
    const word = wordAt(at);
    const own = row(table, itemAt(ids, at));
    // Instead of a noun, nouns of the other gender, no plurals for a singular; instead of another word, no nouns.
    const other = OTHER_GENDER[genderOf(word) ?? ""];
    const isLike = (one: string) =>
      SOURCE_PRONOUN.test(one) === SOURCE_PRONOUN.test(word) &&
      isUpper(one) === isUpper(word) &&
      genderOf(one) === other &&
      (!other || one.endsWith("s") === word.endsWith("s"));
    return known
      .filter((one) => one.id !== ids[at] && isLike(one.word))
      .map((one) => ({ at, word: one.word, likeness: dot(own, row(table, one.id)) / size(own) / size(row(table, one.id)) }))
      .sort((a, b) => b.likeness - a.likeness)
      .slice(0, ALIKE);
  });
  return [
    ...alike.sort((a, b) => b.likeness - a.likeness).map(({ at, word }) => edit("exchanged", at, 1, [word])),
    ...places.map((at) => edit("out", at, 1, [])),
    ...places.flatMap((at) => frequent.map(({ word }) => edit("in", at, 0, [word]))),
  ];
}

const isUpper = (word: string) => word !== word.toLowerCase();
