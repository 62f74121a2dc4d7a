import { hasOriginOf } from './bodies.js'
import type { Context } from './context.js'
import type { Call } from './deadline.js'
import { invalid } from './exchange.js'
import type { IssuedGrant } from './grant.js'
import type { Outgoing } from './message.js'
import { notAt, type Refused } from './refusal.js'

/** How a document is read, if not without a signature. */
export type ReadAccess =
  | {
      /** Under a grant, at its resource server. */
      readonly grant: IssuedGrant
    }
  | {
      /** Where access is granted that needs no consent. */
      readonly authServer: string
      readonly type: 'incoming-payment' | 'quote'
      readonly actions: readonly string[]
    }

/** The result of `read`. */
export type FoundDocument = { readonly ok: true; readonly document: unknown } | Refused

export async function readDocument(
  { exchange, tokens }: Context,
  call: Call,
  url: string,
  access: ReadAccess | undefined,
): Promise<FoundDocument> {
  const request: Outgoing = { method: 'GET', url }
  const sending = () => {
    if (access === undefined) return exchange(call, { ...request, isSigned: false })
    if (!('grant' in access)) return tokens.send(call, { ...access, at: url }, request)
    const { resourceServer, token } = access.grant
    if (!hasOriginOf(url, resourceServer)) return notAt(url, resourceServer)
    return exchange(call, { ...request, token })
  }
  const sent = await sending()
  if (!sent.ok) return sent
  const { body: document } = sent.answer
  if (document === undefined) return invalid(request, 'with no JSON that can be read')
  return { ok: true, document }
}
