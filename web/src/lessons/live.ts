/** The live picture of a statement: a view of the page, with what to look at. */

import type { Statement } from "../state/data";
import { VIEWS, type View } from "../state/link";
import { STAGES, type Stage } from "../trace/trace";

export interface Live {
  view: View;
  text: string;
  part: "encoder" | "decoder";
  kind: "self" | "cross";
  stage: Stage;
}

/** Read what a statement shows; null if it shows nothing. */
export function liveOf({ live, sentence }: Pick<Statement, "live" | "sentence">): Live | null {
  const [name, place = "decoder.cross", stage] = live.split(" ");
  const view = VIEWS.find((one) => one === name);
  if (!view || view === "lessons") return null;
  const [part, kind] = place.split(".");
  return {
    view,
    text: sentence,
    part: part === "encoder" ? "encoder" : "decoder",
    kind: kind === "self" ? "self" : "cross",
    stage: STAGES.find((one) => one === stage) ?? "weights",
  };
}
