import { describe, expect, test } from 'vitest'
import { grantToPay, pay, usd } from '../support/spending.js'
import { walletInProcesses } from '../support/two-processes.js'
import { resourceServer, type World } from '../support/world.js'

/** Creates a wallet in two processes whose cache holds the token of a client. */
async function setUp() {
  const world = walletInProcesses(2, {}, { ttlMs: 60_000 })
  const client = world.client()
  const { grantId, token } = await grantToPay(world, client)
  const read = async () => {
    const url = `${resourceServer}/outgoing-payment-grant`
    return (await client.send({ method: 'GET', url, token })).status
  }
  expect(await read()).toBe(200)
  const amend = (conditions: object) =>
    world.auth.grants.amend(grantId, { resourceOwner: 'alice', conditions })
  return { world, client, grantId, token, read, amend }
}

type Scene = Awaited<ReturnType<typeof setUp>>

describe('a payment with a cached token', () => {
  test.each<[string, (scene: Scene) => unknown, number, string]>([
    ['pauses', ({ amend, world }) => amend(pausedFor(world)), 403, 'grant_paused'],
    ['lowers', ({ amend }) => amend({ paymentMax: usd(10) }), 403, 'conditions_exceeded'],
    ['revokes', ({ world, grantId }) => world.auth.grants.revoke(grantId), 401, 'token_unknown'],
  ])('is refused as soon as the owner %s the grant', async (_, change, status, refusal) => {
    const scene = await setUp()
    const { world, client, token, read } = scene
    expect((await pay(client, token, 100)).status).toBe(201)
    expect(await change(scene)).toMatchObject({ ok: true })
    expect((await pay(client, token, 100)).status).toBe(status)
    expect(world.refusals.at(-1)).toMatchObject({ refusal })
    // An answer that is newer than the cache takes its place.
    expect(await read()).toBe(status === 401 ? 401 : 200)
  })
})

function pausedFor({ clock }: World): object {
  return { pausedUntil: clock.now() + 3_600_000 }
}
