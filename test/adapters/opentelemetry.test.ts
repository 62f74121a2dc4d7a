import { type Attributes, context, metrics, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type OpenTelemetryOptions,
  observeBacklog,
  observeDeliveries,
  observeDoubt,
  openTelemetry,
} from '../../adapters/opentelemetry.js'
import { memoryStore } from '../../src/index.js'
import { invalidInput } from '../support/invalid-input.js'
import { pay, usd, withKey } from '../support/spending.js'
import { idOfPayment, payingClient } from '../support/spending-client.js'
import { bob, createWorld, incomingAccess, resourceServer } from '../support/world.js'

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})

afterAll(() => {
  context.disable()
})

/** Reads the measurements of a meter provider. */
function meterProvider() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  return {
    meters: new MeterProvider({ readers: [reader] }),
    async histograms() {
      exporter.reset()
      await reader.forceFlush()
      const [resource] = exporter.getMetrics()
      return resource?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    },
  }
}

/** A wallet whose measurements are kept in memory. */
function observedWorld(store = memoryStore(), options: OpenTelemetryOptions = {}) {
  const spans = new InMemorySpanExporter()
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const { meters, histograms } = meterProvider()
  const tracer: Tracer = tracers.getTracer('test')
  const telemetry = openTelemetry({ tracer, meter: meters.getMeter('test'), ...options })
  const world = createWorld({ store, auth: { telemetry }, resources: { telemetry } })
  return {
    world,
    spans: () => spans.getFinishedSpans(),
    histograms,
  }
}

async function paymentIn({ world }: ReturnType<typeof observedWorld>) {
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  const token: string = body.access_token.value
  const payment = await client.createPayment(token, { walletAddress: bob })
  return { client, token, payment }
}

describe('with openTelemetry', () => {
  test('each request is a span with its operation, status and refusal', async () => {
    const observed = observedWorld()
    const { client, token } = await paymentIn(observed)
    await client.getPayment(token, `${resourceServer}/incoming-payments/none`)
    await client.getPayment(token, `${resourceServer}/nothing-here`)
    const requests = observed
      .spans()
      .filter(({ attributes }) => 'http.request.method' in attributes)
    const names = ['server', 'operation', 'refusal'].map((name) => `open_payments.${name}`)
    const http = ['url.scheme', 'http.request.method', 'http.route', 'http.response.status_code']
    const all = [...names, ...http]
    const found = requests.map(({ name, attributes }) => {
      expect(all).toEqual(expect.arrayContaining(Object.keys(attributes)))
      return [name, ...all.map((each) => attributes[each])]
    })
    const [auth, op] = ['authorizationServer', 'resourceServer']
    const [create, get] = ['createIncomingPayment', 'getIncomingPayment']
    expect(found).toEqual([
      ['requestGrant', auth, 'requestGrant', undefined, 'https', 'POST', '/auth', 200],
      [create, op, create, undefined, 'https', 'POST', '/op/incoming-payments', 201],
      [get, op, get, 'resource_unknown', 'https', 'GET', '/op/incoming-payments/{id}', 404],
      ['GET', op, undefined, 'route_unknown', 'https', 'GET', undefined, 404],
    ])
    expect(requests.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)
  })

  test('store calls and signature verifications are spans', async () => {
    const observed = observedWorld()
    await paymentIn(observed)
    const names = observed.spans().map(({ name, attributes }) => {
      return [name, attributes['open_payments.store.kind']].filter(Boolean).join(' ')
    })
    expect(names).toEqual([
      'verify',
      ...['store.load server', 'store.commit server'],
      'store.commit grant',
      'requestGrant',
      'store.load grant',
      'verify',
      ...['store.load server', 'store.commit server'],
      'store.commit incoming-payment',
      'createIncomingPayment',
    ])
  })

  test('durations are histograms in seconds, by operation and refusal', async () => {
    const observed = observedWorld()
    await paymentIn(observed)
    const histograms = await observed.histograms()
    const found = histograms.map(({ descriptor: { name, unit }, dataPoints }) => [
      name,
      unit,
      dataPoints.length,
    ])
    expect(found).toEqual([
      ['open_payments.request.duration', 's', 2],
      ['open_payments.store.duration', 's', 7],
      ['open_payments.verify.duration', 's', 2],
    ])
  })

  test('every span and measurement names its server and has the attributes of the host', async () => {
    const observed = observedWorld(memoryStore(), { attributes: { brand: 'north' } })
    await paymentIn(observed)
    const histograms = await observed.histograms()
    const points = histograms.flatMap(({ dataPoints }): { attributes: Attributes }[] => dataPoints)
    const all = [...observed.spans(), ...points].map(({ attributes }) => attributes)
    expect(all).toHaveLength(22)
    expect(new Set(all.map((attributes) => attributes['open_payments.server']))).toEqual(
      new Set(['authorizationServer', 'resourceServer']),
    )
    expect(all.every(({ brand }) => brand === 'north')).toBe(true)
  })

  test('a poll that finds no event is measured, and creates no span', async () => {
    const observed = observedWorld()
    await observed.world.resources.events.drain(() => {})
    expect(observed.spans()).toEqual([])
    const [histogram] = await observed.histograms()
    expect(histogram?.descriptor.name).toBe('open_payments.store.duration')
  })

  test('the boundaries of the histograms tell a millisecond from a second', async () => {
    const observed = observedWorld()
    await paymentIn(observed)
    const [histogram] = await observed.histograms()
    expect(histogram?.dataPoints[0]?.value).toMatchObject({
      buckets: { boundaries: expect.arrayContaining([0.001, 0.005, 0.01, 0.1, 1, 10]) },
    })
  })

  test('measurements go to a global meter provider that is set after the servers are created', async () => {
    const telemetry = openTelemetry()
    const world = createWorld({ auth: { telemetry } })
    await world.client().request([incomingAccess])
    const { meters, histograms } = meterProvider()
    metrics.setGlobalMeterProvider(meters)
    try {
      await world.client().request([incomingAccess])
      const [histogram] = await histograms()
      expect(histogram?.dataPoints).toHaveLength(1)
    } finally {
      metrics.disable()
    }
  })

  test('a failure is recorded and the response stays the same', async () => {
    const store = { ...memoryStore(), commit: () => Promise.reject(new Error('down')) }
    const observed = observedWorld(store)
    const { status } = await observed.world.client().request([incomingAccess])
    expect(status).toBe(503)
    const failed = observed.spans().filter((span) => span.status.code === SpanStatusCode.ERROR)
    expect(new Set(failed.map(({ name }) => name))).toEqual(
      new Set(['store.commit', 'requestGrant']),
    )
    const types = failed.map(({ name, attributes }) => `${name} ${attributes['error.type']}`)
    expect(new Set(types)).toEqual(new Set(['store.commit Error', 'requestGrant busy']))
  })

  test('no span identifies a client, a record, a token or a key', async () => {
    const observed = observedWorld()
    const { token, payment } = await paymentIn(observed)
    const text = JSON.stringify(observed.spans().map(({ name, attributes }) => [name, attributes]))
    for (const secret of [
      token,
      token.slice(-20),
      'shop.example',
      payment.body.id.slice(-20),
      'bob',
    ]) {
      expect(text).not.toContain(secret)
    }
  })
})

