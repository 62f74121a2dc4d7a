import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Commit } from '../../src/entry-adapter.js'
import { type EventType, memoryStore, type Store } from '../../src/index.js'
import { eventTypes } from '../../src/service/event-record.js'
import { usd } from '../support/incoming-payments.js'
import { invalidInput } from '../support/invalid-input.js'
import { bob, createWorld, incomingAccess, issuedGrant } from '../support/world.js'

/** A store that keeps the kinds of the records of each commit. */
function withCommitLog() {
  const store = memoryStore()
  const commits: string[][] = []
  const logged: Store = {
    ...store,
    async commit(commit: Commit) {
      commits.push(commit.changes.map(({ kind }) => kind).filter((kind) => kind !== 'replay'))
      return store.commit(commit)
    },
  }
  return { store: logged, commits }
}

/** A grant with consent that is rotated and revoked, and an incoming payment that receives its amount. */
async function live(recordsEvents?: readonly EventType[] | boolean) {
  const { store, commits } = withCommitLog()
  // Replaces the option of the world, so that `undefined` selects the default.
  const option = { recordsEvents: recordsEvents as boolean }
  const world = createWorld({ store, auth: option, resources: option })
  const client = world.client()
  const { token } = await issuedGrant(world, client)
  const rotated = await client.rotate(token)
  await client.revoke(rotated.body.access_token)
  const granted = await client.request([incomingAccess])
  const { value } = granted.body.access_token
  const body = { walletAddress: bob, incomingAmount: usd('5') }
  const { id } = (await client.createPayment(value, body)).body
  const paymentId = id.slice(id.lastIndexOf('/') + 1)
  await world.resources.incomingPayments.receive(paymentId, { transferId: 't', amount: usd('5') })
  const types: string[] = []
  for (const { events } of [world.auth, world.resources]) {
    await events.drain(({ type }) => void types.push(type))
  }
  return { types, commits }
}

describe('the events that a server records', () => {
  test('are by default those of consent, revocation and money', async () => {
    const { types } = await live()
    expect(types.toSorted()).toEqual([
      'grant.approved',
      'grant.revoked',
      'incoming-payment.completed',
      'incoming-payment.received',
    ])
  })

  test('add no row to an operation whose event is not recorded', async () => {
    const { commits } = await live()
    // Request, issue and rotation; request and creation.
    expect(commits.filter((kinds) => kinds.join() === 'grant')).toHaveLength(4)
    expect(commits).toContainEqual(['incoming-payment'])
  })

  test('are those of the given types, or all, or none', async () => {
    const types: readonly EventType[] = ['grant.rotated', 'incoming-payment.completed']
    expect((await live(types)).types).toEqual(types)
    expect((await live([])).types).toEqual([])
    expect((await live(false)).types).toEqual([])
    expect((await live(true)).types).toHaveLength(10)
  })

  test.each<readonly [given: unknown, problem: string]>([
    ['grant.rotated', 'must be a boolean or a list of event types'],
    [null, 'must be a boolean or a list of event types'],
    [{}, 'must be a boolean or a list of event types'],
  ])('cannot be %j', (given, problem) => {
    const option = { recordsEvents: given as never }
    const error = invalidInput('recordsEvents', { message: `recordsEvents ${problem}` })
    expect(() => createWorld({ auth: option })).toThrow(error)
    expect(() => createWorld({ resources: option })).toThrow(error)
  })

  test.each(['grant.rotate', '__proto__', 'toString', 7, null])(
    'cannot contain %j: the error lists the types',
    (given) => {
      const option = { recordsEvents: ['quote.created', given] as never[] }
      const message = `recordsEvents.1 must be one of ${Object.keys(eventTypes).join(', ')}`
      const error = invalidInput('recordsEvents.1', { message })
      expect(() => createWorld({ auth: option })).toThrow(error)
      expect(() => createWorld({ resources: option })).toThrow(error)
    },
  )

  test('are documented with what is the default', () => {
    const document = readFileSync('docs/events.md', 'utf8')
    const rows = [...document.matchAll(/^\| `([a-z-]+\.[a-z-]+)` \| (yes|no) \|/gm)]
    const documented = rows.map(([, type, byDefault]) => [type, byDefault === 'yes'])
    expect(Object.fromEntries(documented)).toEqual(eventTypes)
  })
})
