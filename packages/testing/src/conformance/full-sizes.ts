import { storeBounds } from 'open-payments-server/adapter'
import { demand, demandSame, show } from './expectations.js'
import {
  cases,
  change,
  compareIds,
  demandOne,
  idsOf,
  record,
  steps,
  type TestChange,
  type Trial,
} from './trial.js'

/**
 * Races with as many records as the bounds allow. A store may take them in parts, such as 25 or 100 of a transaction,
 * where the parts are each right and the whole is not; races of a few records never reach the second part.
 */
export const fullSizeCases = [
  cases(
    { rule: 3, search: true },
    {
      async 'one load of the maximum number of keys is one snapshot of commits of the maximum size'(
        t,
      ) {
        const versions = 4 * t.searches
        // A real record joins and leaves up to three lists with each version, so that fewer of them fit in a commit.
        const together = t.shapes === 'real' ? 12 : greatest(t, t.id).length
        const ids = Array.from({ length: Math.max(together, storeBounds.loadKeys) }, (_, i) =>
          t.id(100 + i),
        )
        // The ends of a commit and of the load: what is taken in parts is in different parts.
        const half = storeBounds.loadKeys / 2
        const loaded = [...ids.slice(0, half), ...ids.slice(-half)]
        let writing = true
        async function write() {
          try {
            for (let version = 1; version <= versions; version++) {
              for (const part of partsOf(ids, together)) {
                await t.mustWrite(part.map((id) => change(record(id, version))))
              }
            }
          } finally {
            writing = false
          }
        }
        async function read() {
          for (let round = 1; writing; round++) {
            // A store that never waits would otherwise keep the writers from running.
            if (round % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 0))
            const inOrder = round % 2 === 0
            const asked = inOrder ? loaded : loaded.toReversed()
            const found = await t.load(asked.map((id) => ({ kind: t.kind, id })))
            const seen = found.map((each) => each?.version ?? 0)
            const byCommit = partsOf(inOrder ? seen : seen.toReversed(), together)
            // The commits follow each other: none is a version ahead of the one before it, or two behind the first.
            const at = byCommit.map(([version = 0]) => version)
            const isSnapshot =
              byCommit.every((part) => new Set(part).size === 1) &&
              at.every((version, i) => version <= (at[i - 1] ?? version)) &&
              (at.at(-1) ?? 0) >= (at[0] ?? 0) - 1
            demand(
              isSnapshot,
              () =>
                `one load of ${asked.length} keys returned the versions ${show(seen)} of records of which each ` +
                `${together} are always committed together, one ${together} after the other (0: not there); ` +
                'expected one snapshot: read them in one statement or transaction',
            )
          }
        }
        await Promise.all([write(), read()])
      },
    },
  ),

  cases(
    { rule: 2, search: true },
    {
      async 'a writer that loses a race with a commit of the maximum size leaves no trace in any record'(
        t,
      ) {
        await t.rounds(2, async (round) => {
          const wanted = t.id(`${round}-wanted`)
          await t.mustPut(record(wanted))
          const writers = Array.from({ length: 4 }, (_, writer) => {
            const own = greatest(t, (name) => t.id(`${round}-${writer}-${name}`))
            const replaced = change(record(wanted, 2, { commandId: `writer ${writer}` }))
            // The record that they want is among the last, or among the first.
            return writer % 2 === 0 ? [...own, replaced] : [replaced, ...own]
          })
          const outcomes = await Promise.all(
            writers.map(async (changes, writer) => {
              await steps((round + writer) % 3)
              return t.write(changes)
            }),
          )
          demandOne(outcomes, '4 commits of the maximum size replaced the same version')
          for (const [writer, changes] of writers.entries()) {
            const own = idsOf(changes.map(({ next }) => next)).filter((id) => id !== wanted)
            const left = (await t.versions(own)).filter((version) => version > 0).length
            demandSame(
              left,
              outcomes[writer] ? own.length : 0,
              `how many of the ${own.length} records exist that a commit of the maximum size created whose outcome ` +
                `was ${outcomes[writer]}`,
            )
          }
        })
      },
    },
  ),

  cases(
    { rule: 'remove', search: true },
    {
      async 'of the maximum number of records that are removed at once, each is gone or was replaced'(
        t,
      ) {
        const stored = 20
        const written = Array.from({ length: stored }, (_, i) => record(t.id(`x${i}`)))
        await t.mustPut(...written)
        const apart = storeBounds.removeRecords / stored
        const asked = Array.from({ length: storeBounds.removeRecords }, (_, i) => ({
          kind: t.kind,
          // The last of each part exists, so that the last of all does.
          id: i % apart === apart - 1 ? t.id(`x${(i + 1) / apart - 1}`) : t.id(`absent${i}`),
          version: 1,
        }))
        const replacing = written.map(async ({ id }, i) => {
          await steps(2 * i)
          return t.put(record(id, 2))
        })
        const [answers, ...replaced] = await Promise.all([t.remove(asked), ...replacing])
        const removed = written.map(({ id }) => answers[asked.findIndex((each) => each.id === id)])
        demandSame(
          await t.versions(idsOf(written)),
          replaced.map((did) => (did ? 2 : 0)),
          'versions of records that were removed among 1,000 while commits replaced them (2: its commit returned ' +
            'true; 0: it returned false)',
        )
        demandSame(
          removed,
          replaced.map((did) => !did),
          'what remove returned for each of them (expected true exactly for those that no commit replaced)',
        )
      },
    },
  ),

  cases(
    { rule: 6, search: true, needs: { lists: 1 } },
    {
      async 'pages of the maximum length have each earlier record once while others join and leave before it'(
        t,
      ) {
        for (const forward of [true, false]) {
          const list = t.listName(`${forward}`)
          const id = (name: string) => t.id(`${forward}-${name}`)
          const at = (place: number) => ({ lists: [{ list, at: forward ? place : -place }] })
          const old = Array.from({ length: 130 }, (_, i) =>
            record(id(`old${1000 + i}`), 1, at(1_000 + i)),
          )
          await t.mustPut(...old)
          let paging = true
          async function write() {
            for (let i = 0; paging && i < 60; i++) {
              await t.mustPut(record(id(`new${i}`), 1, at(i)))
              if (i % 3 === 2) await t.removeOne(t.kind, id(`new${i - 1}`), 1)
            }
          }
          async function read() {
            const found: string[] = []
            try {
              let cursor: { readonly at: number; readonly id: string } | undefined
              for (let more = true; more; ) {
                const limit = storeBounds.listLimit
                const query = { forward, limit, ...(cursor !== undefined && { cursor }) }
                const page = await t.page(list, query)
                const last = page.records.at(forward ? -1 : 0)
                const place = last?.lists?.find((each) => each.list === list)
                demand(
                  last !== undefined && place !== undefined,
                  'a page of a list with 130 records has none of them',
                )
                cursor = { at: place.at, id: last.id }
                found.push(...idsOf(page.records))
                more = page.more
              }
            } finally {
              paging = false
            }
            return found
          }
          for (let round = 0; round < t.searches; round++) {
            paging = true
            const [found] = await Promise.all([read(), round === 0 ? write() : undefined])
            demandSame(
              found.filter((each) => each.startsWith(id('old'))).toSorted(compareIds),
              idsOf(old).toSorted(compareIds),
              'ids of the records that existed before the first page was read, on pages of 100 while others joined ' +
                'and left the list before them (each expected exactly once)',
            )
          }
        }
      },
    },
  ),
].flat()

/** Returns the elements in their order, a number of them in each part. */
function partsOf<Each>(all: readonly Each[], size: number): readonly (readonly Each[])[] {
  const count = Math.ceil(all.length / size)
  return Array.from({ length: count }, (_, i) => all.slice(i * size, (i + 1) * size))
}

/** Makes creations of almost the maximum size of a commit: one more change has a place. */
function greatest(t: Trial, idOf: (name: number) => string): readonly TestChange[] {
  const changes: TestChange[] = []
  let size = 0
  for (;;) {
    const next = change(record(idOf(changes.length)))
    size += t.sizeOf([next])
    if (size > storeBounds.commitSize - 4) return changes
    changes.push(next)
  }
}
