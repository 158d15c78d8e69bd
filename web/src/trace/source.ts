/**
 * The one door to a model. A view asks a `Source` and gets an `Answer`; it never knows whether the
 * page computed it, a file held it, or a service sent it.
 */

import type { Change } from "../model/changes";
import type { CarriedModel } from "../model/config";
import type { Candidate, Decoding, Hypothesis } from "../model/decode";
import type { WordTokenizer } from "../model/tokenizer";
import type { Transformer } from "../model/transformer";
import type { Matrix } from "../measures/apart";
import type { Notes } from "../notes/notes";
import type { HeadPlace, Trace } from "./trace";

export interface Question {
  text: string;
  decoding: Decoding;
  /** Target ids to begin with. */
  prefix: number[];
  changes: Change[];
  /** The languages, for a source that has several. */
  from?: string;
  to?: string;
  /** The target to replay instead of a decoded one, `</s>` included. */
  target?: number[];
  /** Is called with the text so far, by a source that writes it piece by piece. */
  written?: (text: string) => void;
}

export interface Answer {
  /** The line as the model reads it: without edges, in known characters. */
  text: string;
  trace: Trace;
  hypotheses: Hypothesis[];
  tree: Candidate[][];
  notes: Notes;
  milliseconds: number;
  /** A check that failed, in a sentence. */
  remark?: string;
}

export interface Source {
  readonly name: string;
  /** The model as a command names it; empty if that is not known. */
  readonly command: string;
  readonly languages: Languages;
  /** The languages to choose from, of a model that has several: the names by their codes. */
  readonly choices?: Choices;
  readonly hash: string;
  /** Whether it answers questions about new sentences. */
  readonly isLive: boolean;
  /** The head that learned word links from given ones, if there is one. */
  readonly taught: HeadPlace | null;
  /** What the source is, in a few words. */
  readonly about: string;
  /** The model's own numbers, for the arithmetic; null if they are not here. */
  readonly model: { carried: CarriedModel; transformer: Transformer; tokenizer: WordTokenizer } | null;
  /** The other genders or numbers of a target word, by ids. */
  readonly rivals?: Record<string, number[]>;
  /** The target token of an id; only a live source has a vocabulary. */
  token(id: number): string;
  /** The text of target ids. */
  text(ids: number[]): string;
  /** Whether it certainly has all words of a text. */
  reads(text: string): boolean;
  /** Known words that are most like one that it does not know, and what else to say about it. */
  closeTo?(word: string): { others: string[]; hint: string };
  /** The words that it knows, if the page has them. */
  readonly words?: string[];
  ask(question: Question): Promise<Answer>;
  /** The measures that it can make of a trace, by the names of `--measure`. */
  readonly measures: readonly string[];
  /** Measure decoder rows by source words, in a layer if the measure is of one. */
  measure(name: string, trace: Trace, layer: number): Promise<Measured>;
  /** Whether tokens are whole words, or pieces of words. */
  readonly unit: "words" | "pieces";
  /** Whether what is typed leaves the page. */
  readonly isRemote?: boolean;
  /** Whether an answer has all arrays of a head's layer; always, unless a source says otherwise. */
  hasAll?(answer: Answer, place: HeadPlace): boolean;
  /** Fetch all arrays of a head's layer. */
  load?(question: Question, answer: Answer, place: HeadPlace): Promise<Answer>;
}

/** A measure's map, and the labels of its columns. */
export interface Measured {
  map: Matrix;
  columns: string[];
  /** The layer, or null for a measure of the whole. */
  layer: number | null;
}

/** Codes of languages; empty if unknown. */
export interface Languages {
  source: string;
  target: string;
}

export interface Choices {
  names: Record<string, string>;
  /** Whether the source's language is to be chosen too. */
  has_source: boolean;
}

/** The languages of a question: those that the reader chose and the source has, else its usual ones. */
export function languagesOf({ languages, choices }: Source, { from = "", to = "" }: { from?: string; to?: string }): Languages {
  const pick = (code: string, usual: string) => (choices && Object.hasOwn(choices.names, code) ? code : usual);
  return { source: choices?.has_source ? pick(from, languages.source) : languages.source, target: pick(to, languages.target) };
}

/** A message for the reader: what is wrong, and what to do. */
export class Problem extends Error {}
