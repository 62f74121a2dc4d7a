import type { Network } from 'open-payments-programs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { workplace } from './support/workplace.js'

const alice = 'https://wallet.example/alice'
const authServer = 'https://auth.example/gnap'
const resourceServer = 'https://wallet.example'
const client = ['--client', 'https://shop.example']

const issued = (access: readonly object[] = []) => ({
  access_token: { value: 'token', manage: 'https://auth.example/token/1', access },
  continue: continuation,
})
const continuation = {
  uri: 'https://auth.example/continue/1',
  access_token: { value: 'continuation' },
  wait: 1,
}
const pending = {
  interact: { redirect: 'https://auth.example/consent/1', finish: 'a-nonce' },
  continue: continuation,
}
const page = { result: [], pagination: { hasNextPage: false, hasPreviousPage: false } }

/** What a server answers to the second of two copies of a request, here or at a server that says 401. */
const used = (status: number) =>
  [status, { error: { code: 'signature_used', description: 'Used' } }] as const

/** A wallet behind something that sends requests twice: it answers in order, and what it was sent. */
function repeating(...answers: readonly (readonly [number, object])[]) {
  const sent: string[] = []
  const network: Network = {
    addresses: async () => ['1.1.1.1'],
    fetch: async (input, init) => {
      const url = String(input)
      if (url === alice) {
        const asset = { assetCode: 'USD', assetScale: 2 }
        return Response.json({ id: alice, ...asset, authServer, resourceServer })
      }
      sent.push(`${init?.method ?? 'GET'} ${new URL(url).pathname}`)
      const [status, body] = answers[sent.length - 1] ?? [500, {}]
      return Response.json(body, { status })
    },
  }
  return { network, sent }
}

let place: ReturnType<typeof workplace>
beforeEach(() => {
  place = workplace()
})
afterEach(() => place.remove())

describe.each([409, 401])('a response with %i that says that the signature was used', (status) => {
  test('to a continuation is answered by a new signature, and never taken for a wrong key', async () => {
    const { network, sent } = repeating([200, pending], used(status), [200, issued()])
    const asking = ['grant', alice, ...client, '--poll', '--wait', '10m']
    const { code, err } = await place.run(asking, { network, browse: () => {} })
    expect([code, sent]).toEqual([0, ['POST /gnap', 'POST /continue/1', 'POST /continue/1']])
    expect(err).not.toContain('publishes the key')
  })

  test('to a read is answered by a new signature, and never taken for an expired token', async () => {
    const access = [{ type: 'outgoing-payment', actions: ['list'] }]
    const { network, sent } = repeating([200, issued(access)], used(status), [200, page])
    await place.run(['grant', alice, ...client, '--poll', '--wait', '10m'], { network })
    const listing = ['list', alice, '--access', 'outgoing-payment', ...client]
    const { code, err } = await place.run(listing, { network })
    const list = 'GET /outgoing-payments'
    expect([code, sent]).toEqual([0, ['POST /gnap', list, list]])
    expect(err).not.toMatch(/expired|rotate/)
  })

  test('to a request that creates is final, and says that the first was answered', async () => {
    const { network, sent } = repeating([200, issued()], used(status))
    const asking = ['request', alice, ...client]
    const { code, err } = await place.run(asking, { network })
    expect([code, sent]).toEqual([1, ['POST /gnap', 'POST /incoming-payments']])
    expect(err).toContain('the first was answered')
    expect(err).not.toMatch(/publishes the key|expired/)
  })
})
