import type { Grant, OutgoingPayment } from '../../../src/entry-core.js'
import { shopReceiver, usd } from '../../../test/support/spending.js'
import { alice, bob, resourceServer } from '../../../test/support/world.js'
import { count, type GrantEntry, type Intent, type TokenEntry } from '../journal.js'
import type { Answer, Caller } from './caller.js'
import { pickGrant, pickToken } from './grants.js'

const idIn = (url: string) => url.slice(url.lastIndexOf('/') + 1)

function receivingToken(caller: Caller) {
  const grant = pickGrant(caller, ({ type, tokens }) => type === 'incoming' && tokens.length > 0)
  const token = grant && pickToken(caller, grant)
  return grant && token && { grant, token }
}

/** Creates an incoming payment. With a nonce, the same message makes only one. */
export async function createIncoming(caller: Caller): Promise<void> {
  const { draw } = caller.world.scheduler
  const held = receivingToken(caller)
  if (held === undefined) return
  const { grant, token } = held
  const nonce = draw.chance(60)
  const body = {
    walletAddress: bob,
    ...(draw.chance(50) && { incomingAmount: usd(1 + draw.below(600)) }),
    ...(nonce && { metadata: { once: `message ${caller.unique()}` } }),
  }
  const url = `${resourceServer}/incoming-payments`
  const answer = await caller.use(token, { method: 'POST', url, body, nonce, key: grant.key })
  if (answer?.status !== 201) return
  count(caller.world.journal, 'incoming payments')
  const id = idIn(answer.body.id)
  caller.world.journal.incoming.push({ id, client: caller.entry })
  requireStored(caller, 'incoming-payment', id)
}

function requireStored(
  { world }: Caller,
  kind: 'incoming-payment' | 'outgoing-payment',
  id: string,
): void {
  if (world.database.wasWritten(kind, id)) return
  world.journal.breaches.push(`the ${kind} ${id} was acknowledged, and is not stored`)
}

/** Reads, lists or completes incoming payments of the client. */
export async function readIncoming(caller: Caller): Promise<void> {
  const { draw, journal } = { ...caller.world.scheduler, ...caller.world }
  const held = receivingToken(caller)
  const payment = draw.pick(journal.incoming.filter(({ client }) => client === caller.entry))
  if (held === undefined || payment === undefined) return
  const url = `${resourceServer}/incoming-payments/${payment.id}`
  const { key } = held.grant
  const way = draw.one('read', 'read', 'complete', 'list')
  if (way === 'read') {
    await caller.use(held.token, { method: 'GET', url, key })
  } else if (way === 'complete') {
    const answer = await caller.use(held.token, { method: 'POST', url: `${url}/complete`, key }, 2)
    if (answer?.status === 200 && answer.body.completed !== true) {
      journal.breaches.push(`${payment.id} was completed, and its response says that it is not`)
    }
  } else {
    const list = `${resourceServer}/incoming-payments?wallet-address=${encodeURIComponent(bob)}`
    await caller.use(held.token, { method: 'GET', url: list, key })
  }
}

function payingToken(caller: Caller, intent?: Intent): Held | undefined {
  const grant =
    intent?.grant ??
    pickGrant(caller, ({ type, tokens }) => type === 'outgoing' && tokens.length > 0)
  const token = grant && pickToken(caller, grant)
  return grant && token && { grant, token }
}

interface Held {
  readonly grant: GrantEntry
  readonly token: TokenEntry
}

/** Makes a payment, sometimes two at the same time with one token. */
export async function pay(caller: Caller): Promise<void> {
  const held = payingToken(caller)
  if (held === undefined) return
  const times = caller.world.scheduler.draw.chance(25) ? 2 : 1
  await Promise.all(Array.from({ length: times }, () => payOnce(caller, held)))
}

/** Makes a payment: by a quote, with an idempotency key, or with neither. */
async function payOnce(caller: Caller, held: Held): Promise<void> {
  const { draw } = caller.world.scheduler
  const way = draw.one('quote', 'key', 'bare', 'bare')
  if (way === 'bare') return payBarely(caller, held)
  const id = caller.unique()
  const metadata = { once: `intent ${id}` }
  const amount = usd(1 + draw.below(400))
  let body: object = {
    walletAddress: alice,
    incomingPayment: shopReceiver,
    debitAmount: amount,
    metadata,
  }
  if (way === 'quote') {
    const asked = { walletAddress: alice, receiver: shopReceiver, method: 'ilp' }
    const name = draw.one('debitAmount', 'receiveAmount')
    const quoted = await caller.use(held.token, {
      method: 'POST',
      url: `${resourceServer}/quotes`,
      body: { ...asked, [name]: amount },
      key: held.grant.key,
    })
    if (quoted?.status !== 201) return
    body = { walletAddress: alice, quoteId: quoted.body.id, metadata }
  }
  const keyed = way === 'key' ? { idempotencyKey: `key-${id}` } : {}
  const intent: Intent = { id, grant: held.grant, body, ...keyed }
  caller.world.journal.intents.push(intent)
  await settle(caller, intent)
}

