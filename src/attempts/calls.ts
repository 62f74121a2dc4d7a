import type { Evidence, FoundById } from '../core/attempts/evidence.js'
import type { Reply } from '../core/attempts/reply.js'
import type { Clock } from '../ports/host.js'
import { callHook, HostAnswerError } from '../util/errors.js'
import type { Answer, AttemptsOptions, Closed, Order, Question, SettleRequest } from './options.js'

/** The host's functions, which may be slow, fail, and return anything. */
export interface Calls<Request extends SettleRequest> {
  send(order: Omit<Order<Request>, 'signal'>): Promise<Reply>
  ask(question: Omit<Question<Request>, 'signal'>): Promise<Evidence | undefined>
  close(order: Pick<Order<Request>, 'request' | 'reference'>): Promise<Closed>
}

const reasonLengthMax = 256

export function callsOf<Request extends SettleRequest>({
  send,
  ask,
  close,
  evidence,
  replyMs,
  clock,
  onError,
}: Pick<AttemptsOptions<Request>, 'send' | 'ask' | 'evidence'> & {
  readonly close: AttemptsOptions<Request>['close'] | undefined
  readonly replyMs: number
  readonly clock: Clock
  readonly onError: (error: unknown) => void
}): Calls<Request> {
  async function failed(error: unknown): Promise<string> {
    await callHook(() => onError(error))
    const text = error instanceof Error ? error.message : String(error)
    return text.slice(0, reasonLengthMax)
  }

  return {
    async send(order) {
      try {
        const reply: unknown = await limited(replyMs, (signal) => send({ ...order, signal }))
        if (isReply(reply)) return withShortReason(reply)
        throw new HostAnswerError('send', 'must resolve to a reply')
      } catch (error) {
        return { outcome: 'unknown', reason: await failed(error) }
      }
    },
    async ask(question) {
      const now = clock.now()
      try {
        const answer = await limited(replyMs, (signal) => ask({ ...question, signal }))
        if (answer === undefined) return undefined
        if (!isAnswer(answer, evidence)) {
          throw new HostAnswerError('ask', `must resolve to evidence by ${evidence}`)
        }
        if (answer.by === 'id') return { ...withShortReasons(answer), askedAt: now }
        return { ...answer, askedAt: Math.min(now, answer.askedAt ?? now) }
      } catch (error) {
        await failed(error)
        return undefined
      }
    },
    async close(order) {
      if (close === undefined) return 'unknown'
      try {
        const closed = await limited(replyMs, (signal) => close({ ...order, signal }))
        return closed === 'arrived' || closed === 'never' ? closed : 'unknown'
      } catch (error) {
        await failed(error)
        return 'unknown'
      }
    },
  }
}

/** Waits for the host's code for a limited time. */
async function limited<Result>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`no reply within ${ms} ms`)
      controller.abort(error)
      reject(error)
    }, ms)
  })
  try {
    return await Promise.race([work(controller.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

function withShortReason(reply: Reply): Reply {
  if (reply.outcome === 'proven') return reply
  return { ...reply, reason: reply.reason.slice(0, reasonLengthMax) }
}

function withShortReasons<Found extends Answer & { readonly by: 'id' }>(answer: Found): Found {
  const short = Object.entries(answer.attempts).map(([reference, each]) => {
    if (each.found !== 'refused') return [reference, each] as const
    return [reference, { ...each, reason: each.reason.slice(0, reasonLengthMax) }] as const
  })
  return { ...answer, attempts: Object.fromEntries(short) }
}

function isReply(value: unknown): value is Reply {
  const { outcome, arrived, reason, retryAt } = Object(value) as Record<string, unknown>
  if (outcome === 'proven') return isAmount(arrived)
  const isRetry = retryAt === undefined || Number.isSafeInteger(retryAt)
  return (outcome === 'refused' || outcome === 'unknown') && typeof reason === 'string' && isRetry
}

function isAmount(value: unknown): boolean {
  return value === undefined || (typeof value === 'bigint' && value >= 0n)
}

function isAnswer(value: Answer, evidence: Evidence['by']): boolean {
  const answer = Object(value) as Record<string, unknown>
  if (answer['by'] !== evidence) return false
  if (evidence === 'sum') {
    const isInstant = answer['askedAt'] === undefined || Number.isSafeInteger(answer['askedAt'])
    return answer['received'] !== undefined && isAmount(answer['received']) && isInstant
  }
  const { attempts } = answer
  if (typeof attempts !== 'object' || attempts === null) return false
  return Object.values(attempts as Record<string, FoundById>).every(
    (each) =>
      /^(?:arrived|never|refused|pending|absent)$/.test(String(Object(each).found)) &&
      (Object(each).found !== 'refused' || typeof Object(each).reason === 'string') &&
      isAmount(Object(each).arrived),
  )
}
