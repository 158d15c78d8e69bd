/** The data that Python put into the page. */

import type { CarriedModel } from "../model/config";
import { PageModel } from "../trace/page_model";
import { Problem, type Source } from "../trace/source";
import { TraceFile, type CarriedTrace } from "../trace/trace_file";

export interface Statement {
  place: string;
  says: string;
  expect: string;
  command: string;
  shows: string[];
  number: string;
  errs: string;
  vary: string;
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
  lessons: Walk[];
  start: Record<string, string>;
  remarks: string[];
}

export interface Data {
  sources: Source[];
  lessons: Walk[];
  start: Record<string, string>;
  remarks: string[];
}

export function readData(): Data {
  const element = document.getElementById("pellucid-data");
  if (!element) throw new Problem("This page holds no model and no trace. Make one: pellucid look demo TEXT --html FILE");
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
  ])
    try {
      sources.push(make());
    } catch (error) {
      remarks.push(error instanceof Error ? error.message : String(error));
    }
  return { sources, lessons: carried.lessons, start: carried.start, remarks };
}
