import { setTimeout } from 'node:timers/promises'
import {
  BrokenResponse,
  exchange,
  type Network,
  onOneLine,
  pick,
  ReachError,
  reachError,
  reachingFetch,
  type SendFetch,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import type { ClientKey } from './files.js'
import { isAmount, money } from './money.js'

/** The parts of the machine that the client uses. */
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

/** What the program could not do, in words, with the response of the server if there is one. */
export class ClientError extends Error {
  readonly exitCode: FailureCode
  readonly step: string
  readonly answer: WireAnswer | undefined
  /** What to try. */
  readonly hint: string | undefined

  constructor(
    exitCode: FailureCode,
    step: string,
    message: string,
    more: { readonly answer?: WireAnswer; readonly hint?: string | undefined } = {},
  ) {
    super(message)
    this.exitCode = exitCode
    this.step = step
    this.answer = more.answer
    this.hint = more.hint
  }
}

export interface WireOptions {
  readonly key: ClientKey
  readonly allowPrivate: boolean
  readonly timeoutMs: number
  readonly verbose: boolean
}

/** Sends requests as one client, and prints a line for each. */
export interface Wire extends WireOptions {
  readonly machine: Machine
  /** The resources that exist at the servers so far, by kind. The program prints them after a failure. */
  readonly exists: Map<string, string>
  /**
   * Sends a request, again after 429 and 503, and after a lost response or one to a used signature if a repeat is
   * harmless. Fails unless the response has one of the statuses.
   */
  send(step: string, request: WireRequest, options?: SendOptions): Promise<WireAnswer>
  say(text: string): void
  /** Waits, but not after an interruption. The signal ends the pause early. */
  pause(ms: number, ended?: AbortSignal): Promise<void>
}

export interface SendOptions {
  /** Default: 200. `any` returns every response. */
  readonly statuses?: readonly number[] | 'any'
  /**
   * Whether to sign the request again after a lost response, or after one that says that its signature was used,
   * because the repeat has no second effect. Default: false.
   */
  readonly repeats?: boolean
  /** Whether to print no line, because the request only asks for news. */
  readonly isQuiet?: boolean
}

const attemptsMax = 4
const firstPauseMs = 500
const pauseMaxMs = 30_000

/**
 * Returns a signal that aborts when one of two does. `AbortSignal.any` can lose a time-out in a garbage collection
 * before Node 22.16. After `release`, the first one has no effect: it lives as long as the program.
 */
function either(lasting: AbortSignal, other: AbortSignal | null | undefined) {
  const controller = new AbortController()
  const follow = (source: AbortSignal) => {
    const abort = () => controller.abort(source.reason)
    if (source.aborted) abort()
    else source.addEventListener('abort', abort, { once: true })
    return () => source.removeEventListener('abort', abort)
  }
  if (other) follow(other)
  return { signal: controller.signal, release: follow(lasting) }
}

export function openWire(options: WireOptions, machine: Machine, network: Network): Wire {
  const { key, allowPrivate, timeoutMs, verbose } = options
  const { interrupted } = machine
  const reach = reachingFetch(allowPrivate, timeoutMs, network)
  const fetch: SendFetch = (input, init = {}) => {
    if (verbose) machine.err(requestText(String(input), init))
    const { signal, release } = either(interrupted, init.signal)
    return reach(input, { ...init, signal }).finally(release)
  }
  const sender = { key: key.pair, fetch, requestTimeoutMs: timeoutMs, now: () => Date.now() }

  function line(step: string, outcome: string, began: number, { method, url }: WireRequest): void {
    const ms = Math.round(performance.now() - began)
    machine.err(
      `${outcome.padEnd(4)} ${`${ms} ms`.padStart(8)}  ${step.padEnd(24)} ${method} ${onOneLine(url)}\n`,
    )
  }

  async function attempt(
    step: string,
    request: WireRequest,
    isQuiet: boolean,
  ): Promise<WireAnswer | ReachError> {
    const began = performance.now()
    try {
      requireUninterrupted(step)
      const answer = await exchange(sender, request)
      if (!isQuiet) line(step, String(answer.status), began, request)
      if (verbose) machine.err(answerText(answer))
      return answer
    } catch (error) {
      requireUninterrupted(step)
      const failure = unreachedBy(error, request)
      line(step, '-', began, request)
      return failure
    }
  }

  function requireUninterrupted(step: string): void {
    if (interrupted.aborted) throw new ClientError(130, step, 'interrupted')
  }

  async function pause(ms: number, ended?: AbortSignal): Promise<void> {
    requireUninterrupted('pause')
    const { signal, release } = either(interrupted, ended)
    await setTimeout(ms, undefined, { signal }).catch(() => {})
    release()
    requireUninterrupted('pause')
  }

  return {
    ...options,
    machine,
    exists: new Map(),
    say: (text) => machine.err(`${onOneLine(text)}\n`),
    pause,
    async send(step, request, { statuses = [200], repeats = false, isQuiet = false } = {}) {
      for (let tried = 1; ; tried += 1) {
        const answer = await attempt(step, request, isQuiet)
        const pauseMs = firstPauseMs * 2 ** (tried - 1)
        if (answer instanceof ReachError) {
          const isLost = answer.failure === 'unreachable'
          if (!repeats || !isLost || tried === attemptsMax) throw unreached(step, answer, request)
          await pause(pauseMs)
          continue
        }
        const isBusy = answer.status === 429 || answer.status === 503
        if (isBusy && tried < attemptsMax) {
          const wantedMs = Number(answer.headers.get('retry-after')) * 1_000
          await pause(Math.min(wantedMs > 0 ? wantedMs : pauseMs, pauseMaxMs))
          continue
        }
        // Something on the way has sent the request twice, and this is the answer to the second.
        const isSafe = repeats || request.method === 'GET'
        if (isUsed(answer) && isSafe && tried < attemptsMax) continue
        if (statuses === 'any' || statuses.includes(answer.status)) return answer
        throw refused(step, answer)
      }
    },
  }
}

/** Returns the error of a lost response. A response that is cut off is lost, too. Throws any other error. */
function unreachedBy(error: unknown, { method, url }: WireRequest): ReachError {
  if (error instanceof ReachError) return error
  const isCutOff = error instanceof BrokenResponse && error.kind === 'cut-off'
  if (isCutOff) return new ReachError('unreachable', new URL(url), error.message)
  // The time-out may also occur while the body is read.
  if ((error as Error).name !== 'TimeoutError') throw error
  return reachError(new URL(url), error, `${method} ${url} in time`)
}

function unreached(step: string, failure: ReachError, { method, url }: WireRequest): ClientError {
  const hint =
    failure.failure === 'private'
      ? 'Use --allow-private for servers on private networks.'
      : failure.failure === 'tls'
        ? 'Set NODE_EXTRA_CA_CERTS for an authority of your own.'
        : undefined
  return new ClientError(2, step, `${method} ${url}: ${failure.message}`, { hint })
}

/** The code of an error, which resource servers and authorization servers write in two ways. */
export function codeOf({ body }: WireAnswer): string | undefined {
  const error = pick(body, 'error')
  const code = typeof error === 'string' ? error : pick(error, 'code')
  return typeof code === 'string' ? code : undefined
}

/**
 * Whether a response says that the signature was used: another copy of the request has arrived, and was answered. Such
 * a response says nothing about the token or the key.
 */
export function isUsed(answer: WireAnswer): boolean {
  return codeOf(answer) === 'signature_used'
}

/** Describes the error that the server returned. */
export function refused(step: string, answer: WireAnswer, hint = hintFor(answer)): ClientError {
  const description = pick(answer.body, 'error', 'description')
  const said = [codeOf(answer), description, detailsOf(answer)].filter(
    (each) => typeof each === 'string',
  )
  const message = `${answer.request} responded with status ${answer.status}${said.map((each) => `: ${each}`).join('')}`
  return new ClientError(1, step, message, { answer, hint })
}

/**
 * Describes the details of an error: which member is wrong, or which limit is exceeded, by how much, and until when.
 */
function detailsOf({ body }: WireAnswer): string | undefined {
  const details = pick(body, 'error', 'details')
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
  invalid_client:
    'The server does not accept the key or the signature. `key` says whether the wallet address of the client publishes the key.',
  invalid_token: 'The access token has expired, or was revoked.',
  insufficient_grant: 'The grant does not permit this: its limits, its actions, or its conditions.',
  not_permitted_now:
    'The owner of the account has paused payments or set a limit. The same request may succeed later.',
  signature_used:
    'The request arrived twice, for example from a proxy that repeats requests, and the first was answered. What it created exists.',
  too_fast: 'The server asks to wait longer between two continuations.',
}

function hintFor(answer: WireAnswer): string | undefined {
  const { status, headers } = answer
  const known = hints[codeOf(answer) ?? '']
  if (known !== undefined) return known
  if (status >= 300 && status < 400) {
    return `The server redirects to ${headers.get('location') ?? 'nowhere'}. Clients do not follow redirects: use the URL that it leads to.`
  }
  if (answer.body === undefined) {
    return 'This is not the response of an Open Payments server. `npx open-payments-doctor <wallet address>` looks for the reason.'
  }
  return undefined
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

function requestText(url: string, { method, headers, body }: RequestInit): string {
  const lines = (headers as [string, string][]).map(([name, value]) => {
    const shown = name.toLowerCase() === 'authorization' ? 'GNAP (secret)' : value
    return `> ${name}: ${shown}`
  })
  const content =
    body === undefined ? [] : [`> ${contentText(Buffer.from(body as Uint8Array).toString())}`]
  return onLines([`> ${method} ${url}`, ...lines, ...content])
}

function answerText({ status, headers, text }: WireAnswer): string {
  const lines = [...headers].map(
    ([name, value]) => `< ${name}: ${name === 'location' ? '(not followed)' : value}`,
  )
  return onLines([`< ${status}`, ...lines, ...(text === '' ? [] : [`< ${contentText(text)}`])])
}

const shownCharactersMax = 4_000

function contentText(text: string): string {
  try {
    return JSON.stringify(redacted(JSON.parse(text))).slice(0, shownCharactersMax)
  } catch {
    return `(${text.length} characters that are not JSON)`
  }
}

function onLines(lines: readonly string[]): string {
  return `${lines.map(onOneLine).join('\n')}\n`
}
