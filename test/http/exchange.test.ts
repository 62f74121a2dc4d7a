import { expect, test } from 'vitest'
import { json } from '../../src/http/body.js'
import { type Exchange, type Serve, unsigned } from '../../src/http/exchange.js'

const answer = async () => json(200, { spent: true })

test('an operation compiles only as one that counts once, or that needs no signature', async () => {
  // @ts-expect-error it is neither
  const forgetful: Serve = answer
  const open: Serve = unsigned(answer)
  const exchange = { limit: async () => undefined } as unknown as Exchange
  expect(await open(exchange)).toEqual(await forgetful(exchange))
})
