import { demandAmount, pick, UsageError } from 'open-payments-programs'
import type { Amount, Asset } from 'open-payments-server'

const valueMax = 2n ** 64n - 1n

/**
 * Reads a decimal number, such as `10.00` or `10.00 USD`, as an amount of an asset. Throws a `UsageError` for another
 * asset, for more decimals than the asset has, and for an amount that is not positive or has more than 64 bits.
 */
export function amountOf(text: string, asset: Asset, option: string): Amount {
  const { assetCode, assetScale } = asset
  requireDecimal(text, option)
  const [, whole = '', decimals = '', code = assetCode] = decimalForm.exec(text.trim()) ?? []
  if (code !== assetCode) {
    throw new UsageError(`${option} is in ${code}, but the account is in ${assetCode}`)
  }
  if (decimals.length > assetScale) {
    throw new UsageError(
      `${option} has ${decimals.length} decimals; ${assetCode} has ${assetScale}`,
    )
  }
  const value = BigInt(whole + decimals.padEnd(assetScale, '0'))
  if (value === 0n || value > valueMax) {
    throw new UsageError(
      `${option} must be positive and at most ${money({ ...asset, value: `${valueMax}` })}`,
    )
  }
  return { value: `${value}`, assetCode, assetScale }
}

const decimalForm = /^(\d{1,20})(?:\.(\d{1,255}))?(?: ([A-Za-z]{1,12}))?$/

/** Throws a `UsageError` unless the text is a decimal number, which may be followed by an asset. */
export function requireDecimal(text: string, option: string): void {
  if (decimalForm.test(text.trim())) return
  throw new UsageError(`${option} must be a decimal number, such as 10.00: ${text}`)
}

/** Formats an amount with all its decimals, such as `10.00 USD`. */
export function money({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const point = digits.length - assetScale
  const decimals = assetScale === 0 ? '' : `.${digits.slice(point)}`
  return `${digits.slice(0, point)}${decimals} ${assetCode}`
}

/** Whether a member of a response is an amount. */
export function isAmount(member: unknown): member is Amount {
  try {
    demandAmount(member, 'amount')
    return true
  } catch {
    return false
  }
}

/** Returns an amount of a response. Fails if the value is not an amount. */
export function amountIn(body: unknown, name: string): Amount {
  const amount = pick(body, name)
  demandAmount(amount, name)
  return amount as Amount
}

/** Whether an amount has arrived at another in the same asset. */
export function reaches(amount: Amount, goal: Amount): boolean {
  return isSameAsset(amount, goal) && BigInt(amount.value) >= BigInt(goal.value)
}

export function isSameAsset(one: Asset, other: Asset): boolean {
  return one.assetCode === other.assetCode && one.assetScale === other.assetScale
}

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const durationMaxMs = 366 * unitsMs.d

/** Reads a duration such as `90s`, `10m`, `1h` or `7d`, in milliseconds. Throws a `UsageError`. */
export function durationMs(text: string, option: string): number {
  const [, count = '', unit = ''] = /^(\d{1,8})([smhd])$/.exec(text) ?? []
  const ms = Number(count) * (unitsMs[unit as keyof typeof unitsMs] ?? 0)
  if (ms > 0 && ms <= durationMaxMs) return ms
  throw new UsageError(`${option} must be a duration such as 90s, 10m, 1h or 7d, at most 366d`)
}
