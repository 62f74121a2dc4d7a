import type { PaymentRecord } from '../../../src/core/outgoing-payment/record.js'
import type { ConditionChanges } from '../../../src/entry-core.js'
import type { HostResult, TokenItem } from '../../../src/index.js'
import { shopReceiver, usd } from '../../../test/support/spending.js'
import { alice } from '../../../test/support/world.js'
import { bury, count, type GrantEntry, type OrderEntry } from '../journal.js'
import type { ServerProcess } from '../servers.js'
import type { World } from '../world.js'

const resourceOwner = 'alice'

/** Resolves to `undefined` if the host's call fails, which a fault must explain. */
export async function attempt<Result>(
  { climate, journal, scheduler }: World,
  label: string,
  call: () => Promise<Result>,
): Promise<Result | undefined> {
  const [faults, at] = [climate.faults, scheduler.now()]
  try {
    return await call()
  } catch (error) {
    if (climate.faults === faults && scheduler.now() - at < 3_000) {
      journal.breaches.push(`${label} failed without a fault: ${error}`)
    }
    return undefined
  }
}

/** The owner decides on one of the latest requests; sometimes in two windows of the browser at the same time. */
export async function decide(world: World, server: ServerProcess): Promise<void> {
  const { draw } = world.scheduler
  const asking = world.journal.grants.filter(({ interaction }) => interaction !== undefined)
  const undecided = asking.filter(({ decided }) => !decided.approved && !decided.denied)
  const grant = draw.pick(draw.chance(85) && undecided.length > 0 ? undecided : asking.slice(-4))
  if (grant === undefined) return
  const ways = [draw.chance(85) ? approve : deny]
  if (draw.chance(15)) ways.push(draw.one(approve, deny))
  await Promise.all(ways.map((way) => way(world, server, grant)))
}

async function approve(world: World, { auth }: ServerProcess, grant: GrantEntry): Promise<void> {
  const { journal, scheduler } = world
  const access = scheduler.draw.chance(25) ? narrowed(grant.requested) : undefined
  grant.decided.approving += 1
  grant.unknown += 1
  const isLimited = scheduler.draw.chance(25)
  const approval = {
    resourceOwner,
    walletAddresses: [alice],
    ...(access && { access }),
    ...(isLimited && { conditions: { limits: [{ payments: 2 }] } }),
  }
  const id = grant.interaction ?? ''
  const result = await attempt(world, 'approve', () => auth.interactions.approve(id, approval))
  if (result === undefined) return
  grant.unknown -= 1
  if (!result.ok) return
  count(journal, 'approvals')
  if (grant.decided.denied) journal.breaches.push(`${grant.id} was denied, and then approved`)
  grant.decided.approved = true
  const reference = result.redirect && new URL(result.redirect).searchParams.get('interact_ref')
  if (!reference) return
  grant.references.push(reference)
  journal.secrets.add(reference)
}

function narrowed(requested: readonly TokenItem[]): readonly TokenItem[] {
  return requested.map((item) => {
    const { limits } = item
    if (limits?.debitAmount === undefined) return item
    return {
      ...item,
      limits: { ...limits, debitAmount: usd(Number(limits.debitAmount.value) / 2) },
    }
  })
}

async function deny(world: World, { auth }: ServerProcess, grant: GrantEntry): Promise<void> {
  const result = await attempt(world, 'deny', () => auth.interactions.deny(grant.interaction ?? ''))
  if (!result?.ok) return
  count(world.journal, 'denials')
  if (grant.decided.approved) {
    world.journal.breaches.push(`${grant.id} was approved, and then denied`)
  }
  grant.decided.denied = true
  grant.over = true
}

/** The owner withdraws a consent, found in the list of connected apps, which must contain each one. */
export async function withdraw(world: World, { auth }: ServerProcess): Promise<void> {
  const { journal, scheduler, database } = world
  const approved = journal.grants.filter(({ decided }) => decided.approved)
  const listed = await attempt(world, 'list grants', async () => {
    const ids: string[] = []
    for await (const { grantId } of auth.grants.iterate({ resourceOwner })) ids.push(grantId)
    return ids
  })
  if (listed === undefined) return
  for (const { id } of approved) {
    const times = listed.filter((each) => each === id).length
    const isKept = database.peek('grant', id) !== undefined
    if (times > 1 || (times === 0 && isKept)) {
      journal.breaches.push(`the approved grant ${id} is ${times} times in the list of its owner`)
    }
  }
  const id = scheduler.draw.pick(listed)
  const grant = journal.grants.find((each) => each.id === id)
  if (grant === undefined) return
  grant.unknown += 1
  const revoked = await attempt(world, 'revoke', () => auth.grants.revoke(grant.id))
  if (revoked === undefined) return
  grant.unknown -= 1
  if (!revoked.ok || !revoked.changed) return
  count(journal, 'withdrawals')
  grant.over = true
  bury(grant, 'withdrawn by the owner')
}