/** Repeats an earlier request, perhaps with another token of its grant. */
export async function payAgain(caller: Caller): Promise<void> {
  const { journal, scheduler } = caller.world
  const own = journal.intents.filter(({ grant }) => grant.client === caller.entry)
  const intent = scheduler.draw.pick(own.slice(-8))
  if (intent !== undefined) await settle(caller, intent)
}

const hostRefusals = [
  'payment_denied',
  'insufficient_funds',
  'confirmation_declined',
  'confirmation_expired',
]

/** A refusal of the host is final for a day; the clocks of two servers may differ. */
const refusalMs = 23 * 3_600_000

async function settle(caller: Caller, intent: Intent): Promise<void> {
  const { journal, database, scheduler } = caller.world
  const held = payingToken(caller, intent)
  if (held === undefined) return
  const { body, idempotencyKey } = intent
  const url = `${resourceServer}/outgoing-payments`
  const asked = { method: 'POST', url, body, key: held.grant.key } as const
  const keyed = idempotencyKey === undefined ? asked : { ...asked, idempotencyKey }
  const before = intent.paymentId
  const wasThere = before !== undefined && database.peek('outgoing-payment', before) !== undefined
  const answer = await caller.use(held.token, keyed, 1 + scheduler.draw.below(3))
  const { refusedAt = Number.NEGATIVE_INFINITY } = intent
  if (answer?.status === 403 && hostRefusals.includes(answer.body.error.code)) {
    if (wasThere) journal.breaches.push(`the intention ${intent.id} was paid, and then refused`)
    intent.refusedAt = scheduler.now()
  }
  if (wasThere && answer?.body?.error?.code === 'confirmation_required') {
    journal.breaches.push(`the intention ${intent.id} was paid, and then waits for its owner`)
  }
  if (answer?.status !== 201) return
  if (scheduler.now() < refusedAt + refusalMs) {
    journal.breaches.push(`the intention ${intent.id} was refused, and then paid`)
  }
  const id = idIn(answer.body.id)
  if (wasThere && id !== before) {
    journal.breaches.push(`the intention ${intent.id} has two payments: ${before} and ${id}`)
  }
  intent.paymentId = id
  notePayment(caller, answer)
}

function notePayment(caller: Caller, { body }: Answer): void {
  count(caller.world.journal, 'outgoing payments')
  requireStored(caller, 'outgoing-payment', idIn(body.id))
}

/** Pays without anything that identifies a repeat. Each message makes at most one payment. */
async function payBarely(caller: Caller, held: Held): Promise<void> {
  const { draw } = caller.world.scheduler
  const body = {
    walletAddress: alice,
    incomingPayment: shopReceiver,
    debitAmount: usd(1 + draw.below(400)),
    metadata: { once: `message ${caller.unique()}` },
  }
  const url = `${resourceServer}/outgoing-payments`
  const answer = await caller.use(held.token, { method: 'POST', url, body, key: held.grant.key })
  if (answer?.status !== 201) return
  notePayment(caller, answer)
  requireOwnItem(caller, held.token, idIn(answer.body.id))
}

/** A payment is charged to an item of the token that created it. */
function requireOwnItem({ world }: Caller, { label }: TokenEntry, paymentId: string): void {
  const payment = world.database.peek('outgoing-payment', paymentId) as OutgoingPayment | undefined
  const { grantId = '' } = payment ?? {}
  const grant = world.database.peek('grant', grantId) as Grant | undefined
  const item = grant?.granted?.find(({ itemId }) => itemId === payment?.itemId)
  if (item === undefined || item.label === label) return
  world.journal.breaches.push(`${paymentId} is charged to an item of another token`)
}

/** Lists and reads what others have paid: the payments of any client, and none that the owner has ordered. */
export async function listPaid(caller: Caller): Promise<void> {
  const held = payingToken(caller)
  if (held === undefined) return
  const { journal, database, scheduler } = caller.world
  const { key } = held.grant
  const isOrdered = (id: string) => {
    const record = database.peek('outgoing-payment', id) as OutgoingPayment | undefined
    return record !== undefined && record.client === undefined
  }
  const url = `${resourceServer}/outgoing-payments`
  const list = `${url}?wallet-address=${encodeURIComponent(alice)}&last=10`
  const listed = await caller.use(held.token, { method: 'GET', url: list, key })
  if (listed?.status === 200) count(journal, 'lists of payments')
  for (const { id } of listed?.status === 200 ? listed.body.result : []) {
    if (!isOrdered(idIn(id))) continue
    journal.breaches.push(`a client has ${id}, which the owner ordered, in its list`)
  }
  const id = scheduler.draw.pick(journal.orders.flatMap(({ paymentId }) => paymentId ?? []))
  if (id === undefined) return
  const read = await caller.use(held.token, { method: 'GET', url: `${url}/${id}`, key })
  if (read?.status === 200) journal.breaches.push(`a client has read the order ${id}`)
}

/** Reads what the grant has spent. */
export async function readSpent(caller: Caller): Promise<void> {
  const held = payingToken(caller)
  if (held === undefined) return
  const url = `${resourceServer}/outgoing-payment-grant`
  await caller.use(held.token, { method: 'GET', url, key: held.grant.key })
}
