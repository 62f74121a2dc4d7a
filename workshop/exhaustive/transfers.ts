import {
  closedTransfer,
  closeTransfer,
  isCounted,
  type TransferRecord,
  transferOf,
} from '../../src/core/incoming-payment/transfer.js'
import {
  decideIncomingPayment,
  type IncomingPayment,
  type ReceiveFunds,
} from '../../src/core/incoming-payment.js'
import type { Stored } from '../../src/core/stored.js'
import type { Attempt, Machine, Operation, Process, World } from './processes.js'
import { remembered } from './search.js'

/** The decisions that the services make, of which a planted mistake replaces some. */
export const transferDecisions = {
  receive: (found: IncomingPayment, command: ReceiveFunds, now: number) =>
    decideIncomingPayment<'receive'>(found, command, now),
  closeTransfer,
  transferOf: (found: IncomingPayment, command: ReceiveFunds) => transferOf(found, command),
  /** Whether a transfer that is too late is closed by the commit that refuses it. */
  marksLate: true,
  /** Whether `close` writes a mark. */
  marksClosed: true,
}

export type TransferDecisions = typeof transferDecisions

const amount = { value: '10', assetCode: 'USD', assetScale: 2 }
const payment: IncomingPayment = {
  id: 'p',
  version: 1,
  commandId: 'created',
  walletAddress: 'https://wallet.example/bob',
  asset: { assetCode: 'USD', assetScale: 2 },
  received: '0',
  completed: false,
  createdAt: 0,
  updatedAt: 0,
  expiresAt: 10,
  dueAt: 11,
  retainUntil: 20,
  paidRetainUntil: 20,
}

/** Two reports of one transfer, of which one must be in time; the question about it; the end of its payment. */
export type TransferOp = Operation & {
  readonly type: 'receive' | 'receive in time' | 'close' | 'complete'
}

/** What callers have been told of the transfer. */
export interface TransferFacts {
  readonly now: number
  readonly told: readonly ('counted' | 'closed')[]
}

type TransferWorld = World<TransferOp, TransferFacts>

const types = ['receive', 'receive in time', 'close', 'complete'] as const
/** Until when the transfer may be counted that must be in time. */
const notAfter = 0

const paymentIn = ({ records }: TransferWorld) => records['p'] as IncomingPayment
const transferIn = ({ records }: TransferWorld) => records['t'] as TransferRecord | undefined

/** One transfer for one payment. Each operation loads both records at once, as the services do. */
export function transfersMachine(
  decisions: TransferDecisions = transferDecisions,
): Machine<TransferOp, TransferFacts> {
  function receive(op: TransferOp, seen: Process<TransferOp>['seen'], again: boolean): Attempt {
    const [found, recorded] = seen as [IncomingPayment, TransferRecord | undefined]
    const isLimited = op.type === 'receive in time'
    const command = {
      type: 'receive',
      commandId: op.id,
      recordId: 't',
      transferId: 'rail-1',
      amount,
      recorded,
      // A commit that failed is decided again later, when the time of the transfer is over.
      ...(isLimited && { notAfter, decidedAt: again ? notAfter + 1 : op.now }),
    } as const
    const decision = decisions.receive(found, command, op.now)
    if (decision.outcome === 'unchanged') return { changes: [], result: decision }
    if (decision.ok) {
      const counted = { key: 't', next: decisions.transferOf(found, command) }
      return { changes: [{ key: 'p', next: decision.record }, counted], result: decision }
    }
    const isLate = decision.refusal === 'transfer_closed' && recorded === undefined
    const mark = { key: 't', next: closedTransfer(found, command) }
    return { changes: isLate && decisions.marksLate ? [mark] : [], result: decision }
  }

  function close(op: TransferOp, seen: Process<TransferOp>['seen']): Attempt {
    const [found, recorded] = seen as [IncomingPayment, TransferRecord | undefined]
    const command = { commandId: op.id, recordId: 't', recorded }
    const result = decisions.closeTransfer(found, command, op.now)
    if (result.outcome !== 'changed' || !decisions.marksClosed) return { changes: [], result }
    return { changes: [{ key: 't', next: result.record }], result }
  }

  function complete({ id: commandId, now }: TransferOp, seen: Process<TransferOp>['seen']) {
    const [found] = seen as [IncomingPayment]
    const command = { type: 'complete', commandId } as const
    const result = decideIncomingPayment<'complete'>(found, command, now)
    const changes = result.outcome === 'changed' ? [{ key: 'p', next: result.record }] : []
    return { changes, result }
  }

  function answered(
    world: TransferWorld,
    op: TransferOp,
    { result }: Attempt,
  ): { readonly facts: TransferFacts } {
    const told = toldBy(op, result)
    if (told === undefined || world.facts.told.includes(told)) return { facts: world.facts }
    return { facts: { ...world.facts, told: [...world.facts.told, told] } }
  }

  return {
    name: 'one transfer',
    begins: [
      {
        label: 'a payment',
        world: { records: { p: payment }, processes: [], facts: start, serial: 1 },
      },
    ],
    starts: ({ serial, facts }) =>
      types.map((type) => ({ id: `c:${serial}`, label: type, now: facts.now, type })),
    target: (op) => (op.type === 'close' ? 't' : 'p'),
    retriesDiffer: (op) => op.type === 'receive in time',
    nextLoad: (_, seen) => (seen.length === 0 ? ['p', 't'] : undefined),
    decide(op, seen, again) {
      if (op.type === 'close') return close(op, seen)
      return op.type === 'complete' ? complete(op, seen) : receive(op, seen, again)
    },
    committed(before, after) {
      const [was, is] = [transferIn(before), transferIn(after)]
      const isSame = was === undefined || was === is
      const broken = isSame ? undefined : 'the record of a transfer never changes'
      return { facts: after.facts, broken }
    },
    answered,
    broken(world) {
      const { told } = world.facts
      const recorded = transferIn(world)
      const isCredited = recorded !== undefined && isCounted(recorded)
      if (paymentIn(world).received !== (isCredited ? '10' : '0'))
        return 'a payment has received what its transfers counted'
      return told.every((what) => (what === 'counted') === isCredited)
        ? undefined
        : 'what was answered of a transfer stays true'
    },
    passed(world) {
      const facts = { ...world.facts, now: notAfter + 1 }
      return world.facts.now === 0
        ? { label: 'the time of the transfer ends', world: { ...world, facts } }
        : undefined
    },
    visible: ({ records, facts }) => [
      ...Object.values(records).map((record) => (record ? textOf(record) : '')),
      JSON.stringify({ ...facts, told: facts.told.toSorted() }),
    ],
    textOf,
    operationText: ({ id, type, now }) => `${id} ${type} ${now}`,
  }
}

const start: TransferFacts = { now: 0, told: [] }

/** What an answer says of the transfer; `undefined` if it says nothing of it. */
function toldBy({ type }: TransferOp, result: Attempt['result']) {
  const { refusal, record } = result as { refusal?: string; record?: Stored }
  if (type === 'complete') return undefined
  if (refusal === 'transfer_closed') return 'closed'
  if (!result.ok) return undefined
  return type === 'close' && 'closed' in (record ?? {}) ? 'closed' : 'counted'
}

/** What decisions read of a record. */
const textOf = remembered((record: Stored): string => {
  const { id, commandId, received, completed, closed } = record as Stored &
    Partial<IncomingPayment & { closed: true }>
  return JSON.stringify([id, commandId, received, completed, closed])
})
