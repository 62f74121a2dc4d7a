import fc, { type Scheduler } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createInteractions } from '../../src/host/interaction.js'
import { memoryStore, type Store } from '../../src/index.js'
import {
  accessTokenClass,
  formatCredential,
  hashSecret,
  namespaceOf,
} from '../../src/protocol/credential.js'
import { createGrants, type GrantAnswer } from '../../src/service/grant.js'
import { createIncomingPayments } from '../../src/service/incoming-payment.js'
import { createIntrospect } from '../../src/service/introspection.js'
import { contextWithRunner, unguardedCall } from '../support/calls.js'
import { manualClock } from '../support/clock.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { seededRandom } from '../support/random.js'
import { runs } from '../support/runs.js'
import { checkThenAct, lastWriteWins, scheduledStore, upsert } from '../support/stores.js'
import {
  alice,
  bob,
  grantEndpoint,
  interactionId,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

/**
 * The number of interleavings of store responses in each search. A search of a broken store ends
 * much earlier.
 */
const schedulesMax = 1_000
const schedules = runs(schedulesMax)

const policy = {
  accessTokenLifetimeMs: 600_000,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 86_400_000,
  retentionMs: 86_400_000,
  intervalCounting: 'occurrences',
} as const

/** Returns the services over a store. The scheduler decides when each of its calls returns. */
function services(store: Store, scheduler: Scheduler | undefined, seed: string) {
  const clientKeys = publishedKeys()
  clientKeys.publish('https://shop.example', testKey('shop'))
  const context = contextWithRunner(
    {
      store: scheduler === undefined ? store : scheduledStore(store, scheduler),
      givenStore: store,
      clock: manualClock(),
      random: seededRandom(seed),
      pacing: {
        elapsedMs: () => 0,
        sleep: async () => void (await scheduler?.schedule(Promise.resolve(), 'pause')),
      },
      namespace: () => namespaceOf(grantEndpoint),
      grantNamespace: () => namespaceOf(grantEndpoint),
      signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
      serverUrl: grantEndpoint,
      recordsEvents: () => true,
      storeTimeoutMs: 3_000,
    },
    // Each write has its own commit, so that the store must decide the races.
    { sharesCommits: false },
  )
  const grants = createGrants(context, policy)
  const interactions = createInteractions(context, grants, policy, {
    grantEndpoint,
    hashEncoding: 'base64',
    denialRedirect: 'open-payments',
  })
  const introspect = createIntrospect(context, grants, clientKeys, policy)
  const payments = createIncomingPayments(
    context,
    {
      walletAddresses: { find: async () => ({ url: bob, assetCode: 'USD', assetScale: 2 }) },
      paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    },
    {
      expiryDefaultMs: 60_000,
      expiryMaxMs: 60_000,
      retentionMs: 60_000,
      unpaidRetentionMs: 60_000,
    },
  )
  return { context, grants, interactions, introspect, payments, call: () => unguardedCall(context) }
}

type Services = ReturnType<typeof services>

async function pendingGrant(setup: Services) {
  const { kid, thumbprint } = testKey('shop')
  const answer = await setup.grants.request(
    {
      client: { walletAddress: 'https://shop.example', kid, thumbprint },
      access: [outgoingAccess],
      needsConsent: true,
      needsFinish: false,
      interact: { finish: { ...withFinish.finish, hashMethod: 'sha-256' } },
    },
    setup.call(),
  )
  if (!answer.ok) throw new Error(answer.reason)
  const { grant, continuationSecret: secret } = answer
  return { grant, secret, id: `${grant.id}.${grant.interaction?.path}` }
}

const approval = { resourceOwner: 'alice', walletAddresses: [alice] }

function refOf(redirect: string | undefined): string {
  return new URL(redirect ?? 'none:').searchParams.get('interact_ref') ?? ''
}

/** Approves a grant on a reliable store. Its client instance has the reference. */
async function approvedGrant(setup: Services) {
  const pending = await pendingGrant(setup)
  const result = await setup.interactions.approve(pending.id, approval)
  if (!result.ok) throw new Error(result.reason)
  const grant = await setup.grants.load(pending.grant.id)
  if (grant === undefined) throw new Error('the grant is gone')
  return { ...pending, grant, interactRef: refOf(result.redirect) }
}

async function issuedGrant(setup: Services) {
  const { grant, secret, interactRef } = await approvedGrant(setup)
  const answer = await setup.grants.continueGrant(grant, { secret, interactRef }, setup.call())
  const [token] = answer.ok ? answer.tokens : []
  if (!answer.ok || token === undefined) throw new Error('no token')
  return { grant: answer.grant, secret, interactRef, token: token.secret }
}

async function presentedAt(manage: string | undefined, secret: string) {
  return { manage: manage ?? '', secret, hash: await hashSecret(secret) }
}

/** Returns the token secrets that clients received, and those that are active now. */
async function tokensTold(setup: Services, grantId: string, answers: readonly unknown[]) {
  const told = answers.flatMap((answer) => {
    const { tokens = [] } = answer as Partial<GrantAnswer>
    return tokens.map(({ secret }) => secret)
  })
  const active: string[] = []
  for (const secret of new Set(told)) {
    const accessToken = formatCredential(accessTokenClass, { grantId, secret })
    if ((await setup.introspect({ accessToken })).active) active.push(secret)
  }
  return { told, active }
}

/** Runs the operations concurrently and returns their results. */
async function atOnce<Result>(
  scheduler: Scheduler,
  ...running: Promise<Result>[]
): Promise<Result[]> {
  return scheduler.waitFor(Promise.all(running))
}

interface Race {
  readonly name: string
  /** `racing` is the contested store; the test uses `store` before and after the race. */
  readonly run: (store: Store, racing: Store, scheduler: Scheduler) => Promise<void>
  /** A broken store that this search must detect. */
  readonly twin: (scheduler: Scheduler, store: Store) => Store
  readonly fault: string
}

const races: Race[] = [
  {
    name: 'continuing twice, beside a poll and a wrong reference, issues one token',
    fault: 'checks first and acts later',
    twin: checkThenAct,
    async run(store, contested, scheduler) {
      const { grant, secret, interactRef } = await approvedGrant(
        services(store, undefined, 'setup'),
      )
      const racing = services(contested, scheduler, 'race')
      const running = [interactRef, interactRef, 'wrong', undefined].map((ref) =>
        racing.grants.continueGrant(
          grant,
          ref === undefined ? { secret } : { secret, interactRef: ref },
          racing.call(),
        ),
      )
      const answers = await atOnce(scheduler, ...running)
      const { told, active } = await tokensTold(
        services(store, undefined, 'after'),
        grant.id,
        answers,
      )
      expect(told).toHaveLength(2)
      expect(new Set(told).size).toBe(1)
      expect(active).toEqual([told[0]])
    },
  },
  {
    name: 'continuing while the grant is revoked leaves no active token',
    fault: 'lets the last writer win',
    twin: (_scheduler, store) => lastWriteWins(store),
    async run(store, contested, scheduler) {
      const { grant, secret, interactRef } = await approvedGrant(
        services(store, undefined, 'setup'),
      )
      const racing = services(contested, scheduler, 'race')
      const revocation = racing.call()
      const answers = await atOnce<unknown>(
        scheduler,
        racing.grants.continueGrant(grant, { secret, interactRef }, racing.call()),
        racing.grants.run(grant, { type: 'revoke', commandId: revocation.commandId }, revocation),
        racing.grants.continueGrant(grant, { secret, interactRef }, racing.call()),
      )
      const after = services(store, undefined, 'after')
      const { active } = await tokensTold(after, grant.id, answers)
      expect(active).toEqual([])
      expect((await after.grants.load(grant.id))?.state).toBe('finalized')
    },
  },
  {
    name: 'rotating three times concurrently leaves one active token, and the old one is inactive',
    fault: 'lets the last writer win',
    twin: (_scheduler, store) => lastWriteWins(store),
    async run(store, contested, scheduler) {
      const { grant, token } = await issuedGrant(services(store, undefined, 'setup'))
      const racing = services(contested, scheduler, 'race')
      const presented = await presentedAt(grant.tokens?.[0]?.manage, token)
      const running = [1, 2, 3].map(() => racing.grants.rotate(grant, presented, racing.call()))
      const answers: unknown[] = await atOnce(scheduler, ...running)
      const old = { tokens: [{ secret: token }] }
      const after = services(store, undefined, 'after')
      const { told, active } = await tokensTold(after, grant.id, [...answers, old])
      expect(told).toHaveLength(4)
      expect(active).toEqual([told[0]])
      expect(active).not.toContain(token)
    },
  },
  {
    name: 'rotating while the token is revoked and the continuation repeated leaves no active token',
    fault: 'checks first and acts later',
    twin: checkThenAct,
    async run(store, contested, scheduler) {
      const { grant, token, secret, interactRef } = await issuedGrant(
        services(store, undefined, 'setup'),
      )
      const racing = services(contested, scheduler, 'race')
      const presented = await presentedAt(grant.tokens?.[0]?.manage, token)
      const { hash, manage } = presented
      const call = racing.call()
      const revocation = {
        type: 'revoke-token',
        commandId: call.commandId,
        presented: { hash, manage },
      } as const
      const [revoked, ...answers] = await atOnce<{ ok: boolean }>(
        scheduler,
        racing.grants.run(grant, revocation, call),
        racing.grants.rotate(grant, presented, racing.call()),
        racing.grants.continueGrant(grant, { secret, interactRef }, racing.call()),
      )
      const after = services(store, undefined, 'after')
      const { told, active } = await tokensTold(after, grant.id, [
        ...answers,
        { tokens: [{ secret: token }] },
      ])
      // If a rotation came first, the revocation does not apply to its new token.
      if (revoked?.ok === false) expect(active).toEqual([told.find((one) => one !== token)])
      else expect(active).toEqual([])
    },
  },
  {
    name: 'approving and denying concurrently have one winner, whose result stands',
    fault: 'lets the last writer win',
    twin: (_scheduler, store) => lastWriteWins(store),
    async run(store, contested, scheduler) {
      const { grant, secret, id } = await pendingGrant(services(store, undefined, 'setup'))
      const racing = services(contested, scheduler, 'race')
      const [denied, ...approved] = await atOnce(
        scheduler,
        racing.interactions.deny(id),
        racing.interactions.approve(id, approval),
        racing.interactions.approve(id, approval),
      )
      const after = services(store, undefined, 'after')
      const decided = await after.grants.load(grant.id)
      expect(decided?.state).toBe(denied?.ok ? 'finalized' : 'approved')
      expect(approved.map(({ ok }) => ok)).toEqual(denied?.ok ? [false, false] : [true, true])
      if (denied?.ok || decided === undefined) return
      // A double click creates two references. Exactly one of them is valid.
      const refs = approved.map((result) => refOf(result.ok ? result.redirect : undefined))
      const hashes = await Promise.all(refs.map(hashSecret))
      expect(hashes.filter((hash) => hash === decided.interaction?.refHash)).toHaveLength(1)
      const interactRef = refs[hashes.indexOf(decided.interaction?.refHash ?? '')] ?? ''
      const issued = await after.grants.continueGrant(
        decided,
        { secret, interactRef },
        after.call(),
      )
      expect(issued).toMatchObject({ tokens: [{ secret: expect.any(String) }] })
    },
  },
  {
    name: 'funds that arrive concurrently are each counted once',
    fault: 'checks first and acts later',
    twin: checkThenAct,
    run: receiveAtOnce,
  },
  {
    name: 'one transfer that is reported for two payments concurrently is counted for one',
    fault: 'overwrites existing records on creation',
    twin: (_scheduler, store) => upsert(store),
    async run(store, contested, scheduler) {
      const setup = services(store, undefined, 'setup')
      const payments = [await newPayment(setup, '60'), await newPayment(setup, '60')]
      const racing = services(contested, scheduler, 'race')
      const results = await atOnce(
        scheduler,
        ...payments.map(({ id: paymentId }) =>
          racing.payments.receive(paymentId, { transferId: 'a', amount: usd('10') }),
        ),
      )
      expect(results.filter(({ ok }) => ok)).toHaveLength(1)
      expect(results.find(({ ok }) => !ok)).toMatchObject({ refusal: 'transfer_mismatch' })
      const after = services(store, undefined, 'after')
      const received = await Promise.all(payments.map(({ id }) => after.payments.load(id)))
      expect(received.map((payment) => payment?.received).toSorted()).toEqual(['0', '10'])
    },
  },
]

function usd(value: string) {
  return { value, assetCode: 'USD', assetScale: 2 }
}

async function newPayment(setup: Services, incomingAmount: string) {
  const created = await setup.payments.create(
    { walletAddress: bob, incomingAmount: usd(incomingAmount) },
    'https://shop.example',
    setup.call(),
  )
  if (!created.ok) throw new Error(created.reason)
  return created.payment
}

async function receiveAtOnce(store: Store, contested: Store, scheduler: Scheduler): Promise<void> {
  const setup = services(store, undefined, 'setup')
  const { id: paymentId } = await newPayment(setup, '60')
  const arrivals = [
    { transferId: 'a', amount: usd('10') },
    { transferId: 'b', amount: usd('20') },
    { transferId: 'a', amount: usd('10') },
    { transferId: 'c', amount: usd('40') },
    { transferId: 'd', amount: usd('80') },
  ]
  const racing = services(contested, scheduler, 'race')
  const results = await atOnce(
    scheduler,
    ...arrivals.map((arrival) => racing.payments.receive(paymentId, { ...arrival })),
  )
  const payment = await services(store, undefined, 'after').payments.load(paymentId)
  const counted = new Map<string, number>()
  arrivals.forEach(({ transferId, amount }, index) => {
    if (results[index]?.ok) counted.set(transferId, Number(amount.value))
  })
  const total = [...counted.values()].reduce((sum, value) => sum + value, 0)
  expect(Number(payment?.received)).toBe(total)
  expect(payment?.completed).toBe(total >= 60)
  for (const result of results) {
    if (!result.ok) expect(result.refusal).toBe('payment_completed')
  }
  // Both reports of one transfer have the same result.
  expect(results[0]?.ok).toBe(results[2]?.ok)
}

function search({ run }: Race, contest: Race['twin'], numRuns: number) {
  const property = fc.asyncProperty(fc.scheduler(), (scheduler) => {
    const store = memoryStore()
    return run(store, contest(scheduler, store), scheduler)
  })
  return fc.check(property, { numRuns, endOnFailure: true })
}

describe.each(races)('$name', (race) => {
  test(`holds in ${schedules} interleavings of store responses`, async () => {
    const { failed, errorInstance, counterexample } = await search(
      race,
      (_scheduler, store) => store,
      schedules,
    )
    expect(errorInstance, String(counterexample)).toBeNull()
    expect(failed).toBe(false)
  })

  test(`does not hold with a store that ${race.fault}`, async () => {
    const { failed } = await search(race, race.twin, schedulesMax)
    expect(failed).toBe(true)
  })
})

test('the interaction of a grant is found by the URL that its client instance received', async () => {
  const setup = services(memoryStore(), undefined, 'setup')
  const { id } = await pendingGrant(setup)
  expect(interactionId(`https://wallet.example/consent/${id}`)).toBe(id)
  expect(await setup.interactions.get(id)).toMatchObject({
    state: 'pending',
    client: 'https://shop.example',
  })
})
