import {
  atOnce,
  type CaseDefinition,
  demand,
  demandSame,
  eventually,
  mustPut,
  mustRemove,
  put,
  record,
  show,
  steps,
  type Trial,
  versionOf,
} from './trial.js'

export const removalCases: readonly CaseDefinition[] = [
  {
    name: 'a removed record is gone from load and from every list',
    rule: 'remove',
    needs: { lists: 1, due: true },
    check: goneEverywhere,
  },
  {
    name: 'a record that is created again after its removal is in none of its earlier lists, and not due',
    rule: 'remove',
    needs: { lists: 1, due: true },
    check: leavesNoPlaces,
  },
  {
    name: 'remove only removes a record at the given version',
    rule: 'remove',
    check: atItsVersionOnly,
  },
  {
    name: 'remove returns false for a record that does not exist or exists as another kind only',
    rule: 'remove',
    check: onlyWhatExists,
  },
  {
    name: 'exactly one of 16 concurrent removals of a record succeeds',
    rule: 'remove',
    search: true,
    check: removedByOne,
  },
  {
    name: 'a record that is removed and replaced concurrently is either gone or replaced',
    rule: 'remove',
    search: true,
    check: removedOrReplaced,
  },
]

async function goneEverywhere({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const [a, b] = ['a', 'b'].map((name, at) =>
    record(`${namespace}-${name}`, 1, { dueAt: 1, lists: [{ list: wanted, at }] }),
  ) as [ReturnType<typeof record>, ReturnType<typeof record>]
  await mustPut(store, a, b)
  const removed = await store.remove(store.kind, a.id, 1)
  demand(removed === true, `remove at the stored version returned ${show(removed)}; expected true`)
  const found = await store.load(store.kind, a.id)
  demand(
    found === undefined,
    `load returned ${show(found)} for a removed record; expected undefined`,
  )
  for (const forward of [true, false]) {
    const page = await store.list({ kind: store.kind, list: wanted, forward, limit: 1 })
    demandSame(
      page,
      { records: [b], more: false },
      'a list of two records of which one was removed',
    )
  }
  const again = await store.remove(store.kind, a.id, 1)
  demand(
    again === false,
    `removing a record for a second time returned ${show(again)}; expected false`,
  )
  demandSame(await store.load(store.kind, b.id), b, 'the record next to the removed one')
}

async function leavesNoPlaces({ store, namespace, dueLagMs }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const wanted = `${namespace} list`
  const listed = record(id, 1, { dueAt: 1, lists: [{ list: wanted, at: 1 }] })
  await mustPut(store, listed)
  await mustRemove(store, id, 1)
  await mustPut(store, record(id))
  const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 5 })
  demandSame(
    page,
    { records: [], more: false },
    'a list after its only record was removed, and created again without lists',
  )
  await eventually(dueLagMs, async () =>
    demandSame(
      await store.due(store.kind, namespace, 1, 5),
      [],
      'what is due after the only due record was removed, and created again without a due time',
    ),
  )
}

async function atItsVersionOnly({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  await mustPut(store, record(id, 2))
  for (const version of [0, 1, 3]) {
    const removed = await store.remove(store.kind, id, version)
    demand(
      removed === false,
      `removing version ${version} of a record at version 2 returned ${show(removed)}; expected false`,
    )
    demandSame(
      await store.load(store.kind, id),
      record(id, 2),
      'the record, which must still exist',
    )
  }
  demand(await store.remove(store.kind, id, 2), 'remove at the stored version did not return true')
}

async function onlyWhatExists({ store, namespace }: Trial): Promise<void> {
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  await mustPut(store, record(a))
  for (const version of [0, 1]) {
    const absent = await store.remove(store.kind, b, version)
    demand(
      absent === false,
      `removing a record that does not exist returned ${show(absent)}; expected false`,
    )
    const foreign = await store.remove(store.other, a, version)
    demand(
      foreign === false,
      `removing a ${store.other} that does not exist returned ${show(foreign)}; only a ${store.kind} has that id`,
    )
  }
  demandSame(
    await store.load(store.kind, a),
    record(a),
    'the record after a removal of its id as another kind',
  )
}

async function removedByOne({ store, namespace, rounds }: Trial): Promise<void> {
  await rounds(2, async (round) => {
    const id = `${namespace}-${round}`
    await mustPut(store, record(id))
    const outcomes = await atOnce(16, () => store.remove(store.kind, id, 1))
    const winners = outcomes.filter(Boolean).length
    demand(
      winners === 1,
      `16 callers removed one record concurrently and ${winners} calls returned true; expected exactly one`,
    )
    demand((await versionOf(store, id)) === 0, 'a record still exists after its removal')
  })
}

async function removedOrReplaced({ store, namespace, rounds }: Trial): Promise<void> {
  await rounds(6, async (round) => {
    const id = `${namespace}-${round}`
    await mustPut(store, record(id))
    const [removed, replaced] = await atOnce(2, async (i) => {
      await steps(i === 0 ? round % 4 : (round >> 2) % 3)
      return i === 0 ? store.remove(store.kind, id, 1) : put(store, record(id, 2))
    })
    const version = await versionOf(store, id)
    demand(
      removed !== replaced,
      `a record was removed and replaced concurrently, both from version 1: remove returned ${show(removed)} ` +
        `and commit ${show(replaced)}; expected exactly one true`,
    )
    demand(
      version === (replaced ? 2 : 0),
      `a record was ${removed ? 'removed' : 'replaced'}, and is at version ${version} (0: does not exist)`,
    )
  })
}
