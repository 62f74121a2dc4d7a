import { randomUUID } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { addressIn, demandJson, joined, pick, type WireAnswer } from 'open-payments-programs'
import { isPublicAddress } from 'open-payments-server'
import { isOwnError, recognised } from '../answer.js'
import { type CaseAdvice, type Check, caseCheck } from '../check.js'
import type { Session } from '../conformance/session.js'
import type { Problem } from '../report.js'

const daysMin = 14

/** The wallet address itself. All other checks need it. */
const walletAddress: Check = {
  name: 'wallet-address',
  async run({ session }) {
    const url = session.walletAddress
    const answer = await session.send({ method: 'GET', url, sign: false })
    const known = recognised(answer)
    if (known !== undefined) return known
    if (answer.status === 404) return missing(answer, url)
    try {
      demandJson(answer, 200)
      return otherOrigin(answer, url)
    } catch (error) {
      return {
        what: (error as Error).message,
        why: 'A wallet address is a JSON document. Without it, clients cannot find the servers of the account.',
        fix: ['# Let the proxy pass on the response of the wallet, with its Content-Type.'],
      }
    }
  },
}

/** Reports a document all of whose URLs have an origin that is not the one of the wallet address. */
function otherOrigin({ body }: WireAnswer, url: string): Problem | undefined {
  const [origin, ...others] = ['id', 'authServer', 'resourceServer'].map((name) => {
    const value = String(pick(body, name))
    return URL.canParse(value) ? new URL(value).origin : undefined
  })
  const own = new URL(url).origin
  if (origin === undefined || origin === own || others.some((each) => each !== origin)) {
    return undefined
  }
  return {
    what: `the wallet takes ${origin} for its origin, but the wallet address has ${own}`,
    why: 'Clients refuse an id that differs from the URL that they requested. authServer and resourceServer differ too.',
    fix: [`baseUrl: '${own}', // createWallet: as clients see it, not as the proxy does`],
  }
}

function missing(answer: WireAnswer, url: string): Problem {
  const isOwn = isOwnError(answer)
  const outcome = isOwn
    ? 'the wallet knows no account with this URL'
    : 'nothing is served at this path'
  return {
    what: `${answer.request} responded with status 404: ${outcome}`,
    why: isOwn
      ? 'The request reached the wallet. The account does not exist, or the proxy changed the path.'
      : 'The request did not reach the wallet: it is mounted elsewhere, or the proxy changed the path.',
    fix: [
      ...(isOwn ? [] : ['app.use(toExpress(wallet.handle)) // after your own routes']),
      `walletAddresses.find('${url}') // must resolve to the account`,
      ...prefixLines(url),
    ],
  }
}

/** The hint to report if the first segment of the path may be one that a proxy removes. */
function prefixLines(url: string): readonly string[] {
  const [, first = '', ...rest] = new URL(url).pathname.split('/')
  if (rest.length === 0) return []
  return [`strippedPrefix: '/${first}', // of all three servers, if a proxy removes this prefix`]
}

const documentAdvice: Pick<CaseAdvice, 'after'> = { after: ['wallet-address'] }

/** The hosts of the wallet, each with what names it first. */
async function hostsOf(session: Session): Promise<ReadonlyMap<string, string>> {
  const { authServer, resourceServer } = await session.wallet()
  const named = [
    ['resourceServer', resourceServer],
    ['authServer', authServer],
    ['the wallet address', session.walletAddress],
  ] as const
  return new Map(named.map(([name, url]) => [new URL(url).hostname, name]))
}

/** The addresses by which a network without IPv4 reaches an IPv4 address (RFC 6052). */
const translated = '64:ff9b::'

const dns: Check = {
  name: 'dns',
  after: ['wallet-urls'],
  async run({ session, network }) {
    for (const [host, name] of await hostsOf(session)) {
      if (addressIn(host) !== undefined) continue
      const addresses = await network.addresses(host).catch(() => [])
      if (addresses.length === 0) return unknownHost(host, name)
      // A container network or localhost may have IPv6 only, and no clients elsewhere.
      if (
        addresses.every((one) => isIPv6(one) && !one.startsWith(translated) && isPublicAddress(one))
      )
        return onlyIPv6(host, name)
    }
    return undefined
  },
}

