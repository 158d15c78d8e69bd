/** The state of the page as a link, so that every view can be reproduced. */

import { parseChange, writeChange, type Change } from "../model/changes";
import { GREEDY, type Decoding } from "../model/decode";
import { parseHead, STAGES, writeHead, type HeadPlace, type Stage } from "../trace/trace";

export const VIEWS = ["translate", "links", "head", "arithmetic", "heads", "what-if", "beyond", "lessons"] as const;
export type View = (typeof VIEWS)[number];

export interface State {
  view: View;
  text: string;
  source: number;
  head: HeadPlace | null;
  stage: Stage;
  /** The cell in view; null until one is chosen. */
  row: number | null;
  column: number | null;
  decoding: Decoding;
  prefix: number[];
  changes: Change[];
  lesson: string;
  screen: number;
}

export const START: State = {
  view: "translate",
  text: "",
  source: 0,
  head: null,
  stage: "weights",
  row: null,
  column: null,
  decoding: GREEDY,
  prefix: [],
  changes: [],
  lesson: "",
  screen: 0,
};

export function writeLink(state: State): string {
  const link = new URLSearchParams();
  const put = (name: string, value: string | number, usual: string | number) => {
    if (value !== usual) link.append(name, String(value));
  };
  const { decoding } = state;
  put("view", state.view, "");
  put("text", state.text, "");
  put("source", state.source, 0);
  if (state.head) put("head", writeHead(state.head), "");
  put("stage", state.stage, START.stage);
  if (state.row !== null) put("cell", state.column === null ? String(state.row) : `${state.row},${state.column}`, "");
  put("decode", decoding.method, "greedy");
  put("beam", decoding.beam, GREEDY.beam);
  put("temperature", decoding.temperature, 1);
  put("top-k", decoding.topK, 0);
  put("top-p", decoding.topP, 1);
  put("seed", decoding.seed, 1);
  put("prefix", state.prefix.join(","), "");
  for (const change of state.changes) link.append("change", writeChange(change));
  put("lesson", state.lesson, "");
  put("screen", state.screen, 0);
  return `#${link}`;
}

/** Read a link; whatever in it makes no sense is left at its start. */
export function readLink(hash: string, start: State = START): State {
  const link = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (name: string, usual: number, most = 1e6) => {
    const value = Number(link.get(name) ?? usual);
    return Number.isInteger(value) && value >= 0 && value <= most ? value : usual;
  };
  const share = (name: string, usual: number, least: number, most: number) => {
    const value = Number(link.get(name) ?? usual);
    return value >= least && value <= most ? value : usual;
  };
  const among = <T extends string>(name: string, all: readonly T[], usual: T) =>
    all.find((one) => one === link.get(name)) ?? usual;
  const [row, column] = link.get("cell")?.split(",").map(Number) ?? [];
  const isPlace = (value: number) => Number.isInteger(value) && value >= 0;
  const prefix = link.get("prefix") ? link.get("prefix")!.split(",").map(Number) : [];
  return {
    view: among("view", VIEWS, start.view),
    text: link.get("text") ?? start.text,
    source: whole("source", start.source),
    head: parseHead(link.get("head") ?? "") ?? start.head,
    stage: among("stage", STAGES, start.stage),
    row: isPlace(row) ? row : start.row,
    column: isPlace(column) ? column : start.column,
    decoding: {
      method: among("decode", ["greedy", "beam", "sample"] as const, "greedy"),
      beam: Math.max(2, whole("beam", GREEDY.beam, 12)),
      temperature: share("temperature", 1, 0.05, 5),
      topK: whole("top-k", 0),
      topP: share("top-p", 1, 0.05, 1),
      seed: whole("seed", 1, 2 ** 31),
    },
    prefix: prefix.every(isPlace) ? prefix : [],
    changes: link.getAll("change").flatMap((text) => parseChange(text) ?? []),
    lesson: link.get("lesson") ?? start.lesson,
    screen: whole("screen", start.screen),
  };
}
