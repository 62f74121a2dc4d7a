import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  createResourceServer,
  type HostCall,
  HostTimeoutError,
  memoryStore,
  type Store,
  type WalletAddress,
  walletAddressSubjects,
} from '../../src/index.js'
import { type Authority, payerOf } from '../support/authorities.js'
import { publishedKeys, testKey } from '../support/keys.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  pay,
  priceList,
  quoteToken,
  usd,
} from '../support/spending.js'
import {
  type Answer,
  alice,
  answerOf,
  bob,
  grantEndpoint,
  incomingAccess,
  interactionId,
  resourceServer,
  type TestClient,
} from '../support/world.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const limitMs = 10_000
const decideMs = 20_000

/** Counts the commits of a store. */
function counted(store: Store) {
  const commits = { count: 0 }
  const commit: Store['commit'] = async (changes) => {
    commits.count += 1
    return store.commit(changes)
  }
  return { store: { ...store, commit }, commits }
}

/** The function of the host that does not answer, and what it would have answered. */
interface Silence {
  name?: string
  signal?: AbortSignal
  /** Answers at last. */
  answer?: () => void
  /** Called once the function has been called. */
  asked: () => void
}

/** A wallet whose functions are silent one by one. The host limits payments of the account, and knows its apps. */
function silentWallet() {
  const silence: Silence = { asked: () => undefined }
  const { store, commits } = counted(memoryStore())
  const keys = publishedKeys()
  keys.publish('https://shop.example', testKey('shop'))
  const accounts: readonly WalletAddress[] = [alice, bob].map((url) => ({ url, ...usd(0) }))

  function through<Value>(name: string, call: HostCall | undefined, work: () => Value) {
    if (silence.name !== name) return work()
    if (call !== undefined) silence.signal = call.signal
    silence.asked()
    return new Promise<Awaited<Value>>((resolve) => {
      silence.answer = () => resolve(work() as Awaited<Value>)
    })
  }

  const rateLimit = () => through('rateLimit', undefined, () => undefined)
  const find = async (url: string) => accounts.find((account) => account.url === url)
  const world = createSpendingWorld({
    store,
    auth: {
      rateLimit,
      clientKeys: {
        find: async (query, call) => through('clientKeys.find', call, () => keys.find(query, call)),
      },
      subjects: {
        resolve: async (query, call) =>
          through('subjects.resolve', call, () => walletAddressSubjects.resolve(query, call)),
      },
      policy: {
        mayRequest: (_, call) => through('mayRequest', call, () => ({ ok: true as const })),
      },
    },
    resources: {
      walletAddresses: {
        find: async (url, call) => through('walletAddresses.find', call, () => find(url)),
      },
      paymentMethods: {
        detailsOf: async (_, call) => through('paymentMethods.detailsOf', call, () => []),
        paymentIdOf: () => undefined,
      },
      pricing: {
        price: async (request, call) =>
          through('pricing.price', call, () => priceList.price(request, call)),
      },
      policy: {
        accountLimits: (_, call) => through('accountLimits', call, () => [{ payments: 9 }]),
        mayReceive: (_, call) => through('mayReceive', call, () => ({ ok: true as const })),
        mayPay: (_, call) => through('mayPay', call, () => ({ ok: true as const })),
        outgoingPayments: { decideMs },
      },
    },
  })
  return { world, silence, commits, client: world.client() }
}

type SilentWallet = ReturnType<typeof silentWallet>

/** Prepares a request that calls a function of the host. It can be sent again, with another signature. */
type Prepare = (wallet: SilentWallet) => Promise<() => Promise<Answer>>

const grantRequest: Prepare =
  async ({ client }) =>
  () =>
    client.request([incomingAccess])

async function incomingToken(client: TestClient): Promise<string> {
  return (await client.request([incomingAccess])).body.access_token.value
}

const newPayment: Prepare = async ({ client }) => {
  const token = await incomingToken(client)
  return () => client.createPayment(token, { walletAddress: bob })
}

const reading: Prepare = async ({ client }) => {
  const token = await incomingToken(client)
  const { body } = await client.createPayment(token, { walletAddress: bob })
  return () => client.getPayment(token, body.id)
}

const quoting: Prepare = async ({ client }) => {
  const token = await quoteToken(client)
  return () => newQuote(client, token)
}

const paying: Prepare = async ({ world, client }) => {
  const { token } = await grantToPay(world, client)
  return () => pay(client, token, 1)
}

const ofOwner: Authority = 'the owner of the account'

const ordering: Prepare = async ({ world }) => {
  const payer = await payerOf(world, ofOwner, { order: { countsInAccountLimits: true } })
  return () => payer.pay(1)
}

