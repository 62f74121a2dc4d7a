import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { remoteClientKeys } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { hostCall } from '../support/host-call.js'
import { jwkOf, type TestKey, testKey } from '../support/keys.js'
import { runs } from '../support/runs.js'
import { withHeader, withSignaturesOf } from '../support/sign.js'
import { grantToPay, outgoingItem, pay, priceList, usd } from '../support/spending.js'
import { walletInProcesses } from '../support/two-processes.js'
import {
  alice,
  answerOf,
  grantEndpoint,
  incomingAccess,
  interactionId,
  resourceServer,
  type WorldOptions,
} from '../support/world.js'

type Rule = 'published' | 'bound'

const shop = 'https://shop.example'
const first = testKey('shop')
const second = testKey('second')
/** Another key with the `kid` of the first. */
const replacement: TestKey = { ...testKey('replacement'), kid: first.kid }
const keys = { first, second, replacement }
type KeyName = keyof typeof keys

function setUp(rule?: Rule, processes: 1 | 2 = 1, options: WorldOptions = {}) {
  const world = walletInProcesses(processes, {
    ...options,
    auth: { ...(rule && { policy: { keyBinding: rule } }), ...options.auth },
  })
  const client = world.client('shop')
  const publish = (...names: readonly KeyName[]) =>
    world.clientKeys.publish(shop, ...names.map((name) => keys[name]))
  const spent = async (token: string, key = first) => {
    const url = `${resourceServer}/outgoing-payment-grant`
    return (await client.send({ method: 'GET', url, token, key })).body.spentDebitAmount?.value
  }
  return { world, client, publish, spent }
}

const name = fc.constantFrom<KeyName>('first', 'first', 'second', 'replacement')
const step = fc.oneof(
  fc.record({ do: fc.constant('pay' as const), by: name }),
  fc.record({ do: fc.constant('rotate' as const), by: name, again: name }),
  fc.record({
    do: fc.constant('publish' as const),
    keys: fc.constantFrom<KeyName[]>(
      ['first'],
      ['second'],
      ['first', 'second'],
      ['replacement'],
      [],
    ),
  }),
)

describe.each(['published', 'bound'] as const)('a grant whose keys are %s', (rule) => {
  test.each([1, 2] as const)(
    'is used by these keys only, whatever was used before, by %i process(es)',
    async (processes) => {
      const lives = fc.asyncProperty(
        fc.constantFrom<KeyName>('first', 'second'),
        fc.array(step, { minLength: 5, maxLength: 20 }),
        async (again, steps) => {
          const { world, client, publish, spent } = setUp(rule, processes)
          let published: readonly KeyName[] = ['first', 'second']
          publish(...published)
          const signs = (by: KeyName) =>
            published.includes(by) && (rule === 'published' || by === 'first')

          const access = [outgoingItem({ debitAmount: usd(2500) })]
          const asked = await client.request(access, { start: ['redirect'] })
          const id = interactionId(asked.body.interact.redirect)
          await world.auth.interactions.approve(id, {
            resourceOwner: 'alice',
            walletAddresses: [alice],
          })
          world.clock.advance(5_000)
          const issued = await client.continue(asked.body.continue)
          const repeated = await client.continue(asked.body.continue, undefined, {
            key: keys[again],
          })
          expect(repeated.body.access_token?.value).toBe(
            signs(again) ? issued.body.access_token.value : undefined,
          )

          let token = issued.body.access_token
          let recorded = first
          let [paid, rotations] = [0, 0]
          for (const step of steps) {
            if (step.do === 'publish') {
              published = step.keys
              publish(...published)
            } else if (step.do === 'pay') {
              const { status } = await pay(client, token.value, 100, {}, { key: keys[step.by] })
              expect(status).toBe(signs(step.by) ? 201 : 401)
              if (status === 201) paid += 100
            } else {
              const lost = await client.rotate(token, { key: keys[step.by] })
              expect(signs(step.by) ? [200] : [400, 401]).toContain(lost.status)
              // With or without its response, a repeat by another key returns the same token.
              const again = await client.rotate(token, { key: keys[step.again] })
              expect(signs(step.again) ? [200] : [400, 401]).toContain(again.status)
              const changed = lost.status === 200 ? lost : again
              if (changed.status !== 200) continue
              if (again.status === 200) {
                expect(again.body.access_token.value).toBe(changed.body.access_token.value)
              }
              token = changed.body.access_token
              rotations += 1
              recorded = keys[lost.status === 200 ? step.by : step.again]
            }
          }
          publish('first')
          expect(await spent(token.value)).toBe(String(paid))
          const record = await world.auth.grants.getRecord(id.split('.')[0] ?? '')
          const { kid, x, thumbprint } = recorded
          expect(record?.client).toEqual({ walletAddress: shop, kid, x, thumbprint })
          // Requested, approved, issued and rotated: a change of the key alone writes nothing.
          expect(record?.version).toBe(3 + rotations)
        },
      )
      await fc.assert(lives, { numRuns: runs(25, 10) })
    },
  )
})

