import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type RecordedRequest,
  requestLog,
} from 'create-open-payments-server/wallet/start-page/requests'
import { freePort, meantBy } from 'open-payments-programs'
import { type ClockChange, sandboxClock } from './clock.js'
import { type ConsentRules, isOf } from './consent.js'
import { controlsOf } from './controls.js'
import type { SandboxDescription, SandboxUrls } from './description.js'
import { invalidOption } from './error.js'
import { type Fault, type PlantedFault, plantedFaults, readFault } from './faults.js'
import { frontOf, type Listening, listen } from './front.js'
import { openGate } from './gate.js'
import type { SandboxKey } from './keys.js'
import {
  type Decided,
  ineffective,
  notAPage,
  type OwnerDecision,
  type Revocation,
  readDecide,
  readRevocation,
} from './owners.js'
import { sandboxPage } from './page.js'
import type { Seen } from './seen.js'
import { type AccountWithKey, type NewAccount, openWallet, type SandboxWallet } from './wallet.js'

/** Options of `startSandbox`. */
export interface SandboxOptions extends ConsentRules {
  /** The port of the first wallet; the second has the next one. With 0, both are free ones. Default 4100. */
  readonly port?: number
  /**
   * The address or name to listen on, such as `0.0.0.0` in a container. The URLs of the wallets name `localhost` in any
   * case; pages and controls are served under this name, too. Default: only the loopback addresses, so that no other
   * machine reaches the sandbox.
   */
  readonly host?: string
  /**
   * The time limit for a request of a wallet to another server, such as that of a client's keys, in milliseconds, at
   * most 60,000. Default 2,000.
   */
  readonly outboundTimeoutMs?: number
}

/** A running sandbox. */
export interface Sandbox {
  /** The page of the sandbox. */
  readonly url: string
  readonly wallets: readonly [SandboxUrls, SandboxUrls]
  /** Returns an account with its current key. Throws a `SandboxError` for an unknown name. */
  account(name: string): AccountWithKey
  /** Returns what `--json` prints. */
  describe(): SandboxDescription
  /** The time of both wallets. */
  now(): Date
  /**
   * Advances the time of both wallets, and lets everything expire that is past its time. Payments that were created
   * before are sent first. Signatures are judged by the real time. The time moves when no signed request is being
   * served, or after 5 s; requests that arrive meanwhile wait.
   *
   * @param by milliseconds, or a duration of ISO 8601, such as `P1D`.
   * @throws a `SandboxError` for an invalid duration.
   */
  advance(by: number | string): Promise<void>
  /** Changes the time as `POST /sandbox/clock` does. */
  moveClock(change: ClockChange): Promise<void>
  /**
   * Decides as the owner of the account, as a page does: about a request for consent, or about one payment. It takes
   * precedence over the rules, which decide when the page is visited. The same decision again has no further effect:
   * about consent, it returns another redirect until the client has its token; about a payment, `{}` once the payment
   * was created or declined.
   *
   * @param url the URL of `interact.redirect`, or the `url` of a payment that its owner has to confirm.
   * @param decision `approve` or `deny` for a request for consent; `confirm` or `decline` for a payment.
   * @param options `account` is the name or URL of the account, if the request for consent names none. Default: the
   * first that it fits.
   * @returns the URL of the client to which the owner's browser returns, if there is one.
   * @throws a `SandboxError`: `ERR_NO_EFFECT` for an unknown URL, another decision than before, and one that is late;
   * also if the account lacks the funds for a payment that is confirmed. `ERR_INVALID_OPTION` for the URL of another
   * server.
   */
  decide(
    url: string,
    decision: OwnerDecision,
    options?: { readonly account?: string },
  ): Promise<Decided>
  /**
   * Revokes grants as the owner of the account: that of a token, or all that the owner of an account has approved.
   *
   * @returns the number of revoked grants.
   * @throws a `SandboxError`: `ERR_NO_EFFECT` if there are none.
   */
  revoke(grants: Revocation): Promise<number>
  /**
   * Plants a fault. The result of `rotated-key` has the new key.
   *
   * @throws a `SandboxError` for an invalid fault.
   */
  fault(fault: Fault): PlantedFault & { readonly key?: SandboxKey }
  /** The planted faults that are left. */
  faults(): readonly PlantedFault[]
  /** Removes a fault, or all of them. */
  clearFaults(id?: string): void
  /** The latest requests to both wallets, at most 500, the oldest first. */
  requests(): readonly RecordedRequest[]
  clearRequests(): void
  /** Closes all connections, and resolves when both ports are free. */
  stop(): Promise<void>
}

