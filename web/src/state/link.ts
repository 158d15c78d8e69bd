/** The state of the page as a link, so that every view can be reproduced. */

import { parseChange, writeChange, type Change } from "../model/changes";
import { GREEDY, type Decoding } from "../model/decode";
import { parseHead, STAGES, writeHead, type HeadPlace, type Stage } from "../trace/trace";

export const VIEWS = ["why", "look", "change", "learn"] as const;
export type View = (typeof VIEWS)[number];
/** Parts of views: of Why, Look inside, and Change. */
export const SHOWS = ["measures", "lines", "map", "heads", "words", "formula", "decoding"] as const;
export type Show = (typeof SHOWS)[number];

interface Scene {
  view: View;
  show: Show | "";
  /** Whether the arithmetic of the cell in view is open. */
  isOpen: boolean;
}
const OLD: Record<string, [View, (Show | "")?, boolean?]> = {
  translate: ["change", "decoding"],
  links: ["look", "lines"],
  head: ["look", "map"],
  arithmetic: ["look", "map", true],
  heads: ["look"],
  "what-if": ["change"],
  beyond: ["why", "measures"],
  lessons: ["learn"],
};

/** The view that a link names, also by the names of former pages. */
export function sceneOf(name: string): Scene | null {
  const now = VIEWS.find((one) => one === name);
  const [view, show = "", isOpen = false] = now ? [now] : (OLD[name] ?? []);
  return view ? { view, show, isOpen } : null;
}

export interface State extends Scene {
  /** Whether the page is shown to a room: in large letters, without what is not looked at. */
  isPresented: boolean;
  text: string;
  /** The codes of the languages, of a model that has several; empty for the usual ones. */
  from: string;
  to: string;
  source: number;
  head: HeadPlace | null;
  stage: Stage;
  /** The step of the arithmetic in view. */
  step: number;
  /** The French word that is asked about: also the row in view of a head of the decoder. Null until one is chosen. */
  word: number | null;
  /** The row in view of a head of the encoder, and the column. */
  row: number | null;
  column: number | null;
  decoding: Decoding;
  prefix: number[];
  changes: Change[];
  lesson: string;
  screen: number;
  /** The reader's part in a duel: the pronoun, the position of the word, and `told` once both are answered. */
  duel: string;
}

export const START: State = {
  view: "why",
  show: "",
  isOpen: false,
  isPresented: false,
  text: "",
  from: "",
  to: "",
  source: 0,
  head: null,
  stage: "weights",
  step: 1,
  word: null,
  row: null,
  column: null,
  decoding: GREEDY,
  prefix: [],
  changes: [],
  lesson: "",
  screen: 0,
  duel: "",
};

export function writeLink(state: State): string {
  const link = new URLSearchParams();
  const put = (name: string, value: string | number, usual: string | number) => {
    if (value !== usual) link.append(name, String(value));
  };
  const { decoding } = state;
  put("view", state.view, "");
  put("show", state.show, "");
  if (state.isOpen) put("open", 1, 0);
  if (state.isPresented) put("present", 1, 0);
  put("text", state.text, "");
  put("from", state.from, "");
  put("to", state.to, "");
  put("source", state.source, 0);
  if (state.head) put("head", writeHead(state.head), "");
  put("stage", state.stage, START.stage);
  put("step", state.step, START.step);
  const isOfEncoder = state.head?.part === "encoder";
  const row = isOfEncoder ? state.row : state.word;
  if (row !== null || state.column !== null) put("cell", [row ?? "", state.column].filter((one) => one !== null).join(), "");
  if (isOfEncoder && state.word !== null) put("word", state.word, "");
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
  put("duel", state.duel, "");
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
  const among = <T extends string>(name: string, all: readonly T[], usual: T) => all.find((one) => one === link.get(name)) ?? usual;
  const isPlace = (value: number | null): value is number => value !== null && Number.isInteger(value) && value >= 0;
  const [row = null, column = null] =
    link
      .get("cell")
      ?.split(",")
      .map((one) => (one ? Number(one) : null)) ?? [];
  const word = link.get("word") ? Number(link.get("word")) : null;
  const scene = sceneOf(link.get("view") ?? "") ?? start;
  const head = parseHead(link.get("head") ?? "") ?? start.head;
  const isOfEncoder = head?.part === "encoder";
  const chosen = isOfEncoder ? word : row;
  const prefix = link.get("prefix") ? link.get("prefix")!.split(",").map(Number) : [];
  return {
    view: scene.view,
    show: among("show", SHOWS, scene.show as Show),
    isOpen: link.has("open") || scene.isOpen,
    isPresented: link.has("present") || start.isPresented,
    text: link.get("text") ?? start.text,
    from: link.get("from") ?? start.from,
    to: link.get("to") ?? start.to,
    source: whole("source", start.source),
    head,
    stage: among("stage", STAGES, start.stage),
    step: whole("step", start.step),
    word: isPlace(chosen) ? chosen : start.word,
    row: isOfEncoder && isPlace(row) ? row : start.row,
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
    duel: link.get("duel") ?? start.duel,
  };
}
