import { type CaseAdvice, type Check, caseCheck, type Problem } from '../check.js'
import { demandJson, responded } from '../conformance/expectations.js'

const daysMin = 14

/** The wallet address itself. All other checks need it. */
const walletAddress: Check = {
  name: 'wallet-address',
  async run({ session }) {
    const url = session.walletAddress
    const answer = await session.send({ method: 'GET', url, sign: false })
    const { status, headers } = answer
    if (status >= 300 && status < 400) {
      return {
        what: `${responded(answer)} and Location ${headers.get('location')}`,
        why: 'Clients and other wallets do not follow redirects, because a signature covers one URL.',
        fix: [
          `# Serve the document at ${url} itself, or publish the URL to which it redirects.`,
          '# Redirect browsers only: requests with Accept: text/html.',
        ],
      }
    }
    try {
      demandJson(answer, 200)
    } catch (error) {
      return {
        what: (error as Error).message,
        why: 'A wallet address is a JSON document. Without it, clients cannot find the servers of the account.',
        fix: [
          'app.use(toExpress(wallets.handle)) // createWalletAddressServer, after your own routes',
          "// with several brands, mount each at its path: app.use('/brand', toExpress(brand.wallets.handle))",
          `// and walletAddresses.find('${url}') must resolve to the account`,
          ...prefixLines(url),
        ],
      }
    }
    return undefined
  },
}

/** What to say if the first segment of the path may be one that a proxy removes. */
function prefixLines(url: string): readonly string[] {
  const [, first = '', ...rest] = new URL(url).pathname.split('/')
  if (rest.length === 0) return []
  return [`strippedPrefix: '/${first}', // of all three servers, if a proxy removes this prefix`]
}

const documentAdvice: Pick<CaseAdvice, 'after'> = { after: 'wallet-address' }

const certificates: Check = {
  name: 'tls-expiry',
  after: 'wallet-urls',
  async run({ session, options, network }) {
    const { authServer, resourceServer } = await session.wallet()
    const urls = [session.walletAddress, authServer, resourceServer]
    const origins = new Set(urls.map((url) => new URL(url).origin))
    for (const origin of [...origins].filter((each) => each.startsWith('https:'))) {
      const days = await network.certificateDays(origin, options.timeoutMs)
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
  after: 'wallet-urls',
  async run({ session, clock: difference }) {
    const { authServer: url } = await session.wallet()
    const start = Date.now()
    const { headers } = await session.send({ method: 'OPTIONS', url, sign: false })
    const date = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(date)) return undefined
    const offsetMs = date - (start + Date.now()) / 2
    difference.offsetMs = Math.abs(offsetMs) > slackMs ? offsetMs : 0
    return clockProblem(offsetMs)
  },
}

/** Returns what to say about a clock that is ahead of this machine's by this time. */
export function clockProblem(offsetMs: number): Problem | undefined {
  const apartMs = Math.abs(offsetMs)
  if (apartMs <= slackMs) return undefined
  const seconds = Math.round(apartMs / 1000)
  return {
    severity: apartMs > aheadMaxMs ? 'problem' : 'advice',
    what: `the clock of the authorization server is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the clock of this machine`,
    why: 'Signatures are dated. Servers refuse those that are older than a few minutes, or dated in the future.',
    fix: ['timedatectl set-ntp true  # on the machine whose clock is wrong'],
  }
}

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
      `  resourceServer: '${new URL(url).origin}/op',`,
      '})',
    ],
  }),
  caseCheck('wallet-unknown', {
    ...documentAdvice,
    why: 'A payer who misspells a wallet address must not be shown something else.',
    fix: () => [
      'find: async (url) => undefined // for an unknown URL; and no fallback page behind it',
    ],
  }),
  caseCheck('wallet-keys', {
    ...documentAdvice,
    why: 'Other servers verify the signatures of this wallet with this key set.',
    fix: ({ session: { walletAddress: url } }) => [
      `curl ${url}/jwks.json`,
      "keys: [{ kid: 'key-1', x: '…' }] // of the account: public keys only",
    ],
  }),
  caseCheck('wallet-cors', {
    ...documentAdvice,
    why: 'Pages and browser extensions of other origins cannot pay an account that they cannot read.',
    fix: () => [
      '# The library sends Access-Control-Allow-Origin: *. Remove from the proxy:',
      'proxy_hide_header Access-Control-Allow-Origin;',
    ],
  }),
  certificates,
  clock,
]
