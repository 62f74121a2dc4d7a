import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { decide } from '../../../examples/demo/browser.js'
import type { Shop } from '../../../examples/demo/shop.js'
import type { RunningDeployment } from '../official-client.js'
import { NoResponse } from '../raw-http.js'
import type { Dialect } from './dialect.js'
import { type Answered, type SentRequest, sent } from './send.js'
import { listUrl } from './write.js'

/** The calls of the sequence in its order, each with the status of its success. */
export const successes = {
  'request a grant without consent': 200,
  'create an incoming payment': 201,
  'create an incoming payment without optional members': 201,
  'read an incoming payment': 200,
  'list incoming payments': 200,
  'request a grant for quotes': 200,
  'create a quote': 201,
  'read a quote': 200,
  'request a grant with consent': 200,
  'continue the grant after consent': 200,
  'create an outgoing payment': 201,
  'read an outgoing payment': 200,
  'list outgoing payments': 200,
  'read the amounts spent under a grant': 200,
  'complete an incoming payment': 200,
  'rotate a token': 200,
  'revoke a token': 204,
  'cancel a grant': 204,
} as const

export type Call = keyof typeof successes

export const calls = Object.keys(successes) as Call[]

/**
 * The outcome of a call. A call is not reached when the client refused the response that it depends on, or had no
 * response to it.
 */
export type CallResult = Answered | 'not reached' | 'no response'

export type Results = Readonly<Record<Call, CallResult>>

export interface SequenceOptions {
  readonly dialect: Dialect
  readonly running: Pick<RunningDeployment, 'alice' | 'bob' | 'auth' | 'op'>
  /** The client. */
  readonly shop: Shop
  /** When the first incoming payment expires, in nanoseconds since 1970. */
  readonly expiresAt: bigint
  readonly metadata: Readonly<Record<string, unknown>>
  /** Whether the client waits before it continues, as a wallet with a real clock asks. Default: false. */
  readonly waits?: boolean
  /** Whether the payment names its amount in place of its quote. Default: false. */
  readonly isDirect?: boolean
  /** Whether the client signs and sends the call again, after this result. Default: never. */
  readonly repeats?: (result: Answered | 'no response', call: Call) => boolean
}

/**
 * Runs the protocol as one client writes it, with a connection for each request. The resource owner consents
 * at the wallet's page, as with a browser.
 */
export async function runSequence(options: SequenceOptions): Promise<Results> {
  const results: Partial<Record<Call, CallResult>> = {}

  function answerTo(call: Call) {
    const result = results[call]
    if (result === undefined || typeof result === 'string') throw notReached
    if (result.status !== successes[call]) throw notReached
    return result.body
  }

  const { repeats = () => false } = options
  for (const [call, ask] of Object.entries(stepsOf(options, answerTo)) as [Call, Step][]) {
    let result = await outcomeOf(ask, options)
    for (let left = 10; left > 0 && result !== 'not reached' && repeats(result, call); left--) {
      await sleep(300) // a signature of the same second is the same signature
      result = await outcomeOf(ask, options)
    }
    results[call] = result
  }
  return results as Results
}

type Step = () => SentRequest | Promise<SentRequest>

const notReached = new Error('an earlier call was refused')

async function outcomeOf(ask: Step, { dialect, shop }: SequenceOptions): Promise<CallResult> {
  try {
    return await sent(dialect, await ask(), shop)
  } catch (error) {
    if (error === notReached) return 'not reached'
    if (error instanceof NoResponse) return 'no response'
    throw error
  }
}