function unknownHost(host: string, name: string): Problem {
  return {
    what: `${host}, the host of ${name}, has no address in DNS`,
    why: 'Clients cannot connect to it.',
    fix: [`# Add A and AAAA records of ${host}, or correct the URL in the options of the wallet.`],
    cause: `reach ${host}`,
  }
}

function onlyIPv6(host: string, name: string): Problem {
  return {
    severity: 'advice',
    what: `${host}, the host of ${name}, has IPv6 addresses only`,
    why: 'Clients, wallets and payers in networks with IPv4 alone cannot connect to it.',
    fix: [`# Add an A record of ${host}.`],
  }
}

const certificates: Check = {
  name: 'tls-expiry',
  after: ['wallet-urls'],
  async run({ session, options, network }) {
    const { authServer, resourceServer } = await session.wallet()
    const urls = [session.walletAddress, authServer, resourceServer]
    const origins = new Set(urls.map((url) => new URL(url).origin))
    for (const origin of [...origins].filter((each) => each.startsWith('https:'))) {
      // The checks below report a server that is not reachable.
      const days = await network.certificateDays(origin, options.timeoutMs).catch(() => daysMin)
      if (days < daysMin) return expiring(origin, days)
    }
    return undefined
  },
}

function expiring(origin: string, days: number): Problem {
  return {
    severity: 'advice',
    what: `the certificate of ${origin} is valid for ${days} more days`,
    why: 'When it expires, no client can reach the server.',
    fix: ['certbot renew  # or the renewal of your platform; check that it runs on a timer'],
  }
}

/** The ages of signatures that servers accept are counted in seconds, and the `Date` header has no fractions. */
const slackMs = 5_000
const aheadMaxMs = 60_000

const clock: Check = {
  name: 'clock',
  after: ['wallet-urls'],
  async run({ session, clock: difference }) {
    const { authServer: url } = await session.wallet()
    const start = Date.now()
    // The checks below report a server that does not respond.
    const answer = await session
      .send({ method: 'OPTIONS', url, sign: false })
      .catch(() => undefined)
    const date = Date.parse(answer?.headers.get('date') ?? '')
    if (Number.isNaN(date)) return undefined
    const offsetMs = date - (start + Date.now()) / 2
    if (await isHeaderAlone(session, offsetMs)) return falseDate(url, offsetMs)
    difference.offsetMs = Math.abs(offsetMs) > slackMs ? offsetMs : 0
    return clockProblem(offsetMs)
  },
}

/**
 * Whether the server judges signatures by the time of this machine, and not by its `Date`: it accepts one that is dated
 * now, and none that is dated as the header says.
 */
async function isHeaderAlone(session: Session, offsetMs: number): Promise<boolean> {
  if (Math.abs(offsetMs) <= aheadMaxMs) return false
  const { walletAddress: identifier } = session
  const access = { type: 'incoming-payment', actions: ['create', 'read'], identifier }
  const isAccepted = async (at: number) => {
    const answer = await session.askFor([access], {}, { created: Math.floor(at / 1_000) })
    return answer.status === 200
  }
  return (await isAccepted(Date.now())) && !(await isAccepted(Date.now() + offsetMs))
}

function falseDate(url: string, offsetMs: number): Problem {
  return {
    severity: 'advice',
    what: `the Date header of ${url} is ${apartBy(offsetMs)} this machine's time, by which the server verifies signatures`,
    why: 'The clock of the server is right. A proxy, cache or CDN writes another Date, by which clients may date signatures.',
    fix: [
      '# Let no proxy replace Date, no cache store the responses, and set the clock of the proxy.',
    ],
  }
}

/** Says how far a clock is ahead or behind, such as `about 10 minutes ahead of`. */
function apartBy(offsetMs: number): string {
  const apartMs = Math.abs(offsetMs)
  const isLong = apartMs > 2 * aheadMaxMs
  const apart = isLong
    ? `about ${Math.round(apartMs / 60_000)} minutes`
    : `${Math.round(apartMs / 1000)} s`
  return `${apart} ${offsetMs > 0 ? 'ahead of' : 'behind'}`
}

