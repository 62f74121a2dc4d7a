import type { CreateTableCommandInput, DynamoDB, TableDescription } from '@aws-sdk/client-dynamodb'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { indexes } from './items.js'

/** The options that the store, its table and its checks share. */
export interface DynamodbOptions {
  /** The name of the table, by default `open-payments`. */
  readonly table?: string
}

export const defaultTable = 'open-payments'

/** Returns the name of the table of options. */
export function tableOf(options: DynamodbOptions): string {
  requireKnownOptions('', options, { table: true })
  return options.table ?? defaultTable
}

const text = (AttributeName: string) => ({ AttributeName, AttributeType: 'S' }) as const

function keys(hash: string, range: string) {
  return [
    { AttributeName: hash, KeyType: 'HASH' as const },
    { AttributeName: range, KeyType: 'RANGE' as const },
  ]
}

/**
 * Returns the definition of the table: one for records and for their places in lists. For your own tool, such as
 * the CDK or Terraform, which also sets backups, encryption and deletion protection.
 *
 * @example
 * ```ts
 * import { tableDefinition } from 'open-payments-server-dynamodb'
 *
 * console.log(JSON.stringify(tableDefinition({ table: 'payments' })))
 * ```
 */
export function tableDefinition(options: DynamodbOptions = {}): CreateTableCommandInput {
  const all = { ProjectionType: 'ALL' } as const
  return {
    TableName: tableOf(options),
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: ['owner', 'member', 'place', 'dueOf', 'due'].map(text),
    KeySchema: keys('owner', 'member'),
    // Local indexes have consistent reads, which lists need. Due times may lag.
    LocalSecondaryIndexes: [
      { IndexName: indexes.pages, KeySchema: keys('owner', 'place'), Projection: all },
    ],
    GlobalSecondaryIndexes: [
      { IndexName: indexes.due, KeySchema: keys('dueOf', 'due'), Projection: all },
    ],
  }
}

const creationMs = 120_000
const pollMs = 500

/**
 * Creates the table, and waits until it can be used. Any number of processes may call it concurrently; if the table
 * exists, it only reads.
 *
 * @throws {InvalidInputError} for an unknown option.
 * @throws {Error} if the table has other keys or indexes, or cannot be used after two minutes.
 *
 * @example
 * ```ts
 * import { DynamoDB } from '@aws-sdk/client-dynamodb'
 * import { createTable, dynamodbStore } from 'open-payments-server-dynamodb'
 *
 * const client = new DynamoDB({ region: 'eu-central-1' })
 * await createTable(client)
 * const store = dynamodbStore(client)
 * console.log(await store.due('event', 'wallet01', Date.now(), 1))
 * ```
 */
export async function createTable(client: DynamoDB, options: DynamodbOptions = {}): Promise<void> {
  const definition = tableDefinition(options)
  const described = await describe(client, tableOf(options))
  if (described === undefined) {
    await client.createTable(definition).catch((error: unknown) => {
      // Another process creates it.
      if (nameOf(error) !== 'ResourceInUseException') throw error
    })
  }
  for (const startedAt = performance.now(); ; ) {
    const problem = problemOf(await describe(client, tableOf(options)), definition)
    if (problem === undefined) return
    if (!problem.mayPass || performance.now() - startedAt > creationMs) {
      throw new Error(problem.text)
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

/** Whether the store can use the table, or what is wrong with it. */
export type TableCheck = { readonly ok: true } | { readonly ok: false; readonly problem: string }

/**
 * Checks that DynamoDB answers, and that the table has the keys and indexes that the store needs: for a readiness
 * probe.
 *
 * @throws {InvalidInputError} for an unknown option. It rejects with no other error.
 *
 * @example
 * ```ts
 * import { DynamoDB } from '@aws-sdk/client-dynamodb'
 * import { checkTable } from 'open-payments-server-dynamodb'
 *
 * const check = await checkTable(new DynamoDB({ region: 'eu-central-1' }))
 * const [status, text] = check.ok ? [200, 'ready'] : [503, check.problem]
 * console.log(status, text)
 * ```
 */
export async function checkTable(
  client: DynamoDB,
  options: DynamodbOptions = {},
): Promise<TableCheck> {
  const definition = tableDefinition(options)
  try {
    const problem = problemOf(await describe(client, tableOf(options)), definition)
    return problem === undefined ? { ok: true } : { ok: false, problem: problem.text }
  } catch (error) {
    // The message of the error can contain the address and the account.
    return { ok: false, problem: `DynamoDB did not answer: ${nameOf(error)}` }
  }
}

async function describe(client: DynamoDB, table: string): Promise<TableDescription | undefined> {
  try {
    return (await client.describeTable({ TableName: table })).Table
  } catch (error) {
    if (nameOf(error) === 'ResourceNotFoundException') return undefined
    throw error
  }
}

interface Problem {
  readonly text: string
  /** Whether waiting may end it. */
  readonly mayPass: boolean
}

function problemOf(
  found: TableDescription | undefined,
  wanted: CreateTableCommandInput,
): Problem | undefined {
  const call = 'createTable(client) of open-payments-server-dynamodb'
  if (found === undefined) return { text: `the table does not exist: run ${call}`, mayPass: true }
  const schemas = (table: TableDescription | CreateTableCommandInput) =>
    JSON.stringify([
      keyNames(table.KeySchema),
      ...[table.LocalSecondaryIndexes, table.GlobalSecondaryIndexes].map((each) =>
        (each ?? []).map(({ IndexName, KeySchema, Projection }) => [
          IndexName,
          keyNames(KeySchema),
          Projection?.ProjectionType,
        ]),
      ),
    ])
  if (schemas(found) !== schemas(wanted)) {
    return { text: `the table has other keys or indexes than ${call} makes`, mayPass: false }
  }
  const states = [found.TableStatus, ...(found.GlobalSecondaryIndexes ?? []).map(indexStatus)]
  // A table that is being updated can be used.
  const isUsable = states.every((state) => state === 'ACTIVE' || state === 'UPDATING')
  return isUsable
    ? undefined
    : { text: `the table is ${states.join(', its index ')}`, mayPass: true }
}

function indexStatus({ IndexStatus }: { readonly IndexStatus?: string | undefined }) {
  return IndexStatus
}

function keyNames(schema: CreateTableCommandInput['KeySchema'] = []): readonly unknown[] {
  return schema.map(({ AttributeName, KeyType }) => [AttributeName, KeyType])
}

export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
