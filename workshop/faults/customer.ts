import { type CallerOptions, createCaller } from './caller.js'
import { createGrantActions } from './grant-actions.js'
import { createPaymentActions } from './payment-actions.js'

export const actions = [
  'request a token',
  'request with consent',
  'rotate',
  'rotate twice at once',
  'revoke',
  'create a payment',
  'read a payment',
  'receive',
  'receive three at once',
  'repeat a transfer',
] as const

export type Action = (typeof actions)[number]

/** The frequency of each action under load, relative to the others. */
const weights: Record<Action, number> = {
  'request a token': 2,
  'request with consent': 2,
  rotate: 5,
  'rotate twice at once': 2,
  revoke: 1,
  'create a payment': 4,
  'read a payment': 1,
  receive: 6,
  'receive three at once': 2,
  'repeat a transfer': 2,
}

export interface Customer {
  readonly name: string
  act(action: Action): Promise<void>
}

/**
 * A shop and its ledger: performs actions, records the responses, and repeats requests without a response.
 * After an action, only creations without a response have an unknown outcome.
 */
export function createCustomer(options: CallerOptions): Customer {
  const caller = createCaller(options)
  const grants = createGrantActions(caller)
  const payments = createPaymentActions(caller, grants)
  const acts: Record<Action, () => Promise<void>> = {
    'request a token': grants.requestToken,
    'request with consent': grants.requestWithConsent,
    rotate: () => grants.rotate(1),
    'rotate twice at once': () => grants.rotate(2),
    revoke: grants.revoke,
    'create a payment': payments.create,
    'read a payment': payments.read,
    receive: () => payments.receive(1),
    'receive three at once': () => payments.receive(3),
    'repeat a transfer': payments.repeatTransfer,
  }
  return { name: options.name, act: (action) => acts[action]() }
}

const weighted = actions.flatMap((action) => Array.from({ length: weights[action] }, () => action))

export function anyAction(random: () => number): Action {
  return weighted[Math.floor(random() * weighted.length)] ?? 'receive'
}

/** Returns the same sequence of numbers for the same seed (mulberry32). */
export function seededNumbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
