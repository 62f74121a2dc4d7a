import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import { type ConformanceCase, storeConformance } from '../../src/testing/index.js'
import { commits, reads, values } from '../support/broken-stores.js'

/** Two stores from one of these have the same data, as two processes on one database have. */
function casesOf(decorate: (store: Store) => Store): readonly ConformanceCase[] {
  const shared = memoryStore()
  const options = { sameData: true, dueLagMs: 0, timeoutMs: 500 }
  return storeConformance(() => decorate(shared), options)
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

/** Every fault, and by their names the cases that have to find it. Others may find it too. */
const faults: Readonly<Record<string, readonly [(store: Store) => Store, ...string[]]>> = {
  'the last write wins': [
    commits.lastWriteWins,
    'creates a record that does not exist, and only once',
    'replaces the version that it expects',
    'replaces a record which does not exist',
    'replaces a record which was removed',
    'that was removed may be created again',
    'one creation is lost',
    'one replacement is lost',
    'repeated after it took effect',
    '16 writers who create',
    '16 writers who replace',
    'none loses an increment',
    'moved between records at once',
  ],
  'check, then act': [
    (store) => commits.checkThenAct(store),
    '16 writers who create',
    '16 writers who replace',
    'who loses a race leaves no trace',
    'of 12 workers who count in one record',
    'over the same records in any order',
    'moved between records at once',
    'removed while it is replaced',
  ],
  'check, then act, under a lock of the process': [
    commits.locksInProcess,
    'two stores that write one record',
    'count over two stores',
  ],
  'an upsert for a creation': [
    commits.upsert,
    'creates a record that does not exist, and only once',
    'one creation is lost',
  ],
  'an upsert that brings a removed record back': [
    commits.resurrects,
    'replaces a record which does not exist',
    'replaces a record which was removed',
    'removed while it is replaced',
  ],
  'later versions are taken too': [
    commits.takesLaterVersions,
    'replaces the version that it expects',
    'that was removed may be created again',
  ],
  'half a commit': [
    commits.halfCommit,
    'one creation is lost',
    'one replacement is lost',
    'who loses a race leaves no trace',
    'come one after another',
    'over the same records in any order',
    'moved between records at once',
  ],
  'a commit that is seen by halves': [commits.writesOneByOne, 'never sees half of one'],
  'only the first record of a commit': [
    commits.firstOnly,
    'writes records of every kind together',
    'of 12 workers who count in one record',
  ],
  'lost events': [
    commits.losesEvents,
    'writes records of every kind together',
    'none loses an increment or its event',
  ],
  'events before what they tell': [commits.eventsFirst, 'who loses a race leaves no trace'],
  'ignored guards': [
    commits.ignoresGuards,
    'a guard holds while its record is at its version',
    'a guard on a record that does not exist, or was removed',
    'one guard of several',
    'a commit of guards alone',
    'guarded record was replaced',
    'guarded record was removed',
    'each guard what the other changes',
    'come one after another',
  ],
  'only the first guard': [commits.firstGuardOnly, 'one guard of several'],
  'guards of what exists': [
    commits.guardsOnlyWhatExists,
    'a guard on a record that does not exist, or was removed',
    'guarded record was removed',
  ],
  'guards checked before the commit': [
    commits.guardsFirst,
    'guarded record was replaced',
    'guarded record was removed',
    'each guard what the other changes',
    'come one after another',
  ],
  'guards that write': [
    commits.writesGuards,
    'a guard writes nothing',
    'many commits may guard the same record',
  ],
  'guards of another kind': [commits.guardsAnyKind, 'a guard knows a record by its kind'],
  'guards alone not checked': [commits.skipsGuardsAlone, 'a commit of guards alone'],
  'a refused empty commit': [commits.refusesNothing, 'a commit of nothing at all'],
  'a repeated commit answered as at first': [
    commits.remembersCommits,
    'repeated after it took effect',
  ],
  'false for a commit that landed': [
    commits.retriesWhatLanded,
    'creates a record that does not exist, and only once',
  ],
  'serialization failures passed on': [
    commits.failsUnderContention,
    '16 writers who create',
    'of 12 workers who count in one record',
    'many commits may guard the same record',
  ],
  'losers without a winner': [
    commits.losesSpuriously,
    'many commits may guard the same record',
    'count over two stores',
  ],
  deadlocks: [
    commits.deadlocks,
    'come one after another',
    'over the same records in any order',
    'moved between records at once',
  ],
  'an error for a record that exists': [
    commits.rejectsDuplicates,
    'creates a record that does not exist, and only once',
    'one creation is lost',
  ],
  'answers as the driver gives them': [
    commits.answersLikeTheDriver,
    'creates a record that does not exist, and only once',
    'a commit of nothing at all',
  ],
  'removal of any version': [commits.removesAnyVersion, 'is removed at its version only'],
  'check, then remove': [
    commits.checkThenRemove,
    'that 16 remove at once',
    'removed while it is replaced',
  ],
  'removal of what is not there': [
    commits.removesWhatIsNotThere,
    'what does not exist, or only as another kind',
    'that 16 remove at once',
    'gone from load and from every list',
  ],

  'loads that lag': [reads.laggingLoad, 'load sees a commit', 'load from a second store'],
  'lists that lag': [reads.laggingList, 'list sees a commit', 'list from a second store'],
  'true before it is durable': [
    reads.trueBeforeDurable,
    'load sees a commit',
    'list sees a commit',
    'that was removed may be created again',
  ],
  'loads from a cache of the process': [reads.cachesLoads, 'load from a second store'],
  'lists from a cache of the process': [reads.cachesPages, 'list from a second store'],
  'equal places in no stable order': [
    reads.unstableOrder,
    'a list is ascending by place',
    'whoever pages sees each record exactly once',
  ],
  'a cursor by time alone': [
    reads.cursorByTime,
    'the records next to its cursor',
    'starts next to its cursor also where no record is',
    'whoever pages sees each record exactly once',
    'while others write',
  ],
  'a cursor that is included': [reads.cursorIncluded, 'the records next to its cursor'],
  'a cursor that must be a record': [
    reads.cursorIsRecord,
    'starts next to its cursor also where no record is',
  ],
  'ids in the order of a dictionary': [
    reads.localeOrder,
    'a list is ascending by place',
    'due has what is due',
  ],
  'numbers in the order of their digits': [
    reads.textOrder,
    'orders places over the whole range',
    'due orders instants over the whole range',
  ],
  'backwards from the wrong end': [
    reads.backwardsFromTheStart,
    'the records next to its cursor',
    'says that there is more exactly when',
  ],
  'backwards in reverse': [reads.backwardsReversed, 'a list is ascending by place'],
  'more when the page is full': [reads.moreWhenFull, 'says that there is more exactly when'],
  'more one too late': [
    reads.moreTooLate,
    'says that there is more exactly when',
    'whoever pages sees each record exactly once',
  ],
  'pages by offset': [reads.pagesByOffset, 'while others write'],
  'lists of any kind': [reads.listsAnyKind, 'and are of its kind, and no others'],
  'only the first list': [reads.firstListOnly, 'each of its three lists'],
  'places that are never given up': [
    reads.keepsOldPlaces,
    'moves in its lists, or leaves them',
    'what its next version lacks is gone',
    'gone from load and from every list',
  ],
  'due of any namespace': [reads.dueOfAnyNamespace, 'due keeps to its namespace'],
  'due by a pattern': [reads.dueByPattern, 'due keeps to its namespace'],
  'due without regard to case': [reads.dueFoldsCase, 'due keeps to its namespace'],
  'due before the instant only': [reads.dueBeforeOnly, 'due has what is due at or before'],
  'due without a limit': [reads.dueWithoutLimit, 'due has the earliest'],
  'due, but not the earliest': [reads.dueAnyFew, 'due has the earliest'],
  'due grants only': [reads.dueOfGrantsOnly, 'due keeps to its kind'],
  'due as at first': [reads.dueAsAtFirst, 'is due at another time, or no more'],
  'methods that need their object': [reads.needsThis, 'when they are taken apart'],

  'ids without regard to case': [
    values.foldsCase,
    'differ in one byte',
    'a list is ascending by place',
    '128 characters',
  ],
  'ids without their last dots': [values.dropsTrailingDots, 'differ in one byte'],
  'ids cut to 64 characters': [values.cutsLongIds, '128 characters'],
  'no ids of one character': [values.needsLongIds, 'of one character'],
  'one table for every kind': [
    values.ignoresKinds,
    'a record is known by its kind and its id',
    'a guard knows a record by its kind',
    'writes records of every kind together',
    'due keeps to its kind',
    'or only as another kind',
  ],
  'names of lists cut to 255 characters': [
    values.cutsListNames,
    'and are of its kind, and no others',
  ],
  'names of lists without their last spaces': [
    values.padsListNames,
    'and are of its kind, and no others',
  ],
  'text without U+0000': [values.dropsNulCharacters, 'U+0000', 'any JSON comes back'],
  'lone surrogates replaced': [
    values.manglesSurrogates,
    'a lone high surrogate',
    'a lone low surrogate',
    'surrogates in the wrong order',
    'a surrogate at the end',
    'any JSON comes back',
  ],
  'text of the basic plane only': [values.dropsSupplementary, 'text outside the basic plane'],
  'normalised text': [values.normalisesText, 'composed and decomposed letters'],
  'text without control characters': [
    values.stripsControls,
    'control characters',
    'line separators',
  ],
  'trimmed text': [values.trimsText, 'was: spaces'],
  'text without a byte order mark': [values.stripsByteOrderMarks, 'a byte order mark'],
  'text that is escaped once too often': [
    values.escapesText,
    'was: quotes',
    'was: backslashes',
    'was: markup',
  ],
  'text taken for something else': [values.guessesTypes, 'what looks like something else'],
  'no empty text': [values.emptyIsNull, 'was: empty text', 'empty and absent values'],
  'nothing that is null': [values.dropsEmpty, 'empty and absent values'],
  'numbers of 15 digits': [values.roundsNumbers, 'numbers come back', 'any JSON comes back'],
  'no member called __proto__': [values.losesProto, 'keys come back whatever they are'],
  'sorted keys': [values.sortsKeys, 'the keys of an object come back in their order'],
  'no more than 100 levels': [values.cutsDepth, '200 levels'],
  'text cut to 65535 characters': [values.cutsLongText, '64 KiB'],
  'versions merged into each other': [
    values.mergesVersions,
    'what its next version lacks is gone',
    'is due at another time, or no more',
  ],
  'values handed out that are those stored': [
    values.handsOutItsOwn,
    'a loaded value is its own',
    'a listed value and a due value',
  ],
  'values stored that are those passed in': [
    values.keepsWhatWasPassed,
    'changing it afterwards changes nothing',
  ],
  'values read in two moments': [values.readsTwice, 'as it was at one moment'],
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
    ['records kept under a wrapping', (store) => values.translated(store, {})],
    ['lists put in order by itself', (store) => reads.relisted(store, reads.byPlaceAndId)],
  ])('a store with %s', async (_, decorate) => {
    for (const each of casesOf(decorate)) expect(await problemOf(each), each.name).toBeUndefined()
  })

  test('a store whose due lags, as it may', async () => {
    const cases = storeConformance(() => reads.laggingDue(memoryStore()))
    for (const each of cases) expect(await problemOf(each), each.name).toBeUndefined()
  })

  test('one store on which every case runs at once, and once more', async () => {
    const shared = memoryStore()
    const both = [storeConformance(() => shared), storeConformance(() => shared)].flat()
    const problems = await Promise.all(both.map(problemOf))
    expect(problems.filter((problem) => problem !== undefined)).toEqual([])
  })
})

