import {
  escaped,
  internet,
  joined,
  type Network,
  onOneLine,
  type ProgramOptions,
  pick,
  readArguments,
  runWith,
  timeoutOf,
  UsageError,
  unknownWord,
  versionIn,
  walletAddressUrl,
} from 'open-payments-programs'
import type { AccessItem, Asset } from 'open-payments-server'
import { jwkOf } from 'open-payments-server-testing'
import { type KeptGrant, keptGrants, keyFile, readKey, removeKey, writeKey } from './files.js'
import { type ConsentOptions, cancelGrant, obtainGrant, readAddress } from './grants.js'
import { amountIn, amountOf, durationMs, money, requireDecimal } from './money.js'
import { listPayments, type Outcome, pay, readResource, requestMoney } from './payments.js'
import {
  ClientError,
  type FailureCode,
  type Machine,
  openWire,
  redacted,
  type Wire,
} from './wire.js'

const usages = {
  pay: `pay <receiver> --from <wallet address> [--amount 10.00 | --receive 10.00]
pay --quote <quote> --from <wallet address>

Pays a wallet address or an incoming payment, and prints the URL of the outgoing payment.

  --from <wallet address>  the account that pays
  --amount <decimal>       what is debited, in the asset of the account that pays
  --receive <decimal>      what is received, in the asset of the receiver
  --quote <URL>            pay this quote, such as after an interruption; it is never paid twice
  --description <text>     the description in the metadata of the payment
  --yes                    pay without asking
  --wait <duration>        how long the owner may take to decide (10m), and the wallet to send (1m)
  --poll                   ask the server for the decision, without a redirect to this machine
  --no-open                print the URL of the consent page, and open no browser`,
  request: `request <wallet address> [--amount 25.00]

Creates an incoming payment, and prints its URL.

  --amount <decimal>       what is to be received, in the asset of the account
  --expires <duration>     when the incoming payment expires, such as 1h (7d)
  --description <text>     the description in its metadata
  --watch                  print what arrives, until the incoming payment is completed
  --wait <duration>        how long to watch (1h)`,
  grant: `grant <wallet address> [--access outgoing-payment] [--debit 25.00] [--interval R12/P1M]
grant --list
grant --revoke <id>

Requests a grant, waits for consent, and keeps the token next to the key. Prints the id of the grant; \`pay\` uses it.

  --access <type>          outgoing-payment (default), incoming-payment or quote
  --actions <list>         such as create,read,list (default)
  --debit <decimal>        the limit of what is debited, in the asset of the account
  --receive <decimal>      the limit of what is received, such as "25.00 EUR"; needs the asset's decimals
  --receiver <URL>         the only incoming payment that may be paid
  --interval <interval>    when the limit begins again: an ISO 8601 interval; R12/P1M begins now
  --show-token             also print the access token
  --list                   print the kept grants
  --revoke <id>            cancel a kept grant
  --wait, --poll, --no-open  as for pay`,
  key: `key [<wallet address>]

Creates a key file, unless it exists, and prints the public key as a JWK. With a wallet address, the requests name it as
the client, and the key must be in {wallet address}/jwks.json.

  --register <page>        open the wallet's page for keys, filled in, and wait until the key is published
  --wait <duration>        how long to wait for that (10m)`,
  read: `read <URL>

Prints a wallet address, an incoming payment, a quote or an outgoing payment.`,
  list: `list <wallet address> [--access incoming-payment]

Prints the payments of an account that this client created.

  --access <type>          incoming-payment (default) or outgoing-payment
  --first <number>         how many at most (20)
  --cursor <id>            continue after this payment`,
} as const

type Command = keyof typeof usages

const commonUsage = `
  --key <file>             the key file; default $OPEN_PAYMENTS_KEY, or open-payments/key.json in ~/.config
  --client <wallet address>, --key-id <id>  the client, for a key file in PEM
  --json                   print the result, or the error, as one JSON document
  --verbose                print requests and responses, without secrets
  --timeout <seconds>      how long a call may take, with all its requests (10)
  --allow-private          allow hosts whose addresses are not public; implied by a URL on localhost
  -h, --help               print this text

Exit code: 0 done, 1 refused, denied or failed, 2 arguments invalid or server unreachable, 3 not finished in time,
130 interrupted.
`

