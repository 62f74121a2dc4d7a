import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type Address,
  type CallOptions,
  type Client,
  type IssuedGrant,
  type PendingGrant,
  type Refused,
  verifyFinish,
} from 'open-payments-client'
import type { AccessItem } from 'open-payments-server'
import { type ClientKey, type KeptGrant, keepGrant, keptGrants, removeGrant } from './files.js'
import { answerBrowser } from './finish-page.js'
import { type CallSettings, ClientError, type Wire } from './wire.js'

export async function readAddress(wire: Wire, walletAddress: string): Promise<Address> {
  const found = await wire.demand('wallet address', (client, options) =>
    client.addressOf(walletAddress, options),
  )
  return found.address
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
  address: Address,
  access: readonly AccessItem[],
  options: ConsentOptions,
  quote?: string,
): Promise<KeptGrant> {
  const finish = options.poll ? undefined : await listenForFinish()
  try {
    const [{ type }] = access as readonly [AccessItem]
    const interact = finish === undefined ? 'poll' : { finishUri: finish.uri }
    const state = await wire.demand(`grant (${type})`, (client, given) =>
      client.requestGrant({ walletAddress: address, access, interact }, given),
    )
    const issued =
      state.status === 'issued' ? state.grant : await decided(wire, state.pending, finish, options)
    return kept(wire, address, issued, quote)
  } finally {
    finish?.close()
  }
}

function kept(
  wire: Wire,
  { id: walletAddress }: Address,
  issued: IssuedGrant,
  quote: string | undefined,
): KeptGrant {
  const grant: KeptGrant = {
    id: `grant-${randomBytes(4).toString('hex')}`,
    createdAt: new Date().toISOString(),
    walletAddress,
    key: wire.key.pair.thumbprint,
    ...issued,
    ...(quote !== undefined && { quote }),
  }
  keepGrant(wire.key, grant)
  wire.exists.set('grant', `the grant ${grant.id} for ${walletAddress}, which is kept`)
  return grant
}

/** The listener for the browser's return (RFC 8252 section 7.3). */
interface Finish {
  readonly uri: string
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
    uri,
    returned,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const step = 'consent'

/** Sends the owner to the consent page, and waits for the grant. */
async function decided(
  wire: Wire,
  pending: PendingGrant,
  finish: Finish | undefined,
  { opensBrowser, waitMs }: ConsentOptions,
): Promise<IssuedGrant> {
  openForOwner(wire, pending.redirect ?? '', opensBrowser)
  const deadline = Date.now() + waitMs
  const reference = finish && (await referenceOf(wire, pending, finish, waitMs))
  return continued(wire, pending, reference, deadline)
}

export function openForOwner(wire: Wire, page: string, opensBrowser: boolean): void {
  const opened = opensBrowser && wire.machine.open(page)
  wire.say(`${opened ? 'The browser opens' : 'Open'} this page, and decide there:`)
  wire.say(`  ${page}`)
}

/** Returns the interaction reference of the browser's return, after its hash was verified. */
async function referenceOf(
  wire: Wire,
  pending: PendingGrant,
  { returned }: Finish,
  waitMs: number,
): Promise<string> {
  const arrival = new AbortController()
  const late = wire.pause(waitMs, arrival.signal).then(() => undefined)
  const query = await Promise.race([returned, late]).finally(() => arrival.abort())
  if (query === undefined) throw undecided(waitMs)
  const finish = await verifyFinish(pending, query)
  if (finish.ok) return finish.interactRef
  const isDenied = finish.refusal === 'consent_denied'
  const message = isDenied ? 'the owner denied the grant' : finish.reason
  throw new ClientError(1, step, message, { refusal: finish })
}

function undecided(waitMs: number): ClientError {
  const hint = 'Nothing was paid. Start again, or use a longer --wait.'
  return new ClientError(3, step, `nobody decided within ${Math.round(waitMs / 1_000)} s`, { hint })
}

const pollPauseMaxMs = 60_000

/** Continues a grant until it has a token. Without a reference, it polls. */
async function continued(
  wire: Wire,
  first: PendingGrant,
  interactRef: string | undefined,
  deadline: number,
): Promise<IssuedGrant> {
  const began = Date.now()
  let pending = first
  let reference = interactRef === undefined ? {} : { interactRef }
  let pauseMs = interactRef === undefined ? Math.max(pending.continueAt - began, 1_000) : 0
  for (;;) {
    await wire.pause(Math.min(pauseMs, pollPauseMaxMs))
    const state = await wire.call(
      'continue',
      (client, options) => client.continueGrant(pending, { ...options, ...reference }),
      { repeats: true },
    )
    if (!state.ok) {
      if (state.refusal === 'consent_denied') {
        throw new ClientError(1, step, 'the grant was denied', { refusal: state })
      }
      if (state.refusal !== 'too_fast') throw wire.refused('continue', state)
      pauseMs = Math.max(state.retryAfterMs ?? 0, 1_000)
    } else {
      if (state.status === 'issued') return state.grant
      pending = state.pending
      reference = {}
      pauseMs = Math.max(pending.continueAt - Date.now(), 1_000)
    }
    if (Date.now() > deadline) throw undecided(Date.now() - began)
  }
}

type UnderGrant<Value> = (
  client: Client,
  grant: IssuedGrant,
  options: CallOptions,
) => Promise<Value>

/** Makes a call under a kept grant, and again with another token if its token has expired. */
export async function underGrant<Value extends { readonly ok: true } | Refused>(
  wire: Wire,
  grant: KeptGrant,
  step: string,
  make: UnderGrant<Value>,
  settings: CallSettings = {},
): Promise<Value> {
  // An earlier request may have rotated its token.
  const kept = latest(wire.key, grant)
  const hasExpired = kept.expiresAt !== undefined && kept.expiresAt <= Date.now()
  const current = hasExpired ? await rotated(wire, kept) : kept
  const callWith = (used: KeptGrant) =>
    wire.call(step, (client, options) => make(client, used, options), settings)
  const result = await callWith(current)
  if (result.ok || result.refusal !== 'unauthenticated' || hasExpired) return result
  return callWith(await rotated(wire, latest(wire.key, grant)))
}

function latest(key: ClientKey, grant: KeptGrant): KeptGrant {
  return keptGrants(key).find(({ id }) => id === grant.id) ?? grant
}

/** The step of a rotation, in errors. */
export const rotation = 'rotate token'

async function rotated(wire: Wire, kept: KeptGrant): Promise<KeptGrant> {
  const result = await wire.call(rotation, (client, options) => client.rotateToken(kept, options), {
    repeats: true,
  })
  if (!result.ok) {
    const { refusal, answer } = result
    const hasEnded =
      refusal !== 'client_refused' && [400, 401, 403, 404].includes(answer?.status ?? 0)
    if (!hasEnded) throw wire.refused(rotation, result)
    removeGrant(wire.key, kept)
    const hint = `The grant ${kept.id} has ended, and is no longer kept. Request another.`
    throw wire.refused(rotation, result, hint)
  }
  const { expiresAt: _, ...lasting } = kept
  const next = { ...lasting, ...result.grant }
  keepGrant(wire.key, next)
  return next
}

/** Cancels a kept grant at its authorization server, and removes it. A grant that has ended is removed, too. */
export async function cancelGrant(wire: Wire, grant: KeptGrant): Promise<void> {
  const canBeCancelled = grant.continuation !== undefined
  await wire.demand(
    'cancel grant',
    (client, options) =>
      canBeCancelled ? client.cancelGrant(grant, options) : client.revokeToken(grant, options),
    { repeats: true },
  )
  removeGrant(wire.key, grant)
}
