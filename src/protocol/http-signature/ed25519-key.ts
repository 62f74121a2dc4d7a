/** The prime and the constant of edwards25519 (RFC 8032 section 5.1). */
const prime = 2n ** 255n - 19n
const d = 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3n

/** The y of half of the points of order 8; that of the others is its negative. */
const yOfOrder8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n

const keyLength = 32

/**
 * Whether bytes are the canonical encoding of a point on the curve (RFC 8032 section 5.1.3) that is not of small order.
 * Under a key of small order, one signature is valid for many messages; OpenSSL accepts such keys.
 */
export function isSoundPoint(bytes: Uint8Array): boolean {
  if (bytes.length !== keyLength) return false
  const y = yOf(bytes)
  // The y of the points of order 4, 1 and 2 are 0, 1 and -1. An encoding of y that is not less than the prime is not
  // canonical, and neither is one with a sign for x = 0, where y is 1 or -1.
  if (y <= 1n || y >= prime - 1n) return false
  return y !== yOfOrder8 && y !== prime - yOfOrder8 && isOnCurve(y)
}

/** Reads y: little-endian, without the most significant bit, which is the sign of x. */
function yOf(bytes: Uint8Array): bigint {
  let y = 0n
  for (const byte of bytes.toReversed()) y = (y << 8n) | BigInt(byte)
  return BigInt.asUintN(255, y)
}

/** Whether x² = (y² - 1) / (dy² + 1) has a solution: whether the product in place of the quotient is a square. */
function isOnCurve(y: bigint): boolean {
  const square = (y * y) % prime
  return isSquare(((square - 1n) * (d * square + 1n)) % prime)
}

/** Whether a number that the prime does not divide is a square: its Jacobi symbol, which is that of Legendre, is 1. */
function isSquare(number: bigint): boolean {
  let [upper, lower] = [number, prime]
  let symbol = 1
  while (upper !== 0n) {
    while ((upper & 1n) === 0n) {
      upper >>= 1n
      const rest = lower & 7n
      if (rest === 3n || rest === 5n) symbol = -symbol
    }
    if ((upper & lower & 3n) === 3n) symbol = -symbol
    ;[upper, lower] = [lower % upper, upper]
  }
  return symbol === 1
}
