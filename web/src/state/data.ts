/** The data that Python put into the page. */

import type { CarriedModel } from "../model/config";
import { OtherModel } from "../trace/other_model";
import { PageModel } from "../trace/page_model";
import { ServiceModel, type CarriedService } from "../trace/service_model";
import { Problem, type Source } from "../trace/source";
import { TraceFile, type CarriedTrace } from "../trace/trace_file";

export interface Statement {
  place: string;
  says: string;
  expect: string;
  command: string;
  number: string;
  /** What the model writes without the line of the live picture. */
  cut?: string;
  errs: string;
  vary: string;
  /** The sentence to show with it. */
  sentence: string;
  /** What to show, as `VIEW`, `VIEW PART.KIND` or `VIEW PART.LAYER.KIND.HEAD STAGE`; empty if nothing. */
  live: string;
  /** Why nothing is shown, if there would be something. */
  without: string;
  /** Lines of what the command writes. */
  output: string[];
  /** The machine on which the output was measured; empty if every machine writes the same. */
  measured_on: string;
}

export interface Walk {
  name: string;
  title: string;
  about: string;
  statements: Statement[];
}

interface Carried {
  models: CarriedModel[];
  traces: CarriedTrace[];
  services?: CarriedService[];
  lessons: Walk[];
  duel: { others: CarriedModel[]; genders: Record<string, string> } | null;
  start: Record<string, string>;
  remarks: string[];
  /** Why there are no lessons. */
  without_lessons: string;
}

export interface Data extends Pick<Carried, "lessons" | "start" | "remarks"> {
  sources: Source[];
  /** Other models to ask, and the French gender of English nouns, `f` or `m`; null if the page has no duel. */
  duel: { others: OtherModel[]; genders: Record<string, string> } | null;
  withoutLessons: string;
}

export function readData(): Data {
  const element = document.getElementById("pellucid-data");
  if (!element) throw new Problem("This page holds no model and no trace. Make one: pellucid look demo TEXT -o page.html");
  let carried: Carried;
  try {
    carried = JSON.parse(element.textContent ?? "");
  } catch {
    throw new Problem("The data in this page is incomplete: the file was cut off. Copy it again.");
  }
  const sources: Source[] = [];
  const remarks = [...carried.remarks];
  for (const make of [
    ...carried.models.map((one) => () => new PageModel(one)),
    ...carried.traces.map((one) => () => new TraceFile(one)),
    ...(carried.services ?? []).map((one) => () => new ServiceModel(one)),
  ])
    try {
      sources.push(make());
    } catch (error) {
      remarks.push(error instanceof Error ? error.message : String(error));
    }
  const duel = carried.duel && { ...carried.duel, others: carried.duel.others.map((one) => new OtherModel(one)) };
  return { sources, lessons: carried.lessons, duel, start: carried.start, remarks, withoutLessons: carried.without_lessons };
}
