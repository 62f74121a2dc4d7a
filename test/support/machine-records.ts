import { endOfItems, type GrantedItem, grantedItems } from '../../src/core/access.js'
import type { Instant } from '../../src/core/instant.js'
import type { Stored } from '../../src/core/stored.js'
import type { AccessItem } from '../../src/index.js'
import type { ManualClock } from './clock.js'
import { deepFreeze } from './frozen.js'
import type { ClientName } from './played-wallet.js'
import { tokenLifetimeMs } from './spending-services.js'

export interface Granted {
  readonly client: string
  readonly id: string
  readonly items: readonly GrantedItem[]
  readonly endsAt: Instant
  expiresAt: Instant
  revoked: boolean
}

type Kind = 'quote' | 'outgoing-payment' | 'budget'

export interface Machines {
  readonly clock: ManualClock
  readonly records: Map<string, Stored>
  readonly grants: Granted[]
  commands: number
  writes: number
}

export function granted(
  client: ClientName,
  access: readonly AccessItem[],
  number: number,
  now: Instant,
): Granted {
  const items = deepFreeze(grantedItems(access, 'occurrences'))
  return {
    client: `https://${client}.example`,
    id: `grant-${number}`,
    items,
    endsAt: endOfItems(items) ?? Number.MAX_VALUE,
    expiresAt: now + tokenLifetimeMs,
    revoked: false,
  }
}

export function lives({ clock }: Machines, { revoked, endsAt }: Granted): boolean {
  return !revoked && clock.now() < endsAt
}

export function isGood(machines: Machines, grant: Granted): boolean {
  return lives(machines, grant) && machines.clock.now() < grant.expiresAt
}

export const commandId = (machines: Machines) => `command-${++machines.commands}`

export function get<Type>({ records }: Machines, kind: Kind, id: string): Type | undefined {
  return records.get(`${kind} ${id}`) as Type | undefined
}

export function put(machines: Machines, kind: Kind, record: Stored): void {
  machines.writes += 1
  machines.records.set(`${kind} ${record.id}`, deepFreeze(record))
}

export function due({ records, clock }: Machines, kind: Kind): readonly Stored[] {
  const now = clock.now()
  return [...records].flatMap(([key, record]) => {
    return key.startsWith(`${kind} `) && (record.dueAt ?? Number.MAX_VALUE) <= now ? record : []
  })
}

export function remove(machines: Machines, kind: Kind): void {
  const { records, clock } = machines
  for (const { id, retainUntil } of due(machines, kind)) {
    if (retainUntil !== undefined && retainUntil <= clock.now()) records.delete(`${kind} ${id}`)
  }
}
