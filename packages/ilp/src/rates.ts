/** Units of one asset for each unit of another: `numerator / denominator`. */
export interface Rate {
  /** Smallest units of the first asset, for `denominator` of the other. */
  readonly numerator: bigint
  /** Smallest units of the other asset. */
  readonly denominator: bigint
}

export function convertedUp(amount: bigint, { numerator, denominator }: Rate): bigint {
  return dividedUp(amount * numerator, denominator)
}

export function convertedDown(amount: bigint, { numerator, denominator }: Rate): bigint {
  return (amount * numerator) / denominator
}

export function inverseOf({ numerator, denominator }: Rate): Rate {
  return { numerator: denominator, denominator: numerator }
}

/** Divides and rounds up. */
export function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

export function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

export function greatest(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
