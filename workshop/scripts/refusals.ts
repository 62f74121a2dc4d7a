import {
  authorizationErrors,
  type ErrorRow,
  type ErrorTable,
  precedence,
  type Refusal,
  resourceErrors,
  walletAddressErrors,
} from '../../src/http/public-errors.js'
import { isRow } from '../../src/http/refusals.js'
import type { ServerOperation } from '../../src/http/routes.js'

/**
 * Every refusal with its public error per server, and per operation where it differs: the status, machine-readable code
 * and description without details that a client receives. Rows are in order of precedence: if several apply to a
 * request, the first one determines the response.
 *
 * @see RFC 9635 section 3.6; Open Payments OpenAPI, responses of each operation
 */
export const refusals: Readonly<
  Record<
    Refusal,
    {
      readonly [Where in
        | ServerOperation
        | 'authorizationServer'
        | 'resourceServer'
        | 'walletAddressServer']?: {
        readonly status: number
        readonly code: string
        readonly description: string
      }
    }
  >
> = allErrors()

function allErrors(): typeof refusals {
  const servers = {
    authorizationServer: authorizationErrors,
    resourceServer: resourceErrors,
    walletAddressServer: walletAddressErrors,
  }
  const rows = precedence.map((refusal) => {
    const places = Object.entries(servers).flatMap(([server, errors]: [string, ErrorTable]) => {
      const entry = errors[refusal]
      if (entry === undefined) return []
      const own: readonly [string, ErrorRow][] = isRow(entry)
        ? [[server, entry]]
        : Object.entries(entry).map(([where, row]) => [where === 'otherwise' ? server : where, row])
      return own.map(([where, [status, code, description]]) => [
        where,
        { status, code, description },
      ])
    })
    return [refusal, Object.fromEntries(places)]
  })
  return Object.fromEntries(rows)
}
