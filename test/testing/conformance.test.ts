import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import { type ConformanceCase, storeConformance } from '../../src/testing/index.js'
import { commits, reads, values } from '../support/broken-stores.js'

/** The stores of one suite share their data, like two processes on one database. */
function casesOf(
  decorate: (store: Store) => Store,
  options: { readonly timeoutMs?: number } = {},
): readonly ConformanceCase[] {
  const shared = memoryStore()
  return storeConformance(() => decorate(shared), { sameData: true, dueLagMs: 0, ...options })
}

const allCases = storeConformance(memoryStore, { sameData: true })

async function problemOf({ run }: ConformanceCase): Promise<string | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Every fault, with parts of the names of the cases that must find it. Other cases may find it too. */
const faults: Readonly<Record<string, readonly [(store: Store) => Store, ...string[]]>> = {
  'the last write wins': [
    commits.lastWriteWins,
    'creates a record that does not exist exactly once',
    'replaces only the version that it expects',
    'replaces a record that does not exist',
    'replaces a removed record',
    'a removed record can be created again',
    'one creation that fails',
    'one replacement that fails',
    'repeated after it succeeded',
    '16 concurrent writers creates',
    '16 concurrent writers replaces',
    'concurrent increments by 12 workers',
    'concurrent moves of units',
  ],
  'checks before the commit': [
    (store) => commits.checkThenAct(store),
    '16 concurrent writers creates',
    '16 concurrent writers replaces',
    'loses a race leaves no trace',
    '12 workers on one record',
    'over overlapping records',
    'concurrent moves of units',
    'removed and replaced concurrently',
  ],
  'checks under a lock of one process': [
    commits.locksInProcess,
    'two stores that write one record',
    '12 workers over two stores',
  ],
  'an upsert instead of a creation': [
    commits.upsert,
    'creates a record that does not exist exactly once',
    'one creation that fails',
  ],
  'an upsert that restores a removed record': [
    commits.resurrects,
    'replaces a record that does not exist',
    'replaces a removed record',
    'removed and replaced concurrently',
  ],
  'later versions are accepted': [
    commits.takesLaterVersions,
    'replaces only the version that it expects',
    'a removed record can be created again',
  ],
  'a partial commit': [
    commits.halfCommit,
    'one creation that fails',
    'one replacement that fails',
    'loses a race leaves no trace',
    'are serializable',
    'over overlapping records',
    'concurrent moves of units',
  ],
  'a commit that becomes visible in parts': [
    commits.writesOneByOne,
    'never sees a part of a commit',
  ],
  'only the first record of a commit': [
    commits.firstOnly,
    'writes records of every kind together',
    '12 workers on one record',
  ],
  'lost events': [
    commits.losesEvents,
    'writes records of every kind together',
    'concurrent increments by 12 workers',
  ],
  'events written before their records': [commits.eventsFirst, 'loses a race leaves no trace'],
  'ignored guards': [
    commits.ignoresGuards,
    'a guard holds while its record is at its version',
    'a guard on a record that does not exist or was removed',
    'one guard of several',
    'a commit of guards alone',
    'if its guarded record was replaced',
    'if its guarded record was removed',
    'each guard the record that the other changes',
    'are serializable',
  ],
  'only the first guard': [commits.firstGuardOnly, 'one guard of several'],
  'guards that only check existing records': [
    commits.guardsOnlyWhatExists,
    'a guard on a record that does not exist or was removed',
    'if its guarded record was removed',
  ],
  'guards checked before the commit': [
    commits.guardsFirst,
    'if its guarded record was replaced',
    'if its guarded record was removed',
    'each guard the record that the other changes',
    'are serializable',
  ],
  'guards that write': [
    commits.writesGuards,
    'a guard writes nothing',
    'concurrent commits may guard the same record',
  ],
  'guards that ignore the kind': [commits.guardsAnyKind, 'a guard identifies its record by kind'],
  'unchecked guards without changes': [commits.skipsGuardsAlone, 'a commit of guards alone'],
  'a rejected empty commit': [commits.refusesNothing, 'an empty commit succeeds'],
  'a repeated commit that returns the first result': [
    commits.remembersCommits,
    'repeated after it succeeded',
  ],
  'false for a commit that landed': [
    commits.retriesWhatLanded,
    'creates a record that does not exist exactly once',
  ],
  'serialization failures that are not retried': [
    commits.failsUnderContention,
    '16 concurrent writers creates',
    '12 workers on one record',
    'concurrent commits may guard the same record',
  ],
  'conflicts without a winner': [
    commits.losesSpuriously,
    'concurrent commits may guard the same record',
    '12 workers over two stores',
  ],
  deadlocks: [
    commits.deadlocks,
    'are serializable',
    'over overlapping records',
    'concurrent moves of units',
  ],
  'an error for an existing record': [
    commits.rejectsDuplicates,
    'creates a record that does not exist exactly once',
    'one creation that fails',
  ],
  'the results of the driver': [
    commits.answersLikeTheDriver,
    'creates a record that does not exist exactly once',
    'an empty commit succeeds',
  ],
  'removal of any version': [
    commits.removesAnyVersion,
    'only removes a record at the given version',
  ],
  'a version check before the removal': [
    commits.checkThenRemove,
    '16 concurrent removals',
    'removed and replaced concurrently',
  ],
  'true for the removal of a missing record': [
    commits.removesWhatIsNotThere,
    'does not exist or exists as another kind',
    '16 concurrent removals',
    'gone from load and from every list',
  ],

  'loads that lag': [reads.laggingLoad, 'load sees a commit', 'load from a second store'],
  'lists that lag': [reads.laggingList, 'list sees a commit', 'list from a second store'],
  'true before it is durable': [
    reads.trueBeforeDurable,
    'load sees a commit',
    'list sees a commit',
    'a removed record can be created again',
  ],
  'loads from a cache in the process': [reads.cachesLoads, 'load from a second store'],
  'lists from a cache in the process': [reads.cachesPages, 'list from a second store'],
  'an unstable order of equal places': [
    reads.unstableOrder,
    'a list is ascending by place',
    'paging returns each record exactly once',
  ],
  'a cursor that ignores the id': [
    reads.cursorByTime,
    'the records next to its cursor',
    'does not have to be an existing record',
    'paging returns each record exactly once',
    'while other writers commit',
  ],
  'a page that includes its cursor': [reads.cursorIncluded, 'the records next to its cursor'],
  'a cursor that must be an existing record': [
    reads.cursorIsRecord,
    'does not have to be an existing record',
  ],
  'ids in the order of a locale': [
    reads.localeOrder,
    'a list is ascending by place',
    'due returns what is due',
  ],
  'numbers compared as text': [
    reads.textOrder,
    'orders places over the whole range',
    'due orders instants over the whole range',
  ],
  'backward pages from the start of the list': [
    reads.backwardsFromTheStart,
    'the records next to its cursor',
    'reports more exactly when',
  ],
  'backward pages in reverse order': [reads.backwardsReversed, 'a list is ascending by place'],
  'more: true for every full page': [reads.moreWhenFull, 'reports more exactly when'],
  'more: false one record too early': [
    reads.moreTooLate,
    'reports more exactly when',
    'paging returns each record exactly once',
  ],
  'pages by offset': [reads.pagesByOffset, 'while other writers commit'],
  'lists that ignore the kind': [
    reads.listsAnyKind,
    'exactly the records of its kind that name it',
  ],
  'only the first list': [reads.firstListOnly, 'each of its three lists'],
  'lists that keep old places': [
    reads.keepsOldPlaces,
    'moves it in its lists',
    'including members that the next version lacks',
    'gone from load and from every list',
  ],
  'due that ignores the namespace': [reads.dueOfAnyNamespace, 'due compares the namespace'],
  'due that matches a pattern': [reads.dueByPattern, 'due compares the namespace'],
  'due that ignores case': [reads.dueFoldsCase, 'due compares the namespace'],
  'due that excludes the instant itself': [
    reads.dueBeforeOnly,
    'due returns what is due at or before',
  ],
  'due without a limit': [reads.dueWithoutLimit, 'due returns the earliest'],
  'due that does not return the earliest': [reads.dueAnyFew, 'due returns the earliest'],
  'due for grants only': [reads.dueOfGrantsOnly, 'due returns records of its kind only'],
  'due that keeps the first due time': [reads.dueAsAtFirst, 'changes or removes its due time'],
  'methods that need their object': [reads.needsThis, 'work without their object'],

  'ids that ignore case': [
    values.foldsCase,
    'differ in one byte',
    'a list is ascending by place',
    '128 characters',
  ],
  'ids without trailing dots': [values.dropsTrailingDots, 'differ in one byte'],
  'ids cut to 64 characters': [values.cutsLongIds, '128 characters'],
  'no ids of one character': [values.needsLongIds, 'of one character'],
  'one table for every kind': [
    values.ignoresKinds,
    'kind and id together identify a record',
    'a guard identifies its record by kind',
    'writes records of every kind together',
    'due returns records of its kind only',
    'or exists as another kind',
  ],
  'list names cut to 255 characters': [
    values.cutsListNames,
    'exactly the records of its kind that name it',
  ],
  'list names without trailing spaces': [
    values.padsListNames,
    'exactly the records of its kind that name it',
  ],
  'text without U+0000': [values.dropsNulCharacters, 'U+0000', 'return any JSON unchanged'],
  'lone surrogates replaced': [
    values.manglesSurrogates,
    'a lone high surrogate',
    'a lone low surrogate',
    'surrogates in the wrong order',
    'a surrogate at the end',
    'return any JSON unchanged',
  ],
  'text of the basic plane only': [values.dropsSupplementary, 'text outside the basic plane'],
  'normalised text': [values.normalisesText, 'composed and decomposed letters'],
  'text without control characters': [
    values.stripsControls,
    'control characters',
    'line separators',
  ],
  'trimmed text': [values.trimsText, 'unchanged: spaces'],
  'text without a byte order mark': [values.stripsByteOrderMarks, 'a byte order mark'],
  'text that is escaped twice': [
    values.escapesText,
    'unchanged: quotes',
    'unchanged: backslashes',
    'unchanged: markup',
  ],
  'text converted to other types': [values.guessesTypes, 'text that looks like other types'],
  'empty text replaced by null': [
    values.emptyIsNull,
    'unchanged: empty text',
    'empty and absent values',
  ],
  'dropped null and empty values': [values.dropsEmpty, 'empty and absent values'],
  'numbers of 15 digits': [
    values.roundsNumbers,
    'numbers are kept unchanged',
    'return any JSON unchanged',
  ],
  'no member called __proto__': [values.losesProto, 'any key is kept'],
  'sorted keys': [values.sortsKeys, 'order of the keys of an object is kept'],
  'values cut at 100 levels': [values.cutsDepth, '200 levels'],
  'text cut to 65535 characters': [values.cutsLongText, '64 KiB'],
  'versions merged into each other': [
    values.mergesVersions,
    'including members that the next version lacks',
    'changes or removes its due time',
  ],
  'loaded values that alias the stored ones': [
    values.handsOutItsOwn,
    'changing a loaded value',
    'changing a value from list or due',
  ],
  'stored values that alias the committed ones': [
    values.keepsWhatWasPassed,
    'changing a value after its commit',
  ],
  'values read at two moments': [values.readsTwice, 'stored as it was at one moment'],
}

