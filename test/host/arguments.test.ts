import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidInputError, memoryStore, type Store } from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
import { invalidInput } from '../support/invalid-input.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { alice, bob, incomingAccess, interactionId } from '../support/world.js'

/** Values of every type that a host without types may pass. */
const anything = fc.constantFrom<unknown>(
  undefined,
  null,
  true,
  false,
  0,
  17,
  1.5,
  Number.NaN,
  17n,
  '',
  'text',
  'half a character \ud83d',
  Symbol('symbol'),
  [],
  ['text'],
  {},
  { value: '1' },
  () => 'text',
  new Date(0),
)

const isText = (value: unknown) =>
  typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value)
const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a part of an argument must be. Every other value of `anything` is wrong. */
const kinds = {
  text: isText,
  string: (value: unknown) => typeof value === 'string',
  'object, unless it is a string': (value: unknown) => isObject(value) || typeof value === 'string',
  integer: Number.isSafeInteger,
  number: (value: unknown) => typeof value === 'number',
  boolean: (value: unknown) => typeof value === 'boolean',
  object: isObject,
  list: Array.isArray,
  url: () => false,
  'url, unless it is an object': isObject,
  unknown: () => false,
}
type Kind = keyof typeof kinds | `${keyof typeof kinds} or undefined`

function wrong(kind: Kind): fc.Arbitrary<unknown> {
  const [name = '', optional] = kind.split(' or ')
  const isRight = kinds[name as keyof typeof kinds]
  return anything.filter((value) => !isRight(value) && !(optional && value === undefined))
}

/** A call of a host's service: valid arguments, and the kind of each part of them. */
interface Call {
  readonly names: readonly string[]
  readonly good: readonly unknown[]
  readonly parts: Readonly<Record<string, Kind>>
}

/** The kinds of the parts of an amount. */
function amountAt(path: string, kind: 'object' | 'object or undefined' = 'object') {
  return {
    [path]: kind,
    [`${path}.value`]: 'string',
    [`${path}.assetCode`]: 'string',
    [`${path}.assetScale`]: 'number',
  } as const
}

const pageParts = {
  'query.first': 'integer or undefined',
  'query.last': 'integer or undefined',
  'query.cursor': 'text or undefined',
  'query.frist': 'unknown',
} as const

const item = {
  ...outgoingItem({ debitAmount: usd(10), receiver: 'https://bank.example/incoming-payments/1' }),
}
const itemPath = 'approval.access.0'

