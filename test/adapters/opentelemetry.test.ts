import { SpanStatusCode, type Tracer } from '@opentelemetry/api'
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
import { describe, expect, test } from 'vitest'
import { openTelemetry } from '../../adapters/opentelemetry.js'
import { memoryStore } from '../../src/index.js'
import { bob, createWorld, incomingAccess, resourceServer } from '../support/world.js'

/** A wallet whose measurements are kept in memory. */
function observedWorld(store = memoryStore()) {
  const spans = new InMemorySpanExporter()
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  const tracer: Tracer = tracers.getTracer('test')
  const telemetry = openTelemetry({ tracer, meter: meters.getMeter('test') })
  const world = createWorld({ store, auth: { telemetry }, resources: { telemetry } })
  return {
    world,
    spans: () => spans.getFinishedSpans(),
    async histograms() {
      await reader.forceFlush()
      const [resource] = exporter.getMetrics()
      return resource?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    },
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
      .filter(({ attributes }) => 'open_payments.server' in attributes)
    expect(requests.map(({ name, attributes }) => ({ name, attributes }))).toEqual([
      {
        name: 'requestGrant',
        attributes: {
          'open_payments.server': 'authorizationServer',
          'open_payments.operation': 'requestGrant',
          'http.request.method': 'POST',
          'http.response.status_code': 200,
        },
      },
      {
        name: 'createIncomingPayment',
        attributes: {
          'open_payments.server': 'resourceServer',
          'open_payments.operation': 'createIncomingPayment',
          'http.request.method': 'POST',
          'http.response.status_code': 201,
        },
      },
      {
        name: 'getIncomingPayment',
        attributes: {
          'open_payments.server': 'resourceServer',
          'open_payments.operation': 'getIncomingPayment',
          'http.request.method': 'GET',
          'http.response.status_code': 404,
          'open_payments.refusal': 'resource_unknown',
        },
      },
      {
        name: 'GET',
        attributes: {
          'open_payments.server': 'resourceServer',
          'http.request.method': 'GET',
          'http.response.status_code': 404,
          'open_payments.refusal': 'route_unknown',
        },
      },
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
      'store.commit grant',
      'requestGrant',
      'store.load grant',
      'verify',
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
      ['open_payments.store.duration', 's', 3],
      ['open_payments.verify.duration', 's', 1],
    ])
  })

  test('a failure is recorded and the response stays the same', async () => {
    const store = { ...memoryStore(), commit: () => Promise.reject(new Error('down')) }
    const observed = observedWorld(store)
    const { status } = await observed.world.client().request([incomingAccess])
    expect(status).toBe(500)
    const failed = observed.spans().filter((span) => span.status.code === SpanStatusCode.ERROR)
    expect(new Set(failed.map(({ name }) => name))).toEqual(
      new Set(['store.commit', 'requestGrant']),
    )
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

describe('without a valid telemetry object', () => {
  test('the server is not created', () => {
    const telemetry = {} as never
    expect(() => createWorld({ resources: { telemetry } })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'telemetry' }),
    )
  })
})
