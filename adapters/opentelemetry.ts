/**
 * Records spans, durations, deliveries and the waiting events of the servers with OpenTelemetry.
 *
 * @module open-payments-server/opentelemetry
 */
import {
  type Attributes,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { requireKnownOptions } from '../src/entry-adapter.js'
import type {
  EventHandler,
  OutgoingPaymentServices,
  RequestOutcome,
  ServerEvents,
  Telemetry,
  TelemetryActivity,
} from '../src/index.js'

/** Where spans and measurements go, and what is added to them. */
export interface OpenTelemetryOptions {
  /** Creates the spans. Default: the global tracer named `open-payments-server`. */
  readonly tracer?: Tracer
  /** Creates the histograms. Default: the global meter named `open-payments-server`, even if it is set later. */
  readonly meter?: Meter
  /** Added to each span and measurement, for example to tell brands or regions apart. Default: none. */
  readonly attributes?: Attributes
}

const scope = 'open-payments-server'

/**
 * Records spans and durations of requests, store calls and signature verifications. Pass it as the
 * `telemetry` option of each server.
 *
 * The name of a request's span is its operation. Its attributes are `open_payments.server`, `open_payments.operation`,
 * `http.request.method`, `http.route`, `url.scheme`, `http.response.status_code`, and, if the server refused the
 * request, `open_payments.refusal`. `error.type` is the refusal of a response of 500 or above, and the `code` or name
 * of the error of a failed store call. Its child spans are named `store.<call>`, with `open_payments.store.call` and
 * `open_payments.store.kind`, and `verify`. A store call without a parent span, such as a poll for events, is measured
 * but has no span. The histograms `open_payments.request.duration`, `open_payments.store.duration` and
 * `open_payments.verify.duration` are in seconds and have the same attributes. No attribute identifies a client, a
 * record, a token or a key.
 *
 * @throws {InvalidInputError} for an unknown option.
 *
 * @example
 * ```ts
 * import { createWallet } from 'open-payments-server'
 * import { openTelemetry } from 'open-payments-server/opentelemetry'
 *
 * const wallet = createWallet({
 *   baseUrl: 'https://wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   store,
 *   walletAddresses: accounts,
 *   paymentMethods,
 *   telemetry: openTelemetry(),
 * })
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  requireKnownOptions('', options, { tracer: true, meter: true, attributes: true })
  const { tracer = trace.getTracer(scope), attributes: common } = options
  const histogramsNow = ofMeter(options.meter, createHistograms)

  async function measured<Result>(
    type: TelemetryActivity['type'],
    attributes: Attributes,
    work: (tell: (outcome: Attributes) => void) => Promise<Result>,
  ): Promise<Result> {
    const startedAt = performance.now()
    let all = attributes
    try {
      return await work((outcome) => {
        all = { ...attributes, ...outcome }
      })
    } catch (error) {
      all = { ...all, ...failureOf(error) }
      throw error
    } finally {
      histogramsNow()[type].record((performance.now() - startedAt) / 1_000, all)
    }
  }

  return {
    observe(activity, work) {
      const { name, kind, ...own } = describeActivity(activity)
      const attributes = { ...common, ...own.attributes }
      const { type } = activity
      if (type === 'store' && trace.getActiveSpan() === undefined) {
        return measured(type, attributes, () => work(() => {}))
      }
      return tracer.startActiveSpan(name, { kind, attributes }, async (span) => {
        try {
          return await measured(type, attributes, (tell) =>
            work((outcome) => {
              tell(outcomeOf(outcome))
              recordOutcome(span, outcome)
            }),
          )
        } catch (error) {
          span.setAttributes(failureOf(error))
          span.setStatus({ code: SpanStatusCode.ERROR })
          throw error
        } finally {
          span.end()
        }
      })
    },
  }
}

/** Options of `observeBacklog`. */
export interface BacklogOptions {
  /** Creates the gauges. Default: the meter named `open-payments-server` of the global provider. */
  readonly meter?: Meter
  /** Added to each measurement, as in `OpenTelemetryOptions`. Default: none. */
  readonly attributes?: Attributes
  /** The most events that are read and counted of each server, as in `ServerEvents.backlog`. Default 1,000. */
  readonly limit?: number
}

/**
 * Measures the undelivered events of the servers with `backlog`, each time that a metric reader collects. The gauges
 * are `open_payments.events.waiting` and `open_payments.events.set_aside`, in events, and
 * `open_payments.events.oldest_age`, in seconds. Their attribute `open_payments.server` is the name under which the
 * events are passed. While the store fails, the SDK reports the error, and cumulative readers repeat the last values.
 *
 * Call it once, after the global provider is set, in one process: the processes share their events. It measures until
 * the provider is shut down.
 *
 * @throws {InvalidInputError} for an unknown option or server.
 *
 * @example
 * ```ts
 * import { observeBacklog } from 'open-payments-server/opentelemetry'
 *
 * const { auth, resources } = wallet
 * observeBacklog({ authorizationServer: auth.events, resourceServer: resources.events })
 * ```
 */
export function observeBacklog(
  events: Readonly<Partial<Record<'authorizationServer' | 'resourceServer', ServerEvents>>>,
  options: BacklogOptions = {},
): void {
  requireKnownOptions('events', events, { authorizationServer: true, resourceServer: true })
  requireKnownOptions('', options, { meter: true, attributes: true, limit: true })
  const { meter = metrics.getMeter(scope), limit } = options
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(`open_payments.events.${name}`, { unit, description })
  const waiting = gauge('waiting', '{event}', 'Events that wait for their delivery')
  const oldestAge = gauge('oldest_age', 's', 'Age of the oldest event that waits')
  const setAside = gauge('set_aside', '{event}', 'Events that were set aside')

  for (const [server, source] of Object.entries(events)) {
    const attributes = { ...options.attributes, 'open_payments.server': server }
    meter.addBatchObservableCallback(
      async (result) => {
        const backlog = await source.backlog(limit)
        result.observe(waiting, backlog.waiting, attributes)
        result.observe(oldestAge, backlog.oldestAgeMs / 1_000, attributes)
        result.observe(setAside, backlog.setAside, attributes)
      },
      [waiting, oldestAge, setAside],
    )
  }
}

/** Options of `observeDoubt`. */
export interface DoubtOptions extends Omit<BacklogOptions, 'limit'> {
  /** The most payments in doubt that are read, as in `OutgoingPaymentServices.doubt`. Default 1,000. */
  readonly limit?: number
}

/**
 * Measures what is in doubt of outgoing payments with `doubt`, each time that a metric reader collects. The gauges are
 * `open_payments.doubt.payments`, in payments, `open_payments.doubt.oldest_age`, in seconds, and
 * `open_payments.doubt.amount`, the sum of each asset in its smallest unit, with the attributes
 * `open_payments.asset_code` and `open_payments.asset_scale`. A sum above 2^53 is rounded. An asset of which nothing is
 * in doubt has no value.
 *
 * Call it once, after the global provider is set, in one process. It measures until the provider is shut down.
 *
 * @throws {InvalidInputError} for an unknown option.
 *
 * @example
 * ```ts
 * import { observeDoubt } from 'open-payments-server/opentelemetry'
 *
 * observeDoubt(wallet.resources.outgoingPayments)
 * ```
 */
export function observeDoubt(
  payments: Pick<OutgoingPaymentServices, 'doubt'>,
  options: DoubtOptions = {},
): void {
  requireKnownOptions('', options, { meter: true, attributes: true, limit: true })
  const { meter = metrics.getMeter(scope), attributes = {}, limit } = options
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(`open_payments.doubt.${name}`, { unit, description })
  const count = gauge('payments', '{payment}', 'Outgoing payments of which a part is in doubt')
  const oldestAge = gauge('oldest_age', 's', 'Age of the oldest doubt')
  const amount = gauge('amount', '{unit}', 'Sum in doubt, in the smallest unit of its asset')
  meter.addBatchObservableCallback(
    async (result) => {
      const doubt = await payments.doubt(limit)
      result.observe(count, doubt.payments, attributes)
      result.observe(oldestAge, doubt.oldestAgeMs / 1_000, attributes)
      for (const { value, assetCode, assetScale } of doubt.amounts) {
        const asset = {
          'open_payments.asset_code': assetCode,
          'open_payments.asset_scale': assetScale,
        }
        result.observe(amount, Number(value), { ...attributes, ...asset })
      }
    },
    [count, oldestAge, amount],
  )
}

/** Boundaries in seconds, up to an hour, because a payment can wait for another wallet. */
const delayBoundaries = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600]