/** The accounts of each wallet: one for each currency, and one for apps. */
const opened: readonly [readonly NewAccount[], readonly NewAccount[]] = [
  [
    { name: 'alice', publicName: 'Alice', assetCode: 'USD' },
    { name: 'bruno', publicName: 'Bruno', assetCode: 'EUR' },
    { name: 'chie', publicName: 'Chie', assetCode: 'JPY', assetScale: 0 },
    { name: 'app', publicName: 'Test app', assetCode: 'USD' },
  ],
  [
    { name: 'dana', publicName: 'Dana', assetCode: 'USD' },
    { name: 'emil', publicName: 'Emil', assetCode: 'EUR' },
    { name: 'fumi', publicName: 'Fumi', assetCode: 'JPY', assetScale: 0 },
  ],
]

/**
 * Starts two wallets in this process that pay each other, and resolves when both accept requests.
 *
 * @throws a `SandboxError` for an invalid option, and if a port is in use.
 *
 * @example
 * ```ts
 * import { startSandbox } from 'open-payments-sandbox'
 *
 * const sandbox = await startSandbox({ port: 0 })
 * console.log(sandbox.url, sandbox.wallets[0].authServer)
 * await sandbox.advance('P1D') // tokens expire
 * await sandbox.stop()
 * ```
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  requireOptions(options)
  const { approve = [], deny = [], host, outboundTimeoutMs = 2_000 } = options
  if (!Number.isInteger(outboundTimeoutMs) || outboundTimeoutMs < 1 || outboundTimeoutMs > 60_000) {
    throw invalidOption('outboundTimeoutMs must be an integer from 1 to 60000')
  }
  const ports = await portsOf(options.port ?? 4100)
  const [home, away] = [`http://localhost:${ports[0]}`, `http://localhost:${ports[1]}`]
  for (const rule of [...approve, ...deny]) requireNamed(rule, [home, away])
  const clock = sandboxClock()
  const faults = plantedFaults()
  const log = requestLog()
  const current = new AsyncLocalStorage<Seen>()
  const stopping = new AbortController()
  const hostNames =
    host === undefined ? [] : [host.includes(':') ? `[${host}]` : host.toLowerCase()]
  const shared = {
    consent: { approve, deny },
    clock,
    faults,
    outboundTimeoutMs,
    seen: () => current.getStore(),
    stopping: stopping.signal,
  }
  const first: SandboxWallet = openWallet({
    ...shared,
    baseUrl: home,
    accounts: opened[0],
    other: () => second,
  })
  const second = openWallet({ ...shared, baseUrl: away, accounts: opened[1], other: () => first })
  const wallets = [first, second] as const

  const urls = [urlsOf(home), urlsOf(away)] as const
  const accounts = () => wallets.flatMap((wallet) => wallet.accounts())
  const describe = (): SandboxDescription => ({
    sandbox: `${home}/sandbox`,
    now: new Date(clock.now()).toISOString(),
    wallets: urls,
    accounts: Object.fromEntries(accounts().map((account) => [account.name, account])),
  })

  const gate = openGate()
  function moveClock(change: unknown): Promise<void> {
    // Replay protection uses this clock, so it must not move while a request is served.
    return gate.close(async () => {
      // Payments that were created before are sent before the clock moves.
      await Promise.all(wallets.map((wallet) => wallet.settle()))
      clock.move(change)
      await Promise.all(wallets.map((wallet) => wallet.sweep()))
    })
  }

  async function decide(value: unknown): Promise<Decided> {
    const given = readDecide(value)
    const wallet = wallets.find(({ baseUrl }) => new URL(given.url).origin === baseUrl)
    if (wallet === undefined) throw invalidOption(notAPage)
    return gate.pass(() => wallet.owners.decide(given))
  }

  async function revoke(value: unknown): Promise<number> {
    const given = readRevocation(value)
    return gate.pass(() => ('token' in given ? revokeOf(given.token) : revokeAll(given)))
  }

  async function revokeOf(token: string): Promise<number> {
    for (const { owners } of wallets) {
      const revoked = await owners.revokeOf(token)
      if (revoked !== undefined) return revoked
    }
    throw ineffective('no grant has this token')
  }

  async function revokeAll({ account, client }: Extract<Revocation, { account: string }>) {
    const [payer, app] = [named(account), client === undefined ? undefined : named(client)]
    const wallet = wallets.find((each) => each.accounts().some(({ name }) => name === payer?.name))
    if (payer === undefined || wallet === undefined) {
      throw invalidOption(`no account is named ${account}`)
    }
    const { name: owner, walletAddress } = payer
    const revoked = await wallet.owners.revokeAll(owner, app?.walletAddress ?? client)
    if (revoked > 0) return revoked
    const of = client === undefined ? '' : ` of ${client}`
    throw ineffective(`the owner of ${walletAddress} has approved no grant${of} that has not ended`)
  }

  const named = (name: string) => accounts().find(({ walletAddress }) => isOf(name, walletAddress))

  function plant(given: unknown) {
    const fault = readFault(given, [home, away])
    if (fault.fault !== 'rotated-key') return faults.plant(fault)
    const rotated = wallets.map((wallet) => wallet.rotateKey(fault.account)).find(isFound)
    if (rotated === undefined) throw invalidOption(`no account is named ${fault.account}`)
    const { walletAddress, key } = rotated
    forget(walletAddress)
    return { ...faults.plant({ fault: 'rotated-key', account: walletAddress }), key }
  }

  function remove(id?: string): readonly PlantedFault[] {
    const removed = faults.remove(id)
    for (const fault of removed) {
      if (fault.fault !== 'rotated-key') continue
      for (const wallet of wallets) wallet.restoreKey(fault.account)
      forget(fault.account)
    }
    return removed
  }

  function forget(walletAddress: string): void {
    for (const wallet of wallets) wallet.forgetKeys(walletAddress)
  }

  const serveControls = controlsOf({
    log,
    describe,
    clock: () => ({ now: new Date(clock.now()).toISOString(), offsetMs: clock.offsetMs() }),
    moveClock,
    decide,
    revoke,
    faults: faults.list,
    plant,
    remove,
    page: sandboxPage(wallets, describe, log),
  })
  const within = <Result>(seen: Seen, work: () => Promise<Result>) => current.run(seen, work)
  const front = (wallet: SandboxWallet) =>
    frontOf({
      wallet,
      faults,
      log,
      clock,
      gate,
      within,
      serveControls,
      hostNames,
      stopping: stopping.signal,
    })

  const listening: Listening[] = []
  async function stop(): Promise<void> {
    stopping.abort()
    await Promise.all(listening.map((each) => each.close()))
    await Promise.all(wallets.map((wallet) => wallet.stop()))
    // In Node 20 and 22 it slows all promises of the process, which may run further tests.
    current.disable()
  }
  try {
    for (const [index, wallet] of wallets.entries()) {
      const addresses = host === undefined ? ['127.0.0.1'] : [host]
      const optional = host === undefined ? ['::1'] : []
      listening.push(await listen(front(wallet), ports[index] ?? 0, addresses, optional))
    }
  } catch (error) {
    await stop()
    throw error
  }

  return {
    url: `${home}/sandbox`,
    wallets: urls,
    account(name) {
      const found = accounts().find((account) => account.name === name)
      if (found === undefined) throw invalidOption(`no account is named ${name}`)
      return found
    },
    describe,
    now: () => new Date(clock.now()),
    advance: (by) => moveClock(typeof by === 'number' ? { advanceMs: by } : { advance: by }),
    moveClock,
    decide: (url, decision, options) => decide({ url, decision, ...options }),
    revoke,
    fault: plant,
    faults: faults.list,
    clearFaults: (id) => void remove(id),
    requests: log.list,
    clearRequests: log.clear,
    stop,
  }
}

const optionNames = ['port', 'host', 'approve', 'deny', 'outboundTimeoutMs']

/** Refuses unknown options and values of another type, because JavaScript would ignore them, or read them otherwise. */
function requireOptions(options: SandboxOptions): void {
  const given: Readonly<Record<string, unknown>> = { ...options }
  const unknown = Object.keys(given).find((name) => !optionNames.includes(name))
  if (unknown !== undefined) {
    const meant = meantBy(unknown, optionNames) || `: the options are ${optionNames.join(', ')}`
    throw invalidOption(`unknown option ${unknown}${meant}`)
  }
  for (const name of ['approve', 'deny']) {
    const rules = given[name] ?? []
    if (!Array.isArray(rules) || !rules.every((rule) => typeof rule === 'string')) {
      throw invalidOption(`${name} must be a list of strings, such as ['all']`)
    }
  }
  const { host } = given
  if (host !== undefined && typeof host !== 'string') throw invalidOption('host must be a string')
}