const programUsage = `Usage: open-payments <command> …

Pays, requests money and gets grants at any Open Payments wallet.

  pay      pays a wallet address or an incoming payment
  request  creates an incoming payment
  grant    requests a grant, and keeps its token
  key      creates a key, and registers it at a wallet
  read     prints a wallet address, a payment or a quote
  list     lists the payments of an account that this client created

  -h, --help  prints this text, and after a command its options
  --version   prints the version
`

function isCommand(word: string | undefined): word is Command {
  return word !== undefined && Object.hasOwn(usages, word)
}

function usageOf(command: Command): string {
  const [synopsis = '', ...rest] = usages[command].split('\n\n')
  const lines = synopsis.split('\n').map((line) => `open-payments ${line}`)
  return `Usage: ${lines.join('\n       ')}\n\n${rest.join('\n\n')}\n${commonUsage}`
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

const commonOptions = {
  key: text,
  client: text,
  'key-id': text,
  json: flag,
  verbose: flag,
  timeout: text,
  'allow-private': flag,
} as const

const consentOptions = { wait: text, poll: flag, 'no-open': flag }

/** The options of each command. */
const ownOptions = {
  pay: {
    from: text,
    amount: text,
    receive: text,
    quote: text,
    description: text,
    yes: flag,
    ...consentOptions,
  },
  request: { amount: text, expires: text, description: text, watch: flag, wait: text },
  grant: {
    ...{ access: text, actions: text, debit: text, receive: text, receiver: text, interval: text },
    ...{ 'show-token': flag, list: flag, revoke: text },
    ...consentOptions,
  },
  key: { register: text, wait: text, 'no-open': flag },
  read: {},
  list: { access: text, first: text, cursor: text },
} as const satisfies Record<Command, object>

/** The values of all options. */
type Values = Readonly<Record<string, string | boolean | undefined>>

interface Arguments {
  readonly values: Values
  readonly subject: string | undefined
  text(name: string): string | undefined
  flag(name: string): boolean
}

function parsed(command: Command, args: readonly string[]): Arguments {
  const options: ProgramOptions = { ...commonOptions, ...ownOptions[command] }
  const { values, positionals } = readArguments(args, options, 1)
  const found = values as Values
  return {
    values: found,
    subject: positionals[0],
    text(name) {
      const value = found[name]
      return typeof value === 'string' ? value : undefined
    },
    flag: (name) => found[name] === true,
  }
}

/** Runs the program, and resolves to its exit code. */
export async function runClient(
  args: readonly string[],
  machine: Machine,
  network: Network = internet,
): Promise<number> {
  const [command, ...rest] = args
  if (isCommand(command)) return runCommand(command, rest, machine, network)
  const options = {
    name: 'open-payments',
    usage: programUsage,
    manifest,
    options: {},
    othersMax: 1,
  }
  return runWith(options, args.slice(0, 1), machine, async ({ positionals: [word] }) => {
    if (word === undefined) throw new UsageError('a command is required')
    throw unknownWord('command', word, Object.keys(usages))
  })
}

const manifest = new URL('../package.json', import.meta.url)

async function runCommand(
  command: Command,
  args: readonly string[],
  machine: Machine,
  network: Network,
): Promise<0 | FailureCode> {
  const isJson = args.includes('--json')
  let wire: Wire | undefined
  try {
    const given = parsed(command, args)
    if (given.flag('help')) {
      machine.out(usageOf(command))
      return 0
    }
    if (given.flag('version')) {
      machine.out(`${versionIn(manifest)}\n`)
      return 0
    }
    const plan = planned(command, given, machine.ask !== undefined)
    wire = opened(given, plan, machine, network)
    const { text, json } = await plan.run(wire)
    const printed = isJson
      ? JSON.stringify({ ok: true, ...(redacted(json) as object) }, undefined, 2)
      : text
    if (printed !== '') machine.out(`${escaped(printed)}\n`)
    return 0
  } catch (error) {
    // After a failure, the new key is removed, unless something that was created with it still exists.
    if (wire?.key.isNew && wire.exists.size === 0) {
      removeKey(wire.key)
      wire.say(`The new key in ${wire.key.file} is removed again`)
    }
    return failed(error as Error, command, isJson, machine, wire)
  }
}

function failed(
  error: Error,
  command: Command,
  isJson: boolean,
  machine: Machine,
  wire: Wire | undefined,
): FailureCode {
  const isUsage = error instanceof UsageError
  const isClients = error instanceof ClientError
  // The expectations of responses fail with plain errors. Any other error is a bug in this program.
  if (!isUsage && !isClients && error.name !== 'Error') throw error
  const exitCode = isUsage ? 2 : isClients ? error.exitCode : 1
  const step = isClients ? error.step : isUsage ? 'arguments' : command
  const { refusal, request, hint } = isClients ? error.more : {}
  const exists = [...(wire?.exists.values() ?? [])]
  machine.err(`${step}: ${onOneLine(error.message)}\n`)
  if (hint !== undefined) machine.err(`Try: ${onOneLine(hint)}\n`)
  if (isUsage) machine.err(`See open-payments ${command} --help.\n`)
  for (const one of exists) machine.err(`What exists: ${onOneLine(one)}\n`)
  if (!isJson) return exitCode
  const { status, code, description, details } = refusal?.answer ?? {}
  const said = {
    step,
    message: error.message,
    hint,
    refusal: refusal?.refusal,
    request,
    status,
    code,
    description,
    details: redacted(details),
  }
  machine.out(escaped(`${JSON.stringify({ ok: false, error: said, exists }, undefined, 2)}\n`))
  return exitCode
}

function opened(given: Arguments, plan: Plan, machine: Machine, network: Network): Wire {
  const timeoutMs = timeoutOf(given.text('timeout'))
  const file = keyFile(given.text('key'), machine.env)
  const client = given.text('client')
  const named = readKey(file, { client, keyId: given.text('key-id') })
  if (plan.needsClient === true && (named?.walletAddress ?? client) === undefined) {
    throw new UsageError(
      'outgoing payments need a client with a wallet address: key <wallet address> --register <page for keys>',
    )
  }
  const key = named ?? writeKey(file, client === undefined ? undefined : walletAddressUrl(client))
  if (named === undefined) machine.err(`A new key is in ${file}\n`)
  if (key.isExposed) machine.err(`Other users can read ${file}: chmod 600 ${file}\n`)
  const typed = [given.subject ?? key.walletAddress, given.text('from'), given.text('quote')]
  const allowPrivate = given.flag('allow-private') || typed.some(isLocal)
  return openWire(
    { key, allowPrivate, timeoutMs, verbose: given.flag('verbose') },
    machine,
    network,
  )
}

/** Whether a URL leads to this machine. A user who types such a URL wants to connect to private addresses. */
function isLocal(url: string | undefined): boolean {
  return (
    url !== undefined &&
    /^https?:\/\/(localhost|[^/:]*\.localhost|127(\.\d{1,3}){3}|\[::1\])([:/]|$)/.test(url)
  )
}

const minuteMs = 60_000

/** The work of a command, after the checks of its arguments. */
interface Plan {
  /** Owners are asked for clients with a wallet address only, which publishes the key of the client. */
  readonly needsClient?: boolean
  readonly run: (wire: Wire) => Promise<Outcome>
}

/** Checks the arguments of a command, as far as that needs no response. */
function planned(command: Command, given: Arguments, canAsk: boolean): Plan {
  timeoutOf(given.text('timeout'))
  if (command === 'pay') return plannedPayment(given, canAsk)
  if (command === 'request') return plannedRequest(given)
  if (command === 'grant') return plannedGrant(given)
  if (command === 'key') return plannedKey(given)
  if (command === 'list') return plannedList(given)
  const url = account(given.subject, 'the URL')
  return { run: (wire) => readResource(wire, url) }
}

function waitOf(given: Arguments, defaultMs: number): number {
  const wait = given.text('wait')
  return wait === undefined ? defaultMs : durationMs(wait, '--wait')
}

function consentOf(given: Arguments): ConsentOptions {
  return {
    poll: given.flag('poll'),
    opensBrowser: !given.flag('no-open'),
    waitMs: waitOf(given, 10 * minuteMs),
  }
}

function decimal(given: Arguments, name: string): string | undefined {
  const text = given.text(name)
  if (text !== undefined) requireDecimal(text, `--${name}`)
  return text
}

function plannedPayment(given: Arguments, canAsk: boolean): Plan {
  const { subject } = given
  const quote = given.text('quote')
  const [amount, receive] = [decimal(given, 'amount'), decimal(given, 'receive')]
  if ((subject === undefined) === (quote === undefined))
    throw new UsageError('a receiver or --quote is required')
  if (amount !== undefined && receive !== undefined)
    throw new UsageError('--amount and --receive exclude each other')
  if (quote !== undefined && (amount ?? receive) !== undefined)
    throw new UsageError('--quote has its own amounts')
  const isConfirmed = given.flag('yes')
  const options = {
    ...consentOf(given),
    from: account(given.text('from'), '--from'),
    receiver: subject === undefined ? undefined : account(subject, 'the receiver'),
    quote: quote === undefined ? undefined : account(quote, '--quote'),
    ...{ amount, receive, description: given.text('description'), isConfirmed },
    sentWithinMs: waitOf(given, minuteMs),
  }
  if (!isConfirmed && !canAsk)
    throw new UsageError('--yes is required, because nobody can be asked here')
  return { needsClient: true, run: (wire) => pay(wire, options) }
}

function plannedRequest(given: Arguments): Plan {
  const options = {
    walletAddress: account(given.subject),
    amount: decimal(given, 'amount'),
    description: given.text('description'),
    expiresInMs: durationMs(given.text('expires') ?? '7d', '--expires'),
    watchMs: given.flag('watch') ? waitOf(given, 60 * minuteMs) : undefined,
  }
  return { run: (wire) => requestMoney(wire, options) }
}

function plannedList(given: Arguments): Plan {
  const first = Number(given.text('first') ?? 20)
  const type = given.text('access') ?? 'incoming-payment'
  if (!Number.isInteger(first) || first < 1 || first > 100)
    throw new UsageError('--first must be from 1 to 100')
  if (type !== 'incoming-payment' && type !== 'outgoing-payment') {
    throw new UsageError('--access must be incoming-payment or outgoing-payment')
  }
  const options = {
    walletAddress: account(given.subject),
    type,
    first,
    cursor: given.text('cursor'),
  } as const
  return { run: (wire) => listPayments(wire, options) }
}

function account(given: string | undefined, what = 'a wallet address'): string {
  if (given === undefined) throw new UsageError(`${what} is required`)
  return walletAddressUrl(given)
}

function plannedGrant(given: Arguments): Plan {
  if (given.flag('list')) return { run: async ({ key }) => listed(keptGrants(key)) }
  const revoked = given.text('revoke')
  if (revoked !== undefined) return { run: (wire) => revoke(wire, revoked) }
  const consent = consentOf(given)
  const walletAddress = account(given.subject)
  const type = given.text('access') ?? 'outgoing-payment'
  const actions = (given.text('actions') ?? 'create,read,list').split(',')
  const limits = limitsOf(given)
  async function run(wire: Wire): Promise<Outcome> {
    const payer = await readAddress(wire, walletAddress)
    // Whether there is such access, the server decides.
    const item = {
      type,
      actions,
      ...(type !== 'quote' && { identifier: payer.id }),
      ...limits(payer.asset),
    }
    const kept = await obtainGrant(wire, payer, [item as AccessItem], consent)
    const token = given.flag('show-token') ? { accessToken: kept.token } : undefined
    return {
      text: [kept.id, ...(token ? [token.accessToken] : [])].join('\n'),
      json: { grant: { ...publicPart(kept), ...token } },
    }
  }
  return { needsClient: type === 'outgoing-payment', run }
}

async function revoke(wire: Wire, revoked: string): Promise<Outcome> {
  const found = keptGrants(wire.key).find(({ id }) => id === revoked)
  if (found === undefined) throw new UsageError(`no grant ${revoked} is kept; see grant --list`)
  await cancelGrant(wire, found)
  return { text: '', json: { revoked } }
}

/** Checks the limits as far as possible without the asset of the account, and returns how to complete them with it. */
function limitsOf(given: Arguments): (asset: Asset) => { readonly limits?: object } {
  const debit = decimal(given, 'debit')
  const receive = given.text('receive')
  const interval = given.text('interval')
  const receiver = given.text('receiver')
  if (debit !== undefined && receive !== undefined)
    throw new UsageError('--debit and --receive exclude each other')
  if (interval !== undefined && (debit ?? receive) === undefined)
    throw new UsageError('--interval needs --debit or --receive')
  const others = {
    ...(receive !== undefined && { receiveAmount: receivedLimit(receive) }),
    ...(interval !== undefined && { interval: startingNow(interval) }),
    ...(receiver !== undefined && { receiver }),
  }
  return (asset) => {
    const limits = {
      ...(debit !== undefined && { debitAmount: amountOf(debit, asset, '--debit') }),
      ...others,
    }
    return Object.keys(limits).length === 0 ? {} : { limits }
  }
}

/** Reads a limit such as `25.00 EUR`, which has as many decimals as its asset. */
function receivedLimit(text: string) {
  const [, decimals = '', assetCode] = /^\d+(?:\.(\d+))? ([A-Za-z]{1,12})$/.exec(text) ?? []
  if (assetCode === undefined)
    throw new UsageError('--receive must have an asset and its decimals, such as "25.00 EUR"')
  return amountOf(text, { assetCode, assetScale: decimals.length }, '--receive')
}

/** Inserts the current time into an interval without a start, such as `R12/P1M`. */
function startingNow(interval: string): string {
  const [, repeats, duration] = /^(R\d*)\/(P[^/]+)$/.exec(interval) ?? []
  if (repeats === undefined) return interval
  return `${repeats}/${new Date().toISOString().slice(0, 19)}Z/${duration}`
}

/** A kept grant without the members that give access. */
function publicPart({ id, createdAt, walletAddress, access, expiresAt, quote }: KeptGrant) {
  return {
    id,
    createdAt,
    walletAddress,
    access,
    ...(expiresAt !== undefined && { tokenExpiresAt: new Date(expiresAt).toISOString() }),
    ...(quote !== undefined && { quote }),
  }
}

function listed(grants: readonly KeptGrant[]): Outcome {
  const lines = grants.map(({ id, walletAddress, access, quote }) => {
    const items = access.map((item) => {
      const limits = pick(item, 'limits')
      const amounts = ['debitAmount', 'receiveAmount'].filter(
        (name) => pick(limits, name) !== undefined,
      )
      const most = amounts.map((name) => `at most ${money(amountIn(limits, name))}`)
      const interval = pick(limits, 'interval')
      return [item.type, ...most, ...(interval === undefined ? [] : [interval])].join(' ')
    })
    return [id, walletAddress, ...items, ...(quote === undefined ? [] : ['for one payment'])].join(
      '  ',
    )
  })
  return { text: lines.join('\n'), json: { grants: grants.map(publicPart) } }
}

function plannedKey(given: Arguments): Plan {
  const { subject } = given
  const page = given.text('register')
  const options = {
    ...consentOf(given),
    walletAddress: subject === undefined ? undefined : walletAddressUrl(subject),
    page: page === undefined ? undefined : account(page, '--register'),
  }
  return { run: (wire) => showKey(wire, options) }
}

interface KeyOptions extends ConsentOptions {
  readonly walletAddress: string | undefined
  /** The URL of the page for keys that the program opens. */
  readonly page: string | undefined
}

async function showKey(wire: Wire, options: KeyOptions): Promise<Outcome> {
  const { page, opensBrowser, waitMs } = options
  const { file, pair, walletAddress, isOwn } = wire.key
  wire.exists.set('key', `the key in ${file}`)
  const wanted = options.walletAddress ?? walletAddress
  if (wanted !== walletAddress) {
    if (!isOwn)
      throw new UsageError(`--client ${wanted} is required, because ${file} cannot name it`)
    writeKey(file, wanted, pair)
  }
  const jwk = jwkOf(pair)
  let isPublished = wanted !== undefined && (await publishes(wire, wanted, jwk.x))
  if (page !== undefined) {
    if (wanted === undefined) throw new UsageError('--register needs a wallet address')
    const url = new URL(page)
    url.search = `${new URLSearchParams({ account: wanted, name: 'Command line', key: JSON.stringify(jwk) })}`
    if (!isPublished)
      wire.say(
        `${opensBrowser && wire.machine.open(url.href) ? 'Add the key on the page in the browser' : 'Open this page, and add the key'}: ${url.href}`,
      )
    const deadline = Date.now() + waitMs
    while (!isPublished) {
      if (Date.now() > deadline)
        throw new ClientError(3, 'key', `${wanted} does not publish the key by now`)
      await wire.pause(1_000)
      isPublished = await publishes(wire, wanted, jwk.x)
    }
  }
  if (wanted !== undefined)
    wire.say(`${wanted} ${isPublished ? 'publishes the key' : 'does not publish the key yet'}`)
  return {
    text: JSON.stringify(jwk),
    json: { file, walletAddress: wanted, jwk, ...(wanted !== undefined && { isPublished }) },
  }
}

async function publishes(wire: Wire, walletAddress: string, x: string): Promise<boolean> {
  const url = joined(walletAddress, '/jwks.json')
  const found = await wire.call('key set', (client, given) => client.read(url, given), {
    isQuiet: true,
  })
  if (!found.ok && found.answer === undefined && found.refusal !== 'response_invalid') {
    throw wire.refused('key set', found)
  }
  const keys = found.ok ? pick(found.document, 'keys') : undefined
  return Array.isArray(keys) && keys.some((key) => pick(key, 'x') === x)
}
