import type { Json } from '../../src/entry-core.js'

export const usd = { value: '2500', assetCode: 'USD', assetScale: 2 }

/** Invalid amount values, with a fault in any member. */
const noValues = ['', ' 5 ', '0x10', '-0', '1.0', '18446744073709551616', '+5', '007', '1e3', '٢٥']

/** Invalid amounts, each with what is wrong and the path of the fault inside the amount. */
export const noAmounts: readonly [string, Json, string][] = [
  ...noValues.map((value): [string, Json, string] => [
    `a value of "${value}"`,
    { ...usd, value },
    '.value',
  ]),
  ['a numeric value', { ...usd, value: 2500 }, '.value'],
  ['a scale of 256', { ...usd, assetScale: 256 }, '.assetScale'],
  ['a scale of -1', { ...usd, assetScale: -1 }, '.assetScale'],
  ['a scale that is a string', { ...usd, assetScale: '2' }, '.assetScale'],
  ['an asset code with a space', { ...usd, assetCode: 'US D' }, '.assetCode'],
  ['no asset code', { value: '1', assetScale: 2 }, '.assetCode'],
  ['text', '25', ''],
  ['a list', [usd], ''],
]
