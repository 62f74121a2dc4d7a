/** A value, or the reason why there is none. Check `ok` to tell them apart. */
export type Result<Value, Failure extends { readonly ok: false }> = Ok<Value> | Failure

export interface Ok<Value> {
  readonly ok: true
  readonly value: Value
}

/** Text or data that a reader rejects. */
export interface Problem {
  readonly ok: false
  /** A predicate without its subject: `is longer than 128 characters`. */
  readonly problem: string
}

export function ok<Value>(value: Value): Ok<Value> {
  return { ok: true, value }
}
