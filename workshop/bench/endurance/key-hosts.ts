import type { DocumentFetch } from 'open-payments-server'
import { jwkOf, keyFromText } from '../../../test/support/keys.js'

export const shopCount = 20
export const shopKeys = Array.from({ length: shopCount }, (_, index) =>
  keyFromText(`shop ${index}`, `shop-${index}`),
)
export const walletAddressOf = (index: number) => `https://shop${index}.example`

const respond = (status: number, text: string) => {
  return { status, contentType: 'application/json', body: Buffer.from(text) }
}
const shopSets = shopKeys.map((key) => respond(200, JSON.stringify({ keys: [jwkOf(key)] })))
const garbage = respond(200, `${'['.repeat(32_000)}${']'.repeat(32_000)}`)
const manyKeys = Array.from({ length: 300 }, (_, index) => jwkOf(keyFromText('any', `k${index}`)))
const bigSet = respond(200, JSON.stringify({ keys: manyKeys }))
const missing = respond(404, '')

/**
 * Answers in the place of the hosts of clients, so that no measurement depends on a network: the shops', and those of
 * strangers, which are slow, or send garbage or many keys.
 */
export const keySetAt: DocumentFetch = async ({ hostname, pathname }) => {
  const [, index] = /^shop(\d+)\.example$/.exec(hostname) ?? []
  const known = index === undefined ? undefined : shopSets[Number(index)]
  if (known !== undefined) return pathname === '/jwks.json' ? known : missing
  if (hostname.startsWith('garbage')) return garbage
  if (hostname.startsWith('big')) return bigSet
  if (!hostname.startsWith('slow')) return missing
  // The limit of a fetch by the library.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  throw new Error('the host did not respond')
}
