import type { RequestOutcome } from '../ports/host.js'
import { nodeModule } from '../util/runtime.js'
import type { HttpRequest } from './message.js'
import type { Server } from './routes.js'

/** A request that was answered, as subscribers of `open-payments-server:request` receive it. */
export interface RequestMessage extends RequestOutcome {
  readonly server: string
  readonly method: string
  /** From the arrival of the request to its response, in milliseconds. */
  readonly durationMs: number
}

type Name = 'request' | 'refusal'

interface Channel {
  readonly hasSubscribers: boolean
  publish(message: object): void
}

interface DiagnosticsChannel {
  channel(name: string): Channel
}

/** Absent on runtimes without channels. */
const channels = openChannels(nodeModule<DiagnosticsChannel>('node:diagnostics_channel'))

function openChannels(
  diagnostics: DiagnosticsChannel | undefined,
): { readonly [Each in Name]: Channel } | undefined {
  if (diagnostics === undefined) return undefined
  return {
    request: diagnostics.channel('open-payments-server:request'),
    refusal: diagnostics.channel('open-payments-server:refusal'),
  }
}

export function hasSubscribers(name: Name): boolean {
  return channels?.[name].hasSubscribers === true
}

/** Tells the subscribers. Their errors are theirs: Node reports them as uncaught exceptions of the process. */
export function publish(name: Name, message: object): void {
  if (hasSubscribers(name)) channels?.[name].publish(message)
}

export type Tell = (outcome: RequestOutcome) => void

/** Calls `answer`, and publishes its outcome. Without a subscriber, it does nothing else. */
export function published<Answer>(
  server: Server,
  { method }: Pick<HttpRequest, 'method'>,
  tell: Tell | undefined,
  answer: (tell: Tell | undefined) => Answer,
): Answer {
  if (!hasSubscribers('request')) return answer(tell)
  const startedAt = performance.now()
  return answer((outcome) => {
    tell?.(outcome)
    const durationMs = performance.now() - startedAt
    const message: RequestMessage = { server, method, ...outcome, durationMs }
    publish('request', message)
  })
}
