import {
  DummyDriver,
  Kysely,
  MysqlAdapter,
  MysqlIntrospector,
  MysqlQueryCompiler,
  type QueryResult,
} from 'kysely'

/** Returns a server with these variables, which remembers its migration, and the statements that it gets. */
export function mysqlWith(changed: object, { isMigrated = false } = {}) {
  const statements: string[] = []
  const variables = {
    autocommit: 'ON',
    character_set_client: 'utf8mb4',
    character_set_connection: 'utf8mb4',
    character_set_results: 'utf8mb4',
    sql_mode: '',
    ...changed,
  }
  const rows = Object.entries(variables).map(([Variable_name, Value]) => ({ Variable_name, Value }))
  class Server extends DummyDriver {
    override async acquireConnection() {
      return {
        async executeQuery<Row>({ sql }: { readonly sql: string }): Promise<QueryResult<Row>> {
          statements.push(sql)
          const isApplied = isMigrated || statements.some((text) => text.startsWith('INSERT INTO'))
          const versions = isApplied ? [{ value: 1 }] : []
          return { rows: (sql.startsWith('SHOW VARIABLES') ? rows : versions) as Row[] }
        },
        async *streamQuery() {},
      }
    }
  }
  const db = new Kysely({
    dialect: {
      createAdapter: () => new MysqlAdapter(),
      createDriver: () => new Server(),
      createIntrospector: (database) => new MysqlIntrospector(database),
      createQueryCompiler: () => new MysqlQueryCompiler(),
    },
  })
  return { db, statements }
}
