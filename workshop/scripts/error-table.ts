import { publicReasons } from '../../src/core/public-reasons.js'
import type { Refusal, ServerOperation } from '../../src/index.js'
import { refusalMeanings } from './refusal-meanings.js'
import { refusals } from './refusals.js'

type PublicError = NonNullable<(typeof refusals)[Refusal]['resourceServer']>

type Where = ServerOperation | 'authorizationServer' | 'resourceServer' | 'walletAddressServer'

type Names = Partial<Readonly<Record<Where, true>>>

const ofAuthorizationServer = {
  authorizationServer: true,
  requestGrant: true,
  discover: true,
  continueGrant: true,
  cancelGrant: true,
  rotateToken: true,
  revokeToken: true,
  introspectToken: true,
} satisfies Names

const ofOtherServers: Readonly<Record<Exclude<Where, keyof typeof ofAuthorizationServer>, true>> = {
  resourceServer: true,
  walletAddressServer: true,
  createIncomingPayment: true,
  listIncomingPayments: true,
  getIncomingPayment: true,
  completeIncomingPayment: true,
  createQuote: true,
  getQuote: true,
  createOutgoingPayment: true,
  listOutgoingPayments: true,
  getOutgoingPayment: true,
  getOutgoingPaymentGrant: true,
  getWalletAddress: true,
  getWalletAddressKeys: true,
  preflight: true,
}

/** Returns the table of refusals as Markdown, in order of precedence. */
export function errorTable(): string {
  const rows = (Object.keys(refusals) as Refusal[]).map((refusal) => {
    const places = Object.entries(refusals[refusal]) as [Where, PublicError][]
    const cells = [cell(places, ofAuthorizationServer), cell(places, ofOtherServers)]
    return `| \`${refusal}\` | ${cells.join(' | ')} |`
  })
  return [
    '| refusal | authorization server | resource server, wallet addresses |',
    '|---|---|---|',
    ...rows,
  ].join('\n')
}

/** Returns the table of what each refusal means, and what helps, with the codes that clients get, as Markdown. */
export function meaningTable(): string {
  const rows = (Object.keys(refusalMeanings) as Refusal[]).map((refusal) => {
    const [meaning, remedy] = refusalMeanings[refusal]
    const codes = new Set(Object.values(refusals[refusal]).map(({ code }) => `\`${code}\``))
    return `| \`${refusal}\` | ${[...codes].join(', ')} | ${meaning} | ${remedy} |`
  })
  return ['| meaning of | `code` | because | what helps |', '|---|---|---|---|', ...rows].join('\n')
}

/** Returns the table of the reasons that clients learn as Markdown. */
export function publicReasonTable(): string {
  const rows = publicReasons.map(([refusal, path, problem]) => {
    return `| \`${refusal}\` | \`${path}\` | ${problem} |`
  })
  return ['| public reason of | `path` | `problem` |', '|---|---|---|', ...rows].join('\n')
}

/** Returns the errors at these places, each behind its operations unless it holds for the whole server. */
function cell(places: readonly [Where, PublicError][], names: Names): string {
  const placesOf = new Map<string, Where[]>()
  for (const [where, { status, code }] of places) {
    const error = `${status} \`${code}\``
    if (where in names) placesOf.set(error, [...(placesOf.get(error) ?? []), where])
  }
  return [...placesOf]
    .map(([error, same]) => {
      const isWhole = same.includes('authorizationServer') || same.includes('resourceServer')
      return isWhole ? error : `${same.map((where) => `\`${where}\``).join(', ')}: ${error}`
    })
    .join('; ')
}
