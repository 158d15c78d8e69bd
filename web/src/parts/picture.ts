/** What a picture of a head is given. */

import type { Snippet } from "svelte";
import type { App } from "../state/app.svelte";
import type { Fate } from "../state/verdicts.svelte";
import type { Answer } from "../trace/source";

export interface Picture {
  app: App;
  answer: Answer;
  fateOf: (row: number, column: number) => Fate | undefined;
  onpoint: (row: number, column: number) => void;
  onopen: () => void;
  /** What stands below it. */
  below: Snippet;
}
