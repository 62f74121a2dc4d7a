import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { publicReasons } from '../../src/core/public-reasons.js'
import { walletAddressRoutes } from '../../src/http/routes.js'
import type { ServerOperation } from '../../src/index.js'
import { refusals } from '../../workshop/scripts/refusals.js'
import { arrange, beforehand, type Fault, faults, type Scene } from '../support/faults.js'
import { sent } from '../support/given.js'
import { runs } from '../support/runs.js'
import { cell, createSurface } from '../support/surface.js'
import { type Answer, grantEndpoint } from '../support/world.js'

const { routes } = await createSurface()
const table = [...beforehand, ...faults]

/** Refusals without a place in the order, since they come up wherever a store or a key set is read. */
function isUnordered({ refusal }: Fault, operation: ServerOperation): boolean {
  const unordered = ['busy', 'internal']
  if (operation === 'introspectToken') unordered.push('introspection_unavailable')
  return unordered.includes(refusal)
}

/** Faults that one request can have together. */
function together(some: readonly Fault[]): boolean {
  const kinds = some.map(({ kind }) => kind)
  const single = ['grant', 'address', 'client'] as const
  return (
    !(kinds.includes('direct') && kinds.includes('quote')) &&
    !(kinds.includes('repeat') && kinds.length > 1) &&
    single.every((each) => kinds.filter((kind) => kind === each).length < 2)
  )
}

async function check(operation: ServerOperation, some: readonly Fault[]): Promise<void> {
  const surface = await createSurface()
  const { world } = surface
  const scene: Scene = { surface, operation, asked: surface.ask(operation), sending: {} }
  await arrange(scene, some)
  world.refusals.length = 0
  const answer = await sent(scene)
  const [first] = some
  const found = { refusal: world.refusals.at(-1)?.refusal, cell: cell(answer) }
  expect(found).toEqual({ refusal: first?.refusal, cell: first?.at[operation] })
  expect(answer.headers['cache-control']).toBe('no-store')
  const isPublic = walletAddressRoutes.some((each) => each.operation === operation)
  expect(answer.headers['vary']).toBe(isPublic ? undefined : 'Authorization')
  if (answer.status === 401) {
    expect(answer.headers['www-authenticate']).toBe(`GNAP as_uri=${grantEndpoint}`)
  }
  if (answer.status === 405) expect(answer.headers['allow']).toBeDefined()
  const { details } = answer.body?.error ?? {}
  if (details !== undefined) expect(mayExplain(first?.refusal, details)).toBe(true)
}

/** Whether a client learns this about a refusal. Problems in bodies, queries and keys of repeats are always its own. */
function mayExplain(refusal: Fault['refusal'] | undefined, details: Answer['body']): boolean {
  const { path, problem, minSendAmount } = details
  if (refusal === 'confirmation_required') return Object.keys(details).join() === 'url,until'
  const isOwn = /^(?:signature|body|query|idempotency_key)_invalid$/.test(refusal ?? '')
  const isListed = publicReasons.some((row) => `${row}` === `${[refusal, path, problem]}`)
  return isOwn || isListed || (refusal === 'amount_too_small' && minSendAmount !== undefined)
}

describe('a request with several faults', () => {
  test.each(routes)('is refused for the first one: $operation', async ({ operation }) => {
    const own = table.filter((fault) => operation in fault.at && !isUnordered(fault, operation))
    const maxLength = Math.min(6, own.length)
    const several = fc.subarray(own, { minLength: 2, maxLength }).filter(together)
    const named = several.map((some) =>
      Object.assign(some, {
        [fc.toStringMethod]: () =>
          some.map(({ refusal, name = '' }) => `${refusal} ${name}`).join('; '),
      }),
    )
    await fc.assert(
      fc.asyncProperty(named, (some) => check(operation, some)),
      { numRuns: runs(100, 5) },
    )
  })
})

test('the faults are in the order of the table of refusals', () => {
  const rows = Object.keys(refusals)
  // A signature is verified only after its key is known.
  const found = table.filter(({ refusal, name }) => refusal !== 'signature_invalid' || !name)
  const places = found.map(({ refusal }) => rows.indexOf(refusal))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
})
