/** Changes as a reader says them. */

import type { Change, Place } from "../model/changes";
import { kindName, type Trace } from "../trace/trace";

/** Name what a change is about: an edge by the words that it joins, a head, or every head or layer. */
function placeName(place: Place, trace: Trace): string {
  const where = `${kindName(place)}, ${place.layer === null ? "every layer" : `layer ${place.layer}`}, ${place.head === null ? "every head" : `head ${place.head}`}`;
  if (!place.isEdge) return where;
  const name = (tokens: string[], at: number | null | undefined, all: string) =>
    at === null || at === undefined ? all : `“${tokens[at] ?? at}”`;
  return `${name(trace.rows(place), place.query, "every row")} → ${name(trace.columns(place), place.key, "every column")} in ${where}`;
}

/** Say what a change does to the model that made a trace. */
export function describe(change: Change, trace: Trace): string {
  const word = (position: number) => `“${trace.records.sourceTokens[position] ?? "?"}”`;
  switch (change.verb) {
    case "word":
      return `the word ${word(change.position)} is hidden`;
    case "move":
      return `${word(change.position)} as word ${change.to + 1} instead of ${change.position + 1}`;
    case "temperature":
      return `softmax at temperature ${change.value}`;
    case "no-scale":
      return "scores not divided by √d_k";
    case "no-mask":
      return "no look-ahead mask";
    case "force":
      return `forced to ${change.weight}: ${placeName(change.place, trace)}`;
    case "cut":
      return `cut: ${placeName(change.place, trace)}`;
    case "zero":
      return `set to 0: ${placeName(change.place, trace)}`;
    case "average":
      return `spread evenly: ${placeName(change.place, trace)}`;
  }
}
