import { createPrivateKey, type KeyObject } from 'node:crypto'
import { type KeyPair, keyPairOf, throwAwayKey } from '../../testing/src/key.js'
import { type DoctorOptions, UsageError } from './arguments.js'
import type { Check, Context, Problem } from './check.js'
import { consentPageCheck } from './checks/consent-page.js'
import { protocolChecks } from './checks/protocol.js'
import { serverChecks } from './checks/servers.js'
import { walletAddressChecks } from './checks/wallet-address.js'
import { exchange, type Sender } from './conformance/exchange.js'
import { pick, responded } from './conformance/expectations.js'
import { createSession, joined, type Session } from './conformance/session.js'
import { type Network, ReachError, reachError, reachingFetch } from './network.js'
import type { DoctorReport, Finding } from './report.js'

/** All checks, in order: each one after those whose problems it would repeat. */
export const checks: readonly Check[] = [
  ...walletAddressChecks,
  ...serverChecks,
  ...protocolChecks,
  consentPageCheck,
]

/** What the doctor creates is not payable for longer than this. */
const paymentLifetimeMs = 10 * 60 * 1000

/**
 * Checks a wallet, and calls `progress` with the name of each check before it runs.
 *
 * Rejects with a `UsageError` for a key that the client does not publish, and with a `ReachError` if the wallet address
 * is unreachable for a reason other than its certificate.
 */
export async function diagnose(
  options: DoctorOptions,
  progress: (check: string, index: number) => void,
  network: Network,
): Promise<DoctorReport> {
  const context = await createContext(options, network)
  const findings: Finding[] = []
  const passed: string[] = []
  const skipped: { check: string; reason: string }[] = []
  for (const [index, check] of checks.entries()) {
    const { name } = check
    const reason = reasonToSkip(check, options, findings, skipped)
    if (reason !== undefined) {
      skipped.push({ check: name, reason })
      continue
    }
    progress(name, index)
    const found = await outcomeOf(check, context)
    if (found === undefined) passed.push(name)
    else findings.push({ check: name, severity: 'problem', ...found })
  }
  const ok = findings.every(({ severity }) => severity !== 'problem')
  return { walletAddress: options.walletAddress, ok, findings, passed, skipped }
}

function reasonToSkip(
  { after, needsClient }: Check,
  { client }: DoctorOptions,
  findings: readonly Finding[],
  skipped: DoctorReport['skipped'],
): string | undefined {
  if (needsClient === true && client === undefined) return '--client is not given'
  const isProblem = ({ check, severity }: Finding) => check === after && severity === 'problem'
  if (findings.some(isProblem)) return `${after} did not pass`
  // Names the first failed check of the chain, because it is the one to repair.
  return skipped.find(({ check }) => check === after)?.reason
}

async function outcomeOf(check: Check, context: Context): Promise<Problem | undefined> {
  try {
    return await check.run(context)
  } catch (error) {
    const isLate = (error as Error).name === 'TimeoutError'
    if (!isLate && !(error instanceof ReachError)) return unexpected(error as Error)
    const { host } = new URL(context.session.walletAddress)
    const failure = error instanceof ReachError ? error : reachError({ host }, error)
    if (check.name === 'wallet-address' && failure.failure !== 'tls') throw failure
    return reachProblem(failure)
  }
}

function unexpected({ message }: Error): Problem {
  return {
    what: message,
    why: 'Clients that expect the documented response fail here.',
    fix: ['# Compare the response of the server with the one that the proxy returns.'],
  }
}

function reachProblem({ failure, message }: ReachError): Problem {
  if (failure === 'tls') {
    return {
      what: message,
      why: 'Clients do not connect to a server whose certificate they cannot verify.',
      fix: [
        'ssl_certificate /etc/letsencrypt/live/wallet.example/fullchain.pem;  # nginx: with the chain, not cert.pem',
        'NODE_EXTRA_CA_CERTS=/certs/ca.pem npx open-payments-doctor …  # for an authority of your own',
      ],
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
  }
}

async function createContext(options: DoctorOptions, network: Network): Promise<Context> {
  const { walletAddress, client, allowPrivate, timeoutMs } = options
  const clock = { offsetMs: 0 }
  const shared = {
    clientWalletAddress: client?.walletAddress,
    finishUri: joined(client?.walletAddress ?? walletAddress, '/finish'),
    receiver: walletAddress,
    consent: undefined,
    fetch: reachingFetch(allowPrivate, network.fetch),
    requestTimeoutMs: timeoutMs,
    now: () => Date.now() + clock.offsetMs,
  }
  const key = client === undefined ? throwAwayKey() : await publishedKey(client, shared)
  const session = createSession({ ...shared, walletAddress, key })
  return { options, network, clock, session: withLifetime(session) }
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
  const unnamed = keyPairOf(privateKeyIn(privateKey), '')
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

function privateKeyIn(pem: string) {
  let key: KeyObject | undefined
  try {
    key = createPrivateKey(pem)
  } catch {
    // A file without a key, which the message below names.
  }
  if (key?.asymmetricKeyType === 'ed25519') return key
  throw new UsageError('--key must be a file with an Ed25519 private key in PEM')
}
