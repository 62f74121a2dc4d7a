import type { ServerOperation } from 'open-payments-server'
import {
  grantRoutes,
  matchRoute,
  receivingRoutes,
  type ServerRoute,
  spendingRoutes,
  walletAddressRoutes,
} from '../../../src/http/routes.js'
import { invalidOption, requireMember } from './error.js'

/** Selects the payments that get a fault: the next `times` payments that match. */
export interface PaymentFaultScope {
  /** The number of payments that get the fault. Default 1, at most 1,000. */
  readonly times?: number
  /** The origin of the wallet that pays. Default: both wallets. */
  readonly wallet?: string
}

/** Selects the requests that get a fault: the next `times` requests that match all members. */
export interface FaultScope {
  /** The number of requests that get the fault. Default 1, at most 1,000. */
  readonly times?: number
  /** The origin of the wallet that answers. Default: both wallets. */
  readonly wallet?: string
  /**
   * An operation, such as `createOutgoingPayment`; docs/operations.md lists them. Default: for `expired-grant` those
   * with a token, for other faults all.
   */
  readonly operation?: ServerOperation
}

/**
 * A fault of the wallets. It counts when it takes effect: not at a request that is refused before, and not at a repeat
 * for a payment that exists. A request has at most one fault of its response, and one of its payment: of each, the
 * first planted that fits.
 *
 * - `lost-response`: the wallet does the work, and closes the connection without a response.
 * - `slow`: the wallet does the work, and waits for `delayMs` (default 10,000, at most 600,000) before it responds.
 * - `unavailable`: the wallet does nothing, and responds with 503 and `Retry-After: {retryAfterSeconds}` (default 1).
 * - `expired-grant`: the grant of the request's token expires before the wallet looks at the request. It stays expired.
 *   A token whose grant has ended, or that is unknown, leaves the fault to another request.
 * - `too-many-requests`: 429 with `Retry-After: {retryAfterSeconds}` (default 1), once the signature is verified.
 *
 * Faults of payments, when a payment is created for a client, or its owner has confirmed it:
 *
 * - `insufficient-funds`: the account does not have the funds for the payment.
 * - `confirmation-required`: the owner has to confirm the payment, at a page of the wallet, within 15 minutes. Not if
 *   the owner has confirmed it.
 * - `failed-payment`: the payment is created, and fails before anything is sent.
 * - `partial-payment`: the payment is created, sends half of its amount, rounded down, and fails.
 * - `reviewed-payment`: the payment is created, and the wallet of its receiver reviews it for five minutes, by the
 *   clock of the sandbox. Until then nothing is sent; then it is.
 *
 * Until it is removed:
 *
 * - `rotated-key`: the account publishes another key instead of its own, until the fault is removed. The new key has
 *   another `kid`.
 */
export type Fault =
  | ({ readonly fault: 'lost-response' | 'expired-grant' } & FaultScope)
  | ({ readonly fault: PaymentFault } & PaymentFaultScope)
  | ({ readonly fault: 'slow'; readonly delayMs?: number } & FaultScope)
  | ({
      readonly fault: 'unavailable' | 'too-many-requests'
      readonly retryAfterSeconds?: number
    } & FaultScope)
  | {
      readonly fault: 'rotated-key'
      /** The name or the wallet address of the account. */
      readonly account: string
    }

/** A fault that the sandbox has planted. */
export type PlantedFault = Fault & {
  readonly id: string
  /** The number of further requests that get the fault. Absent for `rotated-key`. */
  readonly left?: number
}

type PlantedOf<Name> = PlantedFault & { readonly fault: Name }

/** The routes of a wallet of the sandbox. */
const routes: readonly ServerRoute[] = [
  ...grantRoutes.map((route) => ({ ...route, path: `/auth${route.path}` })),
  ...receivingRoutes,
  ...spendingRoutes,
  ...walletAddressRoutes,
]
const operations = new Set<string>(routes.map(({ operation }) => operation))

/** Returns the operation of a request at a wallet. */
export function operationOf(method: string, path: string): ServerOperation | undefined {
  const match = matchRoute(routes, method, path)
  return match.ok ? match.value.route.operation : undefined
}

const withToken = new Set<ServerOperation>(
  [...grantRoutes, ...receivingRoutes, ...spendingRoutes]
    .map(({ operation }) => operation)
    .filter((operation) => operation !== 'requestGrant' && operation !== 'discover'),
)

/** The faults of a payment. */
export const paymentFaults = [
  'insufficient-funds',
  'confirmation-required',
  'failed-payment',
  'partial-payment',
  'reviewed-payment',
] as const

/** A fault of one payment, by its name. */
export type PaymentFault = (typeof paymentFaults)[number]

/** The faults of a response. */
export const responseFaults = [
  'lost-response',
  'slow',
  'unavailable',
  'expired-grant',
  'too-many-requests',
] as const
const faultsMax = 100
const timesMax = 1_000
const delayMaxMs = 600_000

