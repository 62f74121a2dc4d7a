// #region store
import { DynamoDB } from '@aws-sdk/client-dynamodb'
import type { Store } from 'open-payments-server'
import { createTable, dynamodbStore } from 'open-payments-server-dynamodb'

/** Creates the table, and returns the store for the options of the servers. */
export async function openStore(region: string): Promise<Store> {
  const client = new DynamoDB({
    region,
    maxAttempts: 3,
    // Without these, a request waits for ever for a server that does not answer.
    requestHandler: {
      connectionTimeout: 500,
      requestTimeout: 1_000,
      throwOnRequestTimeout: true,
    },
  })
  await createTable(client, { table: 'open-payments' })
  return dynamodbStore(client, { table: 'open-payments' })
}
// #endregion store