describe('the suite finds', () => {
  test.each(rows)('$fault', async ({ breaks, cases }) => {
    for (const part of cases) {
      const named = casesOf(breaks).filter(({ name }) => name.includes(part))
      expect(named, `cases with a name like "${part}"`).not.toEqual([])
      for (const each of named) {
        const problem = await problemOf(each)
        expect(problem, `"${each.name}" does not find the fault`).toBeDefined()
        expect(problem).toMatch(/^Store contract, (rule [1-6]|ids|due|remove): .{20}/s)
      }
    }
  })

  test.each(allCases)('with this case a fault that the table names: $name', ({ name }) => {
    const found = rows.filter(({ cases }) => cases.some((part) => name.includes(part)))
    expect(found).not.toEqual([])
  })
})

describe('the suite', () => {
  test('has cases for every rule, each with a name of its own', () => {
    const names = allCases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    const covered = new Set(allCases.map(({ rule }) => rule))
    expect(covered).toEqual(new Set([1, 2, 3, 4, 5, 6, 'ids', 'due', 'remove']))
  })

  test('compares two stores only when it is told that they have the same data', () => {
    const single = storeConformance(memoryStore).map(({ name }) => name)
    const added = allCases.filter(({ name }) => !single.includes(name))
    expect(added).toHaveLength(allCases.length - single.length)
    expect(added.length).toBeGreaterThan(0)
    for (const { name } of added) expect(name).toMatch(/two stores|second store/)
  })

  test('makes one store for each case, and a second one only to compare', async () => {
    let made = 0
    for (const { run } of storeConformance(() => ({ ...memoryStore(), made: made++ }))) {
      const before = made
      await run()
      expect(made).toBe(before + 1)
    }
  })

  test('says what a store did and what it should have done', async () => {
    const cases = casesOf(commits.upsert)
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    expect(creates && (await problemOf(creates))).toBe(
      'Store contract, rule 1: creating a record that exists answered true instead of false',
    )
  })

  test('says why a store should not have rejected, and with what it did', async () => {
    const cases = casesOf(commits.rejectsDuplicates)
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    const problem = creates && (await problemOf(creates))
    expect(problem).toContain('what is lost to another writer is false')
    expect(problem).toContain('duplicate key value violates unique constraint')
  })

  test('does not wait for ever', async () => {
    const hanging: Store = { ...memoryStore(), commit: () => new Promise(() => {}) }
    const [first] = storeConformance(() => hanging, { timeoutMs: 20 })
    expect(first && (await problemOf(first))).toContain('still not done after 20 ms')
  })

  test('fails when the store cannot be made', async () => {
    const makeStore = () => Promise.reject(new Error('no database there'))
    for (const { run } of storeConformance(makeStore))
      await expect(run()).rejects.toThrow('no data')
  })
})
