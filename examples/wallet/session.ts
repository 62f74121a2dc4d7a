import { createHmac, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server'

const cookieName = 'example_wallet_session'

/** Who a browser is signed in as. */
export interface Session {
  /** The value of `Set-Cookie` that signs a browser in as this owner. */
  cookieFor(owner: string): string
  /** Whose cookie came with a request, if it is one of ours. */
  ownerOf(request: HttpRequest): string | undefined
}

/**
 * Sessions in a cookie that nobody else can write: the owner's name and its MAC under the key. Other sites
 * cannot have forms sent with it, as it is `SameSite`.
 *
 * @param key the same in every process of the wallet that knows browsers.
 */
export function cookieSession(key: Uint8Array): Session {
  const mac = (owner: string) => createHmac('sha256', key).update(owner).digest()
  return {
    cookieFor(owner) {
      const value = `${owner}.${mac(owner).toString('base64url')}`
      return `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax`
    },
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