/** Every call of the services, on these records. */
function callsOn(ids: {
  readonly interaction: string
  readonly grant: string
  readonly incoming: string
  readonly begun: string
  readonly created: string
}): Readonly<Record<string, Readonly<Record<string, Call>>>> {
  const { interaction, grant, incoming, begun, created } = ids
  const one = (name: string, good: string, kind: Kind = 'text'): Call => ({
    names: [name],
    good: [good],
    parts: { [name]: kind },
  })
  const reads = (id: string): Record<string, Call> => ({
    get: one('paymentId', id, 'string'),
    getRecord: one('paymentId', id, 'string'),
    idOf: one('url', 'https://wallet.example/op/incoming-payments/1', 'string'),
    list: {
      names: ['query'],
      good: [{ walletAddress: bob }],
      parts: { query: 'object', 'query.walletAddress': 'url', ...pageParts },
    },
    iterate: {
      names: ['query'],
      good: [{ walletAddress: bob }],
      parts: { query: 'object', 'query.walletAddress': 'url', 'query.first': 'unknown' },
    },
  })
  const totals = { sentAmount: usd(1), deliveredAmount: usd(1) }
  const inDoubt = { amount: usd(1), since: startOfTests, reason: 'peer 1' }
  const doubtParts = {
    'report.inDoubt': 'object or undefined',
    ...amountAt('report.inDoubt.amount'),
    'report.inDoubt.since': 'integer',
    'report.inDoubt.reason': 'text',
    'report.inDoubt.peer': 'unknown',
  } as const
  return {
    interactions: {
      get: one('id', interaction, 'string'),
      deny: {
        names: ['id', 'denial'],
        good: [interaction, { resourceOwner: 'alice' }],
        parts: {
          id: 'text',
          denial: 'object or undefined',
          'denial.resourceOwner': 'text or undefined',
          'denial.owner': 'unknown',
        },
      },
      approve: {
        names: ['id', 'approval'],
        good: [
          interaction,
          {
            resourceOwner: 'alice',
            walletAddresses: [alice, { url: bob, assetCode: 'USD', assetScale: 2, owner: 'alice' }],
            account: '',
            access: [item],
            sharesSubject: false,
          },
        ],
        parts: {
          id: 'text',
          approval: 'object',
          'approval.resourceOwner': 'text',
          'approval.walletAddresses': 'list',
          'approval.walletAddresses.0': 'url, unless it is an object',
          'approval.walletAddresses.1.url': 'url',
          'approval.walletAddresses.1.assetCode': 'text',
          'approval.walletAddresses.1.assetScale': 'integer',
          'approval.account': 'string or undefined',
          'approval.access': 'list or undefined',
          'approval.acces': 'unknown',
          'approval.sharesSubject': 'boolean or undefined',
          [itemPath]: 'object',
          [`${itemPath}.label`]: 'text or undefined',
          [`${itemPath}.type`]: 'text',
          [`${itemPath}.actions`]: 'list',
          [`${itemPath}.actions.0`]: 'text',
          [`${itemPath}.identifier`]: 'text or undefined',
          [`${itemPath}.limit`]: 'unknown',
          [`${itemPath}.limits`]: 'object or undefined',
          [`${itemPath}.limits.debitAmout`]: 'unknown',
          [`${itemPath}.limits.receiver`]: 'url or undefined',
          [`${itemPath}.limits.interval`]: 'text or undefined',
          ...amountAt(`${itemPath}.limits.debitAmount`, 'object or undefined'),
          [`${itemPath}.limits.receiveAmount`]: 'object or undefined',
        },
      },
    },
    grants: {
      getRecord: one('grantId', grant, 'string'),
      get: one('grantId', grant, 'string'),
      displayOf: one('client', 'https://shop.example', 'string'),
      revoke: one('grantId', grant),
      amend: {
        names: ['grantId', 'amendment'],
        good: [grant, { resourceOwner: 'alice' }],
        parts: {
          grantId: 'text',
          amendment: 'object',
          'amendment.resourceOwner': 'text or undefined',
          'amendment.conditions': 'object or undefined',
          'amendment.acces': 'unknown',
        },
      },
      revokeAll: {
        names: ['query'],
        good: [{ resourceOwner: 'carol', client: 'https://shop.example' }],
        parts: {
          query: 'object',
          'query.resourceOwner': 'text or undefined',
          'query.client': 'text or undefined',
          'query.owner': 'unknown',
        },
      },
      list: {
        names: ['query'],
        good: [{ resourceOwner: 'alice', statuses: ['approved'] }],
        parts: {
          query: 'object',
          'query.resourceOwner': 'text',
          'query.statuses': 'list or undefined',
          'query.statuses.0': 'url',
          'query.walletAddress': 'url or undefined',
          ...pageParts,
        },
      },
      iterate: {
        names: ['query'],
        good: [{ resourceOwner: 'alice' }],
        parts: { query: 'object', 'query.resourceOwner': 'text', 'query.cursor': 'unknown' },
      },
      history: {
        names: ['query'],
        good: [{ resourceOwner: 'alice' }],
        parts: {
          query: 'object',
          'query.resourceOwner': 'text',
          'query.statuses': 'unknown',
          ...pageParts,
        },
      },
      exportHistory: {
        names: ['query'],
        good: [{ resourceOwner: 'alice' }],
        parts: { query: 'object', 'query.resourceOwner': 'text', 'query.cursor': 'unknown' },
      },
    },
    incomingPayments: {
      ...reads(incoming),
      toResource: {
        names: ['payment'],
        good: [{ paymentId: incoming, status: 'open', receivedAmount: usd(0), walletAddress: bob }],
        parts: { payment: 'object', 'payment.paymentId': 'text', 'payment.status': 'text' },
      },
      create: {
        names: ['request'],
        good: [
          {
            walletAddress: bob,
            idempotencyKey: 'invoice-1',
            incomingAmount: usd(1),
            expiresAt: startOfTests + 1,
            metadata: { invoice: 1 },
          },
        ],
        parts: {
          request: 'object',
          'request.walletAddress': 'url',
          'request.idempotencyKey': 'text',
          ...amountAt('request.incomingAmount', 'object or undefined'),
          'request.expiresAt': 'integer or undefined',
          'request.metadata': 'object or undefined',
          'request.client': 'unknown',
        },
      },
      findByIlpAddress: one('ilpAddress', `test.wallet.${incoming}`, 'string'),
      receive: {
        names: ['paymentId', 'funds'],
        good: [incoming, { transferId: 'transfer-1', amount: usd(1) }],
        parts: {
          paymentId: 'text',
          funds: 'object',
          'funds.transferId': 'text',
          'funds.refuseExcess': 'boolean or undefined',
          'funds.notAfter': 'integer or undefined',
          'funds.paymentId': 'unknown',
          ...amountAt('funds.amount'),
        },
      },
      close: {
        names: ['transferId', 'query'],
        good: ['transfer-1', { paymentId: incoming }],
        parts: {
          transferId: 'text',
          query: 'object',
          'query.paymentId': 'text',
          'query.payment': 'unknown',
        },
      },
      complete: one('paymentId', incoming),
      cancel: {
        names: ['paymentId', 'cancellation'],
        good: [incoming, { reason: 'withdrawn' }],
        parts: {
          paymentId: 'text',
          cancellation: 'object or undefined',
          'cancellation.reason': 'text or undefined',
          'cancellation.publicReason': 'unknown',
        },
      },
    },
    quotes: {
      get: one('quoteId', created, 'string'),
      create: {
        names: ['request'],
        good: [
          {
            walletAddress: alice,
            receiver: 'https://bank.example/incoming-payments/1',
            debitAmount: usd(1),
          },
        ],
        parts: {
          request: 'object',
          'request.walletAddress': 'url',
          'request.receiver': 'url',
          ...amountAt('request.debitAmount', 'object or undefined'),
          'request.client': 'unknown',
        },
      },
    },
    outgoingPayments: {
      ...reads(created),
      toResource: {
        names: ['payment'],
        good: [{ paymentId: created, status: 'created', debitAmount: usd(1), sentAmount: usd(0) }],
        parts: { payment: 'object', 'payment.paymentId': 'text', 'payment.status': 'text' },
      },
      list: {
        names: ['query'],
        good: [{ grantId: grant }],
        parts: { query: 'object', 'query.grantId': 'text or undefined', ...pageParts },
      },
      create: {
        names: ['payment'],
        good: [
          {
            walletAddress: alice,
            receiver: 'https://bank.example/incoming-payments/1',
            debitAmount: usd(1),
            idempotencyKey: 'rent-1',
          },
        ],
        parts: {
          payment: 'object',
          'payment.walletAddress': 'url',
          'payment.receiver': 'url',
          'payment.idempotencyKey': 'text',
          ...amountAt('payment.debitAmount', 'object or undefined'),
          'payment.metadata': 'object or undefined',
          'payment.data': 'object or undefined',
          'payment.resourceOwner': 'text or undefined',
          'payment.countsInAccountLimits': 'boolean or undefined',
          'payment.client': 'unknown',
        },
      },
      budgetsOf: {
        names: ['grant'],
        good: [{ id: grant, version: 1, granted: [] }],
        parts: {
          grant: 'object, unless it is a string',
          'grant.id': 'text',
          'grant.version': 'integer',
        },
      },
      preview: {
        names: ['request'],
        good: [
          {
            grantId: grant,
            walletAddress: alice,
            receiver: 'https://bank.example/incoming-payments/1',
            debitAmount: usd(1),
          },
        ],
        parts: {
          request: 'object',
          'request.grantId': 'text or undefined',
          'request.data': 'object or undefined',
          'request.countsInAccountLimits': 'boolean or undefined',
          'request.label': 'text or undefined',
          'request.walletAddress': 'url',
          'request.receiver': 'url',
          ...amountAt('request.debitAmount', 'object or undefined'),
          'request.asksMayPay': 'boolean or undefined',
          'request.grant': 'unknown',
        },
      },
      limitsOf: {
        names: ['scope'],
        good: [{ walletAddress: alice }],
        parts: {
          scope: 'object',
          'scope.walletAddress': 'url or undefined',
          'scope.grant': 'unknown',
        },
      },
      toConfirm: one('paymentId', created, 'string'),
      listToConfirm: {
        names: ['query'],
        good: [{ grantId: grant }],
        parts: { query: 'object', 'query.grantId': 'text or undefined', ...pageParts },
      },
      confirm: {
        names: ['paymentId', 'confirmation'],
        good: [
          created,
          {
            resourceOwner: 'a',
            receiver: `${alice}/1`,
            debitAmount: usd(1),
            receiveAmount: usd(1),
          },
        ],
        parts: {
          paymentId: 'text',
          confirmation: 'object',
          'confirmation.resourceOwner': 'text',
          'confirmation.receiver': 'text',
          ...amountAt('confirmation.debitAmount'),
          ...amountAt('confirmation.receiveAmount'),
          'confirmation.until': 'unknown',
        },
      },
      decline: {
        names: ['paymentId', 'decision'],
        good: [created, { resourceOwner: 'a' }],
        parts: {
          paymentId: 'text',
          decision: 'object',
          'decision.resourceOwner': 'text',
          'decision.reason': 'unknown',
        },
      },
      begin: one('paymentId', created),
      reportSent: {
        names: ['paymentId', 'report'],
        good: [begun, { ...totals, final: false, inDoubt }],
        parts: {
          paymentId: 'text',
          report: 'object',
          ...amountAt('report.sentAmount'),
          ...amountAt('report.deliveredAmount'),
          'report.final': 'boolean or undefined',
          ...doubtParts,
          'report.type': 'unknown',
          'report.commandId': 'unknown',
        },
      },
      fail: {
        names: ['paymentId', 'report'],
        good: [begun, { ...totals, reason: 'no route', publicReason: 'failed', inDoubt }],
        parts: {
          paymentId: 'text',
          report: 'object or undefined',
          ...amountAt('report.sentAmount', 'object or undefined'),
          ...amountAt('report.deliveredAmount', 'object or undefined'),
          'report.reason': 'string or undefined',
          'report.publicReason': 'text or undefined',
          'report.sentAmout': 'unknown',
          ...doubtParts,
        },
      },
      decideDoubt: {
        names: ['paymentId', 'decision'],
        good: [begun, { refunded: usd(1), deliveredAmount: usd(1) }],
        parts: {
          paymentId: 'text',
          decision: 'object',
          ...amountAt('decision.refunded'),
          ...amountAt('decision.deliveredAmount', 'object or undefined'),
          'decision.refund': 'unknown',
        },
      },
      doubt: one('limit', 17 as never, 'integer or undefined'),
      cancel: {
        names: ['paymentId', 'report'],
        good: [created, { reason: 'changed my mind', publicReason: 'cancelled' }],
        parts: {
          paymentId: 'text',
          report: 'object or undefined',
          'report.reason': 'string or undefined',
          'report.publicReason': 'text or undefined',
          'report.why': 'unknown',
        },
      },
    },
  }
}

