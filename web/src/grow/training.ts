/** Training: batches, Adam, what is recorded of a run, and how the model is tested at its end. */

import { itemAt } from "../model/items";
import { randomNumbers } from "../model/random";
import { firstNumbers, forward, isFixed, Numbers, translate, type Form, type Pass } from "./model";
import { goBack, rowOf, type Matrix, type Tape } from "./operations";
import { END, FRESH, idOf, IT, LEARNED, SIZES, START, TARGET_WORDS, WATCHED, type Pair } from "./sentences";

export const UPDATES = 300;
/** Updates between two records. */
export const EVERY = 4;
export const MOST_WORDS = 20;
const BATCH = 10;
const RATE = 0.015;
const WARM_UP = 20;
const [IL, ELLE] = [idOf("il"), idOf("elle")];

/** The row whose next word is the pronoun. */
export const pronounRow = (pair: Pair) => pair.writes.findIndex((word) => word === IL || word === ELLE);

/** The pronoun that a pair writes. */
export const pronounWord = (pair: Pair) => itemAt(TARGET_WORDS, itemAt(pair.writes, pronounRow(pair)));

/** Adam: each number moves by the mean of its gradients over the root of their mean square. */
export class Adam {
  private step = 0;
  private readonly mean: Float64Array;
  private readonly square: Float64Array;

  constructor(private readonly numbers: Numbers) {
    this.mean = new Float64Array(numbers.all.length);
    this.square = new Float64Array(numbers.all.length);
  }

  update(rate: number, beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9): void {
    const { mean, square } = this;
    this.step++;
    const [correct1, correct2] = [1 - beta1 ** this.step, 1 - beta2 ** this.step];
    const [to, from] = [this.numbers.all, this.numbers.gradient];
    // `!`: numbers, gradients and both means are equally long.
    for (let i = 0; i < from.length; i++) {
      mean[i] = beta1 * mean[i]! + (1 - beta1) * from[i]!;
      square[i] = beta2 * square[i]! + (1 - beta2) * from[i]! * from[i]!;
      to[i]! -= (rate * mean[i]!) / correct1 / (Math.sqrt(square[i]! / correct2) + epsilon);
    }
  }
}

/** Run a model up to the row of the pronoun, with the words before it as the translation has them. */
export function toPronoun(numbers: Numbers, form: Form, pair: Pair, tape?: Tape): Pass & { next: Float64Array } {
  const row = pronounRow(pair);
  // Without the mask a row sees the words after it, which nobody has when translating.
  const reads = pair.reads.slice(0, row + 1);
  const wanted = reads.map((_, t) => (t === row ? itemAt(pair.writes, row) : -1));
  const pass = forward(numbers, form, pair.source, reads, wanted, tape);
  return { ...pass, next: rowOf(pass.probabilities, row, pass.probabilities.data) };
}

/** One training from its first numbers to its test. */
export class Run {
  /** The numbers at each record, the first before any update. */
  readonly records: Float32Array[] = [];
  /** Of each update: −log p of a word, in nats, on the sentences that it was made from. */
  readonly losses: number[] = [];
  /** For each watched pair and record, the share of *elle* among *il* and *elle*. */
  readonly shares: number[][] = WATCHED.map(() => []);
  /** For each watched pair and record, what *it* looks at in each head of the encoder, then the pronoun in each of cross-attention. */
  readonly maps: Float32Array[][][] = WATCHED.map(() => []);
  /** The shares of the new sentences that are right, and of their pronouns. */
  right = NaN;
  rightPronouns = NaN;
  isDone = false;

  constructor(
    readonly form: Form,
    readonly seed: number,
  ) {}

  get steps(): number {
    return this.losses.length;
  }

  /** The loss of the last ten updates. */
  get lastLoss(): number {
    return this.losses.slice(-10).reduce((sum, loss) => sum + loss / 10, 0);
  }

  /** Begin again. */
  forget(): void {
    for (const one of [this.records, this.losses, ...this.shares, ...this.maps]) one.length = 0;
  }

  at(record: number): Numbers {
    return new Numbers(SIZES, this.records[Math.max(0, Math.min(record, this.records.length - 1))]);
  }

  /** The update from which on a watched pair has its pronoun; Infinity if it never has it for good. */
  momentOf(pair: number): number {
    const isElle = itemAt(WATCHED, pair).writes.includes(ELLE);
    const shares = itemAt(this.shares, pair);
    const lastWrong = shares.findLastIndex((share) => !(isElle ? share > 0.5 : share < 0.5));
    return lastWrong === shares.length - 1 ? Infinity : (lastWrong + 1) * EVERY;
  }

  /** Train, one sentence between two pauses. */
  *train(): Generator<void> {
    const { form, seed } = this;
    const draw = randomNumbers(seed);
    const numbers = firstNumbers(SIZES, form, draw);
    const adam = new Adam(numbers);
    const tape: Tape = [];
    let order: Pair[] = [];
    this.record(numbers);
    for (let step = 1; step <= UPDATES; step++) {
      if (order.length < BATCH) order = shuffled(LEARNED, draw);
      const batch = order.splice(0, BATCH);
      const words = batch.reduce((total, pair) => total + pair.writes.length, 0);
      let loss = 0;
      numbers.gradient.fill(0);
      for (const pair of batch) {
        loss += forward(numbers, form, pair.source, pair.reads, pair.writes, tape, 1 / words).loss;
        goBack(tape);
        yield;
      }
      for (const [name, { gradient }] of numbers.byName) if (isFixed(name, form)) gradient.fill(0);
      adam.update(RATE * Math.min(step / WARM_UP, (UPDATES - step) / (UPDATES - WARM_UP)));
      this.losses.push(loss);
      if (step % EVERY === 0) this.record(numbers);
    }
    let [right, pronouns] = [0, 0];
    for (const pair of FRESH) {
      const written = translate(numbers, form, pair.source, START, END, MOST_WORDS);
      if (String([...written, END]) === String(pair.writes)) right++;
      const { next } = toPronoun(numbers, form, pair);
      if (next.indexOf(Math.max(...next)) === pair.writes[pronounRow(pair)]) pronouns++;
      yield;
    }
    this.right = right / FRESH.length;
    this.rightPronouns = pronouns / FRESH.length;
    this.isDone = true;
  }

  private record(numbers: Numbers): void {
    this.records.push(new Float32Array(numbers.all));
    WATCHED.forEach((pair, i) => {
      const { next, encoderSelf, cross } = toPronoun(numbers, this.form, pair);
      const [il, elle] = [itemAt(next, IL), itemAt(next, ELLE)];
      itemAt(this.shares, i).push(elle / (il + elle));
      const rows = (maps: Matrix[], row: number) => maps.map((map) => new Float32Array(rowOf(map, row, map.data)));
      itemAt(this.maps, i).push([...rows(encoderSelf.weights, pair.source.indexOf(IT)), ...rows(cross.weights, pronounRow(pair))]);
    });
  }
}

function shuffled<T>(all: T[], draw: () => number): T[] {
  const order = [...all];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(draw() * (i + 1));
    [order[i], order[j]] = [itemAt(order, j), itemAt(order, i)];
  }
  return order;
}
