/** Items of lists at places that these have by construction. */

/** The item at a place. A list without it is a fault of the page: that is said here, and not later by a number that is none. */
export function itemAt<T>(list: ArrayLike<T>, place: number): T {
  const found = list[place];
  if (found === undefined) throw new RangeError(`A list of ${list.length} has no item ${place}.`);
  return found;
}
