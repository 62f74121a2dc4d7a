import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type AccessItem,
  pick,
  readWallet,
  textAt,
  tokenIn,
  type Wallet,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import { jwkOf } from 'open-payments-server-testing'
import { type ClientKey, type KeptGrant, keepGrant, keptGrants, removeGrant } from './files.js'
import { answerBrowser } from './finish-page.js'
import { ownersPage, urlAtServer } from './urls.js'
import { ClientError, codeOf, isUsed, refused, type SendOptions, type Wire } from './wire.js'

/** A wallet address with the content of its document. */
export interface Account extends Wallet {
  readonly walletAddress: string
}

export async function readAccount(wire: Wire, walletAddress: string): Promise<Account> {
  const request = { method: 'GET', url: walletAddress, sign: false } as const
  const wallet = await readWallet(walletAddress, () => wire.send('wallet address', request))
  return { ...wallet, walletAddress }
}

/** Gets a token for access that needs no consent. */
export async function simpleToken(
  wire: Wire,
  authServer: string,
  type: string,
  actions: readonly string[],
): Promise<string> {
  const step = `grant (${type})`
  const answer = await askFor(wire, step, authServer, [{ type, actions }])
  if (pick(answer.body, 'access_token') !== undefined) return tokenIn(answer).value
  const hint = `Get a grant with \`grant <wallet address> --access ${type}\`.`
  throw new ClientError(1, step, `${authServer} wants consent for ${type} access`, { answer, hint })
}

function askFor(
  wire: Wire,
  step: string,
  authServer: string,
  access: readonly AccessItem[],
  interact?: object,
): Promise<WireAnswer> {
  const client = wire.key.walletAddress ?? { jwk: jwkOf(wire.key.pair) }
  const body = { access_token: { access }, client, ...(interact !== undefined && { interact }) }
  return wire.send(step, { method: 'POST', url: authServer, body })
}

export interface ConsentOptions {
  /** Whether to ask the server for the decision, instead of waiting for the redirect of the browser. */
  readonly poll: boolean
  readonly opensBrowser: boolean
  /** How long the owner may take. */
  readonly waitMs: number
}

/** Requests a grant, waits for the owner's decision if it is needed, and keeps the grant next to the key. */
export async function obtainGrant(
  wire: Wire,
  account: Account,
  access: readonly AccessItem[],
  options: ConsentOptions,
  quote?: string,
): Promise<KeptGrant> {
  const finish = options.poll ? undefined : await listenForFinish()
  try {
    const { authServer } = account
    const [{ type }] = access as readonly [AccessItem]
    const interact = { start: ['redirect'], ...(finish !== undefined && { finish: finish.member }) }
    const answer = await askFor(wire, `grant (${String(type)})`, authServer, access, interact)
    const isIssued = pick(answer.body, 'access_token') !== undefined
    return kept(
      wire,
      account,
      isIssued ? answer : await decided(wire, authServer, answer, finish, options),
      quote,
    )
  } finally {
    finish?.close()
  }
}

function kept(
  wire: Wire,
  account: Account,
  answer: WireAnswer,
  quote: string | undefined,
): KeptGrant {
  const { walletAddress, authServer, resourceServer } = account
  const grant: KeptGrant = {
    id: `grant-${randomBytes(4).toString('hex')}`,
    createdAt: new Date().toISOString(),
    walletAddress,
    authServer,
    resourceServer,
    key: wire.key.pair.thumbprint,
    access: pick(answer.body, 'access_token', 'access') as readonly AccessItem[],
    ...tokenIn(answer),
    manage: urlAtServer(answer, authServer, 'access_token', 'manage'),
    continueUri: urlAtServer(answer, authServer, 'continue', 'uri'),
    ...expiryOf(answer),
    ...(quote !== undefined && { quote }),
  }
  keepGrant(wire.key, grant)
  wire.exists.set('grant', `the grant ${grant.id} for ${walletAddress}, which is kept`)
  return grant
}

