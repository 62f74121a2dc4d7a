import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from 'open-payments-server/adapter'
import { keyFor } from './keys.js'

const sign = (owner: string) =>
  createHmac('sha256', keyFor('sessions')).update(owner).digest('base64url')

/** Stands for your sessions: a cookie with the name of the owner, and its signature. */
export const sessions = {
  cookieFor: (owner: string) => `session=${owner}.${sign(owner)}; Path=/; HttpOnly; SameSite=Lax`,

  ownerOf({ headers }: Pick<HttpRequest, 'headers'> | IncomingMessage) {
    const lines = Array.isArray(headers) ? headers : Object.entries(headers)
    const cookies = lines.find(([name]) => name.toLowerCase() === 'cookie')?.[1] ?? ''
    const [, id = '', signature = ''] = /(?:^|; )session=(\w+)\.([\w-]+)/.exec(cookies) ?? []
    const [given, own] = [Buffer.from(signature), Buffer.from(sign(id))]
    return given.length === own.length && timingSafeEqual(given, own) ? { id } : undefined
  },
}