describe('a grant of a client with a wallet address', () => {
  test('is continued, cancelled and revoked with a key that was published after it', async () => {
    const { world, client, publish } = setUp()
    const one = await grantToPay(world, client)
    const { body } = await client.request([incomingAccess])
    publish('second')
    const { uri: url, access_token } = body.continue
    const by = { key: second }
    expect(
      (await client.send({ method: 'DELETE', url, token: access_token.value, ...by })).status,
    ).toBe(204)
    const { manage, value } = one.accessToken
    expect((await client.send({ method: 'DELETE', url: manage, token: value, ...by })).status).toBe(
      204,
    )
    const { client: recorded } = (await world.auth.grants.getRecord(one.grantId)) ?? {}
    expect(recorded).toMatchObject({ kid: first.kid })
  })

  test('is used if any of the signatures is by a published key, with one look-up for each keyid', async () => {
    const { world, client, publish } = setUp()
    publish('first', 'second')
    const { token } = await grantToPay(world, client)
    const get = { method: 'GET', url: `${resourceServer}/outgoing-payment-grant`, token } as const
    const unknown = client.sign({ ...get, key: testKey('unknown') })
    const known = client.sign({ ...get, key: second, label: 'sig2' })
    world.clientKeys.asked.length = 0
    expect(answerOf(await world.handle(withSignaturesOf(unknown, known))).status).toBe(200)
    expect(world.clientKeys.asked.map(({ kid }) => kid)).toEqual([
      testKey('unknown').kid,
      first.kid,
      second.kid,
    ])
  })

  test.each(['unknown', 'first'] as const)(
    'is used by a published key, whatever its other signature: by the %s key, when the recorded one is withdrawn',
    async (by) => {
      const { world, client, publish } = setUp()
      const { token, accessToken } = await grantToPay(world, client)
      publish('second')
      const other = { first, unknown: testKey('unknown') }[by]
      const requests = [
        { method: 'GET', url: `${resourceServer}/outgoing-payment-grant`, token },
        { method: 'POST', url: accessToken.manage, token },
      ] as const
      for (const request of requests) {
        const one = client.sign({ ...request, key: other })
        const two = client.sign({ ...request, key: second, label: 'sig2' })
        expect(answerOf(await world.handle(withSignaturesOf(one, two))).status, request.url).toBe(
          200,
        )
      }
    },
  )

  test('is not used by a key that is withdrawn while its request runs', async () => {
    const { world, client, publish } = setUp('published', 1, {
      resources: {
        pricing: {
          async price(request) {
            publish('second')
            await client.rotate(other, { key: second })
            return priceList.price(request, hostCall)
          },
        },
      },
    })
    const access_token = ['a', 'b'].map((label) => ({
      label,
      access: [outgoingItem({ debitAmount: usd(2500) })],
    }))
    const asked = await client.post(grantEndpoint, {
      client: shop,
      access_token,
      interact: { start: ['redirect'] },
    })
    const id = interactionId(asked.body.interact.redirect)
    await world.auth.interactions.approve(id, {
      resourceOwner: 'alice',
      walletAddresses: [alice],
    })
    world.clock.advance(5_000)
    const [own, other] = (await client.continue(asked.body.continue)).body.access_token
    expect((await pay(client, own.value, 100)).status).toBe(401)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'signature_invalid' })
  })

  test('is not used by a key of small order, or by either of two keys with one kid', async () => {
    let published: readonly object[] = [jwkOf(first)]
    const clock = manualClock()
    const clientKeys = remoteClientKeys({
      clock,
      fetch: async () => ({
        status: 200,
        contentType: 'application/json',
        body: new TextEncoder().encode(JSON.stringify({ keys: published })),
      }),
    })
    const { world, client } = setUp('published', 1, { clock, auth: { clientKeys } })
    const { token, accessToken } = await grantToPay(world, client)
    const answers = async (key: TestKey, ...keys: readonly object[]) => {
      published = keys
      clientKeys.forget(shop)
      const paid = await pay(client, token, 100, {}, { key })
      return [paid.status, (await client.rotate(accessToken, { key })).status]
    }
    expect(await answers(first, jwkOf(first), jwkOf(replacement))).toEqual([401, 400])

    // With this key, OpenSSL accepts this signature for every message.
    published = [jwkOf(first), { ...jwkOf(second), x: `AQ${'A'.repeat(41)}` }]
    clientKeys.forget(shop)
    const url = `${resourceServer}/outgoing-payment-grant`
    const forged = Buffer.from([1, ...Array.from({ length: 63 }, () => 0)]).toString('base64')
    const request = withHeader(
      client.sign({ method: 'GET', url, token, key: second }),
      'signature',
      `sig1=:${forged}:`,
    )
    expect((await world.handle(request)).status).toBe(401)
    expect(await answers(first, jwkOf(first), jwkOf(second))).toEqual([201, 200])
  })

  test('is not looked up for a keyid that no key can have', async () => {
    const { world, client } = setUp()
    const { accessToken } = await grantToPay(world, client)
    world.clientKeys.asked.length = 0
    const key = { ...first, kid: 'k'.repeat(257) }
    expect((await client.rotate(accessToken, { key })).status).toBe(400)
    expect(world.clientKeys.asked).toEqual([])
  })
})

