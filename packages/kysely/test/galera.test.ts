import {
  DummyDriver,
  Kysely,
  MysqlAdapter,
  MysqlIntrospector,
  MysqlQueryCompiler,
  type QueryResult,
} from 'kysely'
import { expect, test } from 'vitest'
import { DatabaseSettingsError, migrate } from '../src/index.js'

/** Returns a node of a Galera cluster whose sessions wait for the commits of other nodes, or do not. */
function galeraNode(syncWait: string) {
  const statements: string[] = []
  const variables = {
    wsrep_on: 'ON',
    wsrep_sync_wait: syncWait,
    autocommit: 'ON',
    character_set_client: 'utf8mb4',
    character_set_connection: 'utf8mb4',
    character_set_results: 'utf8mb4',
    sql_mode: '',
  }
  const rows = Object.entries(variables).map(([Variable_name, Value]) => ({ Variable_name, Value }))
  class Node extends DummyDriver {
    override async acquireConnection() {
      return {
        async executeQuery<Row>({ sql }: { readonly sql: string }): Promise<QueryResult<Row>> {
          statements.push(sql)
          return { rows: sql.startsWith('SHOW VARIABLES') ? (rows as Row[]) : [] }
        },
        async *streamQuery() {},
      }
    }
  }
  const db = new Kysely({
    dialect: {
      createAdapter: () => new MysqlAdapter(),
      createDriver: () => new Node(),
      createIntrospector: (database) => new MysqlIntrospector(database),
      createQueryCompiler: () => new MysqlQueryCompiler(),
    },
  })
  return { db, statements }
}

test('the tables are not created on a Galera node whose sessions read what is out of date', async () => {
  const { db, statements } = galeraNode('6')
  const error = await migrate(db, { dialect: 'mysql' }).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(DatabaseSettingsError)
  expect(error).toMatchObject({
    code: 'ERR_DATABASE_SETTINGS',
    message: expect.stringContaining('wsrep_sync_wait = 1'),
  })
  expect(statements).toHaveLength(1)
})

test('the tables are created on a Galera node whose sessions wait for the commits of others', async () => {
  const { db } = galeraNode('7')
  expect(await migrate(db, { dialect: 'mysql' })).toEqual({ applied: ['records'] })
})
