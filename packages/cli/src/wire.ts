import { setTimeout } from 'node:timers/promises'
import { type CallOptions, type Client, createClient, type Refused } from 'open-payments-client'
import {
  clientFetch,
  type Network,
  onOneLine,
  pick,
  ReachError,
  reachingFetch,
} from 'open-payments-programs'
import type { FetchedDocument, GuardedFetch, GuardedRequest } from 'open-payments-server'
import type { ClientKey } from './files.js'
import { isAmount, money } from './money.js'

/** The parts of the machine that the program uses. */
export interface Machine {
  out(text: string): void
  err(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  /** Opens a page in the browser. Returns whether it tried. */
  open(url: string): boolean
  /** Asks a person. `undefined` if nobody can answer. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined
  /** Aborted when the person interrupts the program. */
  readonly interrupted: AbortSignal
}

/** The exit code of a failure. */
export type FailureCode = 1 | 2 | 3 | 130

/** What a failure has besides its message. */
interface More {
  readonly refusal?: Refused
  /** Method and URL of the last request. */
  readonly request?: string | undefined
  /** What to try. */
  readonly hint?: string | undefined
}

/** What the program could not do, in words. */
export class ClientError extends Error {
  readonly exitCode: FailureCode
  readonly step: string
  readonly more: More

