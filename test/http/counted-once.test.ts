import { describe, expect, test } from 'vitest'
import type { HttpRequest, ServerOperation } from '../../src/index.js'
import { arrange, faults, type Scene } from '../support/faults.js'
import { createSurface, type Sending, type Surface } from '../support/surface.js'
import { answerOf } from '../support/world.js'

/** How the second of two equal requests without a nonce ends, by default: as `used`, or like any other request. */
const withoutNonce = {
  requestGrant: 'served',
  continueGrant: 'used',
  cancelGrant: 'served',
  rotateToken: 'used',
  revokeToken: 'served',
  introspectToken: 'served',
  createIncomingPayment: 'served',
  listIncomingPayments: 'served',
  getIncomingPayment: 'served',
  completeIncomingPayment: 'served',
  createQuote: 'served',
  getQuote: 'served',
  createOutgoingPayment: 'used',
  listOutgoingPayments: 'served',
  getOutgoingPayment: 'served',
  getOutgoingPaymentGrant: 'served',
} as const satisfies Partial<Record<ServerOperation, string>>

const operations = Object.keys(withoutNonce) as (keyof typeof withoutNonce)[]

/** Sends a signed request, and returns how it ends: as `served`, as `used`, or with another refusal. */
async function endOf({ handle, world }: Surface, request: HttpRequest): Promise<string> {
  const before = world.refusals.length
  const { status } = answerOf(await handle(request))
  if (status < 300) return 'served'
  const refusal = world.refusals[before]?.refusal
  return refusal === 'replayed' ? 'used' : String(refusal)
}

/** Sends the same bytes twice, one after the other. */
async function sentTwice(surface: Surface, operation: ServerOperation, sending: Sending = {}) {
  const request = surface.sign(surface.ask(operation), sending)
  return [await endOf(surface, request), await endOf(surface, request)]
}

function noNonce({ world, ask }: Surface, operation: ServerOperation): Sending {
  const created = Math.floor(world.clock.now() / 1_000)
  return { parameters: [`keyid="${ask(operation).key?.kid}"`, `created=${created}`] }
}

test('every route of an authorization server and a resource server is signed, except discovery', async () => {
  const { world, ask } = await createSurface()
  const routes = [...world.auth.routes, ...world.resources.routes]
  const signed = routes.filter(({ operation }) => ask(operation).key !== undefined)
  const others = routes.filter((route) => !signed.includes(route))
  expect(signed.map(({ operation }) => operation).sort()).toEqual(operations.toSorted())
  expect(others.map(({ operation }) => operation)).toEqual(['discover'])
})

describe.each(operations)('%s', (operation) => {
  test('is served once with a nonce, and then refused as used', async () => {
    const surface = await createSurface()
    expect(await sentTwice(surface, operation)).toEqual(['served', 'used'])
    const request = surface.sign(surface.ask(operation), { nonce: 'surface-0' })
    expect(await endOf(surface, request)).toBe('used')
  })

  test('is served at most once with a nonce, if two such requests arrive together', async () => {
    const { ask, sign, handle, world } = await createSurface()
    const request = sign(ask(operation))
    const both = await Promise.all([handle(request), handle(request)])
    const served = both.filter(({ status }) => status < 300)
    expect(served).toHaveLength(1)
    expect(world.refusals.map(({ refusal }) => refusal)).toEqual(['replayed'])
  })

  test('is served again without a nonce, unless its signature counts', async () => {
    const surface = await createSurface()
    const ends = await sentTwice(surface, operation, noNonce(surface, operation))
    expect(ends).toEqual(['served', withoutNonce[operation]])
  })

  test('is served once without a nonce too, if the servers refuse repeats', async () => {
    const surface = await createSurface({ compatibility: { repeatedRequests: 'refuse' } })
    const ends = await sentTwice(surface, operation, noNonce(surface, operation))
    expect(ends).toEqual(['served', 'used'])
  })
})

/** All refusals of requests whose signature is verified, with the operations that have them. */
const afterVerification = faults
  .slice(faults.findIndex(({ refusal }) => refusal === 'replayed') + 1)
  .filter(({ refusal }) => refusal !== 'busy' && refusal !== 'internal')
  .map((fault) => [`${fault.refusal} ${fault.name ?? ''}`.trim(), fault] as const)

/** A payment that was declined, or waits for its owner: the same bytes get the same refusal again. */
const ofPayments: readonly string[] = [
  'confirmation_declined',
  'confirmation_expired',
  'confirmation_required',
  'funds_insufficient',
  'grant_ended',
  'payment_not_allowed',
]

describe('a refused request', () => {
  test.each(afterVerification)('has used its nonce: %s', async (_, fault) => {
    for (const operation of operations.filter((each) => each in fault.at)) {
      const surface = await createSurface()
      const scene: Scene = { surface, operation, asked: surface.ask(operation), sending: {} }
      await arrange(scene, [fault])
      const request = surface.sign(scene.asked, scene.sending)
      const ends = [await endOf(surface, request), await endOf(surface, request)]
      const isSame = operation === 'createOutgoingPayment' && ofPayments.includes(fault.refusal)
      const again = isSame ? fault.refusal : 'used'
      expect([operation, ...ends]).toEqual([operation, fault.refusal, again])
    }
  })
})
