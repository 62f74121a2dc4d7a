import { describe, expect, test } from 'vitest'
import type { SpendingLimit } from '../../src/entry-core.js'
import type { GrantAmendment } from '../../src/index.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import { walletInProcesses } from '../support/two-processes.js'
import { alice, interactionId } from '../support/world.js'

const everyMinute = 'R/2026-11-21T12:00:00Z/PT1M'
const minute = 60_000

/** A wallet whose owner has limited an app that may pay 1000 in all. */
async function limitedApp(limits: readonly SpendingLimit[], isRemote = false) {
  const world = walletInProcesses(isRemote ? 2 : 1)
  const client = world.client()
  const granted = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1_000) })])
  const amend = (conditions: GrantAmendment['conditions'] = {}) =>
    world.auth.grants.amend(granted.grantId, { conditions })
  expect(await amend({ limits })).toMatchObject({ ok: true, changed: true })
  return { world, client, amend, ...granted }
}

const exceeded = {
  error: {
    code: 'not_permitted_now',
    description: 'The account owner does not permit this payment now',
  },
}

describe.each([
  ['in one process', false],
  ['in two processes', true],
])('the limits of an owner for a grant, %s', (_, isRemote) => {
  test('count in each of their windows, beside the limit of the client', async () => {
    const limits = [{ payments: 2, interval: everyMinute }, { debitAmount: usd(100) }]
    const { world, client, token } = await limitedApp(limits, isRemote)
    expect((await pay(client, token, 40)).status).toBe(201)
    expect((await pay(client, token, 40)).status).toBe(201)
    const third = await pay(client, token, 10)
    expect([third.status, third.body]).toEqual([403, exceeded])
    world.clock.advance(minute)
    expect(await pay(client, token, 21)).toMatchObject({ status: 403, body: exceeded })
    expect((await pay(client, token, 20)).status).toBe(201)
    // The client sees what it has spent, and nothing of the limits.
    expect(await spentUnder(client, token)).toMatchObject({ spentDebitAmount: usd(100) })
  })

  test('get back what a payment does not send, and its place if it sends nothing', async () => {
    const { world, client, token } = await limitedApp([{ payments: 1 }], isRemote)
    const { outgoingPayments } = world.resources
    const paid = await pay(client, token, 40)
    const id = outgoingPayments.idOf(paid.body.id) ?? ''
    expect((await pay(client, token, 40)).status).toBe(403)
    expect(await outgoingPayments.cancel(id)).toMatchObject({ ok: true, changed: true })
    expect(await outgoingPayments.cancel(id)).toMatchObject({ ok: true, changed: false })
    const again = outgoingPayments.idOf((await pay(client, token, 40)).body.id) ?? ''
    await outgoingPayments.begin(again)
    const totals = { sentAmount: usd(1) }
    expect(await outgoingPayments.fail(again, totals)).toMatchObject({ ok: true })
    expect((await pay(client, token, 1)).status).toBe(403)
  })

  test('apply from the amendment on, also below what was spent', async () => {
    const { client, token, amend } = await limitedApp([{ debitAmount: usd(100) }], isRemote)
    expect((await pay(client, token, 40)).status).toBe(201)
    await amend({ limits: [{ debitAmount: usd(30) }] })
    expect((await pay(client, token, 1)).status).toBe(403)
  })
})

