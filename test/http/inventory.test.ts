import { describe, expect, test } from 'vitest'
import type { HttpRequest, ServerOperation } from '../../src/index.js'
import { testKey } from '../support/keys.js'
import { type Ask, cell, createSurface, type Surface, unsignedRequest } from '../support/surface.js'
import { answerOf } from '../support/world.js'

/** How a request is answered that is good but for one thing, by status and code. */
interface Row {
  readonly unsigned: string
  /** Signed by another key that goes by the `keyid` of the right one. */
  readonly wrongKey: string
  /** Body or target are not what was signed. */
  readonly tampered: string
  /** The whole request again, after it has been served. */
  readonly replayed: string
  /** What was presented is good no longer: its client has given it up, or the host has withdrawn it. */
  readonly revoked: string
  /** Signed by a client instance in good order, but not by this one. */
  readonly otherClient: string
}

const invalidClient = '401 invalid_client'

/** Where only the client instance that a grant is bound to is heard. */
const atGrants = {
  unsigned: invalidClient,
  wrongKey: invalidClient,
  tampered: invalidClient,
  replayed: invalidClient,
  otherClient: invalidClient,
}

const invalidSignature = '401 invalid_signature'

const atResources: Row = {
  unsigned: invalidSignature,
  wrongKey: invalidSignature,
  tampered: invalidSignature,
  replayed: invalidSignature,
  revoked: '401 invalid_token',
  otherClient: invalidSignature,
}

const invalidServer = '400 invalid_resource_server'

/** Open to everybody, however they come. */
const open: Row = {
  unsigned: '200',
  wrongKey: '200',
  tampered: '200',
  replayed: '200',
  revoked: '200',
  otherClient: '200',
}

const rows: Readonly<Record<ServerOperation, Row>> = {
  requestGrant: { ...atGrants, otherClient: '400 invalid_client', revoked: '200' },
  discover: open,
  continueGrant: { ...atGrants, revoked: '404 invalid_continuation' },
  cancelGrant: { ...atGrants, revoked: '404 invalid_request' },
  rotateToken: { ...atGrants, revoked: '404 invalid_rotation' },
  revokeToken: { ...atGrants, revoked: '204' },
  introspectToken: {
    unsigned: invalidServer,
    wrongKey: invalidServer,
    tampered: invalidServer,
    replayed: invalidServer,
    revoked: '200',
    otherClient: invalidServer,
  },
  createIncomingPayment: atResources,
  listIncomingPayments: atResources,
  getIncomingPayment: atResources,
  completeIncomingPayment: atResources,
  createQuote: atResources,
  getQuote: atResources,
  createOutgoingPayment: atResources,
  listOutgoingPayments: atResources,
  getOutgoingPayment: atResources,
  getOutgoingPaymentGrant: atResources,
  getWalletAddress: open,
  getWalletAddressKeys: open,
  preflight: {
    unsigned: '204',
    wrongKey: '204',
    tampered: '204',
    replayed: '204',
    revoked: '204',
    otherClient: '204',
  },
}

const { routes } = await createSurface()

/** Whatever of a request is signed and can be changed without making another operation of it. */
function tampered({ body, url }: Ask): ((request: HttpRequest) => HttpRequest)[] {
  const mark = url.includes('?') ? '&' : '?'
  const target = (request: HttpRequest) => ({ ...request, url: `${request.url}${mark}x=1` })
  const content = (request: HttpRequest) => ({ ...request, body: Buffer.from(`${body} `) })
  return body === undefined ? [target] : [target, content]
}

/** Gives up what the operation's own request presents. */
async function revoke({ world, shop, held }: Surface, operation: ServerOperation): Promise<void> {
  const { rotating, revoking, continuing, cancelling, token } = held
  const { grants } = world.auth
  const grantIdOf = (id: string) => id.split('.')[0] ?? ''
  if (operation === 'continueGrant') await grants.revoke(grantIdOf(continuing.id))
  else if (operation === 'cancelGrant') await grants.revoke(grantIdOf(cancelling.id))
  else if (operation === 'rotateToken') await shop.revoke(rotating)
  else if (operation === 'revokeToken') await shop.revoke(revoking)
  else await shop.revoke(token)
}

test('every route of every server has a row of answers, and there is none beside', () => {
  const served = routes.map(({ operation }) => operation)
  expect(Object.keys(rows).sort()).toEqual([...new Set(served)].sort())
})

describe.each(routes)('$operation ($method $path)', ({ operation }) => {
  const row = rows[operation]

  test('answers every fault of a signature as its row says, and nothing is written for it', async () => {
    const surface = await createSurface()
    const good = surface.ask(operation)
    const { key = testKey('nobody') } = good
    const { world, send, handle } = surface
    const mallory = world.client('mallory').key
    const before = surface.kept.length

    expect(cell(answerOf(await handle(unsignedRequest(good))))).toBe(row.unsigned)
    const impostor = await send(good, { key: { ...mallory, kid: key.kid } })
    expect(cell(impostor)).toBe(row.wrongKey)
    expect(cell(await send(good, { key: mallory }))).toBe(row.otherClient)
    for (const bend of tampered(good)) {
      expect(cell(await send(good, { bend }))).toBe(row.tampered)
    }
    expect(surface.kept.length).toBe(before)
    expect(world.errors).toEqual([])
  })

  test('serves the good request, and answers the very same again as its row says', async () => {
    const surface = await createSurface()
    const request = surface.sign(surface.ask(operation))
    const served = answerOf(await surface.handle(request))
    expect([200, 201, 204]).toContain(served.status)
    const after = surface.kept.length
    expect(cell(answerOf(await surface.handle(request)))).toBe(row.replayed)
    expect(surface.kept.length).toBe(after)
  })

  test('answers as its row says once what it takes is good no longer', async () => {
    const surface = await createSurface()
    await revoke(surface, operation)
    const answer = await surface.send(surface.ask(operation))
    expect(cell(answer)).toBe(row.revoked)
    if (operation === 'introspectToken') expect(answer.body).toEqual({ active: false })
  })
})
