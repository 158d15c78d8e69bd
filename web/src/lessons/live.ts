/** The live picture of a statement: a view of the page, with what to look at. */

import type { Statement } from "../state/data";
import { sceneOf, type Show, type View } from "../state/link";
import { parseHead, STAGES, type HeadPlace, type Stage } from "../trace/trace";

export interface Live {
  view: View;
  show: Show | "";
  isOpen: boolean;
  text: string;
  part: "encoder" | "decoder";
  kind: "self" | "cross";
  /** The head of the command, if it names one. */
  head: HeadPlace | null;
  stage: Stage;
}

/** Read what a statement shows; null if it shows nothing. */
export function liveOf({ live, sentence }: Pick<Statement, "live" | "sentence">): Live | null {
  const [name, place = "decoder.cross", stage] = live.split(" ");
  const scene = sceneOf(name);
  if (!scene || scene.view === "learn") return null;
  const head = parseHead(place);
  const [part, kind] = head ? [head.part, head.kind] : place.split(".");
  return {
    ...scene,
    text: sentence,
    part: part === "encoder" ? "encoder" : "decoder",
    kind: kind === "self" ? "self" : "cross",
    head,
    stage: STAGES.find((one) => one === stage) ?? "weights",
  };
}