describe('a grant of a client that sent its key', () => {
  test.each(['published', 'bound'] as const)(
    'is bound to it, also if keys are %s',
    async (rule) => {
      const { world } = setUp(rule)
      const client = world.client('shop', { byKey: true })
      const { body } = await client.request([incomingAccess])
      for (const key of [second, replacement]) {
        expect((await client.rotate(body.access_token, { key })).status).toBe(401)
        expect((await client.continue(body.continue, undefined, { key })).status).toBe(401)
      }
      expect((await client.rotate(body.access_token)).status).toBe(200)
      expect(world.clientKeys.asked).toEqual([])
    },
  )
})

describe('introspection with the keyid of a signature', () => {
  test('returns this key if it is published, or else the recorded one if that is', async () => {
    const { world, client, publish } = setUp()
    publish('first', 'second')
    const { token } = await grantToPay(world, client)
    const kidFor = async (keyid?: string) => {
      const query = { accessToken: token, ...(keyid !== undefined && { keyid }) }
      const answer = await world.auth.introspect(query)
      return answer.active ? answer.key.kid : undefined
    }
    const kids = () => Promise.all([undefined, first.kid, second.kid, 'invented'].map(kidFor))
    expect(await kids()).toEqual([first.kid, first.kid, second.kid, first.kid])
    publish('second')
    expect(await kids()).toEqual([undefined, undefined, second.kid, undefined])
    publish()
    expect(await kids()).toEqual([undefined, undefined, undefined, undefined])
  })
})
