import type { HostCall } from 'open-payments-server'

/** The call of a test, which waits for every answer. */
export const hostCall: HostCall = { signal: new AbortController().signal }