/** The faults that are planted, the oldest first. */
export interface Faults {
  /** @throws a `SandboxError` if too many are planted. */
  plant(fault: Fault): PlantedFault
  list(): readonly PlantedFault[]
  /** Removes a fault, or all of them, and returns those that were planted. */
  remove(id?: string): readonly PlantedFault[]
  /** Returns the first of these faults that fits a request, and does not count it. */
  next<Name extends Fault['fault']>(
    among: readonly Name[],
    wallet: string,
    operation: ServerOperation,
  ): PlantedOf<Name> | undefined
  /** Counts a fault that takes effect. Returns false if it is used up or removed. */
  use(id: string): boolean
}

export function plantedFaults(): Faults {
  let planted: readonly PlantedFault[] = []
  let count = 0
  return {
    plant(fault) {
      if (planted.length >= faultsMax)
        throw invalidOption(`at most ${faultsMax} faults are planted`)
      count += 1
      const left = fault.fault === 'rotated-key' ? {} : { left: fault.times ?? 1 }
      const added = { ...fault, id: `${count}`, ...left }
      planted = [...planted, added]
      return added
    },
    list: () => planted,
    remove(id) {
      const removed = planted.filter((each) => id === undefined || each.id === id)
      planted = planted.filter((each) => !removed.includes(each))
      return removed
    },
    next: <Name extends Fault['fault']>(
      among: readonly Name[],
      wallet: string,
      operation: ServerOperation,
    ) =>
      planted.find(
        (each): each is PlantedOf<Name> =>
          among.some((name) => name === each.fault) && concerns(each, wallet, operation),
      ),
    use(id) {
      const found = planted.find((each) => each.id === id)
      if (found === undefined) return false
      const left = (found.left ?? 1) - 1
      planted = planted.flatMap((each) =>
        each !== found ? [each] : left === 0 ? [] : [{ ...found, left }],
      )
      return true
    },
  }
}

function concerns(fault: PlantedFault, wallet: string, operation: ServerOperation): boolean {
  if (fault.fault === 'rotated-key') return false
  if (fault.wallet !== undefined && fault.wallet !== wallet) return false
  if (isOfPayment(fault)) return operation === 'createOutgoingPayment'
  if (fault.operation !== undefined) return fault.operation === operation
  return fault.fault !== 'expired-grant' || withToken.has(operation)
}

function isOfPayment(fault: PlantedFault): fault is PlantedOf<PaymentFault> {
  return paymentFaults.some((name) => name === fault.fault)
}

/**
 * Reads a fault.
 *
 * @param wallets the origins of the wallets.
 * @throws a `SandboxError` for an invalid fault.
 */
export function readFault(value: unknown, wallets: readonly string[]): Fault {
  if (typeof value !== 'object' || value === null) throw invalidOption('a fault is an object')
  const { fault, ...members } = value as Record<string, unknown>
  const own = membersOf.get(String(fault))
  if (own === undefined) {
    throw invalidOption(`fault must be one of ${[...membersOf.keys()].join(', ')}`)
  }
  for (const [name, member] of Object.entries(members)) {
    requireMember(String(fault), name, own)
    check(name, member, wallets)
  }
  if (fault === 'rotated-key' && members['account'] === undefined) {
    throw invalidOption('rotated-key needs an account')
  }
  return value as Fault
}

const scope = ['times', 'wallet', 'operation']
const membersOf: ReadonlyMap<string, readonly string[]> = new Map([
  ['lost-response', scope],
  ['slow', ['delayMs', ...scope]],
  ['unavailable', ['retryAfterSeconds', ...scope]],
  ['expired-grant', scope],
  ['insufficient-funds', ['times', 'wallet']],
  ['confirmation-required', ['times', 'wallet']],
  ['failed-payment', ['times', 'wallet']],
  ['partial-payment', ['times', 'wallet']],
  ['reviewed-payment', ['times', 'wallet']],
  ['too-many-requests', ['retryAfterSeconds', ...scope]],
  ['rotated-key', ['account']],
])

function check(name: string, value: unknown, wallets: readonly string[]): void {
  const upTo = (most: number, least = 1) => {
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return
    throw invalidOption(`${name} must be an integer from ${least} to ${most}`)
  }
  if (name === 'times') upTo(timesMax)
  if (name === 'delayMs') upTo(delayMaxMs)
  if (name === 'retryAfterSeconds') upTo(86_400, 0)
  if (name === 'wallet' && !wallets.includes(String(value))) {
    throw invalidOption(`wallet must be ${wallets.join(' or ')}`)
  }
  if (name === 'operation' && !operations.has(String(value))) {
    throw invalidOption(`operation must be one of ${[...operations].join(', ')}`)
  }
  if (name === 'account' && typeof value !== 'string')
    throw invalidOption('account must be a string')
}
