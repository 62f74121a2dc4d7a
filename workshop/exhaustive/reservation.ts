import type { Budget } from '../../src/core/budget/record.js'
import { release } from '../../src/core/budget/release.js'
import type { Grant } from '../../src/core/grant/record.js'
import type { Instant } from '../../src/core/instant.js'
import {
  awaitConfirmation,
  confirmationDeclined,
  waitsForOwner,
} from '../../src/core/outgoing-payment/confirmation.js'
import { reserveOutgoingPayment } from '../../src/core/outgoing-payment/create.js'
import { refuseByGrant, rightsOf } from '../../src/core/outgoing-payment/granted-rights.js'
import {
  confirmByOwner,
  declinableByOwner,
} from '../../src/core/outgoing-payment/owner-decision.js'
import {
  heldBy,
  isCreated,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type PaymentRecord,
  type ReservedPayment,
} from '../../src/core/outgoing-payment/record.js'
import {
  createReserved,
  decideRepeat,
  declinePayment,
  endAsk,
  undecided,
} from '../../src/core/outgoing-payment/reservation.js'
import { decideOutgoingPayment } from '../../src/core/outgoing-payment.js'
import { type EventRecord, eventRecords } from '../../src/service/event-record.js'
import { underGrant } from '../../test/support/under-grant.js'
import { type Move, remembered, type System } from './search.js'

/** The decisions that the services make, of which a planted mistake replaces some. */
export const paymentDecisions = {
  reserveOutgoingPayment,
  decideRepeat,
  createReserved,
  declinePayment,
  refuseByGrant,
  confirmByOwner,
  eventRecords,
  release,
  /** Whether a commit fails if the grant is at another version. */
  guards: true,
  /** Whether a payment is looked up by its token, which a rotation replaces, before it is created. */
  renews: false,
  policy: {
    holdMs: 100,
    retentionMs: 1_000,
    /** A host answers within one instant, or not at all. */
    decideMs: 1,
    /** For one instant, a statement of the host may still take effect, and clocks differ by one instant. */
    lateMs: 2,
  },
}

export type PaymentDecisions = typeof paymentDecisions

const statementMs = 1
const endOfTime = 7

const names = ['p', 'q'] as const
/** Two payments, of which the limit allows one. */
type Name = (typeof names)[number]

const amount = { value: '6', assetCode: 'USD', assetScale: 2 }
const limits = { first: '10', amended: '5' }
const wallet = 'https://wallet.example/alice'

/** A request for a payment, in a process with a clock that may be ahead. */
interface Request {
  readonly id: string
  readonly name: Name
  readonly ahead: number
  /** The grant and token that were introspected. */
  readonly grant: Grant
  readonly reserved?: ReservedPayment
  readonly answer?: 'allowed' | 'refused' | 'failed' | 'for its owner'
}

/** A call of the host, which may outlive its request. */
interface Ask {
  readonly by: string
  readonly name: Name
  /** A hold of the call may take effect before this instant. */
  readonly until: number
  readonly landed: boolean
  /** Whether the owner must confirm the payment before the host holds anything. */
  readonly isEarly: boolean
}

interface World {
  readonly now: number
  readonly grant: Grant
  readonly budget: Budget | undefined
  readonly payments: Readonly<Partial<Record<Name, PaymentRecord>>>
  readonly requests: readonly Request[]
  readonly asks: readonly Ask[]
  readonly holds: readonly Name[]
  /** The end events, and whether they were delivered. */
  readonly ends: readonly {
    readonly name: Name
    readonly notBefore: number
    readonly delivered: boolean
  }[]
  /** What has begun, and which answers the requests for a payment got. */
  readonly begun: readonly string[]
  readonly paid: readonly Name[]
  readonly refused: readonly Name[]
}

const arrivals = {
  first: { id: 'first', name: 'p', ahead: 0 },
  repeat: { id: 'repeat', name: 'p', ahead: 1 },
  other: { id: 'other', name: 'q', ahead: 0 },
} as const

