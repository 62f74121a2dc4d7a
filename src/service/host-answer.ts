import { type HostReasons, type Refused, refused } from '../core/decision.js'
import { publicReasonSchema } from '../protocol/host-answers.js'
import { parseWith } from '../protocol/schema.js'
import { HostAnswerError } from '../util/errors.js'

interface HostRefusal extends HostReasons {
  readonly ok: false
  readonly refusal: unknown
}

/**
 * Reads the answer of a function by which the host allows or refuses something. Fails closed: only `{ ok: true }`
 * allows it.
 *
 * @throws {HostAnswerError} for an answer that is neither `{ ok: true }` nor a refusal.
 */
export function readHostAnswer(name: string, answer: unknown): { readonly ok: true } | HostRefusal {
  const { ok, refusal, reason, publicReason }: Readonly<Record<string, unknown>> = Object(answer)
  if (ok === true) return { ok }
  if (ok !== false) throw wrongAnswer(name)
  const told = parseWith(publicReasonSchema, publicReason)
  if (!told.ok) throw new HostAnswerError(name, `publicReason ${told.problem}`)
  return {
    ok,
    refusal,
    ...(typeof reason === 'string' && { reason }),
    ...(told.value !== undefined && { publicReason: told.value }),
  }
}

/**
 * Returns the refusal of a host with its reason, or with the one in the table of all refusals that it may answer with.
 *
 * @throws {HostAnswerError} for a refusal that is not in the table.
 */
export function refusedByHost<Refusal extends string>(
  name: string,
  { refusal, ...own }: HostRefusal,
  reasons: Readonly<Record<Refusal, string>>,
): Refused<Refusal> {
  const known = (text: string): text is Refusal => Object.hasOwn(reasons, text)
  const text = String(refusal)
  if (!known(text)) throw wrongAnswer(name)
  return refusedFor(text, own, reasons[text])
}

/**
 * Returns a refusal with the reasons of the host. The client learns the public one.
 *
 * @param otherwise the reason for the operator if the host gives none.
 * @param path of the member of the request that the reasons are about, if they are about one.
 */
export function refusedFor<Refusal extends string>(
  refusal: Refusal,
  { publicReason, reason = publicReason }: HostReasons,
  otherwise: string,
  path?: string,
): Refused<Refusal> {
  const answer = refused(refusal, reason ?? otherwise)
  if (publicReason === undefined) return answer
  const details = { ...(path !== undefined && { path }), problem: publicReason }
  return { ...answer, details }
}

function wrongAnswer(name: string): HostAnswerError {
  return new HostAnswerError(name, 'it must be { ok: true } or a refusal')
}
