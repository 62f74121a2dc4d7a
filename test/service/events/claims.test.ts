import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../../src/index.js'
import {
  abandonedAfterMs,
  type ClaimRecord,
  createClaims,
  decideClaim,
  decideRelease,
} from '../../../src/service/events/claims.js'
import { paymentServices } from '../../support/outbox.js'
import { virtualTime } from '../../support/virtual-time.js'

const [one, other] = ['one', 'other']
const free: ClaimRecord = { id: 'claim', version: 3, commandId: 'before', started: [] }
const heldBy = (holder: string): ClaimRecord => ({ ...free, holder, started: ['begun'] })

function attemptOf(isRenewal: boolean, isAbandoned = false) {
  const own = { id: 'claim', commandId: 'now', holder: one, started: ['next'] }
  return { ...own, isRenewal, isAbandoned: () => isAbandoned }
}

const taken = (version: number) => {
  const claim = { id: 'claim', version, commandId: 'now', holder: one, started: ['next'] }
  return { isHeld: true, claim }
}

describe('a consumer', () => {
  test.each([
    ['takes a slice that nobody has held', undefined, attemptOf(false), taken(1)],
    ['takes a free slice', free, attemptOf(false), taken(4)],
    ['keeps its own', heldBy(one), attemptOf(true), taken(4)],
    ['leaves it to another', heldBy(other), attemptOf(false), undefined],
    ['has lost it to another', heldBy(other), attemptOf(true), undefined],
    ['has lost it if it is free again', free, attemptOf(true), undefined],
  ])('%s', (_, found, attempt, result) => {
    expect(decideClaim(found, attempt)).toEqual(result ?? { isHeld: false, claim: found })
  })

  test('that takes the slice of a dead one leaves its events named, and begins none', () => {
    const { claim } = taken(4)
    expect(decideClaim(heldBy(other), attemptOf(false, true))).toEqual({
      isHeld: true,
      claim: { ...claim, started: ['begun'] },
      abandoned: ['begun'],
    })
  })

  test('gives back a slice that it holds, and no other', () => {
    const { holder: _holder, ...rest } = heldBy(one)
    const released = { ...rest, version: 4, commandId: 'now', started: [] }
    expect(decideRelease(heldBy(one), one, 'now')).toEqual(released)
    expect(decideRelease(heldBy(other), one, 'now')).toBeUndefined()
    expect(decideRelease(undefined, one, 'now')).toBeUndefined()
  })
})

/** The claims of a process, and how often it loads something. */
function claimsOf(store: Store = memoryStore(), time = virtualTime(), seed = 'seed') {
  const counted = { loads: 0 }
  const load: Store['load'] = (keys) => {
    counted.loads += 1
    return store.load(keys)
  }
  const setup = { store: { ...store, load }, pacing: time.pacing, seed, combines: true }
  const { context } = paymentServices(setup)
  return { claims: createClaims(context), counted, store, time }
}

describe('the claims of a process', () => {
  test('are loaded once, as long as no other process takes the slice', async () => {
    const { claims, counted } = claimsOf()
    const first = await claims.take(0, ['begun'], undefined)
    counted.loads = 0
    const renewed = await claims.take(0, ['begun', 'next'], first.claim)
    await claims.release(0, renewed.claim)
    const again = await claims.take(0, ['later'], undefined)
    expect([renewed.isHeld, again.isHeld, counted.loads]).toEqual([true, true, 0])
    expect(again.claim.started).toEqual(['later'])
  })

  test('include no slice of another process until its claim has not changed for 15 s', async () => {
    const { claims, store, time } = claimsOf()
    const { claims: others } = claimsOf(store, time, 'other')
    const { claim } = await others.take(0, ['begun'], undefined)
    const isHeld = async () => (await claims.take(0, [], undefined)).isHeld
    expect(await isHeld()).toBe(false)
    await time.until(time.sleep(abandonedAfterMs - 1))
    expect(await isHeld()).toBe(false)
    const renewed = await others.take(0, ['begun'], claim)
    await time.until(time.sleep(1))
    expect([renewed.isHeld, await isHeld()]).toEqual([true, false])
    await time.until(time.sleep(abandonedAfterMs - 1))
    expect(await isHeld()).toBe(false)
    await time.until(time.sleep(1))
    expect(await claims.take(0, [], undefined)).toMatchObject({
      isHeld: true,
      abandoned: ['begun'],
    })
    expect(await others.take(0, [], renewed.claim)).toMatchObject({ isHeld: false })
  })

  test('of a consumer that has ended are taken at once by another one of its process', async () => {
    const { claims } = claimsOf()
    const { claim } = await claims.take(0, ['begun'], undefined)
    await claims.take(1, [], undefined)
    claims.abandon(0, claim.holder)
    expect(await claims.take(0, [], undefined)).toMatchObject({
      isHeld: true,
      abandoned: ['begun'],
    })
    expect(await claims.take(1, [], undefined)).toMatchObject({ isHeld: false })
  })

  test('that cannot be renewed stay those of their consumer until it gives them up', async () => {
    const store = memoryStore()
    let isAway = false
    const commit: Store['commit'] = async (written) => {
      if (isAway) throw new Error('the store is away')
      return store.commit(written)
    }
    const { claims, time } = claimsOf({ ...store, commit })
    const { claim } = await claims.take(0, ['begun'], undefined)
    isAway = true
    await expect(time.until(claims.take(0, ['begun'], claim))).rejects.toThrow('away')
    isAway = false
    expect(await claims.take(0, [], undefined)).toMatchObject({ isHeld: false })
  })
})