function stepsOf(
  { dialect, running, shop, expiresAt, metadata, waits = false, isDirect = false }: SequenceOptions,
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the tests are about
  answerTo: (call: Call) => any,
): Readonly<Record<Call, Step>> {
  const { alice, bob, auth, op } = running
  const receiveToken = () => answerTo('request a grant without consent').access_token
  const quoteToken = () => answerTo('request a grant for quotes').access_token.value
  const granted = () => answerTo('continue the grant after consent')
  const payToken = () => granted().access_token.value
  const payment = () => answerTo('create an incoming payment')
  /** Which the owner's consent gives, once. */
  let reference: string | null | undefined

  const post = (url: string, token: string | undefined, value?: object) =>
    ({ method: 'POST', url, token, value }) as const
  const read = (url: string, token: string) =>
    ({ method: 'GET', url: dialect.readAt(url), token }) as const
  const list = (collection: string, walletAddress: string, token: string) =>
    ({ method: 'GET', url: listUrl(dialect, collection, walletAddress), token }) as const
  const ask = (access: object, interact?: object) => {
    const client = shop.walletAddress
    return post(auth, undefined, {
      access_token: { access: [access] },
      client,
      ...(interact && { interact }),
    })
  }

  return {
    'request a grant without consent': () =>
      ask({
        type: 'incoming-payment',
        actions: ['create', 'read', 'list', 'complete'],
        identifier: bob,
      }),
    'create an incoming payment': () =>
      post(`${op}/incoming-payments`, receiveToken().value, {
        walletAddress: bob,
        incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
        expiresAt: dialect.instant(expiresAt),
        metadata,
      }),
    'create an incoming payment without optional members': () =>
      post(`${op}/incoming-payments`, receiveToken().value, {
        walletAddress: bob,
        incomingAmount: undefined,
        expiresAt: undefined,
        metadata: undefined,
      }),
    'read an incoming payment': () => read(payment().id, receiveToken().value),
    'list incoming payments': () => list(`${op}/incoming-payments`, bob, receiveToken().value),
    'request a grant for quotes': () => ask({ type: 'quote', actions: ['create', 'read'] }),
    'create a quote': () =>
      post(`${op}/quotes`, quoteToken(), {
        walletAddress: alice,
        receiver: payment().id,
        method: 'ilp',
      }),
    'read a quote': () => read(answerTo('create a quote').id, quoteToken()),
    'request a grant with consent': () => {
      const limits = { debitAmount: answerTo('create a quote').debitAmount }
      const finish = { method: 'redirect', uri: shop.finishUri, nonce: randomUUID() }
      const actions = ['create', 'read', 'list']
      return ask(
        { type: 'outgoing-payment', actions, identifier: alice, limits },
        { start: ['redirect'], finish },
      )
    },
    'continue the grant after consent': async () => {
      const pending = answerTo('request a grant with consent')
      const { uri, access_token, wait } = pending.continue
      if (reference === undefined) {
        // An owner whose answer is lost presses the button again.
        for (let left = 10; reference === undefined && left > 0; left--) {
          const { location } = await decide(pending.interact.redirect, 'approve')
          reference = location?.searchParams.get('interact_ref')
        }
        if (waits) await sleep(wait * 1_000)
      }
      return post(dialect.continueAt(uri), access_token.value, { interact_ref: reference })
    },
    'create an outgoing payment': () =>
      post(`${op}/outgoing-payments`, payToken(), {
        walletAddress: alice,
        ...(isDirect
          ? { incomingPayment: payment().id, debitAmount: answerTo('create a quote').debitAmount }
          : { quoteId: answerTo('create a quote').id }),
        metadata: undefined,
      }),
    'read an outgoing payment': () => read(answerTo('create an outgoing payment').id, payToken()),
    'list outgoing payments': () => list(`${op}/outgoing-payments`, alice, payToken()),
    'read the amounts spent under a grant': () => ({
      method: 'GET',
      url: `${op}/outgoing-payment-grant`,
      token: payToken(),
    }),
    'complete an incoming payment': () => post(`${payment().id}/complete`, receiveToken().value),
    'rotate a token': () => post(receiveToken().manage, receiveToken().value),
    'revoke a token': () => {
      const { manage, value } = answerTo('rotate a token').access_token
      return { method: 'DELETE', url: manage, token: value }
    },
    'cancel a grant': () => {
      const { uri, access_token } = granted().continue
      return { method: 'DELETE', url: uri, token: access_token.value }
    },
  }
}
