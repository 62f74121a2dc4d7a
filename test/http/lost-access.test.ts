import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { remoteClientKeys, type WalletAddress } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { jwkOf, type TestKey, testKey } from '../support/keys.js'
import { grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { walletInProcesses } from '../support/two-processes.js'
import {
  type Answer,
  alice,
  incomingAccess,
  interactionId,
  origin,
  resourceServer,
} from '../support/world.js'

const shop = 'https://shop.example'
const own = testKey('own')
const replacement: TestKey = { ...testKey('replacement'), kid: own.kid }

interface Setting {
  /** Default: alice. */
  readonly client?: string
  /** The only window of the grant, as a duration. Default: it has no end. */
  readonly lasts?: string
}

/**
 * A client that may pay from alice, with the wallet address of alice, as the Web Monetization extension, or another.
 */
async function setUp(processes: 1 | 2, { client: walletAddress = alice, lasts }: Setting = {}) {
  const state = { keys: [own] as readonly TestKey[], isGone: false, isClosed: false }
  const accounts = {
    async find(url: string): Promise<WalletAddress | undefined> {
      const keys = walletAddress === alice ? state.keys.map(({ kid, x }) => ({ kid, x })) : []
      const account = { url, assetCode: 'USD', assetScale: 2, keys }
      return url === alice && !state.isClosed ? account : undefined
    },
  }
  const clock = manualClock()
  const clientKeys = remoteClientKeys({
    clock,
    ownAccounts: { baseUrl: origin, walletAddresses: accounts },
    fetch: async () => ({
      status: state.isGone ? 410 : 200,
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify({ keys: state.keys.map(jwkOf) })),
    }),
  })
  const world = walletInProcesses(processes, {
    clock,
    auth: { clientKeys },
    resources: { walletAddresses: accounts },
  })
  const client = world.client('own', { walletAddress })
  const interval = lasts && `R1/${new Date(clock.now()).toISOString()}/${lasts}`
  const paying = [outgoingItem({ debitAmount: usd(2500), ...(interval && { interval }) })]
  const pending = await client.request(paying, { start: ['redirect'] })
  const pendingId = interactionId(pending.body.interact.redirect)
  await world.auth.interactions.approve(pendingId, {
    resourceOwner: 'alice',
    walletAddresses: [alice],
  })
  const { grantId, token, accessToken, continuation } = await grantToPay(world, client, paying)
  return {
    world,
    client,
    grantIds: [grantId, pendingId.split('.')[0] ?? ''],
    token,
    accessToken,
    continuation,
    pending: pending.body.continue,
    change(changes: Partial<typeof state>) {
      Object.assign(state, changes)
      clientKeys.forget(walletAddress)
    },
  }
}

type Scene = Awaited<ReturnType<typeof setUp>>

/** Every operation that a client with a grant to pay calls. */
const operations = {
  pay: ({ client, token }: Scene) => pay(client, token, 100),
  spent: ({ client, token }: Scene) =>
    client.send({ method: 'GET', url: `${resourceServer}/outgoing-payment-grant`, token }),
  request: ({ client }: Scene) => client.request([incomingAccess]),
  continue: ({ client, pending }: Scene) => client.continue(pending),
  rotate: ({ client, accessToken }: Scene) => client.rotate(accessToken),
  revoke: ({ client, accessToken }: Scene) => client.revoke(accessToken),
  disconnect: ({ client, continuation }: Scene) => client.cancel(continuation),
}

type Operation = keyof typeof operations

/** What the Web Monetization extension of August 2026 concludes from an answer. */
function conclusionOf({ status, body }: Answer, operation: Operation): string {
  const { code, description = '' } = body?.error ?? {}
  const isUnknownKey = status === 400 && code === 'invalid_client'
  const isGone = status === 404 || (status === 401 && code === 'invalid_continuation')
  if (operation === 'disconnect' && (status === 204 || isGone || isUnknownKey)) {
    return 'disconnected'
  }
  if (isUnknownKey) return 'key revoked'
  if (status === 401 && description.startsWith('Signature validation error')) return 'key revoked'
  if (status === 401 && description === 'Invalid Token') return 'rotate'
  return status < 300 ? 'success' : 'failure'
}

const success = [200, undefined, 'success'] as const
const noContent = [204, undefined, 'success'] as const
const disconnected = [204, undefined, 'disconnected'] as const
const badSignature = [401, 'invalid_signature', 'key revoked'] as const
const unknownClient = [400, 'invalid_client', 'key revoked'] as const
const badToken = [401, 'invalid_token', 'rotate'] as const

const keyLost = {
  pay: badSignature,
  spent: badSignature,
  request: unknownClient,
  continue: unknownClient,
  rotate: unknownClient,
  revoke: unknownClient,
  disconnect: [400, 'invalid_client', 'disconnected'],
} as const

