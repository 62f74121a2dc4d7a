import type { Refusal, ServerOperation } from '../../../src/index.js'
import type { Ask, Sending, Surface } from '../surface.js'

/** A request that is about to be sent, and what is wrong with it. */
export interface Scene {
  readonly surface: Surface
  readonly operation: ServerOperation
  asked: Ask
  sending: Sending
}

type Arrange = (scene: Scene) => void | Promise<void>

/** One thing that can be wrong with a request. */
export interface Fault {
  readonly refusal: Refusal
  /** Tells faults with one refusal apart. */
  readonly name?: string
  /** Status and code of the response, for each operation that can refuse for this. */
  readonly at: Cells
  /** Makes this of a request that would be served. */
  readonly arrange?: Arrange
  /** Changes how the host behaves, after the request is arranged. */
  readonly host?: Arrange
  /** True when nothing else can be tried on the same servers afterwards. */
  readonly spoils?: boolean
  /**
   * What the fault is about, where faults exclude each other: a payment is direct or by a quote, and has one
   * address; a grant is in one state; a repeat has no other fault, as the request that it repeats had none.
   */
  readonly kind?: 'direct' | 'quote' | 'address' | 'grant' | 'client' | 'repeat'
}

export type Cells = { readonly [Name in ServerOperation]?: string }

export function each(operations: readonly ServerOperation[], cell: string): Cells {
  return Object.fromEntries(operations.map((operation) => [operation, cell]))
}

export const continuation = ['continueGrant', 'cancelGrant'] as const
export const management = ['rotateToken', 'revokeToken'] as const
export const listing = ['listIncomingPayments', 'listOutgoingPayments'] as const
export const paying = ['createQuote', 'createOutgoingPayment'] as const
export const creating = ['createIncomingPayment', ...paying] as const
export const byId = [
  'getIncomingPayment',
  'completeIncomingPayment',
  'getQuote',
  'getOutgoingPayment',
] as const
export const wallets = ['getWalletAddress', 'getWalletAddressKeys'] as const
export const resources = [...creating, ...listing, ...byId, 'getOutgoingPaymentGrant'] as const
export const atGrants = ['requestGrant', ...continuation, ...management] as const
export const authorization = [...atGrants, 'introspectToken', 'discover'] as const
export const walletServer = [...wallets, 'preflight'] as const
export const everywhere = [...authorization, ...resources, ...walletServer] as const

export function edit(scene: Scene, changes: object): void {
  const { asked } = scene
  const body = JSON.stringify({ ...JSON.parse(asked.body ?? '{}'), ...changes })
  scene.asked = { ...asked, body }
}

export function change(scene: Scene, asked: Partial<Ask>): void {
  scene.asked = { ...scene.asked, ...asked }
}

export function bend(scene: Scene, change: NonNullable<Sending['bend']>): void {
  const before = scene.sending.bend ?? ((request) => request)
  scene.sending = { ...scene.sending, bend: (request) => change(before(request)) }
}

/** Sends with this header, and with no other of its name. */
export function header(scene: Scene, name: string, ...values: readonly string[]): void {
  const others = (scene.sending.headers ?? []).filter(([other]) => other !== name)
  const headers = [...others, ...values.map((value) => [name, value] as const)]
  scene.sending = { ...scene.sending, headers }
}
