import type { Handler } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'

/** The names of this machine in URLs. */
const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

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

/** Serves pages at the name of the wallet, and at those of this machine. A proxy must pass `Host` on unchanged. */
export function forHost(name: string, handler: Handler): Handler {
  return async (request) => {
    if (isForHost(request, [name])) return handler(request)
    const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' }
    return { status: 421, headers, body: `This page is at ${name} only.\n` }
  }
}