/** Returns what to say about a clock that is ahead of this machine's by this time. */
export function clockProblem(offsetMs: number): Problem | undefined {
  const apartMs = Math.abs(offsetMs)
  if (apartMs <= slackMs) return undefined
  return {
    severity: apartMs > aheadMaxMs ? 'problem' : 'advice',
    what: `the clock of the authorization server is ${apartBy(offsetMs)} the clock of this machine`,
    why: 'Signatures are dated. Servers refuse those that are older than a few minutes, or dated in the future.',
    fix: ['timedatectl set-ntp true  # on the machine whose clock is wrong'],
  }
}

/** A URL without an account: must not show a page for people. */
const unknownAddress: Check = {
  name: 'wallet-unknown',
  after: ['wallet-address'],
  async run({ session }) {
    const url = `${session.walletAddress.replace(/\/$/, '')}-${randomUUID()}`
    const answer = await session.send({ method: 'GET', url, sign: false })
    if (answer.status === 404) return undefined
    const { request, status } = answer
    const known = recognised(answer)
    if (known !== undefined && status >= 400) return known
    const seen = known?.what.split(request)[1] ?? ` responded with status ${status}`
    return {
      what: `${request}, which is no account,${seen}`,
      why: 'A payer who misspells a wallet address must not be shown something else.',
      fix: [
        'find: async (url) => undefined // for an unknown URL',
        '# and no fallback page and no redirect for paths that do not exist',
      ],
    }
  },
}

const keySet = caseCheck('wallet-keys', {
  ...documentAdvice,
  why: 'Other servers verify the signatures of this wallet with this key set.',
  fix: ({ session: { walletAddress: url } }) => [
    `curl ${url}/jwks.json`,
    "keys: [{ kid: 'key-1', x: '…' }] // of the account: public Ed25519 keys only",
  ],
  async explain({ body }, { session }) {
    const keys = pick(body, 'keys')
    if (!Array.isArray(keys) || keys.every((key) => pick(key, 'd') === undefined)) return undefined
    return {
      what: `${joined(session.walletAddress, '/jwks.json')} publishes a private key`,
      why: 'Everybody can sign as this account. Replace the key, even if the key set was public for a moment only.',
      fix: [
        "keys: [{ kid: 'key-2', x: '…' }] // a new key: x is public, d is the private key",
        '# and revoke what the old key signed',
      ],
    }
  },
})

export const walletAddressChecks: readonly Check[] = [
  walletAddress,
  caseCheck('wallet-document', {
    ...documentAdvice,
    why: 'Clients need the asset of the account to state amounts.',
    fix: () => [
      "find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) // walletAddresses",
    ],
  }),
  caseCheck('wallet-id', {
    ...documentAdvice,
    why: 'Clients compare the id with the URL that they requested, and refuse another one.',
    fix: ({ session: { walletAddress: url } }) => [
      `createWalletAddressServer({ baseUrl: '${new URL(url).origin}', … }) // the public URL`,
      `find: async (url) => … // must return the url that it received: '${url}'`,
    ],
  }),
  caseCheck('wallet-urls', {
    ...documentAdvice,
    why: 'Tokens and signatures must not travel without TLS, and clients sign exactly these URLs.',
    fix: ({ session: { walletAddress: url } }) => [
      'createWalletAddressServer({',
      `  grantEndpoint: '${new URL(url).origin}/auth', // https, as clients see it, not as the proxy does`,
      `  resourceServerUrl: '${new URL(url).origin}/op',`,
      '})',
    ],
  }),
  unknownAddress,
  keySet,
  caseCheck('wallet-cors', {
    ...documentAdvice,
    why: 'Pages and browser extensions of other origins cannot pay an account that they cannot read.',
    fix: () => [
      '# The library sends Access-Control-Allow-Origin: *. Remove from the proxy:',
      'proxy_hide_header Access-Control-Allow-Origin;',
    ],
  }),
  dns,
  certificates,
  clock,
]
