/** Arrays of float32 and the few operations that a Transformer needs. */

export interface Tensor {
  shape: number[];
  data: Float32Array;
}

export function zeros(...shape: number[]): Tensor {
  return { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) };
}

/** Multiply rows (L, D) by a stored weight (out, D): (L, out). Sums are in double precision. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const [rows, width] = x.shape;
  const out = weight.shape[0];
  const result = zeros(rows, out);
  const { data: w } = weight;
  const from = x.data;
  const { data } = result;
  for (let row = 0; row < rows; row++) {
    const vector = from.subarray(row * width, (row + 1) * width);
    for (let column = 0; column < out; column += 4) {
      // Four sums at a time: none waits for the one before it. The last four may repeat some.
      const into = row * out + Math.max(0, Math.min(column, out - 4));
      const at = (into - row * out) * width;
      let [a, b, c, d] = [0, 0, 0, 0];
      if (bias) [a, b, c, d] = bias.data.subarray(into - row * out);
      for (let i = 0; i < width; i++) {
        const x = vector[i];
        a += x * w[at + i];
        b += x * w[at + width + i];
        c += x * w[at + 2 * width + i];
        d += x * w[at + 3 * width + i];
      }
      [data[into], data[into + 1], data[into + 2], data[into + 3]] = [a, b, c, d];
    }
  }
  return result;
}

export function add(a: Tensor, b: Tensor): Tensor {
  const result = zeros(...a.shape);
  for (let i = 0; i < a.data.length; i++) result.data[i] = a.data[i] + b.data[i];
  return result;
}

export interface Moments {
  mean: number;
  variance: number;
}

/** Mean and population variance of a vector. */
export function moments(vector: ArrayLike<number>): Moments {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i];
  const mean = sum / vector.length;
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += (vector[i] - mean) ** 2;
  return { mean, variance: squares / vector.length };
}

export function layerNorm(x: Tensor, gain: Tensor, bias: Tensor, epsilon: number): Tensor {
  const [rows, width] = x.shape;
  const result = zeros(rows, width);
  for (let row = 0; row < rows; row++) {
    const from = row * width;
    const { mean, variance } = moments(x.data.subarray(from, from + width));
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < width; i++) result.data[from + i] = (x.data[from + i] - mean) * scale * gain.data[i] + bias.data[i];
  }
  return result;
}

export const ACTIVATIONS: Record<string, (x: number) => number> = {
  relu: (x) => (x > 0 ? x : 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  swish: (x) => x / (1 + Math.exp(-x)),
};

export function activate(x: Tensor, name: string): Tensor {
  const apply = ACTIVATIONS[name];
  return { shape: x.shape, data: x.data.map((value) => apply(value)) };
}

/** The error function by its series, or its continued fraction where that converges faster. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 5.9) return Math.sign(x);
  if (size < 2.5) {
    let term = size;
    let sum = size;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
      term *= -(size * size) / n;
      sum += term / (2 * n + 1);
      if (n > 200) break;
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let k = 60; k > 0; k--) fraction = k / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
}

/** Log of the sum of exponentials, without overflow. */
export function logSumExp(values: ArrayLike<number>): number {
  let largest = -Infinity;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, values[i]);
  if (largest === -Infinity) return largest;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.exp(values[i] - largest);
  return largest + Math.log(sum);
}

/** One row of a matrix, or one vector of a stack of matrices, without a copy. */
export function row(tensor: Tensor, ...index: number[]): Float32Array {
  const width = tensor.shape[tensor.shape.length - 1];
  let place = 0;
  index.forEach((one, axis) => (place = place * tensor.shape[axis] + one));
  return tensor.data.subarray(place * width, (place + 1) * width);
}

/** The numbers of the largest values, largest first. */
export function largest(values: ArrayLike<number>, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && !(values[i] > values[best[count - 1]])) continue;
    let place = best.length;
    while (place > 0 && values[i] > values[best[place - 1]]) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
