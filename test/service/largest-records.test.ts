import { expect, test } from 'vitest'
import { storeBounds } from '../../src/entry-adapter.js'
import { type AccessItem, memoryStore, type Store } from '../../src/index.js'
import { clientListName } from '../../src/service/lists.js'
import { testKey } from '../support/keys.js'
import { createSpendingWorld } from '../support/spending.js'
import {
  alice,
  grantEndpoint,
  interactionId,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

/** Returns a URL of 2,048 characters, the most that the library accepts. */
const longUrl = (start: string) => start.padEnd(2_048, 'x')

test('the largest grant that a client and an owner can make is within the bounds', async () => {
  let valueBytes = 0
  const inner = memoryStore()
  const store: Store = {
    ...inner,
    commit(commit) {
      const sizes = commit.changes.map(({ next }) => Buffer.byteLength(JSON.stringify(next)))
      valueBytes = Math.max(valueBytes, ...sizes)
      return inner.commit(commit)
    },
  }
  const world = createSpendingWorld({ store })
  const walletAddress = longUrl('https://shop.example/')
  world.clientKeys.publish(walletAddress, testKey('shop'))
  const client = world.client('shop')
  const access = [0, 1, 2].map(
    (i): AccessItem => ({
      ...outgoingAccess,
      actions: ['create', 'read', 'read-all', 'list', 'list-all'],
      limits: {
        receiver: longUrl(`https://bank.example/${i}/incoming-payments/`),
        debitAmount: {
          value: '18446744073709551615',
          assetCode: 'U'.repeat(64),
          assetScale: 255,
        },
        interval: 'R/2026-01-01T00:00:00.000Z/P1M',
      },
    }),
  )
  const tokens = ['1', '2', '3', '4'].map((digit) => ({ label: digit.repeat(64), access }))
  const { body } = await client.post(grantEndpoint, {
    client: walletAddress,
    access_token: tokens,
    interact: {
      ...withFinish,
      finish: {
        method: 'redirect',
        uri: longUrl('https://shop.example/'),
        nonce: 'n'.repeat(256),
      },
    },
  })
  const approved = await world.auth.interactions.approve(interactionId(body.interact.redirect), {
    resourceOwner: 'alice',
    walletAddresses: [alice],
    conditions: {
      receivers: Array.from({ length: 50 }, (_, i) =>
        `https://bank.example/${i}/`.padEnd(512, 'x'),
      ),
      data: { text: 'x'.repeat(8_100) },
    },
  })
  if (!approved.ok) throw new Error(approved.reason)
  const reference = new URL(approved.redirect ?? '').searchParams.get('interact_ref') ?? ''
  expect((await client.continue(body.continue, reference)).status).toBe(200)
  const grantId = interactionId(body.interact.redirect).split('.')[0] ?? ''
  const { access: items = [] } = (await world.auth.grants.get(grantId)) ?? {}
  for (let removed = 1; removed <= 3; removed++) {
    const data = { text: '\u1234'.repeat(2_700), removed }
    const changes = { access: items.slice(removed), conditions: { data } }
    expect((await world.auth.grants.amend(grantId, changes)).ok).toBe(true)
  }
  expect(valueBytes).toBeGreaterThan(storeBounds.valueBytes / 4)
  expect(valueBytes).toBeLessThanOrEqual(storeBounds.valueBytes)
})

test('the longest list name has two URLs of the greatest length', () => {
  const name = clientListName('namespac', {
    walletAddress: longUrl('https://wallet.example/'),
    client: longUrl('https://shop.example/'),
  })
  expect(name).toHaveLength(storeBounds.listNameLength)
})