describe('with observeDoubt', () => {
  async function doubtful() {
    const { meters, histograms } = meterProvider()
    const { world, client, token } = await payingClient()
    const { outgoingPayments } = world.resources
    const options = { meter: meters.getMeter('test'), attributes: { brand: 'north' } }
    observeDoubt(outgoingPayments, options)
    const read = async () =>
      (await histograms()).flatMap(({ descriptor: { name, unit }, dataPoints }) =>
        dataPoints.map(({ value, attributes }) =>
          [name, unit, Object.values(attributes).join(' '), value].join(' '),
        ),
      )
    async function doubt(key: string, value: number) {
      const id = idOfPayment(await pay(client, token, 1_000, {}, withKey(key)))
      await outgoingPayments.begin(id)
      const totals = { sentAmount: usd(1_000), deliveredAmount: usd(1_000) }
      const inDoubt = { amount: usd(value), since: world.clock.now(), reason: 'peer 1' }
      await outgoingPayments.fail(id, { ...totals, inDoubt })
      return id
    }
    return { world, read, doubt }
  }

  test('the number, the oldest age and the sums of the assets are gauges', async () => {
    const { world, read, doubt } = await doubtful()
    expect(await read()).toEqual([
      'open_payments.doubt.payments {payment} north 0',
      'open_payments.doubt.oldest_age s north 0',
    ])
    const id = await doubt('one', 600)
    world.clock.advance(1_500)
    await doubt('two', 30)
    world.clock.advance(1_000)
    expect(await read()).toEqual([
      'open_payments.doubt.payments {payment} north 2',
      'open_payments.doubt.oldest_age s north 2.5',
      'open_payments.doubt.amount {unit} north USD 2 630',
    ])
    await world.resources.outgoingPayments.decideDoubt(id, { refunded: usd(600) })
    expect(await read()).toEqual([
      'open_payments.doubt.payments {payment} north 1',
      'open_payments.doubt.oldest_age s north 1',
      'open_payments.doubt.amount {unit} north USD 2 30',
    ])
  })

  test('an unknown option is refused', () => {
    const { outgoingPayments } = createWorld().resources
    const unknown = { limits: 1 } as never
    expect(() => observeDoubt(outgoingPayments, unknown)).toThrow(invalidInput('limits'))
  })
})

