import { expect, test } from 'vitest'
import { createWorld, incomingAccess, issuedGrant } from '../../support/world.js'

test('an access token has no key of its own and no flags: it is bound to the key of the request', async () => {
  const world = createWorld()
  const client = world.client()
  const granted = await client.request([incomingAccess])
  const issued = await issuedGrant(world, client)
  const rotated = await client.rotate(issued.token)
  for (const token of [granted.body.access_token, issued.token, rotated.body.access_token]) {
    expect(Object.keys(token).sort()).toEqual(['access', 'expires_in', 'manage', 'value'])
  }
})
