import type { Handler } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'
import { failure } from './json.js'

/** The names of this machine in URLs. */
export const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns whether a request is for one of the names, or for this machine. A site can let its own name lead to this
 * machine (DNS rebinding): browsers then treat the pages here as pages of that site.
 */
export function isForHost(
  { headers }: Pick<HttpRequest, 'headers'>,
  names: readonly string[],
): boolean {
  const hosts = headers.filter(([name]) => name.toLowerCase() === 'host')
  const [, name = ''] = /^(\[[\da-f:.]+\]|[^:]+)(?::\d{1,5})?$/i.exec(hosts[0]?.[1] ?? '') ?? []
  return hosts.length === 1 && [...loopbackNames, ...names].includes(name.toLowerCase())
}

/** Serves requests for these names and for this machine only. */
export function atHosts(
  names: readonly string[],
  handle: Handler<string | Uint8Array>,
): Handler<string | Uint8Array> {
  return async (request) =>
    isForHost(request, names) ? handle(request) : failure(421, 'host_unknown')
}