const tokenOver = {
  pay: badToken,
  spent: badToken,
  request: success,
  continue: success,
  rotate: success,
  revoke: noContent,
  disconnect: disconnected,
} as const

const grantOver = {
  pay: badToken,
  spent: badToken,
  request: success,
  continue: [404, 'invalid_continuation', 'failure'],
  rotate: [400, 'invalid_rotation', 'failure'],
  revoke: noContent,
  disconnect: [404, 'invalid_request', 'disconnected'],
} as const

type Expected = readonly [status: number, code: string | undefined, conclusion: string]

/** Each cause for which a client loses access, what it does, and the answer to each operation after it. */
const causes: Record<
  string,
  Setting & {
    readonly happens: (scene: Scene) => unknown
    readonly answers: Readonly<Record<Operation, Expected>>
  }
> = {
  'the owner withdrew the key': { happens: ({ change }) => change({ keys: [] }), answers: keyLost },
  'the owner withdrew the key and others remain': {
    happens: ({ change }) => change({ keys: [testKey('other')] }),
    answers: keyLost,
  },
  'another key has its kid': {
    happens: ({ change }) => change({ keys: [replacement] }),
    // Without a grant, the old key is like any key that the client never had.
    answers: { ...keyLost, request: [401, 'invalid_client', 'failure'] },
  },
  'the account of the client was closed': {
    happens: ({ change }) => change({ isClosed: true }),
    answers: keyLost,
  },
  'the client in another wallet is gone': {
    client: shop,
    happens: ({ change }) => change({ isGone: true }),
    answers: keyLost,
  },
  'the account of the payer was closed': {
    client: shop,
    happens: ({ change }) => change({ isClosed: true }),
    answers: {
      pay: [404, 'unknown_wallet_address', 'failure'],
      spent: success,
      request: success,
      continue: success,
      rotate: success,
      revoke: noContent,
      disconnect: disconnected,
    },
  },
  'the owner revoked the grant': {
    happens: async ({ world, grantIds }) => {
      for (const id of grantIds) await world.auth.grants.revoke(id)
    },
    answers: grantOver,
  },
  'the grant expired': {
    lasts: 'PT5M',
    happens: ({ world }) => world.clock.advance(300_000),
    answers: grantOver,
  },
  'the token expired': {
    happens: ({ world }) => world.clock.advance(600_000),
    answers: tokenOver,
  },
  'the token was rotated': {
    happens: ({ client, accessToken }) => client.rotate(accessToken),
    answers: { ...tokenOver, revoke: [401, 'invalid_client', 'failure'] },
  },
}

describe.each([1, 2] as const)('in %i process(es), a client that lost access', (processes) => {
  test.each(Object.entries(causes))('because %s is told so by each operation', async (_, cause) => {
    const told = async (operation: Operation) => {
      const scene = await setUp(processes, cause)
      await cause.happens(scene)
      const answer = await operations[operation](scene)
      const { status, body } = answer
      return [operation, [status, body?.error?.code, conclusionOf(answer, operation)]] as const
    }
    const names = Object.keys(operations) as Operation[]
    expect(Object.fromEntries(await Promise.all(names.map(told)))).toEqual(cause.answers)
  })

  test('by its key learns nothing about the token with another key', async () => {
    const scene = await setUp(processes)
    const { client, token, change } = scene
    change({ keys: [] })
    const strangers = [testKey('stranger'), { ...testKey('stranger'), kid: own.kid }, replacement]
    for (const key of strangers) {
      const { body, status } = await pay(client, token, 100, {}, { key })
      expect([status, body.error.description]).toEqual([401, 'Invalid Token'])
    }
  })
})

const handlers: Readonly<Record<Operation, string>> = {
  pay: 'createOutgoingPayment',
  spent: 'getOutgoingPaymentGrant',
  request: 'requestGrant',
  continue: 'continueGrant',
  rotate: 'rotateToken',
  revoke: 'revokeToken',
  disconnect: 'cancelGrant',
}

test('docs/errors.md says what a client is told by each operation', () => {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const names = Object.keys(handlers) as Operation[]
  const rows = Object.entries(causes).map(([because, { answers }]) => {
    const cells = names.map((operation) => {
      const [status, code] = answers[operation]
      return code === undefined ? String(status) : `${status} \`${code}\``
    })
    return row([because, ...cells])
  })
  const head = row(['', ...names.map((operation) => `\`${handlers[operation]}\``)])
  const table = [head, `|${'---|'.repeat(names.length + 1)}`, ...rows].join('\n')
  expect(readFileSync('docs/errors.md', 'utf8')).toContain(table)
})