/**
 * Returns a handler that measures the deliveries of another one, for `consumeEvents` or `drain`.
 *
 * The histogram `open_payments.delivery.duration` is the time that the handler takes. Its attributes are
 * `open_payments.event`, the type of the event, and `open_payments.outcome`: `delivered` or `failed`; its count is the
 * number of deliveries. The histogram `open_payments.delivery.delay` is the time from the event to the end of its
 * successful delivery: for `outgoing-payment.created`, whose handler sends the payment, from created to settled. Both
 * are in seconds.
 *
 * @throws {InvalidInputError} for an unknown option.
 *
 * @example
 * ```ts
 * import { consumeEvents } from 'open-payments-server'
 * import { observeDeliveries } from 'open-payments-server/opentelemetry'
 *
 * const { auth, resources } = wallet
 * const settle = observeDeliveries(async (event) => console.log(event.type))
 * const consumer = consumeEvents([auth.events, resources.events], settle)
 * ```
 */
export function observeDeliveries(
  handler: EventHandler,
  options: Pick<OpenTelemetryOptions, 'meter' | 'attributes'> = {},
): EventHandler {
  requireKnownOptions('', options, { meter: true, attributes: true })
  const histograms = ofMeter(options.meter, createDeliveryHistograms)
  return async (event, delivery) => {
    const startedAt = performance.now()
    const about = { ...options.attributes, 'open_payments.event': event.type }
    const end = (outcome: 'delivered' | 'failed' | 'postponed') => {
      const seconds = (performance.now() - startedAt) / 1_000
      histograms().duration.record(seconds, { ...about, 'open_payments.outcome': outcome })
    }
    let result: Awaited<ReturnType<EventHandler>>
    try {
      result = await handler(event, delivery)
    } catch (error) {
      end('failed')
      throw error
    }
    const isPostponed = result?.retryAt !== undefined
    end(isPostponed ? 'postponed' : 'delivered')
    if (!isPostponed) histograms().delay.record(Math.max(0, Date.now() - event.at) / 1_000, about)
    return result
  }
}