/** Returns the value with one part replaced, at a path of member names. */
function replaced(value: unknown, [name, ...path]: readonly string[], part: unknown): unknown {
  if (name === undefined) return part
  const members = value as Record<string, unknown>
  const changed = replaced(members?.[name], path, part)
  if (Array.isArray(value))
    return value.map((each, index) => (String(index) === name ? changed : each))
  return { ...members, [name]: changed }
}

/** Servers on a store that counts its calls, with a record for each call to act on. */
async function setUp() {
  const memory = memoryStore()
  let calls = 0
  const counting = <Arguments extends unknown[], Result>(call: (...each: Arguments) => Result) => {
    return (...each: Arguments) => {
      calls += 1
      return call(...each)
    }
  }
  const store: Store = {
    load: counting(memory.load),
    commit: counting(memory.commit),
    list: counting(memory.list),
    due: counting(memory.due),
    remove: counting(memory.remove),
  }
  const world = createSpendingWorld({ store })
  const { auth, resources } = world
  const client = world.client()
  const requested = await client.request([outgoingItem()], { start: ['redirect'] })
  const { body } = await client.request([incomingAccess])
  const incoming = await client.createPayment(body.access_token.value, { walletAddress: bob })
  const { token, grantId } = await grantToPay(world, client)
  const [begun, created] = [await pay(client, token, 100), await pay(client, token, 50)]
  const ids = {
    interaction: interactionId(requested.body.interact.redirect),
    grant: grantId,
    incoming: resources.incomingPayments.idOf(incoming.body.id) ?? '',
    begun: resources.outgoingPayments.idOf(begun.body.id) ?? '',
    created: resources.outgoingPayments.idOf(created.body.id) ?? '',
  }
  await resources.outgoingPayments.begin(ids.begun)
  const services = {
    interactions: auth.interactions,
    grants: auth.grants,
    incomingPayments: resources.incomingPayments,
    quotes: resources.quotes,
    outgoingPayments: resources.outgoingPayments,
  }
  const inside = { ...auth.within(store), ...resources.within(store) }
  return { services, inside, table: callsOn(ids), calls: () => calls }
}

