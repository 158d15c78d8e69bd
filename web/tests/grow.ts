/** Compare the growing model with PyTorch: `node grow.js FIXTURE…` writes a line of JSON for each. */

import { readFileSync } from "node:fs";
import { forward, isFixed, Numbers, type Form, type Sizes } from "../src/grow/model";
import { goBack, type Tape } from "../src/grow/operations";
import { Adam } from "../src/grow/training";

interface Fixture {
  sizes: Sizes;
  form: Form;
  source: number[];
  reads: number[];
  wanted: number[];
  factor: number;
  rate: number;
  weights: Record<string, number[]>;
  loss: number;
  probabilities: number[];
  gradients: Record<string, number[]>;
  /** The weights after each update. */
  updates: Record<string, number[]>[];
}

function compareOne(path: string) {
  const theirs: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const numbers = new Numbers(theirs.sizes);
  const wrong: string[] = [];
  const differences: Record<string, number> = {};
  const note = (name: string, ours: ArrayLike<number>, wanted: number[]) => {
    if (ours.length !== wanted.length) wrong.push(`${name} has ${ours.length} numbers, not ${wanted.length}`);
    // NaN must not pass as small.
    wanted.forEach((one, i) => {
      const difference = Math.abs(one - (ours[i] ?? NaN));
      differences[name] = Math.max(differences[name] ?? 0, difference >= 0 ? difference : Infinity);
    });
  };
  for (const name of Object.keys(theirs.weights)) if (!numbers.byName.has(name)) wrong.push(`${name} is unknown`);
  for (const [name, { data }] of numbers.byName) if (theirs.weights[name]) data.set(theirs.weights[name]);
  const adam = new Adam(numbers);
  theirs.updates.forEach((after, step) => {
    const tape: Tape = [];
    numbers.gradient.fill(0);
    const { loss, probabilities } = forward(numbers, theirs.form, theirs.source, theirs.reads, theirs.wanted, tape, theirs.factor);
    goBack(tape);
    for (const [name, { gradient }] of numbers.byName) if (isFixed(name, theirs.form)) gradient.fill(0);
    if (step === 0) {
      note("loss", [loss], [theirs.loss]);
      note("probabilities", probabilities.data, theirs.probabilities);
      for (const [name, gradient] of Object.entries(theirs.gradients)) note(`gradient of ${name}`, numbers.get(name).gradient, gradient);
    }
    adam.update(theirs.rate);
    for (const [name, values] of Object.entries(after)) note(`update ${step}: ${name}`, numbers.get(name).data, values);
  });
  return { differences, wrong };
}

for (const path of process.argv.slice(2)) console.log(JSON.stringify(compareOne(path)));
