import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { columns } from '../../adapters/sql/records.js'
import { isLong, onlyLong } from '../support/runs.js'
import { type Address, type Connection, connect, databases, type Fresh } from './databases.js'
import { begun, current, goldenOf, goneOn, isWriting, putRecords, versions } from './golden.js'
import { lives } from './lives.js'
import type { Begun, Order } from './runner.js'

/** The rows of each life, without the columns that are null. The column `value` is the JSON of the golden record. */
type Rows = Readonly<Record<string, readonly Readonly<Record<string, string | number>>[]>>

const folder = 'test/golden/tables'
const separator = ';\n--\n'
const names = Object.keys(lives)
const someNames = isLong ? names : names.filter((_, index) => index % 7 === 0)

/** Opens a database of its own, for one test. */
async function withFresh<Result>(
  fresh: () => Promise<Fresh>,
  work: (connection: Connection, address: Address) => Promise<Result>,
): Promise<Result> {
  const { address, drop } = await fresh()
  const connection = connect(address)
  try {
    return await work(connection, address)
  } finally {
    await connection.close()
    await drop()
  }
}

async function writeTables(kind: string, fresh: () => Promise<Fresh>): Promise<void> {
  const rows: Record<string, unknown[]> = {}
  for (const name of names) {
    const golden = await begun(name)
    await withFresh(fresh, async ({ store, migrate, run, schema }) => {
      await migrate()
      const path = `${folder}/${current}/${kind}`
      mkdirSync(`${folder}/${current}`, { recursive: true })
      writeFileSync(`${path}.sql`, `${(await schema()).join(separator)};\n`)
      await putRecords(store, golden)
      const list = columns.join(', ')
      const found = await run(`SELECT ${list} FROM open_payments_records ORDER BY kind, id`)
      rows[name] = found.map((row) => {
        const text = (value: unknown) => (typeof value === 'number' ? value : String(value))
        const given = Object.entries(row).filter(([, value]) => value !== null)
        const { value, ...others } = Object.fromEntries(given.map(([key, at]) => [key, text(at)]))
        const { record } = golden.records.find(({ record }) => record.id === others['id']) ?? {}
        expect(value).toBe(JSON.stringify(record))
        return others
      })
      writeFileSync(`${path}.rows.json`, `${JSON.stringify(rows, null, 2)}\n`)
    })
  }
}

/** Creates the tables as a version has left them. */
async function createTables({ run }: Connection, version: string, kind: string): Promise<void> {
  const text = readFileSync(`${folder}/${version}/${kind}.sql`, 'utf8').replace(/;\n$/, '')
  for (const statement of text.split(separator)) await run(statement)
}

/** Inserts the rows of a life as a version has written them. */
async function insertRows({ run }: Connection, version: string, kind: string, name: string) {
  const rows = JSON.parse(readFileSync(`${folder}/${version}/${kind}.rows.json`, 'utf8')) as Rows
  const { records } = goldenOf(version, name)
  for (const row of rows[name] ?? []) {
    const found = records.find((each) => each.kind === row['kind'] && each.record.id === row['id'])
    const cells = Object.entries({ ...row, value: JSON.stringify(found?.record) })
    const literals = cells.map(([column, value]) => literalOf(kind, column, value))
    const list = cells.map(([column]) => column).join(', ')
    await run(`INSERT INTO open_payments_records (${list}) VALUES (${literals.join(', ')})`)
  }
}

function literalOf(kind: string, column: string, value: string | number): string {
  if (column === 'version' || column.endsWith('_at')) return String(value)
  const escaped = kind === 'mariadb' ? String(value).replaceAll('\\', '\\\\') : String(value)
  return `'${escaped.replaceAll("'", "''")}'`
}

const runners: ChildProcess[] = []
const folders: string[] = []
afterAll(() => {
  for (const runner of runners) runner.kill()
  for (const path of folders) rmSync(path, { recursive: true })
})

/** The files of a version: those of its tag, if it is released, with the modules that are installed. */
function folderOf(version: string): string {
  if (version === current) return resolve('.')
  const path = mkdtempSync(join(tmpdir(), 'open-payments-version-'))
  folders.push(path)
  const archive = execFileSync('git', ['archive', `v${version}`], { maxBuffer: 2 ** 28 })
  execFileSync('tar', ['-x', '-C', path], { input: archive })
  symlinkSync(resolve('node_modules'), join(path, 'node_modules'))
  return path
}

/** Starts a process with the code of a version, which carries out orders. */
function startRunner(version: string) {
  const cwd = folderOf(version)
  const runner = fork(join(cwd, 'test/golden/runner.ts'), { cwd, execArgv: ['--import', 'tsx'] })
  runners.push(runner)
  const ended = once(runner, 'exit').then(() => [{ problem: 'the process has ended' }])
  return async (order: Order): Promise<Begun | undefined> => {
    runner.send({ order })
    const [{ begun, problem }] = await Promise.race([once(runner, 'message'), ended])
    if (problem !== undefined) throw new Error(`version ${version}: ${problem}`)
    return begun
  }
}

describe.each(Object.entries(databases))('tables of %s', (kind, fresh) => {
  if (fresh === undefined) return test.skip('skipped: there is no such database here', () => {})

  if (isWriting) test('are written', () => writeTables(kind, fresh))

  const migrated = withFresh(fresh, async ({ migrate, schema }) => {
    await migrate()
    return schema()
  })
  migrated.catch(() => undefined) // the test reports it

  describe.each(versions)('that version %s created', (version) => {
    test('become those that this version creates', async () => {
      await withFresh(fresh, async (connection) => {
        await createTables(connection, version, kind)
        await connection.migrate()
        expect(await connection.schema()).toEqual(await migrated)
      })
    })

    test.each(names)('let %s go on', async (name) => {
      await withFresh(fresh, async (connection) => {
        await createTables(connection, version, kind)
        await insertRows(connection, version, kind, name)
        await connection.migrate()
        await goneOn(connection.store, name, goldenOf(version, name))
      })
    })

    test.runIf(isLong)(`serve that version and this one at the same time${onlyLong}`, async () => {
      const [older, newer] = [startRunner(version), startRunner(current)]
      for (const life of someNames) {
        await withFresh(fresh, async (connection, address) => {
          await createTables(connection, version, kind)
          await insertRows(connection, version, kind, life)
          const { at, notes } = goldenOf(version, life)
          // The older processes serve while the first newer one migrates.
          await Promise.all([
            older({ address, does: 'go on', life, who: 'shop', at, notes }),
            newer({ address, does: 'migrate' }),
          ])
          // Then each goes on with what the other has written.
          for (const [who, first, second] of [
            ['one', newer, older],
            ['two', older, newer],
          ] as const) {
            await connection.run('DELETE FROM open_payments_records')
            const begun = await first({ address, does: 'begin', life, who })
            if (begun !== undefined) await second({ address, does: 'go on', life, who, ...begun })
          }
        })
      }
    })
  })
})
