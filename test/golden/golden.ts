import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { seededRandom } from '../support/random.js'
import { createSpendingWorld } from '../support/spending.js'
import { lives, mayPay } from './lives.js'

/** What the records of a life were when a version of the library wrote them. */
export interface Golden {
  /** The instant at which the life stops. */
  readonly at: number
  readonly notes: unknown
  readonly records: readonly { readonly kind: RecordKind; readonly record: Stored }[]
}

const folder = 'test/golden/records'
/** Released versions only read their folders. Before its release, `GOLDEN=write` writes that of the current version. */
export const current = JSON.parse(readFileSync('package.json', 'utf8')).version as string
export const isWriting = process.env['GOLDEN'] === 'write'
export const versions: readonly string[] = readdirSync(folder)

const fileOf = (version: string, name: string) =>
  `${folder}/${version}/${name.replaceAll(' ', '-').replaceAll(',', '')}.json`

export function goldenOf(version: string, name: string): Golden {
  return JSON.parse(readFileSync(fileOf(version, name), 'utf8'))
}

export async function writeGolden(): Promise<void> {
  mkdirSync(`${folder}/${current}`, { recursive: true })
  for (const name of Object.keys(lives)) {
    writeFileSync(fileOf(current, name), `${JSON.stringify(await begun(name), null, 2)}\n`)
  }
}

/** A store that keeps each record that it holds where the test can see it. */
function watchedStore() {
  const store = memoryStore()
  const records = new Map<string, { readonly kind: RecordKind; readonly record: Stored }>()
  const watched: Store = {
    ...store,
    async commit(commit) {
      const committed = await store.commit(commit)
      for (const { kind, next } of committed ? commit.changes : []) {
        records.set(`${kind} ${next.id}`, { kind, record: structuredClone(next) })
      }
      return committed
    },
    async remove(given) {
      const removed = await store.remove(given)
      for (const [i, { kind, id }] of given.entries()) {
        if (removed[i]) records.delete(`${kind} ${id}`)
      }
      return removed
    },
  }
  return { store: watched, records }
}

/** Begins a life with this version. */
export async function begun(name: string): Promise<Golden> {
  const { store, records } = watchedStore()
  const clock = manualClock()
  const world = createSpendingWorld({ store, clock, resources: { policy: { mayPay } } })
  const notes = await lives[name]?.begin(world, world.client())
  const sorted = [...records].sort(([one], [other]) => (one < other ? -1 : 1))
  return { at: clock.now(), notes, records: sorted.map(([, record]) => record) }
}

/** Writes the records of a life to an empty store. */
export async function putRecords(store: Store, { records }: Golden): Promise<void> {
  for (const { kind, record } of records) {
    // A store accepts a record at its first version only, so write each version up to it.
    for (let number = 1; number <= record.version; number++) {
      const next = { ...record, version: number }
      const { lists = [], dueAt } = record
      const previous = { lists, ...(dueAt !== undefined && { dueAt }) }
      const change = { kind, next, expectedVersion: number - 1 }
      const changes = [number === 1 ? change : { ...change, previous }]
      const isWritten = await store.commit({ changes, guards: [] })
      if (!isWritten) throw new Error(`the store has the record ${record.id}`)
    }
  }
}

/** Lets a life that began in a store go on there, with this version. */
export async function goneOn(
  store: Store,
  name: string,
  { at, notes }: Pick<Golden, 'at' | 'notes'>,
) {
  // With the random bytes of the beginning, commands would take the records for their own earlier writes.
  const random = seededRandom('golden')
  const clock = manualClock(at)
  const resources = { random, policy: { mayPay } }
  const world = createSpendingWorld({ store, clock, auth: { random }, resources })
  await lives[name]?.goOn(world, world.client('shop', { nonces: 1_000 }), notes)
}
