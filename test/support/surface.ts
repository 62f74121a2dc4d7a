import type { HttpRequest } from '../../src/entry-adapter.js'
import type { ServerOperation } from '../../src/index.js'
import { bytesOf, type SignOptions, signedRequest } from './sign.js'
import { type Ask, askFor } from './surface/asks.js'
import { createHeld } from './surface/held.js'
import { createServers, type ServersOptions, switchesOff } from './surface/servers.js'
import { type Answer, answerOf, origin } from './world.js'

export type { Ask } from './surface/asks.js'
export { everything } from './surface/held.js'
export { type Switches, switchesOff } from './surface/servers.js'

/** What a test may change in a request when it sends it. */
export type Sending = Partial<
  Pick<SignOptions, 'created' | 'headers' | 'key' | 'nonce' | 'parameters'>
> & {
  readonly bend?: (request: HttpRequest) => HttpRequest
}

export type Surface = Awaited<ReturnType<typeof createSurface>>

/** Creates all servers with all their routes, and one record of each kind that a client can request. */
export async function createSurface(options: ServersOptions = {}) {
  const switches = switchesOff()
  const { world, routes, handle, kept } = createServers(switches, options)
  const shop = world.client()
  const held = await createHeld(world, shop)
  let nonces = 0

  const ask = (operation: ServerOperation, given?: string) => askFor(shop, held, operation, given)

  /** Signs with a new nonce each time, and then alters the signed request if the test asks for that. */
  function sign(asked: Ask, { bend = (request) => request, ...more }: Sending = {}): HttpRequest {
    const { method, url, token, body } = asked
    const key = more.key ?? asked.key
    if (key === undefined) return bend(unsignedRequest(asked))
    const created = Math.floor(world.clock.now() / 1000)
    return bend(
      signedRequest({
        method,
        url,
        created,
        nonce: `surface-${nonces++}`,
        ...(token === undefined ? {} : { token }),
        ...(body === undefined ? {} : { body }),
        ...more,
        key,
      }),
    )
  }

  async function send(asked: Ask, sending?: Sending): Promise<Answer> {
    return answerOf(await handle(sign(asked, sending)))
  }

  return { world, shop, handle, routes, switches, kept, held, ask, sign, send }
}

/** Returns the text of a response in a table: its status, and its code if it has one. */
export function cell({ status, body }: Answer): string {
  return body?.error === undefined ? String(status) : `${status} ${body.error.code}`
}

/** Returns the last segment of the path of a URL. */
export function lastSegment(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

/** Returns the request without the headers that signing adds. */
export function unsignedRequest({ method, url, token, body }: Ask): HttpRequest {
  const headers: [string, string][] = []
  if (token !== undefined) headers.push(['Authorization', `GNAP ${token}`])
  if (body !== undefined) headers.push(['Content-Type', 'application/json'])
  return { method, url: url.slice(origin.length) || '/', headers, body: bytesOf(body) }
}