const rows = Object.entries(faults).map(([fault, [breaks, ...cases]]) => ({ fault, breaks, cases }))

describe('the suite passes on', () => {
  describe('the memory store', () => {
    for (const { name, run } of storeConformance(memoryStore)) test(name, run)
  })

  describe('two memory stores over the same data', () => {
    for (const { name, run } of casesOf((store) => ({ ...store }))) test(name, run)
  })

  test.each<[string, (store: Store) => Store]>([
    ['a wrapping around each record', (store) => values.translated(store, {})],
    ['lists that it sorts itself', (store) => reads.relisted(store, reads.byPlaceAndId)],
  ])('a store with %s', async (_, decorate) => {
    for (const each of casesOf(decorate)) expect(await problemOf(each), each.name).toBeUndefined()
  })

  test('a store whose due lags within the permitted time', async () => {
    const cases = storeConformance(() => reads.laggingDue(memoryStore()))
    for (const each of cases) expect(await problemOf(each), each.name).toBeUndefined()
  })

  test('one store on which every case runs twice, all concurrently', async () => {
    const shared = memoryStore()
    const both = [storeConformance(() => shared), storeConformance(() => shared)].flat()
    const problems = await Promise.all(both.map(problemOf))
    expect(problems.filter((problem) => problem !== undefined)).toEqual([])
  })
})

