import type { DeliveredEvent, OutgoingPaymentCreation, TokenItem } from '../../src/index.js'
import type { KeyPair } from '../../test/support/keys.js'

/** A client, and the keys that it has published so far. */
export interface ClientEntry {
  readonly name: string
  readonly walletAddress: string
  key: KeyPair
  keys: number
  /** How many unique names its messages and intentions have used. */
  names: number
}

/** An access token that a client has received. */
export interface TokenEntry {
  /** The label of a token of a set. */
  readonly label?: string
  readonly value: string
  readonly manage: string
  readonly receivedAt: number
  /** Why it must not be used any more: a response told the client or the host that it has ended. */
  dead?: string
}

/** What clients and the host know of a grant. */
export interface GrantEntry {
  readonly id: string
  readonly client: ClientEntry
  /** The key with which the client uses the grant: the one that it is bound to, or the published one. */
  key: KeyPair
  readonly type: 'incoming' | 'outgoing'
  readonly requested: readonly TokenItem[]
  readonly continuation: { readonly uri: string; readonly value: string }
  readonly hasFinish: boolean
  /** The id of the interaction; absent if no consent is required. */
  readonly interaction?: string
  /** The interaction references that redirects have carried to the client. */
  readonly references: string[]
  readonly tokens: TokenEntry[]
  /** For each token value, and each continuation and label: the token that replaced it. */
  readonly successors: Map<string, string>
  /** The owner's decisions that were begun, and those that were confirmed. */
  readonly decided: { approving: number; approved: boolean; denied: boolean }
  /** How many requests that can change the grant have an unknown outcome. */
  unknown: number
  /** Whether the client or the host has been told that the grant has ended. */
  over: boolean
}

/** A payment that a client wants to make, once. */
export interface Intent {
  readonly id: string
  readonly grant: GrantEntry
  readonly body: object
  readonly idempotencyKey?: string
  /** The id of the payment, once a response contained it. */
  paymentId?: string
  /** When a response last said that the host refuses the payment. */
  refusedAt?: number
}

/** A payment that the owner orders in the host's own app, once for its key. */
export interface OrderEntry {
  readonly payment: OutgoingPaymentCreation & { readonly idempotencyKey: string }
  /** When it was first ordered. */
  readonly at: number
  /** The id of the payment, once a result contained it. */
  paymentId?: string
  /** How many calls were told that they created it. */
  created: number
  /** Whether a call was told that the host, or the owner, refuses it for good. */
  isDeclined?: boolean
}

/** Funds that arrived, which the payer reports until it knows the outcome. */
export interface TransferEntry {
  readonly transferId: string
  readonly paymentId: string
  readonly value: bigint
  accepted: boolean
  /** How many calls were told that they counted it. */
  counted: number
}

/** An outgoing payment that an event has told the operator of. */
export interface SendingEntry {
  readonly paymentId: string
  readonly value: bigint
  begun: number
  sent: bigint
  /** What was in doubt when it ended. */
  inDoubt?: bigint
  /** What was refunded of it, once that is decided. */
  refunded?: bigint
}

/** What the actors have done, and what they were told. */
export interface Journal {
  readonly grants: GrantEntry[]
  readonly intents: Intent[]
  readonly orders: OrderEntry[]
  readonly incoming: { readonly id: string; readonly client: ClientEntry }[]
  readonly transfers: Map<string, TransferEntry>
  readonly sending: Map<string, SendingEntry>
  readonly delivered: DeliveredEvent[]
  /** The payments whose confirmation by their owner was begun, as they were shown. */
  readonly confirmed: Set<string>
  /** Every secret that was handed out. */
  readonly secrets: Set<string>
  readonly breaches: string[]
  /** How many responses and results of each kind there were. */
  readonly counts: Map<string, number>
}

export function createJournal(): Journal {
  return {
    grants: [],
    intents: [],
    orders: [],
    incoming: [],
    transfers: new Map(),
    sending: new Map(),
    delivered: [],
    confirmed: new Set(),
    secrets: new Set(),
    breaches: [],
    counts: new Map(),
  }
}

export function count({ counts }: Journal, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** Marks the tokens of a grant as dead: a use that begins from now on must fail. */
export function bury({ tokens }: Pick<GrantEntry, 'tokens'>, why: string, except?: string): void {
  for (const token of tokens) if (token.value !== except) token.dead ??= why
}