async function outcomeOf(call: () => unknown): Promise<unknown> {
  try {
    return await call()
  } catch (error) {
    return error
  }
}

function callOf(services: object, service: string, method: string) {
  const found = (services as Record<string, Record<string, (...each: unknown[]) => unknown>>)[
    service
  ]
  return (...each: readonly unknown[]) => found?.[method]?.(...each)
}

describe('the table of calls', () => {
  test('contains every call of every service', async () => {
    const { services, table } = await setUp()
    const methods = (each: object) =>
      Object.entries(each).map(([name, members]) => [name, Object.keys(members).sort()])
    expect(methods(table)).toEqual(methods(services))
  })

  test('has valid arguments, which no call rejects', async () => {
    const { services, table } = await setUp()
    for (const [service, members] of Object.entries(table)) {
      for (const [method, { good }] of Object.entries(members)) {
        const outcome = await outcomeOf(() => callOf(services, service, method)(...good))
        expect(outcome, `${service}.${method}`).not.toBeInstanceOf(InvalidInputError)
      }
    }
  })
})

describe('a call with one wrong part in its arguments', () => {
  test('throws an InvalidInputError that names the part, and makes no call of the store', async () => {
    const { services, inside, table, calls } = await setUp()
    const all = Object.entries(table).flatMap(([service, members]) =>
      Object.entries(members).flatMap(([method, call]) =>
        Object.entries(call.parts).map(([path, kind]) => ({ service, method, call, path, kind })),
      ),
    )
    const met = new Set<string>()
    const cases = fc
      .constantFrom(...all)
      .chain((each) => fc.tuple(fc.constant(each), wrong(each.kind)))
    await fc.assert(
      fc.asyncProperty(cases, fc.boolean(), async ([each, part], isInside) => {
        const { service, method, call, path } = each
        const before = calls()
        const [name = '', ...rest] = path.split('.')
        const given = call.names.map((argument, index) =>
          argument === name ? replaced(call.good[index], rest, part) : call.good[index],
        )
        const called = callOf(isInside ? inside : services, service, method)
        const error = await outcomeOf(() => called(...given))
        expect(error).toBeInstanceOf(InvalidInputError)
        expect(error).toBeInstanceOf(TypeError)
        expect(error).toEqual(invalidInput(path))
        expect(calls()).toBe(before)
        met.add(`${service}.${method} ${path}`)
      }),
      { numRuns: runs(4_000, 1_500) },
    )
    expect(met.size).toBeGreaterThan(all.length * 0.9)
  })

  test('does not even name a value', async () => {
    const { services } = await setUp()
    const error = await outcomeOf(() => services.grants.get({ secret: 'sesame' } as never))
    expect((error as Error).message).toBe('grantId must be a string')
  })
})

