/** A value, or a failure that says why there is none. `ok` tells which. */
export type Result<Value, Failure extends { readonly ok: false }> = Ok<Value> | Failure

export interface Ok<Value> {
  readonly ok: true
  readonly value: Value
}

export function ok<Value>(value: Value): Ok<Value> {
  return { ok: true, value }
}