function createDeliveryHistograms(meter: Meter) {
  return {
    duration: meter.createHistogram('open_payments.delivery.duration', {
      unit: 's',
      description: 'Duration of deliveries',
      advice: { explicitBucketBoundaries },
    }),
    delay: meter.createHistogram('open_payments.delivery.delay', {
      unit: 's',
      description: 'Time from an event to the end of its delivery',
      advice: { explicitBucketBoundaries: delayBoundaries },
    }),
  }
}

type Histograms = Readonly<Record<TelemetryActivity['type'], Histogram>>

/**
 * The default boundaries of OpenTelemetry suit milliseconds. These are the boundaries that its semantic conventions
 * recommend for durations of HTTP requests in seconds, and two more for calls of a nearby store.
 */
const explicitBucketBoundaries = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/**
 * Creates the histograms again if the global provider changes: unlike a tracer, a meter that was obtained before the
 * provider was set never records.
 */
function ofMeter<Created>(
  meter: Meter | undefined,
  create: (meter: Meter) => Created,
): () => Created {
  if (meter !== undefined) {
    const histograms = create(meter)
    return () => histograms
  }
  let provider: MeterProvider | undefined
  let histograms: Created
  return () => {
    const current = metrics.getMeterProvider()
    if (current !== provider) {
      provider = current
      histograms = create(current.getMeter(scope))
    }
    return histograms
  }
}

function createHistograms(meter: Meter): Histograms {
  const duration = (type: TelemetryActivity['type'], description: string) =>
    meter.createHistogram(`open_payments.${type}.duration`, {
      unit: 's',
      description,
      advice: { explicitBucketBoundaries },
    })
  return {
    request: duration('request', 'Duration of requests'),
    store: duration('store', 'Duration of store calls'),
    verify: duration('verify', 'Duration of signature verifications'),
  }
}

function describeActivity(activity: TelemetryActivity): {
  name: string
  kind: SpanKind
  attributes: Attributes
} {
  switch (activity.type) {
    case 'request':
      return {
        name: activity.method,
        kind: SpanKind.SERVER,
        attributes: {
          'open_payments.server': activity.server,
          'http.request.method': activity.method,
          'url.scheme': activity.scheme,
        },
      }
    case 'store':
      return {
        name: `store.${activity.call}`,
        kind: SpanKind.CLIENT,
        attributes: {
          'open_payments.server': activity.server,
          'open_payments.store.call': activity.call,
          ...(activity.kind !== undefined && { 'open_payments.store.kind': activity.kind }),
        },
      }
    case 'verify':
      return {
        name: 'verify',
        kind: SpanKind.INTERNAL,
        attributes: { 'open_payments.server': activity.server },
      }
  }
}

/** The code of an error, or its name, unless it is text of another kind, which could have many values. */
function failureOf(error: unknown): Attributes {
  const { code, name } = Object(error)
  const type = [code, name].map(String).find((each) => /^(?!undefined)[\w.-]{1,60}$/.test(each))
  return { 'error.type': type ?? '_OTHER' }
}

function outcomeOf({ operation, route, status, refusal }: RequestOutcome): Attributes {
  return {
    'http.response.status_code': status,
    ...(route !== undefined && { 'http.route': route }),
    ...(status >= 500 && { 'error.type': refusal ?? String(status) }),
    ...(operation !== undefined && { 'open_payments.operation': operation }),
    ...(refusal !== undefined && { 'open_payments.refusal': refusal }),
  }
}

/**
 * Records the outcome on the span. Only server errors mark the span as failed; refusals are normal responses.
 */
function recordOutcome(span: Span, outcome: RequestOutcome): void {
  if (outcome.operation !== undefined) span.updateName(outcome.operation)
  span.setAttributes(outcomeOf(outcome))
  if (outcome.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
}
