import { describe, expect, test } from 'vitest'
import { alice, bob, createWorld, incomingAccess, resourceServer } from '../support/world.js'

async function setUp() {
  const world = createWorld()
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  return { world, client, token: body.access_token }
}

describe('the method of a request', () => {
  test.each([
    ['X-HTTP-Method-Override', ''],
    ['X-HTTP-Method', ''],
    ['X-Method-Override', ''],
    ['X-Note', '?_method=DELETE'],
  ])('is not replaced by %s%s', async (name, query) => {
    const { world, client, token } = await setUp()
    const headers = [[name, 'DELETE']] as const
    const url = `${token.manage}${query}`
    const { status, body } = await client.send({ method: 'POST', url, token: token.value, headers })
    expect(status).toBe(200)
    const accessToken = body.access_token.value
    expect(await world.auth.introspect({ accessToken })).toMatchObject({ active: true })
  })
})

describe('a member that occurs twice in a body', () => {
  const url = `${resourceServer}/incoming-payments`
  const twice = (first: string, second: string) =>
    `{"walletAddress":"${first}","walletAddress":"${second}"}`

  test('has one value, the last, for the check of the rights and for the record', async () => {
    const { client, token } = await setUp()
    const sent = { method: 'POST', url, token: token.value }
    const refused = await client.send({ ...sent, body: twice(bob, alice) })
    expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_access'])
    const created = await client.send({ ...sent, body: twice(alice, bob) })
    expect([created.status, created.body.walletAddress]).toEqual([201, bob])
    expect((await client.getPayment(token.value, created.body.id)).body.walletAddress).toBe(bob)
  })
})