const quotingForOwner: Prepare = async ({ world }) => {
  const payer = await payerOf(world, ofOwner)
  return () => payer.quote()
}

const table: readonly (readonly [name: string, request: string, code: string, Prepare])[] = [
  ['clientKeys.find', 'a grant request', 'request_denied', grantRequest],
  ['clientKeys.find', 'a new payment', 'introspection_unavailable', paying],
  ['mayRequest', 'a grant request', 'request_denied', grantRequest],
  ['walletAddresses.find', 'a new incoming payment', 'busy', newPayment],
  ['walletAddresses.find', 'a quote', 'busy', quoting],
  ['walletAddresses.find', 'a payment', 'busy', paying],
  ['paymentMethods.detailsOf', 'a new incoming payment', 'busy', newPayment],
  ['paymentMethods.detailsOf', 'the details of an incoming payment', 'busy', reading],
  ['mayReceive', 'a new incoming payment', 'busy', newPayment],
  ['pricing.price', 'a quote', 'busy', quoting],
  ['pricing.price', 'a payment', 'busy', paying],
  ['accountLimits', 'a payment', 'busy', paying],
  ['mayPay', 'a payment', 'busy', paying],
  ['walletAddresses.find', 'a quote for the owner', 'busy', quotingForOwner],
  ['walletAddresses.find', 'a payment of the owner', 'busy', ordering],
  ['pricing.price', 'a quote for the owner', 'busy', quotingForOwner],
  ['pricing.price', 'a payment of the owner', 'busy', ordering],
  ['accountLimits', 'a payment of the owner', 'busy', ordering],
  ['mayPay', 'a payment of the owner', 'busy', ordering],
]

/** Makes a function silent, calls it through `work`, and lets its time pass. */
async function inSilence<Result>(silence: Silence, name: string, work: () => Promise<Result>) {
  const asked = new Promise<void>((resolve) => {
    silence.asked = resolve
  })
  silence.name = name
  let isOver = false
  const answered = work().finally(() => {
    isOver = true
  })
  answered.catch(() => undefined)
  await asked
  const ms = name === 'mayPay' ? decideMs : limitMs
  await vi.advanceTimersByTimeAsync(ms - 1)
  expect([isOver, silence.signal?.aborted ?? false]).toEqual([false, false])
  await vi.advanceTimersByTimeAsync(1)
  delete silence.name
  return answered
}

