import type { Amount } from 'open-payments-server'

/** Formats an amount for logs, in which a program may look for it. */
export function money({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  const fraction = digits.slice(digits.length - assetScale)
  return `${assetCode} ${assetScale === 0 ? whole : `${whole}.${fraction}`}`
}