describe('the suite finds', () => {
  test.each(rows)('$fault', async ({ breaks, cases }) => {
    for (const part of cases) {
      const named = casesOf(breaks, { timeoutMs: 500 }).filter(({ name }) => name.includes(part))
      expect(named, `cases with a name like "${part}"`).not.toEqual([])
      for (const each of named) {
        const problem = await problemOf(each)
        expect(problem, `"${each.name}" does not find the fault`).toBeDefined()
        expect(problem).toMatch(/^Store contract, (rule [1-6]|ids|due|remove): .{20}/s)
      }
    }
  })

  test.each(allCases)('a listed fault with this case: $name', ({ name }) => {
    const found = rows.filter(({ cases }) => cases.some((part) => name.includes(part)))
    expect(found).not.toEqual([])
  })
})

describe('the suite', () => {
  test('has cases for every rule, each with a unique name', () => {
    const names = allCases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    const covered = new Set(allCases.map(({ rule }) => rule))
    expect(covered).toEqual(new Set([1, 2, 3, 4, 5, 6, 'ids', 'due', 'remove']))
  })

  test('compares two stores only if they share the same data', () => {
    const single = storeConformance(memoryStore).map(({ name }) => name)
    const added = allCases.filter(({ name }) => !single.includes(name))
    expect(added).toHaveLength(allCases.length - single.length)
    expect(added.length).toBeGreaterThan(0)
    for (const { name } of added) expect(name).toMatch(/two stores|second store/)
  })

  test('makes one store for each case, and a second one only for a comparison', async () => {
    let made = 0
    for (const { run } of storeConformance(() => ({ ...memoryStore(), made: made++ }))) {
      const before = made
      await run()
      expect(made).toBe(before + 1)
    }
  })

  test('reports what a store did and what it should have done', async () => {
    const cases = casesOf(commits.upsert)
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    expect(creates && (await problemOf(creates))).toBe(
      'Store contract, rule 1: creating an existing record returned true; expected false',
    )
  })

  test('reports the error of a store that rejected, and what to do instead', async () => {
    const cases = casesOf(commits.rejectsDuplicates)
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    const problem = creates && (await problemOf(creates))
    expect(problem).toContain('return false for a conflict with another writer')
    expect(problem).toContain('duplicate key value violates unique constraint')
  })

  test('stops waiting for a store that hangs', async () => {
    const hanging: Store = { ...memoryStore(), commit: () => new Promise(() => {}) }
    const [first] = storeConformance(() => hanging, { timeoutMs: 20 })
    expect(first && (await problemOf(first))).toContain('did not finish within 20 ms')
  })

  test('fails when the store cannot be made', async () => {
    const makeStore = () => Promise.reject(new Error('no database'))
    for (const { run } of storeConformance(makeStore))
      await expect(run()).rejects.toThrow('no database')
  })
})