  constructor(exitCode: FailureCode, step: string, message: string, more: More = {}) {
    super(message)
    this.exitCode = exitCode
    this.step = step
    this.more = more
  }
}

export interface WireOptions {
  readonly key: ClientKey
  readonly allowPrivate: boolean
  readonly timeoutMs: number
  readonly verbose: boolean
}

/** A request, and what came of it. */
interface Exchange {
  readonly request: string
  readonly headers: NonNullable<FetchedDocument['headers']>
  /** Why there is no response. */
  readonly failure?: ReachError['failure']
}

export interface CallSettings {
  /** Whether a lost response is harmless, because the same call has no second effect. Default: false. */
  readonly repeats?: boolean
  /** Whether to print no line, because the call only asks for news. Default: false. */
  readonly isQuiet?: boolean
}

type Result = { readonly ok: true } | Refused
type Success<Value extends Result> = Exclude<Value, Refused>
type Make<Value extends Result> = (client: Client, options: CallOptions) => Promise<Value>

/** Makes calls as one client, and prints a line for each request. */
export interface Wire extends WireOptions {
  readonly machine: Machine
  /** The resources that exist at the servers so far, by kind. The program prints them after a failure. */
  readonly exists: Map<string, string>
  /** The header fields of the last response, by their names in lower case. */
  lastHeaders(): Exchange['headers']
  /**
   * Makes a call, again while its server is busy, and again if its outcome is not known and a repeat is harmless.
   * Resolves to the last result, and rejects after an interruption.
   */
  call<Value extends Result>(
    step: string,
    make: Make<Value>,
    settings?: CallSettings,
  ): Promise<Value>
  /** Makes a call that must succeed. */
  demand<Value extends Result>(
    step: string,
    make: Make<Value>,
    settings?: CallSettings,
  ): Promise<Success<Value>>
  /** Describes a refusal, the last one. */
  refused(step: string, refusal: Refused, hint?: string): ClientError
  say(text: string): void
  /** Waits, but not after an interruption. The signal ends the pause early. */
  pause(ms: number, ended?: AbortSignal): Promise<void>
}

const attemptsMax = 4
const firstPauseMs = 500
const pauseMaxMs = 30_000

export function openWire(options: WireOptions, machine: Machine, network: Network): Wire {
  const { key, allowPrivate, timeoutMs, verbose } = options
  const { interrupted } = machine
  const send = clientFetch(reachingFetch(allowPrivate, timeoutMs, network))
  let last: Exchange | undefined
  let printed = { step: '', isQuiet: false }

  const fetch: GuardedFetch = async (url, request = {}) => {
    const { step, isQuiet } = printed
    const { method = 'GET' } = request
    const named = `${method} ${onOneLine(url.href)}`
    if (verbose) machine.err(requestText(named, request))
    const began = performance.now()
    const line = (outcome: string) => {
      const ms = `${Math.round(performance.now() - began)} ms`
      machine.err(`${outcome.padEnd(4)} ${ms.padStart(8)}  ${step.padEnd(24)} ${named}\n`)
    }
    last = { request: named, headers: {} }
    try {
      const document = await send(url, request)
      const { headers = {} } = document
      last = { request: named, headers }
      if (!isQuiet) line(String(document.status))
      if (verbose) machine.err(answerText(document))
      return document
    } catch (error) {
      const { cause } = error as Error
      const failure = cause instanceof ReachError ? cause.failure : 'unreachable'
      last = { request: named, headers: {}, failure }
      line('-')
      throw error
    }
  }
  const { walletAddress, pair } = key
  const client = createClient({
    ...{ keyId: pair.kid, privateKey: pair.privateKey, fetch, limitMs: timeoutMs },
    ...(walletAddress !== undefined && { walletAddress }),
  })

  function requireUninterrupted(step: string): void {
    if (interrupted.aborted) throw new ClientError(130, step, 'interrupted')
  }

  async function pause(ms: number, ended?: AbortSignal): Promise<void> {
    requireUninterrupted('pause')
    const over = new AbortController()
    const end = () => over.abort()
    for (const signal of [interrupted, ended]) {
      if (signal?.aborted === true) end()
      signal?.addEventListener('abort', end, { signal: over.signal })
    }
    await setTimeout(ms, undefined, { signal: over.signal }).catch(() => {})
    end()
    requireUninterrupted('pause')
  }

  async function call<Value extends Result>(
    step: string,
    make: Make<Value>,
    { repeats = false, isQuiet = false }: CallSettings = {},
  ): Promise<Value> {
    for (let tried = 1; ; tried += 1) {
      requireUninterrupted(step)
      printed = { step, isQuiet }
      const result = await make(client, { signal: interrupted })
      requireUninterrupted(step)
      if (result.ok || tried === attemptsMax || !mayRepeat(result, repeats)) return result
      const pauseMs = result.retryAfterMs ?? firstPauseMs * 2 ** (tried - 1)
      await pause(Math.min(pauseMs, pauseMaxMs))
    }
  }

  function refused(step: string, refusal: Refused, hint?: string): ClientError {
    const { reason, answer } = refusal
    const failure = answer === undefined ? last?.failure : undefined
    const details = detailsOf(answer?.details)
    const message = details === undefined ? reason : `${reason}: ${details}`
    const location = last?.headers['location']
    const said = hint ?? hintFor(refusal, { failure, location })
    const more = { refusal, request: last?.request, hint: said }
    return new ClientError(failure === undefined ? 1 : 2, step, message, more)
  }

  return {
    ...{ ...options, machine, exists: new Map() },
    ...{ call, refused, pause },
    lastHeaders: () => last?.headers ?? {},
    async demand(step, make, settings) {
      const result = await call(step, make, settings)
      if (!result.ok) throw refused(step, result)
      return result as Success<typeof result>
    },
    say: (text) => machine.err(`${onOneLine(text)}\n`),
  }
}

/** Whether the same call may succeed, and has no second effect. */
function mayRepeat(refused: Refused, repeats: boolean): boolean {
  const { refusal } = refused
  if (refusal === 'outcome_unknown') return refused.repeat === 'same_quote'
  if (refusal === 'rate_limited') return true
  if (refusal === 'unavailable') return refused.answer?.status === 503
  return repeats && ['no_response', 'unreachable', 'timed_out'].includes(refusal)
}

/**
 * Describes the details of an error: which member is wrong, or which limit is exceeded, by how much, and until when.
 */
function detailsOf(details: unknown): string | undefined {
  const [path, problem, nextWindowAt] = ['path', 'problem', 'nextWindowAt'].map((name) =>
    pick(details, name),
  )
  if (typeof problem !== 'string') return undefined
  const left = pick(details, 'left')
  return [
    typeof path === 'string' ? `${path} ${problem}` : problem,
    ...(isAmount(left) ? [`${money(left)} is left`] : []),
    ...(typeof nextWindowAt === 'string' ? [`the next window begins at ${nextWindowAt}`] : []),
  ].join('; ')
}

const hints: Readonly<Record<string, string>> = {
  insufficient_grant: 'The grant does not permit this: its limits, its actions, or its conditions.',
  not_permitted_now:
    'The owner of the account has paused payments or set a limit. The same request may succeed later.',
  signature_used:
    'The request arrived twice, for example from a proxy that repeats requests, and the first was answered. What it created exists.',
  client_refused:
    'The server does not accept the key or the signature. `key` says whether the wallet address of the client publishes the key.',
  unauthenticated: 'The access token has expired, or was revoked.',
  too_fast: 'The server asks to wait longer between two continuations.',
  consent_required: 'Get a grant with `grant <wallet address>` and --access.',
}

function hintFor(
  { refusal, answer }: Refused,
  {
    failure,
    location,
  }: { readonly failure: Exchange['failure']; readonly location: string | undefined },
): string | undefined {
  if (failure === 'private') return 'Use --allow-private for servers on private networks.'
  if (failure === 'tls') return 'Set NODE_EXTRA_CA_CERTS for an authority of your own.'
  if (refusal === 'redirected') {
    return `The server redirects to ${location ?? 'nowhere'}. Clients do not follow redirects: use the URL that it leads to.`
  }
  const known = hints[answer?.code ?? ''] ?? hints[refusal]
  if (known !== undefined) return known
  if (refusal !== 'response_invalid') return undefined
  return 'This is not the response of an Open Payments server. `npx open-payments-doctor <wallet address>` looks for the reason.'
}

/** Members of JSON that give access, or prove something. */
const secretMembers = new Set([
  'interact_ref',
  'sharedSecret',
  'nonce',
  'finish',
  'privateKey',
  'd',
])

/** Replaces secrets in JSON. A token is the `value` of an `access_token`. */
export function redacted(body: unknown, name = ''): unknown {
  if (Array.isArray(body)) return body.map((each) => redacted(each, name))
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => {
      const isSecret = secretMembers.has(key) || (key === 'value' && name === 'access_token')
      return [key, isSecret && typeof value === 'string' ? '(secret)' : redacted(value, key)]
    }),
  )
}

function requestText(request: string, { headers = {}, body }: GuardedRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => {
    return `> ${name}: ${name.toLowerCase() === 'authorization' ? 'GNAP (secret)' : value}`
  })
  return onLines([`> ${request}`, ...lines, ...contentLines('>', body)])
}

function answerText({ status, headers = {}, body }: FetchedDocument): string {
  const lines = Object.entries(headers).map(
    ([name, value]) => `< ${name}: ${name === 'location' ? '(not followed)' : value}`,
  )
  return onLines([`< ${status}`, ...lines, ...contentLines('<', body)])
}

const shownCharactersMax = 4_000

function contentLines(direction: string, body: Uint8Array = new Uint8Array()): readonly string[] {
  if (body.length === 0) return []
  const text = Buffer.from(body).toString()
  try {
    const shown = JSON.stringify(redacted(JSON.parse(text))).slice(0, shownCharactersMax)
    return [`${direction} ${shown}`]
  } catch {
    return [`${direction} (${text.length} characters that are not JSON)`]
  }
}

function onLines(lines: readonly string[]): string {
  return `${lines.map(onOneLine).join('\n')}\n`
}
