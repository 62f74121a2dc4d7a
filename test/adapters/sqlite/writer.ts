import { migrate, sqliteStore } from '../../../adapters/sqlite.js'
import { loadOne } from '../../support/one-record.js'
import { sqliteDrivers } from '../../support/sqlite.js'

/**
 * Adds to one record as one of several processes: `writer.ts <driver> <file> <times>`. Prints the commits that lost.
 */
const [driver = '', file = '', times = ''] = process.argv.slice(2)
const open = sqliteDrivers[driver]
if (open === undefined) throw new Error(`no driver ${driver}`)
const database = open(file)
await migrate(database)
const store = sqliteStore(database)
const id = 'counter-'
const commandId = `${process.pid}`
let lost = 0
for (let done = 0; done < Number(times); ) {
  const version = (await loadOne(store, 'budget', id))?.version ?? 0
  const next = { id, version: version + 1, commandId }
  const event = { id: `${id}${version + 1}`, version: 1, commandId }
  const changes = [
    { kind: 'budget', next, expectedVersion: version },
    { kind: 'event', next: event, expectedVersion: 0 },
  ] as const
  if (await store.commit({ changes, guards: [] })) done++
  else lost++
}
console.log(lost)
