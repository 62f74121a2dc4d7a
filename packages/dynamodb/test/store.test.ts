import type { DynamoDB } from '@aws-sdk/client-dynamodb'
import { expect, test } from 'vitest'
import { dynamodbStore, tableDefinition } from '../src/index.js'

/** A client that answers each call by a function of its own. */
function clientWith(answers: Partial<Record<keyof DynamoDB, (input: never) => unknown>>): DynamoDB {
  const calls = Object.entries(answers).map(([name, answer]) => [
    name,
    async (input: never) => answer(input),
  ])
  return Object.fromEntries(calls) as DynamoDB
}

const change = {
  kind: 'grant',
  next: { id: 'wallet01a', version: 1, commandId: 'a' },
  expectedVersion: 0,
} as const

function failure(name: string, codes: readonly string[] = []): Error {
  const CancellationReasons = codes.map((Code) => ({ Code }))
  return Object.assign(new Error('private'), { name, CancellationReasons })
}

const cancelled = (...codes: readonly string[]) => failure('TransactionCanceledException', codes)

/** Commits while the client fails with these errors, one after the other. Returns the outcome and the tokens. */
async function committed(...errors: readonly Error[]) {
  const tokens: string[] = []
  const left = [...errors]
  const transactWriteItems = ({ ClientRequestToken }: { ClientRequestToken: string }) => {
    tokens.push(ClientRequestToken)
    const error = left.shift()
    if (error !== undefined) throw error
    return {}
  }
  const store = dynamodbStore(clientWith({ transactWriteItems: transactWriteItems as never }))
  const outcome = await store.commit({ changes: [change], guards: [] }).catch((error) => error.name)
  return { outcome, requests: tokens.length, distinct: new Set(tokens).size }
}

test('a commit whose condition failed has lost, at once', async () => {
  const failed = cancelled('None', 'ConditionalCheckFailed')
  expect(await committed(failed)).toEqual({ outcome: false, requests: 1, distinct: 1 })
})

test('a commit that met another one is asked for again, as another transaction', async () => {
  const met = cancelled('TransactionConflict')
  expect(await committed(met, met)).toEqual({ outcome: true, requests: 3, distinct: 3 })
})

test('a commit whose first request still works is asked for again as the same transaction', async () => {
  const working = failure('TransactionInProgressException')
  expect(await committed(working, working)).toEqual({ outcome: true, requests: 3, distinct: 1 })
})

test('a commit with any other error has an unknown outcome, and is not repeated', async () => {
  const lost = failure('TimeoutError')
  expect(await committed(lost)).toEqual({ outcome: 'TimeoutError', requests: 1, distinct: 1 })
})

test('a page ends although DynamoDB returns no item and no end', async () => {
  let asked = 0
  const endless = clientWith({
    query() {
      asked += 1
      return { Items: [], LastEvaluatedKey: { owner: { S: 'x' } } }
    },
  })
  const store = dynamodbStore(endless)
  const query = { kind: 'grant', list: 'all', forward: true, limit: 2 } as const
  await expect(store.list(query)).rejects.toThrow('DynamoDB is busy')
  await expect(store.due('grant', 'wallet01', 1, 10)).rejects.toThrow('DynamoDB is busy')
  expect(asked).toBeLessThan(50)
})

test('a page ends although DynamoDB keeps back the same record for ever', async () => {
  let asked = 0
  const busy = clientWith({
    query: () => ({ Items: [{ member: { S: 'wallet01a' } }] }),
    batchGetItem({ RequestItems }: { RequestItems: object }) {
      asked += 1
      return { UnprocessedKeys: RequestItems }
    },
  })
  const query = { kind: 'grant', list: 'all', forward: true, limit: 2 } as const
  await expect(dynamodbStore(busy).list(query)).rejects.toThrow('DynamoDB is busy')
  expect(asked).toBeLessThan(30)
})

test('an unknown option is refused', () => {
  expect(() => tableDefinition({ name: 'x' } as never)).toThrow('name is not known')
  expect(() => dynamodbStore({} as DynamoDB, { prefix: 'x' } as never)).toThrow('is not known')
})