/** Refuses a rule that can never apply, so that tests do not wait for a decision that is never made. */
function requireNamed(rule: string, baseUrls: readonly string[]): void {
  const accounts = opened.flatMap((some, index) =>
    some.map(({ name }) => ({ name, url: `${baseUrls[index]}/${name}` })),
  )
  const isOther = URL.canParse(rule) && !baseUrls.includes(new URL(rule).origin)
  const isNamed = accounts.some(({ name, url }) => rule === name || rule === url)
  if (rule === 'all' || isOther || isNamed) return
  const names = accounts.map(({ name }) => name).join(', ')
  throw invalidOption(
    `no account is named ${rule}: the accounts are ${names}, and a client elsewhere is named by its URL`,
  )
}

async function portsOf(port: number): Promise<readonly [number, number]> {
  if (!Number.isInteger(port) || port < 0 || port > 65_534) {
    throw invalidOption('the port must be an integer from 0 to 65534')
  }
  if (port !== 0) return [port, port + 1]
  const first = await freePort()
  for (;;) {
    const second = await freePort()
    if (second !== first) return [first, second]
  }
}

function urlsOf(url: string): SandboxUrls {
  return { url, authServer: `${url}/auth`, resourceServer: url }
}

function isFound<Value>(value: Value | undefined): value is Value {
  return value !== undefined
}
