/** The live picture of a statement: a view of the page, with what to look at. */

import type { Statement } from "../state/data";
import { sceneOf, SHOWS, START, type State, type View } from "../state/link";
import { parseHead, STAGES, type HeadPlace, type Trace } from "../trace/trace";

export interface Live {
  view: View;
  /** The state of the page, as far as it needs no answer. */
  scene: Partial<State>;
  part: string;
  kind: string;
  /** The head of the packaged model, if one is named, and the words of the row and of the column. */
  head: HeadPlace | null;
  row: string;
  column: string;
}

/** Read what a statement shows; null if it shows nothing. */
export function liveOf({ live, sentence }: Pick<Statement, "live" | "sentence">): Live | null {
  const [name = "", place = "", ...rest] = live.split(" ");
  const scene = sceneOf(name);
  if (!scene || scene.view === "learn") return null;
  const [, where = "decoder.cross", row = "", column = ""] = /^([^:]+)(?::(.+?)(?:>(.+))?)?$/.exec(place) ?? [];
  const [part = "", kind = ""] = where.split(".").filter((one) => !/^\d+$/.test(one));
  return {
    view: scene.view,
    scene: {
      show: SHOWS.find((one) => rest.includes(one)) ?? scene.show,
      isOpen: scene.isOpen,
      text: sentence,
      stage: STAGES.find((one) => rest.includes(one)) ?? "weights",
      step: Number(rest.find((one) => /^\d+$/.test(one)) ?? START.step),
      ...{ changes: [], prefix: [], head: null, word: null, row: null, column: null },
    },
    part,
    kind,
    head: parseHead(where),
    row,
    column,
  };
}

/** The head, row and column to set, once the sentence has an answer. */
export function settle({ row, column }: Live, head: HeadPlace, trace: Trace): Partial<State> {
  const { sourceTokens, predictedTokens } = trace.records;
  const find = (tokens: string[], word: string) => (tokens.includes(word) ? tokens.indexOf(word) : null);
  const isOfEncoder = head.part === "encoder";
  return {
    head,
    [isOfEncoder ? "row" : "word"]: find(isOfEncoder ? sourceTokens : predictedTokens, row),
    column: find(trace.columns(head), column),
  };
}

/** The sentence of a command to try next that looks into the packaged model; empty for others. */
export const sentenceToTry = (vary: string) => /^pellucid (?:look|why) demo "([^"]+)"/.exec(vary)?.[1] ?? "";
