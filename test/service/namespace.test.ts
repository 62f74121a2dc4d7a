import { expect, test } from 'vitest'
import {
  createAuthorizationServer,
  InvalidInputError,
  memoryStore,
  type Store,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { seededRandom } from '../support/random.js'
import { signedRequest } from '../support/sign.js'
import { answerOf, incomingAccess } from '../support/world.js'

/** Two URLs whose hashes begin with the same 48 bits, found among 36 million. */
const [first, second] = [
  'https://tenant-21562265.example/auth',
  'https://tenant-35426111.example/auth',
]
const namespace = 'obnwvSlh'

let processes = 0

/** A process of the server at a URL, and a client that asks it for grants. */
function processAt(grantEndpoint: string, store: Store) {
  const clock = manualClock()
  const clientKeys = publishedKeys()
  const client = 'https://shop.example'
  const key = testKey('shop')
  clientKeys.publish(client, key)
  const errors: unknown[] = []
  const name = `process ${++processes}`
  const auth = createAuthorizationServer({
    grantEndpoint,
    consentUrl: 'https://wallet.example/consent',
    store,
    clock,
    random: seededRandom(name),
    clientKeys,
    onError: (error) => void errors.push(error),
  })
  let nonces = 0
  async function ask() {
    const request = signedRequest({
      key,
      created: Math.floor(clock.now() / 1000),
      nonce: `${name}, ${nonces++}`,
      method: 'POST',
      url: grantEndpoint,
      body: JSON.stringify({ client, access_token: { access: [incomingAccess] } }),
    })
    return answerOf(await auth.handle(request))
  }
  return { auth, ask, errors }
}

async function serverIn(store: Store) {
  const [record] = await store.load([{ kind: 'server', id: `${namespace.slice(0, -1)}.` }])
  return record
}

/** A store that lists its calls. */
function counted(store: Store) {
  const calls: string[] = []
  const counting: Store = {
    ...store,
    load: (keys) => {
      calls.push(`load ${keys.map(({ kind }) => kind)}`)
      return store.load(keys)
    },
    commit: (commit) => {
      calls.push(`commit ${commit.changes[0]?.kind}`)
      return store.commit(commit)
    },
  }
  return { store: counting, calls }
}

test('a server whose URL has the namespace of another on the store writes nothing', async () => {
  const store = memoryStore()
  expect((await processAt(first, store).ask()).status).toBe(200)
  const other = processAt(second, store)
  for (let times = 0; times < 2; times++) expect((await other.ask()).status).toBe(500)
  const message = `store must not be that of ${first}: ${second} has its namespace`
  expect(other.errors).toEqual([
    new InvalidInputError('store', message.slice(6)),
    new InvalidInputError('store', message.slice(6)),
  ])
  const kept = await store.list({
    kind: 'grant',
    list: `${namespace} client https://shop.example`,
    forward: true,
    limit: 100,
  })
  expect(kept.records).toHaveLength(1)
})

test('processes of one server that begin at once all serve, and record its URL once', async () => {
  const store = memoryStore()
  const all = [1, 2, 3, 4].map(() => processAt(first, store))
  const answers = await Promise.all(all.flatMap(({ ask }) => [ask(), ask()]))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect(await serverIn(store)).toMatchObject({ version: 1, url: first })
})

test('of two servers that begin at once, one serves', async () => {
  const store = memoryStore()
  const asked = [first, second].map((url) => processAt(url, store).ask())
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([200, 500])
})

test('a process looks once at whose namespace it is, and reads without a look', async () => {
  const { store, calls } = counted(memoryStore())
  const { auth, ask } = processAt(first, store)
  expect(await auth.grants.getRecord(`${namespace}unknown`)).toBeUndefined()
  expect(calls.splice(0)).toEqual(['load grant'])
  await ask()
  expect(calls.splice(0)).toEqual(['load server', 'commit server', 'commit grant'])
  await ask()
  expect(calls.splice(0)).toEqual(['commit grant'])
  const again = processAt(first, store)
  await again.ask()
  expect(calls).toEqual(['load server', 'commit grant'])
})

test('what a transaction records before it rolls back is recorded again', async () => {
  const store = memoryStore()
  const { auth, ask } = processAt(first, store)
  const setUp = processAt(first, memoryStore())
  const { body } = await setUp.ask()
  const [grantId = ''] = body.continue.uri.slice(`${first}/continue/`.length).split('.')
  const grant = await setUp.auth.grants.getRecord(grantId)
  const rolledBack = memoryStore()
  const next = { ...grant, id: grantId, version: 1, commandId: 'x'.repeat(22) }
  await rolledBack.commit({ changes: [{ kind: 'grant', next, expectedVersion: 0 }], guards: [] })
  expect(await auth.within(rolledBack).grants.revoke(grantId)).toMatchObject({ ok: true })
  expect(await serverIn(rolledBack)).toMatchObject({ url: first })
  expect((await ask()).status).toBe(200)
  expect(await serverIn(store)).toMatchObject({ url: first })
})