/** The owner confirms or declines a payment, sometimes in two windows of the browser, or another person tries. */
export async function confirm(world: World, { resources }: ServerProcess): Promise<void> {
  const { journal, scheduler, holds, database, isRemote } = world
  const { draw } = scheduler
  const { outgoingPayments } = resources
  const asked = [...holds.large].slice(-8)
  const waiting = asked.filter((each) => {
    const record = database.peek('outgoing-payment', each) as PaymentRecord | undefined
    return record?.state === 'reserved'
  })
  const id = draw.pick(draw.chance(80) && waiting.length > 0 ? waiting : asked)
  if (id === undefined) return
  const payment = await attempt(world, 'to confirm', () => outgoingPayments.toConfirm(id))
  if (payment === undefined) return
  const { receiver, debitAmount, receiveAmount } = payment
  const isOther = draw.chance(10)
  const shown = { receiver, debitAmount: isOther ? usd(1) : debitAmount, receiveAmount }
  const owner = draw.chance(10) ? 'mallory' : resourceOwner
  const decides = draw.one('confirm', 'confirm', 'decline')
  const isValid = (!isOther || decides === 'decline') && (owner === resourceOwner || isRemote)
  if (isValid && decides === 'confirm') journal.confirmed.add(id)
  const decide = async () => {
    const by = { resourceOwner: owner }
    const result = await attempt<HostResult>(world, decides, () =>
      decides === 'decline'
        ? outgoingPayments.decline(id, by)
        : outgoingPayments.confirm(id, { ...by, ...shown }),
    )
    if (!result?.ok) return
    if (!isValid) journal.breaches.push(`${id} was decided by ${owner}, or was not shown`)
    count(journal, decides === 'confirm' ? 'confirmations' : 'declined by owners')
  }
  await Promise.all(draw.chance(20) ? [decide(), decide()] : [decide()])
}

const declined = [
  'funds_insufficient',
  'payment_not_allowed',
  'confirmation_declined',
  'confirmation_expired',
]

/** How long a key is kept at least. */
const keyMs = 400 * 86_400_000

/** The owner pays in the host's own app, or the app repeats an earlier order, sometimes two at the same time. */
export async function order(world: World, server: ServerProcess): Promise<void> {
  const { journal, scheduler } = world
  const { draw } = scheduler
  const number = journal.orders.length + 1
  const earlier = draw.chance(50) ? draw.pick(journal.orders.slice(-4)) : undefined
  const entry: OrderEntry = earlier ?? {
    payment: {
      walletAddress: alice,
      receiver: shopReceiver,
      debitAmount: usd(1 + draw.below(400)),
      metadata: { once: `order ${number}` },
      idempotencyKey: `key-${number}`,
      resourceOwner,
      ...(draw.chance(30) && { countsInAccountLimits: true }),
    },
    at: scheduler.now(),
    created: 0,
  }
  if (earlier === undefined) journal.orders.push(entry)
  const times = draw.chance(25) ? 2 : 1
  await Promise.all(Array.from({ length: times }, () => orderOnce(world, server, entry)))
}

/** A key pays once, also after its payment was removed, and what was declined stays so. */
async function orderOnce(
  world: World,
  { resources }: ServerProcess,
  entry: OrderEntry,
): Promise<void> {
  const { journal, scheduler, database, climate } = world
  const { payment, paymentId: before } = entry
  const { isDeclined } = entry
  const result = await attempt(world, 'order', () => resources.outgoingPayments.create(payment))
  const isKept = scheduler.now() < entry.at + keyMs - climate.weather.skewMaxMs
  if (result === undefined || !isKept) return
  const name = `the order ${payment.idempotencyKey}`
  if (!result.ok) {
    if (declined.includes(result.refusal)) entry.isDeclined = true
    const isThere = before !== undefined && database.peek('outgoing-payment', before) !== undefined
    if (isThere) journal.breaches.push(`${name} was paid, and then refused: ${result.refusal}`)
    return
  }
  const { paymentId } = result.payment
  count(journal, 'orders')
  if (isDeclined) journal.breaches.push(`${name} was declined, and then paid`)
  if (before !== undefined && before !== paymentId) {
    journal.breaches.push(`${name} has two payments: ${before} and ${paymentId}`)
  }
  entry.paymentId = paymentId
  if (result.changed) entry.created += 1
  if (entry.created > 1) journal.breaches.push(`${name} was paid ${entry.created} times`)
  if (result.changed && !database.wasWritten('outgoing-payment', paymentId)) {
    journal.breaches.push(`${name} was acknowledged, and is not stored`)
  }
}

/** The owner pauses a grant for a minute, ends a pause, or limits the single payment or the number of payments. */
export async function amend(world: World, { auth }: ServerProcess): Promise<void> {
  const { journal, scheduler } = world
  const { draw } = scheduler
  const approved = journal.grants.filter(({ decided, over }) => decided.approved && !over)
  const grant = draw.pick(approved)
  if (grant === undefined) return
  const pausedUntil = Math.ceil(scheduler.now()) + 60_000
  const conditions = draw.one<ConditionChanges>(
    { pausedUntil },
    { pausedUntil: null },
    { paymentMax: usd(500) },
    { limits: [{ payments: 2 }] },
    { limits: [{ payments: 1 }] },
  )
  grant.unknown += 1
  const result = await attempt(world, 'amend', () => auth.grants.amend(grant.id, { conditions }))
  if (result === undefined) return
  grant.unknown -= 1
  if (result.ok && result.changed) count(journal, 'amendments')
}
