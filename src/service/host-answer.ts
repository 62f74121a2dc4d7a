import { type Refused, refused } from '../core/decision.js'
import { HostAnswerError } from '../util/errors.js'

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
