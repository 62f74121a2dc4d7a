import {
  doubtsOf,
  isOpen,
  type Settlement,
  type SettlementTotals,
  totalsOf,
} from '../core/attempts/settlement.js'
import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'
import type { Random } from '../ports/host.js'
import type { RecordChange, Store } from '../ports/store.js'
import { newUniqueText } from '../protocol/credential.js'
import { iterateList, sourceOf } from '../service/lists.js'
import { loadOne } from '../service/load.js'
import { namespaceOfServer } from '../service/namespace.js'
import { ContentionError, isTransactionError } from '../service/store-errors.js'

/** The record of a settlement. Its id is the namespace of the name, and the id that the host has given. */
export interface SettlementRecord extends Stored {
  readonly settlement: Settlement
}

/** A settlement that is about to be written. */
export interface SettlementChange {
  readonly id: string
  readonly settlement: Settlement
  readonly before: SettlementTotals
  readonly after: SettlementTotals
}

/** Writes a change in the host's transaction, and resolves to whether it was committed. */
export type InTransaction = (
  change: SettlementChange,
  write: (store: Store) => Promise<boolean>,
) => Promise<{ readonly ok: boolean }>

/** Returns the next settlement; `undefined` to write nothing. */
export type Change = (settlement: Settlement, version: number) => Settlement | undefined

export type Book = ReturnType<typeof bookOn>

/** How often a change is decided again when other writers were faster. */
const triesMax = 10

/** Settlements in a store: one record each, every change a compare-and-set. */
export function bookOn(options: {
  readonly store: Store
  readonly name: string
  readonly retentionMs: number
  readonly random: Random
  readonly inTransaction: InTransaction | undefined
}) {
  const { store, name, retentionMs, random, inTransaction } = options
  const { namespace, claim } = namespaceOfServer(`attempts:${name}`)
  const kind = 'settlement'
  const keyOf = async (id: string) => ({ kind, id: `${await namespace()}${id}` }) as const
  const idIn = (record: SettlementRecord, length: number) => record.id.slice(length)

  async function load(id: string): Promise<SettlementRecord | undefined> {
    return loadOne<SettlementRecord>(store, await keyOf(id))
  }

  async function write(
    id: string,
    previous: SettlementRecord | undefined,
    settlement: Settlement,
    now: Instant,
  ): Promise<SettlementRecord | undefined> {
    const key = await keyOf(id)
    const next: SettlementRecord = {
      id: key.id,
      version: (previous?.version ?? 0) + 1,
      commandId: newUniqueText(random),
      settlement,
      ...placesOf(settlement, await namespace(), now + retentionMs),
    }
    const change: RecordChange = {
      kind,
      next,
      expectedVersion: previous?.version ?? 0,
      ...(previous !== undefined && { previous: replaced(previous) }),
    }
    const commit = (inside: Store) => inside.commit({ changes: [change], guards: [] })
    try {
      const isCommitted =
        inTransaction === undefined
          ? await commit(store)
          : (await inTransaction(changeOf(id, previous, settlement), commit)).ok
      if (isCommitted) return next
    } catch (error) {
      if (isTransactionError(error)) throw error
      // The commit may have taken effect.
      if ((await load(id))?.commandId === next.commandId) return next
      throw error
    }
    return (await load(id))?.commandId === next.commandId ? next : undefined
  }

  return {
    load,
    /** Creates a settlement, unless there is one. */
    async open(id: string, settlement: Settlement, now: Instant): Promise<SettlementRecord> {
      await claim(store, false)
      const record =
        (await load(id)) ?? (await write(id, undefined, settlement, now)) ?? (await load(id))
      if (record === undefined) throw new ContentionError()
      return record
    },
    /** Changes a settlement; decides again if another writer was faster. */
    async change(id: string, decide: Change, now: Instant): Promise<SettlementRecord> {
      for (let tries = 0; tries < triesMax; tries++) {
        const record = await load(id)
        if (record === undefined) throw new Error(`the settlement ${id} is gone`)
        const settlement = decide(record.settlement, record.version)
        if (settlement === undefined || settlement === record.settlement) return record
        const written = await write(id, record, settlement, now)
        if (written !== undefined) return written
      }
      throw new ContentionError()
    },
    /** The settlements with doubts, the oldest first. */
    listed<View>(view: (id: string, settlement: Settlement) => View): AsyncIterable<View> {
      let length = 0
      const source = async () => {
        const own = await namespace()
        length = own.length
        return sourceOf<SettlementRecord>(store, { kind, list: listOf(own) })
      }
      return iterateList(source, (record) => view(idIn(record, length), record.settlement))
    },
    /** Removes settlements whose retention is over. Resolves to their number. */
    async sweep(now: Instant, limit: number): Promise<number> {
      const due = await store.due(kind, await namespace(), now, limit)
      if (due.length === 0) return 0
      const removed = await store.remove(due.map(({ id, version }) => ({ kind, id, version })))
      return removed.filter(Boolean).length
    },
  }
}

function changeOf(
  id: string,
  previous: SettlementRecord | undefined,
  settlement: Settlement,
): SettlementChange {
  const before = totalsOf(previous?.settlement ?? { ...settlement, attempts: [] })
  return { id, settlement, before, after: totalsOf(settlement) }
}

/** Where a record was found, which its next version replaces. */
function replaced({ lists, dueAt }: SettlementRecord): NonNullable<RecordChange['previous']> {
  return { ...(lists !== undefined && { lists }), ...(dueAt !== undefined && { dueAt }) }
}

function listOf(namespace: string): string {
  return `${namespace} doubts`
}

/** Where a record is found: in the list of doubts, or once nothing can change any more, when it may be removed. */
function placesOf(settlement: Settlement, namespace: string, retainUntil: Instant) {
  const [oldest] = doubtsOf(settlement)
  if (oldest !== undefined) return { lists: [{ list: listOf(namespace), at: oldest.since }] }
  const isOver = settlement.stopped !== undefined || totalsOf(settlement).free === 0n
  const isEnded = isOver && !settlement.attempts.some(isOpen)
  return isEnded ? { dueAt: retainUntil, retainUntil } : {}
}
