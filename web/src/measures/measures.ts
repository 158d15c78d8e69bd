/** The measures of a sentence: decoder rows by source tokens, as `pellucid look --measure` has them. */

import { itemAt } from "../model/items";
import { logProbability, row, type Tensor } from "../model/tensor";
import type { Transformer } from "../model/transformer";
import type { Trace } from "../trace/trace";
import { Apart, matrix, norm, type Matrix } from "./apart";
import { alti, meanWeights, rollout } from "./through_layers";
import { zeroing } from "./zeroing";

export interface Measure {
  /** As after `--measure`. */
  name: string;
  title: string;
  /** Whether it is of one layer's cross-attention, or of everything from the words on. */
  isOfLayer?: boolean;
  /** Whether the page cannot compute it itself: it comes with a recording. */
  isElsewhere?: boolean;
  meaning: string;
  /** Whether negative numbers have a meaning. */
  isSigned?: boolean;
  /** How far to trust it, in a line; true of every model and sentence. */
  trust: string;
}

export const MEASURES: readonly Measure[] = [
  {
    name: "weights",
    title: "Weights",
    isOfLayer: true,
    meaning: "How much the heads look at each word, on average.",
    trust:
      "Exact, but not importance: a prediction may depend on a word that no head of this layer looks at, through the words that read it.",
  },
  {
    name: "norms",
    title: "Norms",
    isOfLayer: true,
    meaning: "How much each word adds: the length of weight × value, all heads together.",
    trust: "Sees that a large weight on a short vector brings little; two long vectors may still cancel.",
  },
  {
    name: "residual-norms",
    title: "Norms with residual",
    isOfLayer: true,
    meaning: "The length of what each word has in the result, after [residual connection] and norm.",
    trust: "Counts the [residual connection], but not the [feed-forward network].",
  },
  {
    name: "value-zeroing",
    title: "Value zeroing",
    isOfLayer: true,
    meaning: "How far the layer’s result turns when this word contributes nothing, as a share of all words.",
    trust: "Counts the whole layer; not what later layers or the prediction would miss.",
  },
  {
    name: "rollout",
    title: "Rollout",
    meaning: "Weights multiplied through all layers, back to the words.",
    trust: "That half of each layer bypasses attention is an assumption, not a measurement.",
  },
  {
    name: "alti",
    title: "ALTI+",
    meaning: "The share of each word in the row’s vector, followed back through all layers.",
    trust: "About the vector, not the choice of a word: a word may have a large share, and the prediction may lose nothing without it.",
  },
  {
    name: "gradients",
    title: "Gradients",
    isElsewhere: true,
    meaning: "Weights times the gradient of the predicted word’s logit, carried through the layers.",
    trust: "The effect of a small change of weights, not of a large one; what speaks against the word is dropped.",
  },
  {
    name: "occlusion",
    title: "Occlusion",
    isSigned: true,
    meaning: "How many times less likely the written word becomes when this word is left out.",
    trust: "The model’s real prediction, for a sentence it may never have met; if two words say the same, leaving one out changes little.",
  },
];

export const LEFT_OUT =
  "Gradients and integrated gradients are left out: they need a backward pass, which this page does not have. " +
  "The command below has them.";

/** What is measured: a trace of a model, and a layer of the decoder. */
export interface Asked {
  model: Transformer;
  trace: Trace;
  layer: number;
  /** Run a source and the trace's target, and keep every result. */
  replay: (source: number[]) => Map<string, Tensor>;
}

/** Measure one map, rows by source tokens. */
export async function measure(name: string, asked: Asked): Promise<Matrix> {
  const { model, layer } = asked;
  const { arrays } = asked.trace;
  const site = `decoder.${layer}.cross`;
  switch (name) {
    case "weights":
      return meanWeights(arrays.get(`${site}.weights`)!);
    case "norms":
      return lengths(new Apart(model, arrays, site), (one, r) => one.bring(r));
    case "residual-norms":
      return lengths(new Apart(model, arrays, site), (one, r) => one.parts(r));
    case "value-zeroing":
      return zeroing(model, arrays, layer);
    case "rollout":
      return rollout(model, arrays);
    case "alti":
      return alti(model, arrays);
    default:
      return occlusion(asked);
  }
}

function lengths(attention: Apart, parts: (one: Apart, r: number) => Float64Array[]): Matrix {
  const found = matrix(attention.numRows, attention.numKeys);
  for (let r = 0; r < attention.numRows; r++)
    parts(attention, r)
      .slice(0, attention.numKeys)
      .forEach((part, m) => (found.data[r * attention.numKeys + m] = norm(part)));
  return found;
}

/** Li et al. 2016: the target's log-probabilities, less those without each source word. */
async function occlusion({ trace, replay }: Asked): Promise<Matrix> {
  const { sourceIds, predictedIds: ids } = trace.records;
  const logs = (arrays: Map<string, Tensor>) => {
    const logits = arrays.get("decoder.logits")!;
    return ids.map((id, t) => logProbability(row(logits, t), id));
  };
  const before = logs(trace.arrays);
  const found = matrix(ids.length, sourceIds.length);
  for (let m = 0; m < sourceIds.length; m++) {
    const after = logs(replay(sourceIds.filter((_, place) => place !== m)));
    after.forEach((log, t) => (found.data[t * found.columns + m] = itemAt(before, t) - log));
    // The page stays responsive between the words.
    if (m % 4 === 3) await new Promise((done) => setTimeout(done));
  }
  return found;
}
