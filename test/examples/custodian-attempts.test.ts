import fc from 'fast-check'
import {
  type AttemptsSubject,
  attemptsConformance,
  attemptsProperty,
  type OtherAccounts,
} from 'open-payments-server-testing'
import { describe, test } from 'vitest'
import { custodianAt } from '../../examples/custodian/custodian.js'
import { askByRepeating, attempts } from '../../src/entry-attempts.js'
import { runs } from '../support/runs.js'

/** The custodian's API over the accounts of the search. */
function api(accounts: OtherAccounts) {
  return async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url)
    const [, resource, key = ''] = pathname.split('/')
    if (request.method === 'GET') {
      const found = accounts.find(searchParams.get('memo') ?? '')
      return Response.json({ payouts: found ? [{ value: `${found.amount}` }] : [] })
    }
    const {
      memo = '',
      value,
      notAfter,
    } = (await request.json()) as {
      memo?: string
      value: string
      notAfter?: number
    }
    const order = {
      reference: resource === 'payouts' ? memo : key,
      amount: BigInt(value),
      notAfter,
    }
    return Response.json({ state: accounts.carryOut(order) })
  }
}

const url = 'https://custodian.example'

/** Each kind of order as the wallet makes it. */
const subjects: Readonly<Record<string, AttemptsSubject['create']>> = {
  payouts({ fetch, ...ports }) {
    const { payout: send, findPayouts: ask } = custodianAt(url, fetch as typeof globalThis.fetch)
    const notAfter = (now: number) => now + 60_000
    const options = { ...ports, name: 'payouts', evidence: 'id', onError: () => undefined } as const
    const driver = attempts({ ...options, send, ask, notAfter })
    const more = { from: 'alice', to: 'shop', hold: 'hold-1' }
    return { ...driver, settle: (request) => driver.settle({ ...request, ...more }) }
  },
  credits({ fetch, ...ports }) {
    const { credit: send } = custodianAt(url, fetch as typeof globalThis.fetch)
    const options = { ...ports, name: 'credits', evidence: 'id', onError: () => undefined } as const
    const ask = askByRepeating(send, { keptMs: 86_400_000 })
    const driver = attempts({ ...options, send, ask })
    return { ...driver, settle: (request) => driver.settle({ ...request, account: 'bob' }) }
  },
}

describe.each(Object.entries(subjects))('the %s of the custodian keep the laws', (_, create) => {
  const subject: AttemptsSubject = { create, otherSide: api }
  for (const { name, run } of attemptsConformance(subject)) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, subject), { numRuns: runs(6_000, 40) })
  })
})
