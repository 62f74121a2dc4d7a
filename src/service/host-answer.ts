import { type Refused, refused } from '../core/decision.js'
import { hasCode } from '../util/errors.js'

/**
 * The error for an answer of the host's code that breaks the contract of a port or of a policy. The client instance
 * receives 500, and `onError` receives this error. Its message names what is wrong, and contains no value.
 */
export class HostAnswerError extends TypeError {
  readonly code = 'ERR_HOST_ANSWER'

  /** `source` is the function of the host, such as `walletAddresses.find`. */
  constructor(source: string, problem: string) {
    super(`the answer of ${source} is wrong: ${problem.trim()}`)
  }
}

/** Whether an answer of the host was wrong, which is not an outage. */
export function isWrongAnswer(error: unknown): boolean {
  return hasCode(error, 'ERR_HOST_ANSWER')
}

interface HostRefusal {
  readonly ok: false
  readonly refusal: unknown
  readonly reason: string | undefined
}

/**
 * Reads the answer of a function by which the host allows or refuses something. Fails closed: only `{ ok: true }`
 * allows it.
 *
 * @throws {HostAnswerError} for an answer that is neither `{ ok: true }` nor a refusal.
 */
export function readHostAnswer(name: string, answer: unknown): { readonly ok: true } | HostRefusal {
  const { ok, refusal, reason }: Readonly<Record<string, unknown>> = Object(answer)
  if (ok === true) return { ok }
  if (ok !== false) throw wrongAnswer(name)
  return { ok, refusal, reason: typeof reason === 'string' ? reason : undefined }
}

/**
 * Returns the refusal of a host with its reason, or with the one in the table of all refusals that it may answer with.
 *
 * @throws {HostAnswerError} for a refusal that is not in the table.
 */
export function refusedByHost<Refusal extends string>(
  name: string,
  { refusal, reason }: HostRefusal,
  reasons: Readonly<Record<Refusal, string>>,
): Refused<Refusal> {
  const known = (text: string): text is Refusal => Object.hasOwn(reasons, text)
  const text = String(refusal)
  if (!known(text)) throw wrongAnswer(name)
  return refused(text, reason ?? reasons[text])
}

function wrongAnswer(name: string): HostAnswerError {
  return new HostAnswerError(name, 'it must be { ok: true } or a refusal')
}
