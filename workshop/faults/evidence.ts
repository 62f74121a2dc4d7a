import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import type { Grant, IncomingPayment } from '../../src/entry-core.js'
import { isCounted, type Transfer, type TransferRecord } from '../../src/entry-core.js'
import type { DeliveredEvent } from '../../src/index.js'
import { namespaceOf } from '../../src/protocol/credential.js'
import type { EventRecord } from '../../src/service/event-record.js'
import { publicRecord } from '../../src/service/public-ids.js'
import { resourceServer } from '../../test/support/world.js'
import { allTokens, type Journal } from './journal.js'
import type { Wallet } from './wallet.js'

/** The observable state of a wallet, apart from its responses to clients. */
export interface Evidence {
  readonly grants: ReadonlyMap<string, Grant>
  readonly payments: ReadonlyMap<string, IncomingPayment>
  readonly transfers: readonly Transfer[]
  /** Events that have not been delivered. */
  readonly pending: readonly EventRecord[]
  /** Every delivery, in order, repeats included. */
  readonly delivered: readonly DeliveredEvent[]
  /** The tokens in the journal that a resource server would accept. */
  readonly active: ReadonlySet<string>
}

export interface Witness {
  /** Returns all records at one instant. */
  readonly records: () => Promise<readonly (readonly [RecordKind, Stored])[]>
  readonly delivered: () => readonly DeliveredEvent[]
  readonly wallet: Wallet
}

export async function gather(journal: Journal, witness: Witness): Promise<Evidence> {
  const records = await witness.records()
  const of = (wanted: RecordKind) =>
    records.flatMap(([kind, record]) => (kind === wanted ? record : []))
  const namespace = await namespaceOf(resourceServer)
  const byId = (kind: RecordKind) =>
    new Map(
      of(kind)
        .map((record) => publicRecord(namespace, kind, record))
        .map((record) => [record.id, record]),
    )
  return {
    grants: byId('grant') as Map<string, Grant>,
    payments: byId('incoming-payment') as Map<string, IncomingPayment>,
    transfers: (of('transfer') as TransferRecord[]).filter(isCounted),
    pending: of('event').filter((record) => 'event' in record) as EventRecord[],
    // Read after the records, so that an event that has left them is among the deliveries.
    delivered: witness.delivered(),
    active: await activeTokens(journal, witness.wallet),
  }
}

const batch = 200

async function activeTokens(journal: Journal, wallet: Wallet): Promise<ReadonlySet<string>> {
  const tokens = allTokens(journal)
  const active = new Set<string>()
  for (let i = 0; i < tokens.length; i += batch) {
    const { status, body } = await wallet.introspect(tokens.slice(i, i + batch))
    if (status !== 200) throw new Error(`introspection returned ${status} without a fault`)
    for (const token of body) active.add(token)
  }
  return active
}
