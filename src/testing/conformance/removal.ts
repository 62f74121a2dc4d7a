import {
  atOnce,
  type CaseDefinition,
  demand,
  demandSame,
  mustPut,
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
    check: goneEverywhere,
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
    check: removedByOne,
  },
  {
    name: 'a record that is removed and replaced concurrently is either gone or replaced',
    rule: 'remove',
    check: removedOrReplaced,
  },
]

async function goneEverywhere({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const [a, b] = ['a', 'b'].map((name, at) =>
    record(`${namespace}-${name}`, 1, { dueAt: 1, lists: [{ list: wanted, at }] }),
  ) as [ReturnType<typeof record>, ReturnType<typeof record>]
  await mustPut(store, a, b)
  const removed = await store.remove('grant', a.id, 1)
  demand(removed === true, `remove at the stored version returned ${show(removed)}; expected true`)
  const found = await store.load('grant', a.id)
  demand(
    found === undefined,
    `load returned ${show(found)} for a removed record; expected undefined`,
  )
  for (const forward of [true, false]) {
    const page = await store.list({ kind: 'grant', list: wanted, forward, limit: 1 })
    demandSame(
      page,
      { records: [b], more: false },
      'a list of two records of which one was removed',
    )
  }
  const again = await store.remove('grant', a.id, 1)
  demand(
    again === false,
    `removing a record for a second time returned ${show(again)}; expected false`,
  )
  demandSame(await store.load('grant', b.id), b, 'the record next to the removed one')
}

async function atItsVersionOnly({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  await mustPut(store, record(id, 2))
  for (const version of [0, 1, 3]) {
    const removed = await store.remove('grant', id, version)
    demand(
      removed === false,
      `removing version ${version} of a record at version 2 returned ${show(removed)}; expected false`,
    )
    demandSame(await store.load('grant', id), record(id, 2), 'the record, which must still exist')
  }
  demand(await store.remove('grant', id, 2), 'remove at the stored version did not return true')
}

async function onlyWhatExists({ store, namespace }: Trial): Promise<void> {
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  await mustPut(store, record(a))
  for (const version of [0, 1]) {
    const absent = await store.remove('grant', b, version)
    demand(
      absent === false,
      `removing a record that does not exist returned ${show(absent)}; expected false`,
    )
    const foreign = await store.remove('event', a, version)
    demand(
      foreign === false,
      `removing an event that does not exist returned ${show(foreign)}; only a grant has that id`,
    )
  }
  demandSame(
    await store.load('grant', a),
    record(a),
    'the record after a removal of its id as another kind',
  )
}

async function removedByOne({ store, namespace }: Trial): Promise<void> {
  for (let round = 0; round < 8; round++) {
    const id = `${namespace}-${round}`
    await mustPut(store, record(id))
    const outcomes = await atOnce(16, () => store.remove('grant', id, 1))
    const winners = outcomes.filter(Boolean).length
    demand(
      winners === 1,
      `16 callers removed one record concurrently and ${winners} calls returned true; expected exactly one`,
    )
    demand((await versionOf(store, id)) === 0, 'a record still exists after its removal')
  }
}

async function removedOrReplaced({ store, namespace }: Trial): Promise<void> {
  for (let round = 0; round < 24; round++) {
    const id = `${namespace}-${round}`
    await mustPut(store, record(id))
    const [removed, replaced] = await atOnce(2, async (i) => {
      await steps(i === 0 ? round % 4 : (round >> 2) % 3)
      return i === 0 ? store.remove('grant', id, 1) : put(store, record(id, 2))
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
  }
}
