import type { Amount } from '../core/amount.js'
import type { Stored } from '../core/stored.js'
import { type Check, having, integer, number, string, text } from '../util/arguments.js'

/** Checks the types in an amount. The state machines decide whether its value and asset are acceptable. */
export const amount = having({
  value: string,
  assetCode: string,
  assetScale: number,
} satisfies Record<keyof Amount, Check>)

/** Checks that a value is a record, as returned by another call. */
export const record = having({ id: text, version: integer } satisfies Partial<
  Record<keyof Stored, Check>
>)
