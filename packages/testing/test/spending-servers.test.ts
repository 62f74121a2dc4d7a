import fc from 'fast-check'
import {
  type AccessItem,
  createAuthorizationServer,
  createResourceServer,
  memoryStore,
  type Pricing,
  type Store,
} from 'open-payments-server'
import { hostCall } from 'open-payments-test-support/host-call'
import { isLong, runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  type SpendingAction,
  type SpendingPorts,
  type SpendingScene,
  type SpendingServers,
  type SpendingStep,
  spendingProperty,
  startOfTests,
} from '../src/index.js'
import { filledIn } from '../src/spending/generate.js'
import { runHistory } from '../src/spending/run.js'
import { serversWallet } from '../src/spending/servers.js'
import { hostScene, pricing } from './support/host-ledger.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const url = 'https://wallet.example/pay/alice'
const scene: SpendingScene = { ...hostScene, walletAddress: url }

/** Servers behind a proxy that removes a prefix, with tokens that expire after a second. */
function serversOn(
  store: Store,
  { clock, clientKeys, failing }: SpendingPorts,
  prices: Pricing = pricing,
  decideMs = 30_000,
): SpendingServers {
  const grantEndpoint = 'https://wallet.example/pay/auth'
  const baseUrl = 'https://wallet.example/pay/op'
  const onError = () => undefined // the store fails as the history says
  const shared = { store: failing(store), clock, strippedPrefix: '/pay', onError }
  const authorizationServer = createAuthorizationServer({
    ...shared,
    grantEndpoint,
    clientKeys,
    consentUrl: 'https://wallet.example/pay/consent',
    policy: { accessTokens: { lifetimeMs: 1_000 } },
  })
  const resourceServer = createResourceServer({
    ...shared,
    baseUrl,
    grants: authorizationServer,
    walletAddresses: { find: async (each) => (each === url ? { url, ...usd } : undefined) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: prices,
    policy: { mayPay: () => ({ ok: true }), outgoingPayments: { decideMs } },
  })
  return { authorizationServer, resourceServer, grantEndpoint, baseUrl, strippedPrefix: '/pay' }
}

describe('the servers of a host', () => {
  test('keep every limit, with one store for all histories, a stripped prefix and short-lived tokens', async () => {
    const store = memoryStore()
    const servers = async (ports: SpendingPorts) => serversOn(store, ports)
    await fc.assert(spendingProperty(fc, { servers, scene }), { numRuns: runs(400, 20) })
  })

  test.each([
    ['the rotation of an expired token', 86_400_000, 30_000],
    ['the reservation of a payment, about which the host may think for an hour', 0, 3_600_000],
  ])('keep a payment if the response is lost to %s', async (_, waitMs, decideMs) => {
    const servers = (ports: SpendingPorts) => serversOn(memoryStore(), ports, pricing, decideMs)
    const item: AccessItem = {
      type: 'outgoing-payment',
      actions: ['create'],
      identifier: url,
      limits: { debitAmount: { value: '20', ...usd } },
    }
    const [{ url: receiver, asset }] = scene.receivers
    const amounts = {
      debitAmount: { value: '10', ...usd },
      receiveAmount: { value: '5', ...asset },
    }
    const pay = (payment: number): SpendingAction => {
      const paid = { payment, grant: 1, by: 'direct', walletAddress: url, receiver } as const
      return { type: 'pay', ...paid, ...amounts }
    }
    const steps: SpendingStep[] = [
      { type: 'grant', grant: 1, asked: [item], granted: [item] },
      { type: 'wait', until: startOfTests + waitMs },
      { type: 'store fails', failure: 'after', write: 1, sweeps: false, action: pay(1) },
    ]
    const history = { scene, start: startOfTests, steps }
    const rules = { ...filledIn({ scene, decideMs }).rules, mayRefuse: false }
    await runHistory(history, await serversWallet(servers, scene, true), rules)
  })

  /** Each call of the store takes a number of turns that the test draws. */
  function slow(store: Store, turns: () => number): Store {
    const late = async <Result>(work: () => Promise<Result>) => {
      for (let left = turns(); left > 0; left--) await new Promise(setImmediate)
      const result = await work()
      for (let left = turns(); left > 0; left--) await new Promise(setImmediate)
      return result
    }
    return {
      ...store,
      load: (keys) => late(() => store.load(keys)),
      commit: (commit) => late(() => store.commit(commit)),
    }
  }

  test('accept concurrent payments after their access token expired, whatever overtakes what', async () => {
    const item: AccessItem = { type: 'outgoing-payment', actions: ['create'], identifier: url }
    const [{ url: receiver }] = scene.receivers
    const delays = fc.array(fc.nat(6), { minLength: 60, maxLength: 60 })
    const by = fc.array(fc.constantFrom('quote', 'direct'), { minLength: 2, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(by, by, delays, async (first, second, turns) => {
        let calls = 0
        const store = slow(memoryStore(), () => turns[calls++ % turns.length] ?? 0)
        const servers = (ports: SpendingPorts) => serversOn(store, ports)
        const wallet = await serversWallet(servers, scene, true)
        await wallet.setClock?.(startOfTests)
        const grant = await wallet.grant([item], [item])
        for (const [round, requests] of [first, second].entries()) {
          await wallet.setClock?.(startOfTests + (round + 1) * 86_400_000)
          const answers = await Promise.all(
            requests.map((by, i) => {
              const paid = { grant, walletAddress: url, receiver, key: `${round}-${i}`, by }
              return wallet.pay({ ...paid, debitAmount: { value: '10', ...usd } })
            }),
          )
          const expected = requests.map(() => expect.objectContaining({ accepted: true }))
          expect(answers, `round ${round}`).toEqual(expected)
        }
      }),
      { numRuns: runs(300, 25) },
    )
  })

  test('are closed after each history', async () => {
    const steps: string[] = []
    const servers = (ports: SpendingPorts) => {
      steps.push('created')
      return { ...serversOn(memoryStore(), ports), close: () => void steps.push('closed') }
    }
    await fc.assert(spendingProperty(fc, { servers, scene }), { numRuns: 2 })
    expect(steps).toEqual(['created', 'closed', 'created', 'closed'])
  })
})

describe.runIf(isLong)('the search finds servers that', () => {
  const search = (
    keysOf: (ports: SpendingPorts) => SpendingPorts['clientKeys'],
    rest = {},
    numRuns = 600,
  ) => {
    const servers = (ports: SpendingPorts) => ({
      ...serversOn(memoryStore(), { ...ports, clientKeys: keysOf(ports) }),
      ...rest,
    })
    const parameters = { numRuns, seed: 1, endOnFailure: !isLong }
    return fc.check(spendingProperty(fc, { servers, scene }), parameters)
  }

  test('serve a key that the client no longer publishes', async () => {
    const { errorInstance } = await search(({ clientKeys }) => {
      const known = new Map<string, Awaited<ReturnType<typeof clientKeys.find>>>()
      return {
        async find(query) {
          const found = known.get(query.kid) ?? (await clientKeys.find(query, hostCall))
          known.set(query.kid, found)
          return found
        },
      }
    })
    expect(`${errorInstance}`).toMatch(/a request with a removed key got 2\d\d, not 401/)
  })

  test('refuse a key that the client published since, unless they say so', async () => {
    const first = ({ clientKeys }: SpendingPorts) => {
      let only: string | undefined
      const find: typeof clientKeys.find = async (query) => {
        only ??= query.kid
        return query.kid === only ? clientKeys.find(query, hostCall) : undefined
      }
      return { find }
    }
    expect((await search(first)).failed).toBe(true)
    const bound = await search(first, { keyBinding: 'bound' }, runs(600))
    expect(bound.failed).toBe(false)
  })
})

describe('a price that differs from the scene', () => {
  /** A unit costs `num / den`, and the remainder of a debit is lost. */
  const priced = (num: bigint, den: bigint): Pricing => ({
    async price({ receiver, debitAmount: { value } = { value: '0' }, ...more }) {
      const debitAmount = { value, ...usd }
      const arriving = { value: `${(BigInt(value) * den) / num}`, assetCode: 'EUR', assetScale: 2 }
      if (arriving.value !== '0') return { ok: true, debitAmount, receiveAmount: arriving }
      return pricing.price({ receiver, debitAmount, ...more }, hostCall)
    },
  })

  const search = (own: Pricing, unitPrice: bigint | string, numRuns = runs(600)) => {
    const [receiver] = scene.receivers
    const servers = (ports: SpendingPorts) => serversOn(memoryStore(), ports, own)
    const other = { ...scene, receivers: [{ ...receiver, unitPrice }] } as const
    const parameters = { numRuns, seed: 1, endOnFailure: !isLong }
    return fc.check(spendingProperty(fc, { servers, scene: other }), parameters)
  }

  test('is named, instead of the refusal that it causes', async () => {
    const prices = [
      [1n, 1n],
      [137n, 100n],
      [5n, 2n],
    ] as const
    for (const [num, den] of isLong ? prices : prices.slice(1, 2)) {
      const { errorInstance } = await search(priced(num, den), 2n)
      const [first = ''] = String((errorInstance as Error).message).split('\n')
      const named =
        /^the price of payment \d+ differs from the scene: of USD ([\d.]+), the wallet delivers EUR ([\d.]+), and the scene says EUR ([\d.]+); set unitPrice, which is 2, of scene.receivers\[0\] to the price of the wallet$/
      expect(first).toMatch(named)
      const [, debit = '', arrives = '', expected = ''] = named.exec(first) ?? []
      const cents = (text: string) => BigInt(text.replace('.', ''))
      expect(cents(arrives), first).toBe((cents(debit) * den) / num)
      expect(cents(expected), first).toBe(cents(debit) / 2n)
    }
  })

  test('in another asset names both', async () => {
    const yen: Pricing = {
      async price(request) {
        const price = await pricing.price(request, hostCall)
        if (!price.ok) return price
        return { ...price, receiveAmount: { ...price.receiveAmount, assetCode: 'JPY' } }
      },
    }
    const { errorInstance } = await search(yen, 2n)
    expect((errorInstance as Error).message).toMatch(
      /^the price of .*delivers JPY [\d.]+, and the scene says EUR [\d.]+; set asset of scene.receivers\[0\]/,
    )
  })

  test('is named, if the wallet refuses it, or returns an amount that the client did not ask for', async () => {
    const unknown = await search(
      { price: async () => ({ ok: false, refusal: 'receiver_invalid' }) },
      2n,
    )
    expect((unknown.errorInstance as Error).message).toMatch(
      /^the wallet has no price for USD [\d.]+ to https:\S+\/1: the server responded with 400 .*invalid_receiver/,
    )
    const withFee: Pricing = {
      async price(request) {
        const price = await pricing.price(request, hostCall)
        if (!price.ok) return price
        const { value, ...asset } = price.debitAmount
        return { ...price, debitAmount: { value: `${BigInt(value) + 1n}`, ...asset } }
      },
    }
    const wrong = await search(withFee, 2n)
    expect((wrong.errorInstance as Error).message).toMatch(
      /^the wallet has no price .* 500 .*; the error is passed to onError of the servers\n/,
    )
  })

  test('is not: a price may be a fraction, of which the search knows the exact value', async () => {
    for (const unitPrice of ['1.37', '137/100']) {
      const { errorInstance } = await search(priced(137n, 100n), unitPrice, runs(600, 12))
      expect(errorInstance).toBeNull()
    }
    const { errorInstance } = await search(priced(137n, 100n), '1.36')
    expect((errorInstance as Error).message).toMatch(
      /scene says EUR [\d.]+; set unitPrice, which is 1.36,/,
    )
  })

  test.each(['', '0', '0.0', '1/0', '0/1', '-1', '1.', '.5', '1e3', '1,5', '1.5/2', 0n, -1n, 1.5])(
    'is refused if it is no positive decimal or fraction: %s',
    (unitPrice) => {
      const [receiver] = scene.receivers
      const other = { ...scene, receivers: [{ ...receiver, unitPrice }] } as never
      const servers = (ports: SpendingPorts) => serversOn(memoryStore(), ports)
      expect(() => spendingProperty(fc, { servers, scene: other })).toThrow(
        'scene must have positive prices: an integer, or a decimal or fraction as text, such as 1.37 or 137/100',
      )
    },
  )
})

test.each([
  ['store', { store: memoryStore() }],
  ['servers', { servers: {}, scene }],
  ['wallet', { wallet: undefined, scene }],
])('%s must be a function', (name, subject) => {
  expect(() => spendingProperty(fc, subject as never)).toThrow(`${name} must be a function`)
})
