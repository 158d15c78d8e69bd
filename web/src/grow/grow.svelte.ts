/** The trainings that a reader starts, one after another, in pauses between two pictures. */

import { itemAt } from "../model/items";
import { WHOLE, type Form } from "./model";
import { REMOVALS } from "./removals";
import { EVERY, Run, UPDATES } from "./training";

export const SEEDS = [1, 2, 3];
const SLICE_MS = 12;
const MOST_SECONDS = 60;
/** The pace is judged after so many updates, or so long. */
const TRIAL = 12;
const MOST_TRIAL_MS = 8000;

const ALL = { name: "the whole model", form: WHOLE };

export interface Experiment {
  name: string;
  form: Form;
  runs: Run[];
}

export class Grow {
  experiments = $state.raw<Experiment[]>([]);
  /** The run in training; null between trainings. */
  now = $state.raw<Run | null>(null);
  /** Counts the records, so that views follow a run as it trains. */
  records = $state(0);
  /** The seconds that one run would take, if they are too many. */
  slow = $state(0);
  isPatient = false;
  private isStopped = false;
  private waiting: Run[] = [];

  /** Train a form with every seed; -1 is the whole model. */
  start(removal: number): void {
    const { form, name } = removal < 0 ? ALL : itemAt(REMOVALS, removal);
    if (this.experiments.some((one) => one.form === form)) return;
    const runs = SEEDS.map((seed) => new Run(form, seed));
    this.experiments = [...this.experiments, { name: removal < 0 ? name : `the model without ${name}`, form, runs }];
    this.waiting.push(...runs);
    if (!this.now && !this.slow) void this.trainAll();
  }

  goOn(): void {
    this.isPatient = true;
    this.slow = 0;
    void this.trainAll();
  }

  stop(): void {
    this.isStopped = true;
  }

  private async trainAll(): Promise<void> {
    for (let run = this.waiting[0]; run && !this.slow && !this.isStopped; run = this.waiting[0]) {
      this.now = run;
      if (await this.train(run)) this.waiting.shift();
    }
    this.now = null;
  }

  /** Train one run; false if it was given up. */
  private async train(run: Run): Promise<boolean> {
    const work = run.train();
    let busy = 0;
    let seen = 0;
    while (!run.isDone) {
      await new Promise(requestAnimationFrame);
      if (this.isStopped) return false;
      const started = performance.now();
      while (performance.now() < started + SLICE_MS && !work.next().done);
      busy += performance.now() - started;
      const isJudged = run.steps < 2 * TRIAL && (run.steps >= TRIAL || busy > MOST_TRIAL_MS);
      const seconds = ((busy / 1000) * UPDATES) / Math.max(1, run.steps);
      if (isJudged && seconds > MOST_SECONDS && !this.isPatient) {
        run.forget();
        this.records++;
        this.slow = seconds;
        return false;
      }
      if (run.steps >= seen + EVERY || run.isDone) {
        seen = run.steps;
        this.records++;
      }
    }
    return true;
  }
}