describe('ids of the host that are not well-formed Unicode', () => {
  test('are refused, because all of them have the UTF-8, and so the hash, of one id', async () => {
    const { services, table } = await setUp()
    const { incomingPayments, interactions, grants } = services
    const approval = table['interactions']?.['approve']?.good[1] as never
    const id = table['incomingPayments']?.['complete']?.good[0] as string
    const given = '\ud800'
    const calls = {
      'funds.transferId': () => incomingPayments.receive(id, { transferId: given, amount: usd(1) }),
      'request.idempotencyKey': () =>
        incomingPayments.create({ walletAddress: bob, idempotencyKey: given }),
      'approval.resourceOwner': () =>
        interactions.approve('id', { ...(approval as object), resourceOwner: given } as never),
      'query.resourceOwner': () => grants.list({ resourceOwner: given }),
      'query.resourceOwner of revokeAll': () => grants.revokeAll({ resourceOwner: given }),
    }
    for (const [path, call] of Object.entries(calls)) {
      const error = await outcomeOf(call)
      expect(error, path).toBeInstanceOf(InvalidInputError)
      expect((error as Error).message).toMatch(/must be well-formed Unicode$/)
    }
  })
})

describe('a look-up', () => {
  test('accepts any text as an id, because a browser or a payer may have chosen it', async () => {
    const { services } = await setUp()
    const { interactions, grants, incomingPayments, outgoingPayments } = services
    for (const text of ['', ' ', '/', 'x'.repeat(10_000), '\u0000', '\ud800', '../grants']) {
      for (const found of [
        await interactions.get(text),
        await grants.get(text),
        await grants.getRecord(text),
        await incomingPayments.get(text),
        await incomingPayments.getRecord(text),
        await incomingPayments.findByIlpAddress(text),
        incomingPayments.idOf(text),
        await outgoingPayments.get(text),
        await outgoingPayments.getRecord(text),
        outgoingPayments.idOf(text),
      ]) {
        expect(found).toBeUndefined()
      }
    }
  })
})