/** Lets everything go on that waits for nothing but promises. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe.each(table)('if %s never answers, %s', (name, request, code, prepare) => {
  const isSigned = !request.endsWith('of the owner') && !request.endsWith('for the owner')

  test('gets 503 after its time, and neither holds nor leaves anything', async () => {
    const wallet = silentWallet()
    const { world, silence, commits } = wallet
    const send = await prepare(wallet)
    const before = commits.count
    const { status, headers, body } = await inSilence(silence, name, send)
    expect([status, body.error.code]).toEqual([503, code])
    if (isSigned) {
      expect(headers['retry-after']).toBe('1')
      expect(world.refusals.at(-1)?.reason).toMatch(`${name} did not answer`)
    }
    expect([silence.signal?.aborted, silence.signal?.reason]).toEqual([
      true,
      expect.any(HostTimeoutError),
    ])
    expect(vi.getTimerCount()).toBe(0)
    // The payment about which mayPay was asked is reserved, because the host may have held its funds.
    if (name !== 'mayPay') expect(commits.count).toBe(before)
  })

  test('is not changed by its late answer, and can be repeated', async () => {
    const wallet = silentWallet()
    const { world, silence, commits } = wallet
    const send = await prepare(wallet)
    await inSilence(silence, name, send)
    const before = commits.count
    const errors = world.errors.length
    silence.answer?.()
    await settled()
    expect([commits.count, world.errors.length]).toEqual([before, errors])
    const payments = await world.resources.outgoingPayments.list({ walletAddress: alice, first: 9 })
    expect(payments.result).toEqual([])
    expect((await send()).status).toBeLessThan(300)
  })
})

test('what a client sees of a silent host names none of its functions', async () => {
  const wallet = silentWallet()
  const send = await newPayment(wallet)
  const { body } = await inSilence(wallet.silence, 'mayReceive', send)
  expect(body).toEqual({ error: { code: 'busy', description: 'Temporarily unavailable' } })
  expect(wallet.world.errors).toEqual([new HostTimeoutError('mayReceive', limitMs)])
})

test('a rate limit that never answers lets the request pass', async () => {
  const wallet = silentWallet()
  const send = await newPayment(wallet)
  const { status } = await inSilence(wallet.silence, 'rateLimit', send)
  expect(status).toBe(201)
  expect(wallet.world.errors).toEqual([new HostTimeoutError('rateLimit', limitMs)])
})

test('funds that arrive while mayReceive is silent are not counted by its late answer', async () => {
  const { world, silence, client } = silentWallet()
  const { incomingPayments } = world.resources
  const created = await client.createPayment(await incomingToken(client), { walletAddress: bob })
  const id = incomingPayments.idOf(created.body.id) ?? ''
  const receive = () => incomingPayments.receive(id, { transferId: 'one', amount: usd(7) })
  await expect(inSilence(silence, 'mayReceive', receive)).rejects.toThrow(HostTimeoutError)
  silence.answer?.()
  await settled()
  expect((await incomingPayments.get(id))?.receivedAmount).toEqual(usd(0))
  expect(await receive()).toMatchObject({ ok: true, changed: true })
})

test('an approval whose subject nobody names in time rejects, and can be repeated', async () => {
  const { world, silence, client } = silentWallet()
  const subject = { sub_ids: [{ id: alice, format: 'uri' }] }
  const { body } = await client.post(grantEndpoint, {
    client: client.client,
    subject,
    interact: { start: ['redirect'] },
  })
  const id = interactionId(body.interact.redirect)
  const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
  const approve = () => world.auth.interactions.approve(id, approval)
  await expect(inSilence(silence, 'subjects.resolve', approve)).rejects.toThrow(HostTimeoutError)
  silence.answer?.()
  await settled()
  expect((await world.auth.interactions.get(id))?.status).toBe('pending')
  expect(await approve()).toMatchObject({ ok: true, changed: true })
})

test('a source of grants of the host that never answers ends in 503', async () => {
  const { world, silence, client } = silentWallet()
  const token = await incomingToken(client)
  const resources = createResourceServer({
    baseUrl: resourceServer,
    grants: {
      grantEndpoint,
      introspect: () => {
        silence.asked()
        return new Promise(() => undefined)
      },
    },
    store: memoryStore(),
    clock: world.clock,
    walletAddresses: { find: async () => undefined },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
  })
  const created = client.sign({
    method: 'POST',
    url: `${resourceServer}/incoming-payments`,
    body: JSON.stringify({ walletAddress: bob }),
    token,
  })
  const send = async () => answerOf(await resources.handle(created))
  const { status, body } = await inSilence(silence, 'grants.introspect', send)
  expect([status, body.error.code]).toEqual([503, 'introspection_unavailable'])
})

test('a host that is slow to find an account has its whole time for mayPay once the owner confirms', async () => {
  const lateMs = 9_000
  let isSlow = false
  let asked = () => {}
  const silent = new Promise<void>((resolve) => {
    asked = resolve
  })
  const world = createSpendingWorld({
    resources: {
      walletAddresses: {
        async find(url) {
          if (isSlow) world.clock.advance(lateMs)
          return { url, ...usd(0) }
        },
      },
      policy: {
        mayPay({ isConfirmed }) {
          const until = world.clock.now() + 60_000
          const url = 'https://wallet.example/confirm'
          if (!isConfirmed) return { ok: false, refusal: 'confirmation_required', url, until }
          asked()
          return new Promise(() => undefined)
        },
        outgoingPayments: { decideMs },
      },
    },
  })
  const { outgoingPayments } = world.resources
  const client = world.client()
  const { token } = await grantToPay(world, client)
  expect((await pay(client, token, 1)).status).toBe(403)
  const [waiting] = (await outgoingPayments.listToConfirm({ walletAddress: alice, first: 1 }))
    .result
  if (waiting === undefined) throw new Error('no payment waits')
  const { paymentId, receiver, debitAmount, receiveAmount } = waiting
  isSlow = true
  const shown = { receiver, debitAmount, receiveAmount }
  let isOver = false
  const confirmed = outgoingPayments
    .confirm(paymentId, { resourceOwner: 'alice', ...shown })
    .finally(() => {
      isOver = true
    })
  confirmed.catch(() => undefined)
  await silent
  await vi.advanceTimersByTimeAsync(decideMs - 1)
  expect(isOver).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await expect(confirmed).rejects.toEqual(new HostTimeoutError('mayPay', decideMs))
})

test('the time of a call is an option', async () => {
  const asked = vi.fn(() => new Promise<undefined>(() => undefined))
  const world = createSpendingWorld({
    auth: { hostTimeoutMs: 70 },
    resources: { walletAddresses: { find: asked } },
  })
  const client = world.client()
  const token = await incomingToken(client)
  const answered = client.createPayment(token, { walletAddress: bob })
  await vi.waitUntil(() => asked.mock.calls.length > 0)
  await vi.advanceTimersByTimeAsync(70)
  expect((await answered).status).toBe(503)
  expect(world.errors).toEqual([new HostTimeoutError('walletAddresses.find', 70)])
})