/** Which requests arrive, and what changes the grant meanwhile. */
export interface ReservationSetting {
  readonly requests: readonly (keyof typeof arrivals)[]
  readonly change: 'the owner amends' | 'the owner revokes' | 'the client rotates' | 'nothing'
  /** Whether the owner must confirm each payment. */
  readonly confirms?: true
}

/** The list of the payments that wait for their owner. */
const waitingList = 'waiting'

/** How long the owner can confirm a payment. */
const confirmMs = 2

const grant: Grant = {
  id: 'a-grant-id',
  version: 1,
  commandId: 'approved',
  createdAt: 0,
  client: { walletAddress: 'https://shop.example', kid: 'key', x: 'x', thumbprint: 'key' },
  requested: [],
  granted: [itemUpTo(limits.first)],
  continuation: { path: 'c', tokenHash: 'c', waitMs: 0, acceptedAt: 0 },
  tokens: [{ hash: 'token', manage: 'm', issuedAt: 0, expiresAt: 1_000 }],
}

function itemUpTo(value: string): NonNullable<Grant['granted']>[number] {
  const debitAmount = { ...amount, value }
  const type = 'outgoing-payment'
  return { itemId: '1', type, actions: ['create'], identifier: wallet, limits: { debitAmount } }
}

const beginning: World = {
  now: 0,
  grant,
  budget: undefined,
  payments: {},
  requests: [],
  asks: [],
  holds: [],
  ends: [],
  begun: [],
  paid: [],
  refused: [],
}

type Step = Move<World>

/** What a decision may still read of a payment. Once it has ended, that is its state. */
const paymentText = remembered((payment: PaymentRecord) => {
  const { id, state, version, commandId, lateHoldsUntil, dueAt, debitAmount } = payment
  const confirmed = payment.confirmation && (waitsForOwner(payment) ? 'waits' : 'confirmed')
  const held = `${id} ${state} ${debitAmount.value} ${confirmed}`
  if (state === 'created') return `${held} ${lateHoldsUntil}`
  if (state !== 'reserved') return held
  return `${held} ${version} ${commandId} ${payment.askUntil} ${dueAt} ${lateHoldsUntil}`
})

const askText = remembered(
  ({ by, name, until, landed, isEarly }: Ask) => `${by} ${name} ${until} ${landed} ${isEarly}`,
)

const endText = remembered(
  ({ name, notBefore, delivered }: World['ends'][number]) => `${name} ${notBefore} ${delivered}`,
)

/** A request whose payment has changed since only learns that. Which other version it has read makes no difference. */
function requestText(world: World, { id, grant, reserved, answer, name }: Request): string {
  const isCurrent = reserved && reserved.version === world.payments[name]?.version
  return `${id} ${grant.version} ${answer} ${isCurrent}`
}

function parts(world: World): string[] {
  const { now, grant, budget, payments, requests, asks, holds, ends, begun, paid, refused } = world
  const told = [paid, refused].map((some) => some.toSorted().join())
  return [
    `${now} ${grant.version} ${budget?.spent.debitAmount?.value} ${holds} ${begun} ${told.join(' ')}`,
    ...names.map((name) => (payments[name] ? paymentText(payments[name]) : name)),
    ...requests.map((each) => requestText(world, each)).toSorted(),
    ...asks.map(askText).toSorted(),
    ...ends.map(endText).toSorted(),
  ]
}

/**
 * Requests for two payments under one grant, repeats of one of them, calls of the host whose holds land late, processes
 * that die, an owner who amends or revokes, and confirms or declines, a client that rotates, and a sweep and a consumer
 * whose clocks are ahead. A commit takes effect in one step with its decision, because it compares every version that
 * the decision has read.
 */