describe('the limits of an approval', () => {
  async function approving(limits: readonly object[], accounts: readonly unknown[] = [alice]) {
    const world = createSpendingWorld()
    const access = [outgoingItem({ debitAmount: usd(1_000) })]
    const requested = await world.client().request(access, { start: ['redirect'] })
    const id = interactionId(requested.body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: accounts, conditions: { limits } }
    const approved = await world.auth.interactions.approve(id, approval as never)
    const grantId = id.split('.')[0] ?? ''
    return { approved, grant: await world.auth.grants.get(grantId) }
  }

  test('are in the view of the grant', async () => {
    const limits = [{ debitAmount: usd(100), payments: 3, interval: everyMinute }, { payments: 9 }]
    const { approved, grant } = await approving(limits)
    expect(approved).toMatchObject({ ok: true })
    expect(grant?.conditions).toEqual({ limits })
  })

  test.each<[string, readonly object[], string]>([
    [
      'four',
      [1, 2, 3, 4].map((each) => ({ payments: 1, interval: `R${each}/2026-01-01T00:00:00Z/P1D` })),
      'at most 3',
    ],
    ['none', [], 'at least one'],
    ['a count of 0', [{ payments: 0 }], 'must be an integer from 1'],
    ['a fraction', [{ payments: 1.5 }], 'must be an integer from 1'],
    ['nothing to limit', [{ interval: everyMinute }], 'must have debitAmount, payments or both'],
    [
      'two of one interval',
      [{ payments: 1 }, { debitAmount: usd(1) }],
      'two limits with the same interval',
    ],
    ['an interval that is none', [{ payments: 1, interval: 'P1D' }], 'must have the form'],
    [
      'windows of a second',
      [{ payments: 1, interval: 'R/2026-01-01T00:00:00Z/PT1S' }],
      'at least 60000 ms',
    ],
    ['a member that is unknown', [{ payments: 1, receiveAmount: usd(1) }], 'is not allowed'],
    ['an amount that is none', [{ debitAmount: usd(-1) }], 'unsigned 64-bit integer'],
  ])('are invalid input if there is %s', async (_, limits, problem) => {
    await expect(approving(limits)).rejects.toThrow(problem)
  })

  test.each<[string, readonly unknown[], string]>([
    ['the account', [{ url: alice, assetCode: 'USD', assetScale: 2 }], 'asset_mismatch'],
    ['the access', [alice], 'limits_contradicted'],
  ])('are refused in another asset than %s', async (of, accounts, refusal) => {
    const limits = [{ debitAmount: { value: '1', assetCode: 'EUR', assetScale: 2 } }]
    const access = of === 'the account' ? {} : { debitAmount: usd(1_000) }
    const world = createSpendingWorld()
    const requested = await world.client().request([outgoingItem(access)], { start: ['redirect'] })
    const id = interactionId(requested.body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: accounts, conditions: { limits } }
    expect(await world.auth.interactions.approve(id, approval as never)).toMatchObject({ refusal })
  })
})

describe('an amendment of a grant', () => {
  const eur = { value: '1', assetCode: 'EUR', assetScale: 2 }
  const usdAlice = { url: alice, assetCode: 'USD', assetScale: 2 }

  async function granted(access: object, accounts: readonly unknown[]) {
    const world = createSpendingWorld()
    const client = world.client()
    const requested = await client.request([outgoingItem(access)], { start: ['redirect'] })
    const id = interactionId(requested.body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: accounts }
    expect(await world.auth.interactions.approve(id, approval as never)).toMatchObject({ ok: true })
    world.clock.advance(5_000)
    const { body } = await client.continue(requested.body.continue)
    const [grantId = ''] = id.split('.')
    const amend = (amendment: GrantAmendment) => world.auth.grants.amend(grantId, amendment)
    return { amend, pays: () => pay(client, body.access_token.value, 10) }
  }

  test.each<[string, GrantAmendment]>([
    ['a limit', { conditions: { limits: [{ debitAmount: eur }] } }],
    ['a limit of a number too', { conditions: { limits: [{ debitAmount: eur, payments: 5 }] } }],
    ['a maximum', { conditions: { paymentMax: eur } }],
    ['an item', { access: [{ itemId: '1', ...outgoingItem({ debitAmount: eur }) }] }],
  ])('to %s in an asset that the account does not have is refused', async (_, amendment) => {
    const { amend, pays } = await granted({}, [usdAlice])
    expect(await amend(amendment)).toMatchObject({ refusal: 'asset_mismatch' })
    expect(await amend({ conditions: { limits: [{ payments: 5 }] } })).toMatchObject({ ok: true })
    const both = { conditions: { limits: [{ payments: 5, debitAmount: eur }] } }
    expect(await amend(both)).toMatchObject({ refusal: 'asset_mismatch' })
    expect(await amend({ conditions: { paymentMax: usd(10) } })).toMatchObject({ ok: true })
    expect((await pays()).status).toBe(201)
  })

  test('is as free as its approval if the host stated no asset', async () => {
    const { amend } = await granted({}, [alice])
    expect(await amend({ conditions: { paymentMax: eur } })).toMatchObject({ ok: true })
  })
})
