import {
  type Attributes,
  type Meter,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { requireKnownOptions } from '../src/entry-adapter.js'
import type { RequestOutcome, Telemetry, TelemetryActivity } from '../src/index.js'

export interface OpenTelemetryOptions {
  /** Creates the spans. Default: the global tracer named `open-payments-server`. */
  readonly tracer?: Tracer
  /** Creates the histograms. Default: the global meter named `open-payments-server`. */
  readonly meter?: Meter
}

const scope = 'open-payments-server'

/**
 * Records spans and durations of requests, store calls and signature verifications. Pass it as the
 * `telemetry` option of each server.
 *
 * The name of a request's span is its operation. Its attributes are `open_payments.server`,
 * `open_payments.operation`, `http.request.method`, `http.response.status_code` and, if the server refused
 * the request, `open_payments.refusal`. Its child spans are named `store.<call>`, with
 * `open_payments.store.kind`, and `verify`. The histograms `open_payments.request.duration`,
 * `open_payments.store.duration` and `open_payments.verify.duration` are in seconds and have the same
 * attributes. No attribute identifies a client instance, a record, a token or a key.
 *
 * @throws {OptionError} for an unknown option.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  requireKnownOptions('', options, { tracer: true, meter: true })
  const { tracer = trace.getTracer(scope), meter = metrics.getMeter(scope) } = options
  const duration = (type: TelemetryActivity['type'], description: string) =>
    meter.createHistogram(`open_payments.${type}.duration`, { unit: 's', description })
  const durations = {
    request: duration('request', 'Duration of requests'),
    store: duration('store', 'Duration of store calls'),
    verify: duration('verify', 'Duration of signature verifications'),
  }

  return {
    observe(activity, work) {
      const { name, kind, attributes } = described(activity)
      return tracer.startActiveSpan(name, { kind, attributes }, async (span) => {
        const startedAt = performance.now()
        let all = attributes
        try {
          return await work((outcome) => {
            all = { ...attributes, ...outcomeOf(outcome) }
            told(span, outcome)
          })
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR })
          throw error
        } finally {
          durations[activity.type].record((performance.now() - startedAt) / 1_000, all)
          span.end()
        }
      })
    },
  }
}

function described(activity: TelemetryActivity): {
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
        },
      }
    case 'store':
      return {
        name: `store.${activity.call}`,
        kind: SpanKind.CLIENT,
        attributes: {
          'open_payments.store.call': activity.call,
          ...(activity.kind !== undefined && { 'open_payments.store.kind': activity.kind }),
        },
      }
    case 'verify':
      return { name: 'verify', kind: SpanKind.INTERNAL, attributes: {} }
  }
}

function outcomeOf({ operation, status, refusal }: RequestOutcome): Attributes {
  return {
    'http.response.status_code': status,
    ...(operation !== undefined && { 'open_payments.operation': operation }),
    ...(refusal !== undefined && { 'open_payments.refusal': refusal }),
  }
}

/**
 * Records the outcome on the span. Only server errors mark the span as failed; refusals are normal responses.
 */
function told(span: Span, outcome: RequestOutcome): void {
  if (outcome.operation !== undefined) span.updateName(outcome.operation)
  span.setAttributes(outcomeOf(outcome))
  if (outcome.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
}