export function reservations(
  setting: ReservationSetting,
  decisions: PaymentDecisions = paymentDecisions,
): System<World> {
  const { policy } = decisions

  const commandOf = (world: World, { id, name, grant }: Request, askedAt: Instant) => ({
    commandId: id,
    id: name,
    namespace: '',
    grantId: grant.id,
    walletAddress: wallet,
    client: 'https://shop.example',
    requestHash: name,
    receiver: 'https://shop.example/1',
    debitAmount: amount,
    receiveAmount: amount,
    askedAt,
    candidates: (grant.granted ?? []).map((item) =>
      world.budget ? { item, budget: world.budget } : { item },
    ),
  })

  /** The world after a commit that changes a payment, and its budget by what the payment holds. */
  function committed(
    world: World,
    name: Name,
    next: PaymentRecord,
    events: readonly OutgoingPaymentEvent[] = [],
  ): World {
    const before = world.payments[name]
    const freed =
      before &&
      world.budget &&
      decisions.release(world.budget, heldBy(before), heldBy(next), next.commandId)
    const ends = decisions
      .eventRecords({ kind: 'outgoing-payment', id: next.id }, next, events, before?.lastEvent)
      .filter(({ event }) => /completed|failed|declined/.test(event.type))
      .map(({ notBefore = 0 }: EventRecord) => ({ name, notBefore, delivered: false }))
    return {
      ...world,
      payments: { ...world.payments, [name]: next },
      ...(freed && { budget: freed }),
      ends: [...world.ends, ...ends],
    }
  }

  const withRequest = (world: World, request: Request): World => ({
    ...world,
    requests: world.requests.map((each) => (each.id === request.id ? request : each)),
  })

  const without = (world: World, { id }: Request): World => ({
    ...world,
    requests: world.requests.filter((each) => each.id !== id),
  })

  const told = (world: World, request: Request, answer: 'paid' | 'refused'): World => ({
    ...without(world, request),
    [answer]: world[answer].includes(request.name)
      ? world[answer]
      : [...world[answer], request.name],
  })

  function* deciding(world: World, request: Request): Iterable<Step> {
    const { id, name, grant, ahead } = request
    const now = world.now + ahead
    const label = (what: string) => `${id}: ${what}`
    const found = world.payments[name]
    const asking = {
      commandId: id,
      grantId: grant.id,
      client: 'https://shop.example',
      requestHash: name,
    }
    const earlier = decisions.decideRepeat(found, asking, now, policy)
    if (earlier?.ok === false && earlier.refusal === 'confirmation_required') {
      yield { label: label('learns that the owner must confirm'), next: without(world, request) }
      return
    }
    if (earlier !== undefined && !earlier.ok) {
      yield { label: label('gets the refusal'), next: told(world, request, 'refused') }
      return
    }
    if (earlier?.outcome === 'unchanged' && isCreated(earlier.record)) {
      yield { label: label('gets the payment'), next: told(world, request, 'paid') }
      return
    }
    yield { label: label('gives up'), next: without(world, request) }
    if (earlier?.outcome === 'unchanged' && earlier.record.commandId !== id) {
      const waiting = earlier.record as ReservedPayment
      if (now >= waiting.dueAt) {
        yield { label: label('declines what is due'), next: declined(world, name, waiting, now) }
      }
      return
    }
    if (world.grant.version !== grant.version && decisions.guards) {
      const isLive = !world.grant.finalized && tokenOf(world.grant) === tokenOf(grant)
      const next = isLive
        ? withRequest(world, { ...request, grant: world.grant })
        : without(world, request)
      yield { label: label('reads the grant again'), next }
      return
    }
    let next: World
    let reserved: ReservedPayment
    if (earlier === undefined) {
      const decision = decisions.reserveOutgoingPayment(commandOf(world, request, now), now, {
        reservations: policy,
        budgets: policy,
      })
      if (!decision.ok) {
        yield { label: label('exceeds the limit'), next: without(world, request) }
        return
      }
      reserved = decision.record
      next = { ...committed(world, name, reserved), budget: decision.budget }
    } else {
      reserved = earlier.record as ReservedPayment
      next = earlier.outcome === 'changed' ? committed(world, name, reserved) : world
    }
    yield { label: label('reserves, and asks the host'), next: asked(next, request, reserved) }
    yield { label: label('reserves, and its process dies'), next: without(next, request) }
  }

  /** The world in which a request asks the host. */
  function asked(world: World, request: Request, reserved: ReservedPayment): World {
    const { id: by, name, ahead } = request
    const until = reserved.askUntil - ahead + statementMs
    const isEarly = setting.confirms === true && reserved.confirmation === undefined
    return {
      ...withRequest(world, { ...request, reserved }),
      asks: [...world.asks, { by, name, until, landed: false, isEarly }],
    }
  }

  /** The owner confirms the first payment, or declines it. */
  function* owning(world: World): Iterable<Step> {
    const { now, grant, begun } = world
    const found = world.payments.p
    if (setting.confirms !== true || found?.confirmation === undefined) return
    const { receiver, debitAmount, receiveAmount } = found
    const shown = { receiver, debitAmount, receiveAmount }
    // The second time is a repeat after a call that was lost or has failed.
    const id = begun.includes('owner') ? 'owner again' : 'owner'
    if (!begun.includes(id)) {
      const byAlice = { commandId: id, resourceOwner: 'alice', shown }
      const command = { ...byAlice, namespace: '', limits: [] }
      const policies = { reservations: policy, budgets: policy }
      const confirmed = decisions.confirmByOwner(found, command, () => undefined, now, policies)
      if (confirmed.ok && confirmed.outcome === 'changed') {
        const request: Request = { id, name: 'p', ahead: 0, grant }
        const requests = [...world.requests, request]
        const entered = { ...world, requests, begun: [...begun, id].toSorted() }
        const next = committed(entered, 'p', confirmed.record)
        yield { label: `the ${id} confirms`, next: asked(next, request, confirmed.record) }
        yield { label: `the ${id} confirms, and its process dies`, next: without(next, request) }
      }
    }
    const declinable = declinableByOwner(found, now)
    if (!declinable.ok) return
    const next = declined(world, 'p', declinable.value, now, confirmationDeclined)
    yield { label: 'the owner declines', next }
  }

  const tokenOf = ({ tokens = [] }: Grant) => tokens[0]?.hash

  function declined(
    world: World,
    name: Name,
    payment: ReservedPayment,
    now: number,
    refusal: Parameters<typeof declinePayment>[1] = undecided(payment),
  ): World {
    const { record, events } = decisions.declinePayment(payment, refusal, 'decline', now, policy)
    return committed(world, name, record, events)
  }

  /** What the host does about a payment, and what its request learns. */
  function* asking(world: World, ask: Ask): Iterable<Step> {
    const { by, name, landed, isEarly } = ask
    const request = world.requests.find(({ id, reserved }) => id === by && reserved)
    const isAsking = request !== undefined && request.answer === undefined
    const become = (next: Ask | undefined, answer?: Request['answer']): World => {
      const asks = world.asks.flatMap((each) => (each === ask ? (next ?? []) : each))
      const moved = { ...world, asks }
      return answer && request ? withRequest(moved, { ...request, answer }) : moved
    }
    if (!landed && !isEarly) {
      const next = become({ ...ask, landed: true })
      const isLate = world.ends.some((end) => end.name === name && end.delivered)
      const holds = next.holds.includes(name) ? next.holds : [...next.holds, name]
      yield {
        label: `the hold for ${by} takes effect`,
        next: { ...next, holds: holds.toSorted() },
        broken: isLate ? 'no hold takes effect after the delivery of the end' : undefined,
      }
    }
    if (!isAsking) return
    if (isEarly) {
      yield {
        label: `the host asks for the owner of ${by}`,
        next: become(undefined, 'for its owner'),
      }
    } else if (landed) yield { label: `the host allows ${by}`, next: become(undefined, 'allowed') }
    else if (!world.holds.includes(name)) {
      yield { label: `the host refuses ${by}`, next: become(undefined, 'refused') }
    }
    yield { label: `the call of ${by} fails`, next: become(landed ? undefined : ask, 'failed') }
  }

  function* answered(world: World, request: Request): Iterable<Step> {
    const { id, name, ahead, answer, grant } = request
    const reserved = request.reserved as ReservedPayment
    const now = world.now + ahead
    const label = (what: string) => `${id}: ${what}`
    const isCurrent = world.payments[name]?.version === reserved.version
    const { reserved: _reserved, answer: _answer, ...again } = request
    yield { label: label('its process dies'), next: without(world, request) }
    if (answer === 'failed') {
      const next = isCurrent ? committed(world, name, endAsk(reserved, `${id} ends`, now)) : world
      yield { label: label('ends its call of the host'), next: without(next, request) }
    } else if (!isCurrent) {
      yield { label: label('finds another decision'), next: withRequest(world, again) }
    } else if (answer === 'for its owner') {
      const confirmation = { url: 'https://wallet.example/1', until: now + confirmMs }
      const lists = [{ list: waitingList, at: now }]
      const command = { commandId: `${id} waits`, namespace: '', confirmation, lists }
      const waiting = awaitConfirmation(reserved, command, () => undefined, now, policy)
      if (!waiting.ok) throw new Error('no other payment waits')
      yield {
        label: label('lets the payment wait for its owner'),
        next: without(committed(world, name, waiting.value.record), request),
      }
    } else if (answer === 'refused') {
      const refusal = { refusal: 'funds_insufficient', reason: 'balance' } as const
      const next = declined(world, name, reserved, now, refusal)
      yield { label: label('declines'), next: told(next, request, 'refused') }
    } else {
      yield confirming(world, request, reserved, now, grant)
    }
  }

  function confirming(
    world: World,
    request: Request,
    reserved: ReservedPayment,
    now: number,
    seen: Grant,
  ): Step {
    const { id, name } = request
    const isOwners = reserved.confirmation !== undefined
    const isSeen =
      world.grant.version === seen.version && reserved.lateHoldsUntil === undefined && !isOwners
    if (decisions.guards && !isSeen) {
      const isRotated = decisions.renews && tokenOf(world.grant) !== tokenOf(seen)
      const rights = isRotated ? undefined : rightsOf(world.grant, now)
      const refusal = rights
        ? decisions.refuseByGrant(underGrant(reserved), rights, '', () => world.budget, now)
        : ({ refusal: 'grant_ended', reason: 'ended' } as const)
      if (refusal !== undefined) {
        const wrong = refusal.refusal === 'grant_ended' && !world.grant.finalized
        return {
          label: `${id}: the grant no longer allows it`,
          next: without(declined(world, name, reserved, now, refusal), request),
          broken: wrong ? 'a rotation declines nothing' : undefined,
        }
      }
    }
    const { record, events } = decisions.createReserved(
      reserved,
      { commandId: `${id} confirms`, lists: [{ list: 'all', at: now }] },
      now,
      policy,
    )
    const next = committed(world, name, record, events)
    const counted = names
      .map((each) => next.payments[each])
      .filter((each) => each !== undefined && each.state !== 'reserved')
      .reduce((sum, each) => sum + (each ? heldBy(each).debitAmount : 0n), 0n)
    const limit = BigInt(world.grant.granted?.[0]?.limits?.debitAmount?.value ?? 0)
    const broken = world.grant.finalized
      ? 'nothing is created after its grant was revoked'
      : counted > limit
        ? 'nothing is created above an amended limit'
        : setting.confirms && record.confirmation?.given === undefined
          ? 'a created payment was confirmed'
          : world.holds.includes(name)
            ? undefined
            : 'a created payment is held'
    return { label: `${id}: confirms`, next: told(next, request, 'paid'), broken }
  }

  /** The owner and the client change the grant; the host ends payments; the sweep and the consumer do their work. */
  function* background(world: World): Iterable<Step> {
    const once = (what: ReservationSetting['change'], change: Partial<Grant>): Step[] => {
      if (what !== setting.change || world.begun.includes(what) || world.grant.finalized) return []
      const { version } = world.grant
      const grant = { ...world.grant, ...change, version: version + 1, commandId: what }
      return [{ label: what, next: { ...world, grant, begun: [...world.begun, what].toSorted() } }]
    }
    yield* once('the owner amends', { granted: [itemUpTo(limits.amended)] })
    yield* once('the client rotates', {
      tokens: (world.grant.tokens ?? []).map((token) => ({ ...token, hash: 'next' })),
    })
    yield* once('the owner revokes', {
      finalized: { reason: 'revoked', at: world.now, by: 'host' },
    })
    for (const name of names) {
      const payment = world.payments[name]
      if (payment?.state === 'reserved' && world.now + 1 >= payment.dueAt) {
        const next = declined(world, name, payment, world.now + 1)
        yield { label: `the sweep declines ${name}`, next }
      }
      if (payment?.state === 'created') {
        const cancel = { type: 'cancel', commandId: 'cancel' } as const
        const ended = decideOutgoingPayment<'cancel'>(
          payment as OutgoingPayment,
          cancel,
          world.now,
          policy,
        )
        if (ended.ok && ended.outcome === 'changed') {
          const next = committed(world, name, ended.record, ended.events)
          yield { label: `the host cancels ${name}`, next }
        }
      }
    }
    for (const end of world.ends) {
      if (end.delivered || world.now + 1 < end.notBefore) continue
      const ends = world.ends.map((each) => (each === end ? { ...each, delivered: true } : each))
      const holds = world.holds.filter((name) => name !== end.name)
      yield { label: `the consumer releases ${end.name}`, next: { ...world, ends, holds } }
    }
    if (
      world.now < endOfTime &&
      (world.asks.length > 0 || world.ends.length > 0 || isWaiting(world))
    )
      yield { label: 'time passes', next: passed(world) }
  }

  const isWaiting = ({ payments }: World) =>
    names.some((name) => payments[name]?.state === 'reserved')

  /** A statement of the host that has not taken effect by then never does. */
  function passed(world: World): World {
    const now = world.now + 1
    const asks = world.asks.filter(
      ({ by, until }) =>
        now < until || world.requests.some(({ id, answer }) => id === by && !answer),
    )
    return { ...world, now, asks: asks.filter(({ landed, until }) => landed || now < until) }
  }

  return {
    name: `reservations, ${setting.requests.join(' and ')}, ${setting.change}${setting.confirms ? ', confirmed' : ''}`,
    begins: [{ label: 'a grant', next: beginning }],
    parts,
    broken(world) {
      const { payments, budget, holds, ends, paid, refused } = world
      const records = names.flatMap((name) => payments[name] ?? [])
      const counted = records.reduce((sum, each) => sum + heldBy(each).debitAmount, 0n)
      if (counted !== BigInt(budget?.spent.debitAmount?.value ?? 0)) {
        return 'a budget is the sum of what its payments hold'
      }
      const open = holds.filter((name) => !ends.some((end) => end.name === name))
      if (open.length > 1) return 'holds of payments that have not ended are within the limit'
      if (names.some((name) => ends.filter((end) => end.name === name).length > 1)) {
        return 'a payment ends once'
      }
      if (paid.some((name) => refused.includes(name))) {
        return 'a request gets a payment or a refusal, not both'
      }
      const isListed = (each: PaymentRecord) =>
        !isCreated(each) && each.lists?.some(({ list }) => list !== waitingList)
      if (records.some(isListed)) return 'an undecided payment is in no list of payments'
      const hasEnded = names.every(
        (name) =>
          !['declined', 'failed'].includes(payments[name]?.state ?? '') ||
          ends.some((end) => end.name === name),
      )
      return hasEnded ? undefined : 'each end has an event'
    },
    *moves(world) {
      yield* background(world)
      yield* owning(world)
      for (const each of setting.requests) {
        if (world.begun.includes(each) || world.grant.finalized) continue
        const requests = [...world.requests, { ...arrivals[each], grant: world.grant }]
        const begun = [...world.begun, each].toSorted()
        yield { label: `${each} arrives`, next: { ...world, requests, begun } }
      }
      for (const request of world.requests) {
        if (request.reserved === undefined) yield* deciding(world, request)
        else if (request.answer !== undefined) yield* answered(world, request)
        else yield { label: `${request.id}: its process dies`, next: without(world, request) }
      }
      for (const ask of world.asks) yield* asking(world, ask)
    },
  }
}
