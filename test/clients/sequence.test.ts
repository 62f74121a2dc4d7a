import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { dialects } from '../support/clients/all.js'
import {
  type Call,
  type Results,
  runSequence,
  type SequenceOptions,
  successes,
} from '../support/clients/sequence.js'
import { clientTable, verdictsOf } from '../support/clients/table.js'
import {
  deployments,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'

const metadata = {
  order: 'Fish & chips <large>, 1/2 "crisp"',
  'café/zoë': 'naïve 🐟 日本 \\ \u2028 \u0007',
  invoice: 'https://shop.example/invoices/17?lines=1&total=2',
  amounts: [0.5, 1e21, 12, true, null, ''],
  nested: { '<b>': { '&': '/' } },
}

/** Whole tenths of a second, because that is all that one of the dialects writes, and some nanoseconds. */
const expiresAt = BigInt(Math.floor(Date.now() / 100) + 864_000) * 100_000_000n + 456_789n

describe.each(deployments)('the created wallet on %s', (deployment) => {
  let shop: Shop
  let running: RunningDeployment
  const verdicts = new Map<string, Readonly<Record<Call, string>>>()

  beforeAll(async () => {
    shop = await openShop()
    running = await startDeployment(deployment)
  })
  afterAll(async () => {
    await running.stop()
    shop.stop()
  })

  test.each(dialects)('serves the requests of $name from grant to revocation', async (dialect) => {
    const options: SequenceOptions = { dialect, running, shop, expiresAt, metadata }
    const results = await runSequence(options)
    const verdict = verdictsOf(results)
    verdicts.set(dialect.name, verdict)
    expect(verdict).toEqual(statuses())
    checkBodies(results, options)
  })

  test('matches the table in docs/clients.md, which `npm run docs:tables` writes', () => {
    expect(readFileSync('docs/clients.md', 'utf8')).toContain(clientTable(verdicts))
  })
})

function statuses(): Record<string, string> {
  return Object.fromEntries(Object.entries(successes).map(([call, status]) => [call, `${status}`]))
}

function checkBodies(results: Results, { running: { alice, bob } }: SequenceOptions): void {
  const answerTo = (call: Call) => {
    const result = results[call]
    if (typeof result === 'string') throw new Error(`${call}: ${result}`)
    return result.body
  }
  const payment = answerTo('create an incoming payment')
  expect(payment).toMatchObject({ walletAddress: bob, incomingAmount: usd('2500'), metadata })
  expect(Date.parse(payment.expiresAt)).toBe(Number(expiresAt / 1_000_000n))
  expect(payment.methods).toMatchObject([{ type: 'ilp' }])
  const open = answerTo('create an incoming payment without optional members')
  expect(open).not.toHaveProperty('incomingAmount')
  expect(open).not.toHaveProperty('metadata')
  expect(answerTo('read an incoming payment')).toEqual(payment)
  const { result } = answerTo('list incoming payments')
  const ids = result.map(({ id }: { readonly id: string }) => id)
  expect(ids).toEqual(expect.arrayContaining([payment.id, open.id]))
  const quote = answerTo('create a quote')
  expect(answerTo('read a quote')).toEqual(quote)
  const outgoing = answerTo('create an outgoing payment')
  const spent = {
    grantSpentDebitAmount: quote.debitAmount,
    grantSpentReceiveAmount: quote.receiveAmount,
  }
  expect(outgoing).toMatchObject({ walletAddress: alice, receiver: payment.id, ...spent })
  expect(answerTo('read an outgoing payment').id).toBe(outgoing.id)
  expect(answerTo('read the amounts spent under a grant')).toMatchObject({
    spentDebitAmount: quote.debitAmount,
    spentReceiveAmount: quote.receiveAmount,
  })
  expect(answerTo('complete an incoming payment')).toMatchObject({ completed: true })
}
