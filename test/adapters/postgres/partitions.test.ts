import { readFileSync } from 'node:fs'
import { storeConformance } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate, postgresStore } from '../../../adapters/postgres.js'
import type { RecordKind } from '../../../src/entry-adapter.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'
import { isLong } from '../../support/runs.js'

/** The statements of docs/sizing.md that divide the table of records. */
function documentedStatements(): string {
  const [, section = ''] = readFileSync('docs/sizing.md', 'utf8').split('### Partitions\n')
  const [, statements = ''] = /```sql\n([\s\S]*?)```/.exec(section) ?? []
  return statements
}

describe.skipIf(servers.PostgreSQL === undefined)('a table that is divided as documented', () => {
  let fresh: FreshPostgres
  const kinds: RecordKind[] = ['event', 'grant']

  beforeAll(async () => {
    fresh = await freshPostgres()
    const { pool, schema } = fresh
    const changes = kinds.map((kind) => {
      const next = { id: `before-${kind}`, version: 1, commandId: 'c', dueAt: 5 }
      return { kind, next, expectedVersion: 0 }
    })
    await postgresStore(pool, { schema }).commit({ changes, guards: [] })
    const client = await pool.connect()
    await client.query(`SET search_path = ${schema}`)
    await client.query(documentedStatements())
    client.release(true)
  })
  afterAll(() => fresh?.drop())

  test('keeps its records, and puts those that live for minutes apart', async () => {
    const { pool, schema } = fresh
    const store = postgresStore(pool, { schema })
    for (const kind of kinds) {
      expect(await loadOne(store, kind, `before-${kind}`)).toMatchObject({ dueAt: 5 })
      expect(await store.due(kind, 'before-e', 9, 9)).toHaveLength(kind === 'event' ? 1 : 0)
    }
    const { rows } = await pool.query(`SELECT kind FROM ${schema}.open_payments_brief`)
    expect(rows).toEqual([{ kind: 'event' }])
  })

  test('needs no other migration', async () => {
    expect(await migrate(fresh.pool, { schema: fresh.schema })).toEqual({ applied: [] })
  })

  const some: readonly unknown[] = [1, 6] // versions, and the lists: values do not depend on where they are stored
  const store = () => postgresStore(fresh.pool, { schema: fresh.schema })
  for (const each of storeConformance(store, isLong ? {} : { kinds })) {
    if (isLong || (some.includes(each.rule) && !each.search)) test(each.name, each.run)
  }
})
