/**
 * Colors of numbers: blue for shares; for signed numbers blue below 0 and orange above, from a neutral
 * middle, as in every other picture of the package.
 */

import { sizesOf, type Tensor } from "../model/tensor";

const isOrange = (value: number, isSigned: boolean) => isSigned && value > 0;

/** The background of a cell. `value` is a share of the largest, from −1 to 1. */
export function ground(value: number, isSigned: boolean, color = isOrange(value, isSigned) ? "other" : "weight"): string {
  const size = Math.min(1, Math.abs(value));
  return `color-mix(in oklab, var(--${color}) ${(100 * size).toFixed(1)}%, var(--sunk))`;
}

/** The color of a number on its ground: each has a contrast of at least 4.5 in both themes. */
export function ink(value: number, isSigned: boolean): string {
  const size = Math.abs(value);
  if (size < 0.6) return "var(--on-faint)";
  return size < (isOrange(value, isSigned) ? 0.94 : 0.815) ? "var(--on-middle)" : "var(--on-strong)";
}

type Rgb = [number, number, number];

/** The three colors of the current theme, for a canvas. */
export function palette(element: HTMLElement): { weight: Rgb; other: Rgb; ground: Rgb } {
  const style = getComputedStyle(element);
  const read = (name: string): Rgb => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
  };
  return { weight: read("--weight"), other: read("--other"), ground: read("--sunk") };
}

/** Draw a matrix on a canvas, a pixel a cell. */
export function draw(
  canvas: HTMLCanvasElement,
  matrix: Tensor,
  largest: number,
  isSigned: boolean,
  { weight, other, ground }: ReturnType<typeof palette>,
): void {
  [canvas.height, canvas.width] = sizesOf(matrix, 2);
  const image = new ImageData(canvas.width, canvas.height);
  matrix.data.forEach((value, i) => {
    const isMasked = value === -Infinity;
    const share = isMasked ? 0 : Math.max(-1, Math.min(1, value / largest));
    const hue = isOrange(share, isSigned) ? other : weight;
    const size = Math.abs(share);
    for (const c of [0, 1, 2] as const) image.data[4 * i + c] = ground[c] + size * (hue[c] - ground[c]);
    image.data[4 * i + 3] = isMasked ? 90 : 255;
  });
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}

export function largestOf(values: ArrayLike<number>): number {
  let largest = 0;
  for (const value of Array.from(values)) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  return largest || 1;
}
