/** Receives an error that cannot change a response. */
export type OnError = ((error: unknown) => unknown) | undefined

/**
 * Calls a hook of the host. Passes its error, thrown or rejected, to `onError`, and ignores an error of `onError`. The
 * promise never rejects; a response must not wait for it.
 */
export async function callHook(hook: () => unknown, onError?: OnError): Promise<void> {
  try {
    await hook()
  } catch (error) {
    if (onError !== undefined) await callHook(() => onError(error))
  }
}

/** Whether an error of any class has this `code`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
