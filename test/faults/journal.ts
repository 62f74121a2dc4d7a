/** What a client instance, or the ledger, did and was told: exactly that, as it came. */
export interface Journal {
  readonly grants: GrantEntry[]
  readonly payments: PaymentEntry[]
  /** Answers that nobody should ever get, in words. */
  readonly surprises: string[]
  /** Operations that were acknowledged, by name. */
  readonly acknowledged: Map<string, number>
  /** Answers that left open what had happened, by status. */
  readonly unknown: Map<number, number>
}

export interface GrantEntry {
  readonly id: string
  readonly needsConsent: boolean
  /** Every value of its access token that was ever given out, oldest first. */
  readonly tokens: string[]
  approved: boolean
  revoked: boolean
  /** What has been sent and not been answered yet. */
  inFlight?: 'approve' | 'continue' | 'rotate' | 'revoke'
}

export interface PaymentEntry {
  readonly id: string
  /** Name of the customer that created it. */
  readonly owner: string
  /** Once this much has been received the payment takes no more; absent where any amount is welcome. */
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

/** The sum of the transfers of a payment that are in this state. */
export function sumOf({ transfers }: PaymentEntry, state: TransferEntry['state']): bigint {
  return [...transfers.values()]
    .filter((transfer) => transfer.state === state)
    .reduce((sum, { value }) => sum + value, 0n)
}

export function allTokens({ grants }: Journal): string[] {
  return grants.flatMap(({ tokens }) => tokens)
}