describe('a report that used to be accepted', () => {
  test('changes nothing: final without totals, funds without a transfer id, an approval without an owner', async () => {
    const { services, table } = await setUp()
    const { outgoingPayments, incomingPayments, interactions } = services
    const [begun] = table['outgoingPayments']?.['reportSent']?.good ?? []
    const [incoming] = table['incomingPayments']?.['receive']?.good ?? []
    const [interaction] = table['interactions']?.['approve']?.good ?? []
    const refused = { code: 'ERR_INVALID_INPUT' }
    await expect(
      outgoingPayments.reportSent(begun as string, { final: true } as never),
    ).rejects.toEqual(invalidInput('report.sentAmount'))
    expect(await outgoingPayments.get(begun as string)).toMatchObject({
      status: 'begun',
      sentAmount: usd(0),
    })

    for (const funds of [
      { amount: usd(60) },
      { transferId: 'a', amount: { ...usd(60), value: 60 } },
    ]) {
      const received = incomingPayments.receive(incoming as string, funds as never)
      await expect(received).rejects.toMatchObject(refused)
    }
    expect(await incomingPayments.get(incoming as string)).toMatchObject({
      receivedAmount: usd(0),
    })
    const funds = { transferId: 'a', amount: usd(60) }
    expect(await incomingPayments.receive(incoming as string, funds)).toMatchObject({ ok: true })

    for (const approval of [
      undefined,
      { walletAddresses: [alice] },
      { resourceOwner: '', walletAddresses: [alice] },
      { resourceOwner: 'alice' },
      { resourceOwner: 'alice', walletAddresses: [] },
      { resourceOwner: 'alice', walletAddresses: alice },
      { resourceOwner: 'alice', walletAddresses: ['alice'] },
    ]) {
      const approved = interactions.approve(interaction as string, approval as never)
      await expect(approved).rejects.toMatchObject(refused)
    }
    expect(await interactions.get(interaction as string)).toMatchObject({ status: 'pending' })
  })
})
