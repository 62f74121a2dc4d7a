import {
  type CaseDefinition,
  demand,
  demandSame,
  isSame,
  mustPut,
  put,
  record,
  show,
  type TestRecord,
  type Trial,
} from './trial.js'

export const isolationCases: readonly CaseDefinition[] = [
  {
    name: 'changing a loaded value changes neither the record nor other loaded values',
    rule: 4,
    needs: { lists: 1, due: true },
    check: loadedIsOwn,
  },
  {
    name: 'changing a value from list or due changes nothing else',
    rule: 4,
    needs: { lists: 1, due: true },
    check: listedIsOwn,
  },
  {
    name: 'changing a value after its commit changes nothing in the store',
    rule: 4,
    needs: { lists: 1, due: true },
    check: committedIsOwn,
  },
  {
    name: 'a value that changes during its commit is stored as it was at one moment',
    rule: 4,
    shapes: 'any',
    check: committedIsWhole,
  },
]

/** A whole record, which the case commits and reads without the dresser. */
function wholeRecord({ dress, shapes }: Trial, id: string, wanted: string): TestRecord {
  const parts = shapes === 'any' ? { deep: { list: [1, { a: 'a' }] }, text: 'a' } : {}
  return dress(record(id, 1, { dueAt: 5, lists: [{ list: wanted, at: 5 }], ...parts }))
}

/** Changes a value in place wherever it is mutable; a store may also return frozen values. */
function deface(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) deface(member)
  if (Array.isArray(value)) Reflect.set(value, value.length, 'defaced')
  for (const key of Object.keys(value)) {
    if (typeof Reflect.get(value, key) !== 'object') Reflect.set(value, key, 'defaced')
  }
  Reflect.set(value, 'defaced', true)
}

async function loadedIsOwn(trial: Trial): Promise<void> {
  const { bare: store, namespace } = trial
  const id = `${namespace}-a`
  const written = wholeRecord(trial, id, `${namespace} list`)
  await mustPut(store, structuredClone(written))
  const [mine, others] = [await store.load(store.kind, id), await store.load(store.kind, id)]
  deface(mine)
  demandSame(others, written, 'a loaded value after another loaded value was changed')
  demandSame(
    await store.load(store.kind, id),
    written,
    'the record after a loaded value was changed',
  )
  const page = await store.list({
    kind: store.kind,
    list: `${namespace} list`,
    forward: true,
    limit: 5,
  })
  demandSame(page.records, [written], 'the list after a loaded value was changed')
  await mustPut(store, { ...written, version: 2 })
}

async function listedIsOwn(trial: Trial): Promise<void> {
  const { bare: store, namespace } = trial
  const id = `${namespace}-a`
  const wanted = `${namespace} list`
  const written = wholeRecord(trial, id, wanted)
  await mustPut(store, structuredClone(written))
  const list = () => store.list({ kind: store.kind, list: wanted, forward: true, limit: 5 })
  deface(await list())
  demandSame(
    await store.load(store.kind, id),
    written,
    'the record after a page of a list was changed',
  )
  demandSame(
    await list(),
    { records: [written], more: false },
    'the list after a page of it was changed',
  )
  deface(await store.due(store.kind, namespace, 5, 5))
  demandSame(
    await store.load(store.kind, id),
    written,
    'the record after a result of due was changed',
  )
  demandSame(
    await list(),
    { records: [written], more: false },
    'the list after a result of due was changed',
  )
}

async function committedIsOwn(trial: Trial): Promise<void> {
  const { bare: store, namespace } = trial
  const wanted = `${namespace} list`
  const id = `${namespace}-a`
  for (const version of [1, 2]) {
    const given = { ...wholeRecord(trial, id, wanted), version }
    const written = structuredClone(given)
    const changes = [{ kind: store.kind, next: given, expectedVersion: version - 1 }]
    const committed = await store.commit({ changes, guards: [] })
    demand(committed === true, `commit returned ${show(committed)}; expected true`)
    deface(changes)
    demandSame(
      await store.load(store.kind, id),
      written,
      'the record after the caller changed the value that it committed',
    )
    const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 5 })
    demandSame(
      page.records,
      [written],
      'the list after the caller changed the value that it committed',
    )
  }
}

async function committedIsWhole({ bare: store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  for (let round = 0; round < 6; round++) {
    const id = `${namespace}-${round}`
    const given = { ...record(id), marks: [0, 0], lists: [{ list: wanted, at: round }], last: 0 }
    const running = put(store, given)
    for (let i = 0; i < round; i++) await undefined
    given.marks[0] = 1
    given.marks[1] = 1
    given.last = 1
    demand((await running) === true, 'commit of a new record did not return true')
    given.marks[0] = 2
    const found = await store.load(store.kind, id)
    const either = [0, 1].map((mark) => ({ ...given, marks: [mark, mark], last: mark }))
    demand(
      either.some((whole) => isSame(found, whole)),
      `a value changed during its commit; the stored value must be the one before or after the change, but is ` +
        show(found),
    )
    const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 20 })
    demandSame(page.records.at(-1), found, 'the record from list, compared with the one from load')
  }
}