function expiryOf({ body }: WireAnswer): Pick<KeptGrant, 'expiresAt'> {
  const seconds = pick(body, 'access_token', 'expires_in')
  return typeof seconds === 'number' ? { expiresAt: Date.now() + seconds * 1_000 } : {}
}

/** The listener for the browser's return (RFC 8252 section 7.3). */
interface Finish {
  readonly member: { readonly method: 'redirect'; readonly uri: string; readonly nonce: string }
  readonly returned: Promise<URLSearchParams>
  close(): void
}

async function listenForFinish(): Promise<Finish> {
  const path = `/${randomUUID()}`
  let arrived: (query: URLSearchParams) => void = () => {}
  const returned = new Promise<URLSearchParams>((resolve) => {
    arrived = resolve
  })
  const server = createServer((request, response) => {
    // Any page or program on this machine can send a request here, even with a target that is not a URL.
    const [, pathname, query] = /^([^?]*)\??(.*)$/.exec(request.url ?? '') ?? []
    const isFinish = request.method === 'GET' && pathname === path
    answerBrowser(response, isFinish ? 'returned' : 'unknown')
    if (isFinish) arrived(new URLSearchParams(query))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  return {
    member: { method: 'redirect', uri, nonce: randomUUID() },
    returned,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const step = 'consent'

/** Sends the owner to the consent page, and returns the response that contains the token. */
async function decided(
  wire: Wire,
  authServer: string,
  pending: WireAnswer,
  finish: Finish | undefined,
  { opensBrowser, waitMs }: ConsentOptions,
): Promise<WireAnswer> {
  openForOwner(wire, ownersPage(pending, 'interact', 'redirect'), opensBrowser)
  const deadline = Date.now() + waitMs
  const reference = finish && (await referenceOf(wire, authServer, pending, finish, waitMs))
  return continued(wire, authServer, pending, reference, deadline)
}

export function openForOwner(wire: Wire, page: string, opensBrowser: boolean): void {
  const opened = opensBrowser && wire.machine.open(page)
  wire.say(`${opened ? 'The browser opens' : 'Open'} this page, and decide there:`)
  wire.say(`  ${page}`)
}

/** Returns the interaction reference of the browser's return, after verifying its hash (RFC 9635 section 4.2.3). */
async function referenceOf(
  wire: Wire,
  authServer: string,
  pending: WireAnswer,
  { member, returned }: Finish,
  waitMs: number,
): Promise<string> {
  const arrival = new AbortController()
  const late = wire.pause(waitMs, arrival.signal).then(() => undefined)
  const query = await Promise.race([returned, late]).finally(() => arrival.abort())
  if (query === undefined) throw undecided(waitMs)
  const [hash, reference] = [query.get('hash'), query.get('interact_ref')]
  if (hash === null || reference === null) {
    const result = query.get('result')
    const isDenied = result !== null && /reject|den/.test(result)
    throw new ClientError(
      1,
      step,
      isDenied
        ? 'the owner denied the grant'
        : `the browser returned without hash or interact_ref${result === null ? '' : `, with the result ${result}`}`,
    )
  }
  const base = [member.nonce, textAt(pending, 'interact', 'finish'), reference, authServer].join(
    '\n',
  )
  const expected = createHash('sha256').update(base).digest()
  // The RFC says base64url. Deployed servers send standard base64, whose + is a space in a query.
  if (!Buffer.from(hash.replaceAll(' ', '+'), 'base64').equals(expected)) {
    throw new ClientError(
      1,
      step,
      'the hash in the redirect is wrong, so the redirect may not come from the authorization server',
      {
        hint: `The hash is the base64 SHA-256 of four lines: the nonce of the request, interact.finish of the response, interact_ref, and exactly ${authServer}.`,
      },
    )
  }
  return reference
}

function undecided(waitMs: number): ClientError {
  const hint = 'Nothing was paid. Start again, or use a longer --wait.'
  return new ClientError(3, step, `nobody decided within ${Math.round(waitMs / 1_000)} s`, { hint })
}

const pollPauseDefaultS = 5
const pollPauseMaxS = 60

/** Continues a grant until it has a token. Without a reference, it polls. */
async function continued(
  wire: Wire,
  authServer: string,
  pending: WireAnswer,
  interactRef: string | undefined,
  deadline: number,
): Promise<WireAnswer> {
  const began = Date.now()
  let state = pending
  let reference = interactRef
  for (;;) {
    const waitS = Number(pick(state.body, 'continue', 'wait') ?? pollPauseDefaultS)
    const pauseMs = Math.min(Math.max(waitS, 1) || pollPauseDefaultS, pollPauseMaxS) * 1_000
    if (reference === undefined) await wire.pause(pauseMs)
    const request: WireRequest = {
      method: 'POST',
      url: urlAtServer(state, authServer, 'continue', 'uri'),
      token: textAt(state, 'continue', 'access_token', 'value'),
      ...(reference !== undefined && { body: { interact_ref: reference } }),
    }
    const answer = await wire.send('continue', request, { statuses: 'any', repeats: true })
    if (answer.status === 200 && pick(answer.body, 'access_token') !== undefined) return answer
    const code = codeOf(answer)
    if (answer.status === 200) {
      state = { ...answer, body: { ...(state.body as object), ...(answer.body as object) } }
      reference = undefined
    } else if (code === 'request_denied' || code === 'user_denied') {
      throw new ClientError(1, step, 'the grant was denied', { answer })
    } else if (code !== 'too_fast') throw refused('continue', answer)
    else if (reference !== undefined) await wire.pause(pauseMs)
    if (Date.now() > deadline) throw undecided(Date.now() - began)
  }
}

/** Sends a request with the token of a kept grant, and with another one if that has expired. */
export async function sendWith(
  wire: Wire,
  grant: KeptGrant,
  name: string,
  request: WireRequest,
  options: Omit<SendOptions, 'statuses'> = {},
): Promise<WireAnswer> {
  const current =
    grant.expiresAt !== undefined && grant.expiresAt <= Date.now()
      ? await rotated(wire, grant)
      : grant
  const send = (token: string) =>
    wire.send(name, { ...request, token }, { ...options, statuses: 'any' })
  const answer = await send(current.value)
  if (answer.status !== 401 || isUsed(answer) || current !== grant) return answer
  return send((await rotated(wire, latest(wire.key, grant))).value)
}

/** Reads the grant from the file again: an earlier request may have rotated its token. */
export function latest(key: ClientKey, grant: KeptGrant): KeptGrant {
  return keptGrants(key).find(({ id }) => id === grant.id) ?? grant
}

async function rotated(wire: Wire, grant: KeptGrant): Promise<KeptGrant> {
  const request = { method: 'POST', url: grant.manage, token: grant.value }
  const answer = await wire.send('rotate token', request, { statuses: 'any', repeats: true })
  if (answer.status !== 200) {
    const hasEnded =
      [400, 401, 403, 404].includes(answer.status) && codeOf(answer) !== 'invalid_client'
    if (!hasEnded) throw refused('rotate token', answer)
    removeGrant(wire.key, grant)
    const hint = `The grant ${grant.id} has ended, and is no longer kept. Request another.`
    throw refused('rotate token', answer, hint)
  }
  const next: KeptGrant = {
    ...grant,
    value: textAt(answer, 'access_token', 'value'),
    manage: urlAtServer(answer, grant.authServer, 'access_token', 'manage'),
    ...expiryOf(answer),
  }
  keepGrant(wire.key, next)
  return next
}

/** Cancels a kept grant at its authorization server, and removes it. A grant that has ended is removed, too. */
export async function cancelGrant(wire: Wire, grant: KeptGrant): Promise<void> {
  const request = { method: 'DELETE', url: grant.continueUri, token: grant.continueToken }
  const answer = await wire.send('cancel grant', request, { statuses: 'any', repeats: true })
  if (![200, 202, 204, 401, 404].includes(answer.status)) throw refused('cancel grant', answer)
  removeGrant(wire.key, grant)
}
