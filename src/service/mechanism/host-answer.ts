interface HostRefusal {
  readonly ok: false
  readonly refusal: unknown
  readonly reason: string | undefined
}

/**
 * Reads the answer of a function by which the host allows or refuses something. Fails closed: only `{ ok: true }`
 * allows it.
 *
 * @throws {TypeError} for an answer that is neither `{ ok: true }` nor a refusal.
 */
export function readHostAnswer(name: string, answer: unknown): { readonly ok: true } | HostRefusal {
  const { ok, refusal, reason }: Readonly<Record<string, unknown>> = Object(answer)
  if (ok === true) return { ok }
  if (ok !== false) throw wrongAnswer(name)
  return { ok, refusal, reason: typeof reason === 'string' ? reason : undefined }
}

export function wrongAnswer(name: string): TypeError {
  return new TypeError(`${name} must return { ok: true } or a refusal`)
}