describe('with observeBacklog', () => {
  /** The measurements of the gauges, each as a line. */
  async function measured(read: ReturnType<typeof meterProvider>['histograms']) {
    return (await read()).flatMap(({ descriptor: { name, unit }, dataPoints }) =>
      dataPoints.map(({ value, attributes }) =>
        [name, unit, attributes['open_payments.server'], attributes['brand'], value].join(' '),
      ),
    )
  }

  function observedBacklog(store = memoryStore()) {
    const { meters, histograms } = meterProvider()
    const world = createWorld({ store })
    const { auth, resources } = world
    const events = { authorizationServer: auth.events, resourceServer: resources.events }
    const options = { meter: meters.getMeter('test'), attributes: { brand: 'north' } }
    observeBacklog(events, options)
    return { world, read: () => measured(histograms) }
  }

  async function completePayment(
    { resources }: ReturnType<typeof createWorld>,
    idempotencyKey: string,
  ) {
    const created = await resources.incomingPayments.create({ walletAddress: bob, idempotencyKey })
    if (!created.ok) throw new Error(created.reason)
    expect(await resources.incomingPayments.complete(created.payment.paymentId)).toMatchObject({
      ok: true,
    })
  }

  test('the events that wait and those that were set aside are gauges of each server', async () => {
    const { world, read } = observedBacklog()
    await completePayment(world, '1')
    await world.resources.events.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
    await completePayment(world, '2')
    world.clock.advance(2_500)
    await completePayment(world, '3')
    expect(await read()).toEqual([
      'open_payments.events.waiting {event} authorizationServer north 0',
      'open_payments.events.waiting {event} resourceServer north 4',
      'open_payments.events.oldest_age s authorizationServer north 0',
      'open_payments.events.oldest_age s resourceServer north 2.5',
      'open_payments.events.set_aside {event} authorizationServer north 0',
      'open_payments.events.set_aside {event} resourceServer north 2',
    ])
  })

  test('the gauges of one server are measured while the store fails for the other', async () => {
    const memory = memoryStore()
    const due: typeof memory.due = (kind, namespace, ...rest) => {
      seen.add(namespace)
      return namespace === failing
        ? Promise.reject(new Error('down'))
        : memory.due(kind, namespace, ...rest)
    }
    const seen = new Set<string>()
    let failing: string | undefined
    const { world, read } = observedBacklog({ ...memory, due })
    await world.auth.events.drain(() => {})
    ;[failing] = seen
    expect(await read()).toEqual([
      'open_payments.events.waiting {event} resourceServer north 0',
      'open_payments.events.oldest_age s resourceServer north 0',
      'open_payments.events.set_aside {event} resourceServer north 0',
    ])
    failing = undefined
    expect(await read()).toHaveLength(6)
  })

  test('an unknown server or option is refused', () => {
    expect(() => observeBacklog({ auth: createWorld().auth.events } as never)).toThrow(
      invalidInput('events.auth'),
    )
    expect(() => observeBacklog({}, { limits: 1 } as never)).toThrow(invalidInput('limits'))
  })
})

describe('observeDeliveries', () => {
  test('counts and times deliveries by their outcome, and how long events waited', async () => {
    const { meters, histograms } = meterProvider()
    let attempts = 0
    const handler = observeDeliveries(
      () => {
        attempts += 1
        if (attempts === 1) throw new Error('no')
        return attempts === 2 ? { retryAt: 7 } : undefined
      },
      { meter: meters.getMeter('test'), attributes: { brand: 'north' } },
    )
    const at = Date.now() - 90_000
    const event = { type: 'incoming-payment.completed', at } as never
    const delivery = { attempt: 1, signal: new AbortController().signal }
    await expect(handler(event, delivery)).rejects.toThrow('no')
    expect(await handler(event, delivery)).toEqual({ retryAt: 7 })
    expect(await handler(event, delivery)).toBeUndefined()
    const points = (await histograms()).flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => {
        const { count, sum = 0 } = value as { readonly count: number; readonly sum?: number }
        const outcome = attributes['open_payments.outcome'] ?? 'any'
        expect(attributes).toMatchObject({
          brand: 'north',
          'open_payments.event': 'incoming-payment.completed',
        })
        return `${descriptor.name} ${descriptor.unit} ${outcome} ${count} ${sum >= 90}`
      }),
    )
    expect(points).toEqual([
      'open_payments.delivery.duration s failed 1 false',
      'open_payments.delivery.duration s postponed 1 false',
      'open_payments.delivery.duration s delivered 1 false',
      'open_payments.delivery.delay s any 1 true',
    ])
  })

  test('refuses an unknown option', () => {
    expect(() => observeDeliveries(() => {}, { tracer: 1 } as never)).toThrow(
      invalidInput('tracer'),
    )
  })
})

describe('without a valid telemetry object', () => {
  test('the server is not created', () => {
    const telemetry = {} as never
    expect(() => createWorld({ resources: { telemetry } })).toThrow(invalidInput('telemetry'))
  })
})
