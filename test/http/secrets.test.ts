import { expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import {
  approvedGrant,
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  outgoingAccess,
  withFinish,
  withoutFinish,
} from '../support/world.js'

/** A store that keeps the text of everything it was ever given. */
function recordingStore(): Store & { readonly written: string[] } {
  const store = memoryStore()
  const written: string[] = []
  return {
    ...store,
    written,
    commit(commit) {
      written.push(JSON.stringify(commit))
      return store.commit(commit)
    },
  }
}

test('no token, reference or shared secret reaches the store, an event, a report or an error', async () => {
  const store = recordingStore()
  const world = createWorld({ store })
  const client = world.client()
  const secrets = new Map<string, string>()
  const keep = (name: string, value: string) => {
    secrets.set(`${name} ${secrets.size}`, value)
    // The part behind the last dot is the secret itself, should it be stored without its grant's id.
    secrets.set(`${name} ${secrets.size}`, value.slice(value.lastIndexOf('.') + 1))
  }

  const { token, body, interactRef } = await issuedGrant(world, client)
  keep('access token', token.value)
  keep('continuation token', body.continue.access_token.value)
  keep('interaction reference', interactRef)
  keep('rotated token', (await client.rotate(token)).body.access_token.value)
  keep('the same again', (await client.rotate(token)).body.access_token.value)
  const again = await client.continue(body.continue, interactRef)
  expect(again.status).toBe(401)

  const polled = await approvedGrant(world, client, withoutFinish)
  keep('polled token', (await client.continue(polled.body.continue)).body.access_token.value)

  const granted = (await client.request([incomingAccess])).body
  keep('payment token', granted.access_token.value)
  const payment = await client.createPayment(granted.access_token.value, { walletAddress: bob })
  keep('shared secret', payment.body.methods[0].sharedSecret)
  await client.getPayment(granted.access_token.value, payment.body.id)

  // And everything that can be refused: wrong keys, wrong tokens, wrong bodies.
  const mallory = world.client('mallory')
  await mallory.continue(body.continue, interactRef)
  await mallory.rotate(token)
  await client.continue(polled.body.continue, 'a guess')
  await client.request([outgoingAccess], { ...withFinish, start: [] })
  await client.createPayment(token.value, { walletAddress: bob })
  await client.cancel(polled.body.continue)
  expect(world.refusals.length).toBeGreaterThan(5)

  const seen = [...store.written, JSON.stringify(world.refusals), String(world.errors)].join('\n')
  for (const [name, secret] of secrets) {
    expect(seen.includes(secret), `${name} can be read`).toBe(false)
  }
  expect(secrets.size).toBeGreaterThan(12)
})

test('a report of a refusal names the check that failed, and nothing of the request but key and client', async () => {
  const world = createWorld()
  const client = world.client()
  await client.request([incomingAccess], undefined, { created: world.clock.now() / 1000 - 301 })
  expect(world.refusals).toEqual([
    {
      refusal: 'signature_invalid',
      reason: 'created is too long ago',
      status: 401,
      code: 'invalid_client',
      method: 'POST',
      operation: 'requestGrant',
      at: world.clock.now(),
    },
  ])
})

test('a hook that throws changes no answer', async () => {
  const fail = () => {
    throw new Error('the hook is broken')
  }
  const world = createWorld({ auth: { onRefusal: fail, onError: fail } })
  const client = world.client()
  expect((await client.request([outgoingAccess])).status).toBe(400)
})
