/** Seconds in UTC, `2026-11-22T06:36:18`, and the nine digits of the fraction. */
function parts(nanoseconds: bigint): { readonly seconds: string; readonly fraction: string } {
  const seconds = new Date(Number(nanoseconds / 1_000_000n)).toISOString().slice(0, 19)
  return { seconds, fraction: String(nanoseconds % 1_000_000_000n).padStart(9, '0') }
}

/** An instant with a number of fractional digits, all of which are written. */
export function withDigits(nanoseconds: bigint, digits: number, zone: string): string {
  const { seconds, fraction } = parts(nanoseconds)
  return `${seconds}.${fraction.slice(0, digits)}${zone}`
}

/** An instant with up to a number of fractional digits, without the zeros at the end. */
export function upToDigits(nanoseconds: bigint, digits: number, zone: string): string {
  const { seconds, fraction } = parts(nanoseconds)
  const significant = fraction.slice(0, digits).replace(/0+$/, '')
  return `${seconds}${significant === '' ? '' : `.${significant}`}${zone}`
}
