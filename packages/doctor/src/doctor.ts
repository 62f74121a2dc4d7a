import type { KeyObject } from 'node:crypto'
import {
  BrokenResponse,
  exchange,
  joined,
  pick,
  privateKeyIn,
  ReachError,
  reachError,
  reachingFetch,
  responded,
  type Sender,
  UsageError,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import { type KeyPair, keyPairOf, throwAwayKey } from 'open-payments-server-testing'
import { recognised } from './answer.js'
import type { DoctorOptions } from './arguments.js'
import type { Check, Context } from './check.js'
import { consentPageCheck } from './checks/consent-page.js'
import { grantChecks, paymentChecks } from './checks/protocol.js'
import { queryChecks, reachChecks, resourceChecks } from './checks/servers.js'
import { walletAddressChecks } from './checks/wallet-address.js'
import { createSession, type Session } from './conformance/session.js'
import { type DoctorNetwork, failingAtOnce } from './network.js'
import type { DoctorReport, Finding, Problem } from './report.js'

/** All checks, in order: each one after those whose problems it would repeat. */
export const checks: readonly Check[] = [
  ...walletAddressChecks,
  ...reachChecks,
  ...grantChecks,
  ...resourceChecks,
  ...paymentChecks,
  ...queryChecks,
  consentPageCheck,
]

/** The lifetime of the payments that the doctor creates. */
const paymentLifetimeMs = 10 * 60 * 1000

/** A finding while the checks run. */
interface Diagnosis {
  /** The check that found it, and what it found. */
  root: Problem & { readonly check: string }
  readonly consequences: { readonly check: string; readonly what?: string }[]
}

/**
 * Checks a wallet, and calls `progress` with the name of each check before it runs.
 *
 * Rejects with a `UsageError` for a key that the client does not publish, and with a `ReachError` if the wallet address
 * is unreachable for a reason other than its certificate.
 */
export async function diagnose(
  options: DoctorOptions,
  progress: (check: string, index: number) => void,
  network: DoctorNetwork,
): Promise<DoctorReport> {
  const context = await createContext(options, network)
  const byCause = new Map<string, Diagnosis>()
  /** The reason why a check did not pass, if another check needs it. */
  const stopped = new Map<string, Diagnosis>()
  const passed: string[] = []
  const skipped: { check: string; reason: string }[] = []
  for (const [index, check] of checks.entries()) {
    const { name, after = [], needsClient } = check
    if (needsClient === true && options.client === undefined) {
      skipped.push({ check: name, reason: '--client is not given' })
      continue
    }
    const obstacle = after.map((each) => stopped.get(each)).find((each) => each !== undefined)
    if (obstacle !== undefined) {
      obstacle.consequences.push({ check: name })
      stopped.set(name, obstacle)
      continue
    }
    progress(name, index)
    const found = await outcomeOf(check, context)
    if (found === undefined) {
      passed.push(name)
      continue
    }
    const { cause = name } = found
    const diagnosis = added(byCause.get(cause), { check: name, ...found })
    byCause.set(cause, diagnosis)
    if (severityOf(found) !== 'advice') stopped.set(name, diagnosis)
  }
  const findings = [...byCause.values()].map(({ root, consequences }): Finding => {
    const { check, what, why, fix } = root
    return { check, severity: severityOf(root), what, why, fix, consequences }
  })
  const ok = findings.every(({ severity }) => severity !== 'problem')
  return { walletAddress: options.walletAddress, ok, findings, passed, skipped }
}

const severityOf = ({ severity = 'problem' }: Problem) => severity
const severities = ['note', 'advice', 'problem'] as const
const gravity = (problem: Problem) => severities.indexOf(severityOf(problem))

/**
 * Adds what a further check found to a finding of the same cause. The root is the most severe finding, or the first of
 * these.
 */
function added(earlier: Diagnosis | undefined, found: Diagnosis['root']): Diagnosis {
  if (earlier === undefined) return { root: found, consequences: [] }
  const isGraver = gravity(found) > gravity(earlier.root)
  const [root, other] = isGraver ? [found, earlier.root] : [earlier.root, found]
  earlier.root = { ...root, fix: [...new Set([...root.fix, ...other.fix])] }
  earlier.consequences.push({ check: other.check, what: other.what })
  return earlier
}

async function outcomeOf(check: Check, context: DoctorContext): Promise<Problem | undefined> {
  context.begin()
  try {
    return await check.run(context)
  } catch (error) {
    if (error instanceof ReachError) {
      if (check.name === 'wallet-address' && error.failure !== 'tls') throw error
      return reachProblem(error)
    }
    const last = context.last()
    return (last && recognised(last)) ?? unexpected(error as Error)
  }
}

function unexpected(error: Error): Problem {
  if (error instanceof BrokenResponse && error.kind === 'not-utf-8') return notUtf8(error)
  return {
    what: error.message,
    why: 'Clients that expect the documented response fail here.',
    fix: ['# Compare the response of the server with the one that the proxy returns.'],
    ...(error instanceof BrokenResponse && { cause: error.kind }),
  }
}

function notUtf8({ message, kind }: BrokenResponse): Problem {
  return {
    what: `${message}, as JSON must be: something writes it in another character set, such as Latin-1`,
    why: 'JSON between systems is UTF-8 (RFC 8259 section 8.1). Clients show other names, or fail.',
    fix: [
      'charset off;  # nginx, and no charset_map: Content-Type of JSON has no charset',
      '# and no middleware that writes bodies with the encoding latin1 or binary',
    ],
    cause: kind,
  }
}

function reachProblem({ failure, message, hostname }: ReachError): Problem {
  const cause = `reach ${hostname}`
  if (failure === 'tls') {
    return {
      what: message,
      why: 'Clients do not connect to a server whose certificate they cannot verify.',
      fix: [
        'ssl_certificate /etc/letsencrypt/live/wallet.example/fullchain.pem;  # nginx: with the chain, not cert.pem',
        'NODE_EXTRA_CA_CERTS=/certs/ca.pem npx open-payments-doctor …  # for an authority of your own',
      ],
      cause,
    }
  }
  const isPrivate = failure === 'private'
  return {
    what: message,
    why: isPrivate
      ? 'Clients elsewhere cannot reach this address. The doctor does not connect to it either.'
      : 'Clients cannot use a server that does not respond.',
    fix: isPrivate
      ? ['npx open-payments-doctor --allow-private …  # for development']
      : ['# Check the URL, the DNS, the firewall and the log of the proxy.'],
    cause,
  }
}

interface DoctorContext extends Context {
  /** Forgets the last response. */
  begin(): void
}

async function createContext(
  options: DoctorOptions,
  network: DoctorNetwork,
): Promise<DoctorContext> {
  const { walletAddress, client, allowPrivate, timeoutMs } = options
  const clock = { offsetMs: 0 }
  const shared = {
    clientWalletAddress: client?.walletAddress,
    finishUri: joined(client?.walletAddress ?? walletAddress, '/finish'),
    receiver: walletAddress,
    consent: undefined,
    fetch: failingAtOnce(reachingFetch(allowPrivate, timeoutMs, network)),
    requestTimeoutMs: timeoutMs,
    now: () => Date.now() + clock.offsetMs,
  }
  const key = client === undefined ? throwAwayKey() : await publishedKey(client, shared)
  const sender = { ...shared, walletAddress, key }
  let last: WireAnswer | undefined
  async function send(request: WireRequest): Promise<WireAnswer> {
    last = undefined
    try {
      last = await patientExchange(sender, request)
      return last
    } catch (error) {
      // The time-out may also occur while the body is read.
      throw (error as Error).name === 'TimeoutError'
        ? reachError(new URL(request.url), error)
        : error
    }
  }
  return {
    options,
    network,
    clock,
    session: withLifetime(createSession(sender, send)),
    last: () => last,
    begin() {
      last = undefined
    },
  }
}

const patienceMaxS = 10
const repeatsMax = 5

/** Sends a request again, with another signature, when a rate limit asks for a pause of a few seconds. */
async function patientExchange(sender: Sender, request: WireRequest): Promise<WireAnswer> {
  for (let repeats = 0; ; repeats++) {
    const answer = await exchange(sender, request)
    const pauseS = Number(answer.headers.get('retry-after') ?? Number.NaN)
    const isShort = pauseS >= 0 && pauseS <= patienceMaxS
    if (answer.status !== 429 || !isShort || repeats === repeatsMax) return answer
    await new Promise((resolve) => setTimeout(resolve, pauseS * 1000))
  }
}

/** Lets the payments of the checks expire, so that none of them remains open. */
function withLifetime(session: Session): Session {
  return {
    ...session,
    createIncoming(more) {
      const expiresAt = new Date(session.now() + paymentLifetimeMs).toISOString()
      return session.createIncoming({ expiresAt, ...more })
    },
  }
}

/** Finds the key of the client in the key set that it publishes. */
async function publishedKey(
  { walletAddress, privateKey }: NonNullable<DoctorOptions['client']>,
  sender: Omit<Sender, 'key'>,
): Promise<KeyPair> {
  const unnamed = keyPairOf(keyInFile(privateKey), '')
  const url = joined(walletAddress, '/jwks.json')
  const answer = await exchange({ ...sender, key: unnamed }, { method: 'GET', url, sign: false })
  const keys = pick(answer.body, 'keys')
  const own = Array.isArray(keys) && keys.find((key) => pick(key, 'x') === unnamed.x)
  const kid = pick(own, 'kid')
  if (typeof kid !== 'string') {
    throw new UsageError(`the key is not in the key set: ${responded(answer)}`)
  }
  return { ...unnamed, kid }
}

/** Reads a key in PEM, the JSON with a key in PEM that `open-payments-cli` writes, or a JWK. */
function keyInFile(text: string): KeyObject {
  const content = text.trimStart().startsWith('{') ? contentOf(text) : text
  const key = privateKeyIn(pick(content, 'privateKey') ?? content)
  if (key !== undefined) return key
  throw new UsageError('--key must be a file with an Ed25519 private key, in PEM or JSON')
}

function contentOf(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
