/** The sentences of a training text as a filter: the rules of `pellucid.corpora.seen`, which hashes with BLAKE2b. */

import { itemAt } from "../model/items";
import { trim } from "../model/tokenizer";

const HASHES = 8n;
const MARKS = /[\s.,!?]+/g;
const MASK = (1n << 64n) - 1n;
const START =
  "6a09e667f3bcc908 bb67ae8584caa73b 3c6ef372fe94f82b a54ff53a5f1d36f1 510e527fade682d1 9b05688c2b3e6c1f 1f83d9abfb41bd6b 5be0cd19137e2179"
    .split(" ")
    .map((word) => BigInt(`0x${word}`));
/** The order in which each round takes the words of a block, and the words that each step mixes. */
const ORDERS =
  "0123456789abcdef ea489fd61c02b753 b8c052fdae367194 7931dcbe265a40f8 905724afe1bc683d 2c6a0b834d75fe19 c51fed4a0763928b db7ec13950f4862a 6fe9b308c2d714a5 a2847615fb9e3cd0".split(
    " ",
  );
const STEPS = "048c 159d 26ae 37bf 05af 16bc 278d 349e".split(" ");
const digits = (text: string) => Array.from(text, (digit) => parseInt(digit, 16));

/** The first 16 bytes of a BLAKE2b that has no more, as two numbers. */
export function hash(text: string): [bigint, bigint] {
  const bytes = new TextEncoder().encode(text);
  const state = [...START];
  state[0] = itemAt(state, 0) ^ 0x01010010n;
  for (let at = 0; at === 0 || at < bytes.length; at += 128) {
    const block = new DataView(new ArrayBuffer(128));
    bytes.subarray(at, at + 128).forEach((byte, i) => block.setUint8(i, byte));
    const v = [...state, ...START];
    v[12] = itemAt(v, 12) ^ BigInt(Math.min(bytes.length, at + 128));
    if (at + 128 >= bytes.length) v[14] = itemAt(v, 14) ^ MASK;
    const mix = (to: number, by: number, turn: number) => {
      const mixed = itemAt(v, to) ^ itemAt(v, by);
      v[to] = ((mixed >> BigInt(turn)) | (mixed << BigInt(64 - turn))) & MASK;
    };
    for (let round = 0; round < 12; round++) {
      const order = digits(itemAt(ORDERS, round % 10));
      STEPS.forEach((step, i) => {
        const [a = 0, b = 0, c = 0, d = 0] = digits(step);
        [0, 1].forEach((half) => {
          const word = block.getBigUint64(8 * itemAt(order, 2 * i + half), true);
          v[a] = (itemAt(v, a) + itemAt(v, b) + word) & MASK;
          mix(d, a, half ? 16 : 32);
          v[c] = (itemAt(v, c) + itemAt(v, d)) & MASK;
          mix(b, c, half ? 63 : 24);
        });
      });
    }
    for (let i = 0; i < 8; i++) state[i] = itemAt(state, i) ^ itemAt(v, i) ^ itemAt(v, i + 8);
  }
  return [itemAt(state, 0), itemAt(state, 1)];
}

/** Tell whether a sentence was in the text, with any capitals and marks. */
export function isSeen(sentence: string, bits: Uint8Array): boolean {
  const [start, step] = hash(trim(sentence.toLowerCase().replace(MARKS, " ")));
  for (let number = 0n; number < HASHES; number++) {
    const place = Number((start + number * (step | 1n)) % BigInt(8 * bits.length));
    if (!((itemAt(bits, place >> 3) >> (place & 7)) & 1)) return false;
  }
  return true;
}
