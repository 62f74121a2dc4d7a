import { createHmac, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server/adapter'

const cookieName = 'example_wallet_session'

/** The signed-in owner of a browser. */
export interface Session {
  /** Returns the `Set-Cookie` value that signs a browser in as this owner. */
  cookieFor(owner: string): string
  /** The `Set-Cookie` value that signs a browser out. */
  readonly endingCookie: string
  /** Returns the owner of a request's cookie, if the cookie is valid. */
  ownerOf(request: HttpRequest): string | undefined
}

/**
 * Keeps sessions in an authenticated cookie: the owner's name and its MAC. `SameSite` keeps other sites from
 * submitting forms with it.
 *
 * @param key the same in every process of the wallet that serves browsers.
 */
export function cookieSession(key: Uint8Array): Session {
  const mac = (owner: string) => createHmac('sha256', key).update(owner).digest()
  const cookie = (value: string) => `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax`
  return {
    cookieFor: (owner) => cookie(`${owner}.${mac(owner).toString('base64url')}`),
    endingCookie: `${cookie('')}; Max-Age=0`,
    ownerOf(request) {
      const [owner = '', claimed = ''] = cookieOf(request)?.split('.') ?? []
      const given = Buffer.from(claimed, 'base64url')
      const expected = mac(owner)
      const genuine = given.length === expected.length && timingSafeEqual(given, expected)
      return genuine ? owner : undefined
    },
  }
}

function cookieOf({ headers }: HttpRequest): string | undefined {
  const cookies = headers
    .filter(([name]) => name.toLowerCase() === 'cookie')
    .flatMap(([, value]) => value.split(/; */))
  return cookies.find((cookie) => cookie.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
}
