/** What a client, or the ledger, did and the exact responses. */
export interface Journal {
  readonly grants: GrantEntry[]
  readonly payments: PaymentEntry[]
  /** Descriptions of responses that must never occur. */
  readonly surprises: string[]
  /** The number of acknowledged operations, by name. */
  readonly acknowledged: Map<string, number>
  /** The number of responses with an unknown outcome, by status. */
  readonly unknown: Map<number, number>
}

export interface GrantEntry {
  readonly id: string
  readonly needsConsent: boolean
  /** Every value of its access token that was ever issued, oldest first. */
  readonly tokens: string[]
  approved: boolean
  revoked: boolean
  /** The request that has been sent and has no response yet. */
  inFlight?: 'approve' | 'continue' | 'rotate' | 'revoke'
}

export interface PaymentEntry {
  readonly id: string
  /** Name of the customer that created it. */
  readonly owner: string
  /** The amount at which the payment completes; absent for an open amount. */
  readonly limit?: bigint
  readonly transfers: Map<string, TransferEntry>
}

export interface TransferEntry {
  readonly value: bigint
  state: 'unknown' | 'counted' | 'refused'
}

export function createJournal(): Journal {
  return {
    grants: [],
    payments: [],
    surprises: [],
    acknowledged: new Map(),
    unknown: new Map(),
  }
}

export function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

export function totalOf(counts: ReadonlyMap<unknown, number>): number {
  return [...counts.values()].reduce((sum, each) => sum + each, 0)
}

/** Returns the sum of a payment's transfers in this state. */
export function sumOf({ transfers }: PaymentEntry, state: TransferEntry['state']): bigint {
  return [...transfers.values()]
    .filter((transfer) => transfer.state === state)
    .reduce((sum, { value }) => sum + value, 0n)
}

export function allTokens({ grants }: Journal): string[] {
  return grants.flatMap(({ tokens }) => tokens)
}
