import { describe, expect, test } from 'vitest'
import type { HttpRequest, ServerOperation } from '../../src/index.js'
import { arrange, faults, type Scene } from '../support/faults.js'
import { createSurface, type Sending, type Surface } from '../support/surface.js'
import { answerOf } from '../support/world.js'

/**
 * How a request ends whose bytes arrive again after it was done: with its result again (`done`), with any result, as a
 * request that is accepted each time (`served`), or refused as `repeated`, because its answer has a secret or is read.
 * The first column is that of requests with a nonce, the second of those without one, by default.
 */
const repeats = {
  requestGrant: ['repeated', 'served'],
  continueGrant: ['repeated', 'repeated'],
  cancelGrant: ['done', 'served'],
  rotateToken: ['repeated', 'repeated'],
  revokeToken: ['done', 'served'],
  introspectToken: ['repeated', 'served'],
  createIncomingPayment: ['repeated', 'served'],
  listIncomingPayments: ['repeated', 'served'],
  getIncomingPayment: ['repeated', 'served'],
  completeIncomingPayment: ['done', 'served'],
  createQuote: ['done', 'served'],
  getQuote: ['repeated', 'served'],
  createOutgoingPayment: ['done', 'done'],
  listOutgoingPayments: ['repeated', 'served'],
  getOutgoingPayment: ['repeated', 'served'],
  getOutgoingPaymentGrant: ['repeated', 'served'],
} as const satisfies Partial<Record<ServerOperation, readonly [string, string]>>

const operations = Object.keys(repeats) as (keyof typeof repeats)[]

/** The answer to a signed request, without the amounts that are spent now, and how it ends. */
async function endOf({ handle, world }: Surface, request: HttpRequest) {
  const before = world.refusals.length
  const { status, body, headers } = answerOf(await handle(request))
  const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...content } = body ?? {}
  if (status < 300) return { end: 'served', answer: [status, content] }
  const refusal = String(world.refusals[before]?.refusal)
  if (refusal === 'repeated') {
    expect([status, body?.error.code]).toEqual([409, 'signature_used'])
    expect(Object.keys(headers).map((name) => name.toLowerCase())).not.toContain('www-authenticate')
  }
  return { end: refusal, answer: [status, content] }
}

/** Sends the same bytes twice, one after the other. */
async function sentTwice(surface: Surface, operation: ServerOperation, sending: Sending = {}) {
  const request = surface.sign(surface.ask(operation), sending)
  return { first: await endOf(surface, request), second: await endOf(surface, request) }
}

function noNonce({ world, ask }: Surface, operation: ServerOperation): Sending {
  const created = Math.floor(world.clock.now() / 1_000)
  return { parameters: [`keyid="${ask(operation).key?.kid}"`, `created=${created}`] }
}

/** Expects two answers to equal bytes to be as a cell of the table says. */
function expectRepeat(
  cell: (typeof repeats)[keyof typeof repeats][number],
  { first, second }: Awaited<ReturnType<typeof sentTwice>>,
) {
  expect(first.end).toBe('served')
  expect(second.end).toBe(cell === 'repeated' ? 'repeated' : 'served')
  if (cell === 'done') expect(second.answer).toEqual(first.answer)
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
  const [withNonce, withoutNonce] = repeats[operation]

  test(`is ${withNonce}, if its bytes with a nonce arrive again`, async () => {
    const surface = await createSurface()
    expectRepeat(withNonce, await sentTwice(surface, operation))
  })

  test('is refused as used with the nonce of a request with other bytes', async () => {
    const surface = await createSurface()
    const [one, other] = [0, 1].map((older) => {
      const created = Math.floor(surface.world.clock.now() / 1_000) - older
      return surface.sign(surface.ask(operation), { nonce: 'the-nonce', created })
    })
    if (one === undefined || other === undefined) throw new Error('there is no request')
    expect((await endOf(surface, one)).end).toBe('served')
    expect((await endOf(surface, other)).end).toBe('replayed')
  })

  test('is done once, if its bytes with a nonce arrive twice at the same time', async () => {
    const surface = await createSurface()
    const request = surface.sign(surface.ask(operation))
    const both = (await Promise.all([surface.handle(request), surface.handle(request)])).map(
      answerOf,
    )
    const served = both.filter(({ status }) => status < 300)
    expect(served).toHaveLength(withNonce === 'done' ? 2 : 1)
    expect(surface.world.refusals.map(({ refusal }) => refusal)).toEqual(
      withNonce === 'done' ? [] : ['repeated'],
    )
    expect(new Set(served.map(({ body }) => body?.id)).size).toBe(1)
  })

  test(`is ${withoutNonce}, if its bytes without a nonce arrive again`, async () => {
    const surface = await createSurface()
    const ends = await sentTwice(surface, operation, noNonce(surface, operation))
    expectRepeat(withoutNonce, ends)
  })

  test(`is ${withNonce} without a nonce too, if the servers recognize all repeats`, async () => {
    const surface = await createSurface({ compatibility: { repeatedRequests: 'refuse' } })
    const ends = await sentTwice(surface, operation, noNonce(surface, operation))
    expectRepeat(withNonce, ends)
  })
})

/** All refusals of requests whose signature is verified, with the operations that have them. */
const afterVerification = faults
  .slice(faults.findIndex(({ refusal }) => refusal === 'repeated') + 1)
  .filter(({ refusal }) => refusal !== 'busy' && refusal !== 'internal')
  .map((fault) => [`${fault.refusal} ${fault.name ?? ''}`.trim(), fault] as const)

describe('a refused request', () => {
  test.each(afterVerification)(
    'is refused again, if its bytes arrive again: %s',
    async (_, fault) => {
      for (const operation of operations.filter((each) => each in fault.at)) {
        const surface = await createSurface()
        const scene: Scene = { surface, operation, asked: surface.ask(operation), sending: {} }
        await arrange(scene, [fault])
        const request = surface.sign(scene.asked, scene.sending)
        const [first, second] = [await endOf(surface, request), await endOf(surface, request)]
        expect([operation, first.end]).toEqual([operation, fault.refusal])
        expect([operation, second]).toEqual([operation, first])
      }
    },
  )
})
