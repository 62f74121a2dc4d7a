import { memoryStore, type Store } from 'open-payments-server'
import type { RecordKind } from 'open-payments-server/adapter'
import {
  broken,
  commits,
  indexes,
  type OneRecordStore,
  plantedIn,
  reads,
  sizes,
  values,
} from 'open-payments-test-support/broken-stores'
import { invalidInput } from 'open-payments-test-support/invalid-input'
import { isLong, patient } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  type ConformanceCase,
  type ConformanceOptions,
  type ConformanceRule,
  storeConformance,
} from '../src/index.js'

/** The stores of one suite share their data, like two processes on one database. */
function casesOf(
  breaks: (store: OneRecordStore) => OneRecordStore,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
  const shared = memoryStore()
  return storeConformance(() => broken(breaks)(shared), { sameData: true, dueLagMs: 0, ...options })
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
const faults: Readonly<
  Record<string, readonly [(store: OneRecordStore) => OneRecordStore, ...string[]]>
> = {
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
    'leaves no trace in any other record',
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
  'guards under a lock of one process': [
    commits.guardsInProcess,
    'a commit of a second store fails if its guarded record was replaced',
    'two commits of two stores that each guard',
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
    'leaves no trace in any other record',
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
  'events written before their records': [
    commits.eventsFirst,
    'leaves no trace in any other record',
  ],
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
    (store) => commits.guardsFirst(store),
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
  'due that excludes the instant from which it is asked': [
    reads.dueAfterOnly,
    'due from an instant returns everything',
  ],
  'due without a limit': [reads.dueWithoutLimit, 'due returns the earliest'],
  'due that does not return the earliest': [reads.dueAnyFew, 'due returns the earliest'],
  'due for grants only': [reads.dueOfGrantsOnly, 'due returns records of its kind only'],
  'due that keeps the first due time': [reads.dueAsAtFirst, 'changes or removes its due time'],
  'methods that need their object': [reads.needsThis, 'work without their object'],

  'a guard answered by a replica': [
    reads.guardsFromReplica,
    'a guard sees a commit',
    'a guard of a second store',
  ],
  'due that returns an old copy': [reads.dueKeepsCopies, 'due returns the latest version'],
  'list entries that outlive their record': [
    reads.removeLeavesPlaces,
    'created again after its removal is in none',
  ],
  'pages that reject when a record is gone': [
    reads.rejectsRemovedRecords,
    'a page does not reject',
  ],
  'amounts stored as floats': [values.floatAmounts, 'records of every real shape'],

  'ids that ignore case': [
    values.foldsCase,
    'differ in one byte',
    'a list is ascending by place',
    '128 characters',
  ],
  'ids without trailing dots': [values.dropsTrailingDots, 'differ in one byte'],
  'ids cut to 64 characters': [values.cutsLongIds, '128 characters'],
  'no ids of 8 characters': [values.needsLongIds, 'of 8 characters'],
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
  'text cut to 65535 characters': [values.cutsLongText, 'a value of the maximum size'],
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
  'a load of several keys that is no snapshot': [
    reads.loadsOneAfterAnother,
    'never sees a part of a commit of several kinds',
  ],
  'a load that is a snapshot of each kind only': [
    reads.loadsKindByKind,
    'never sees a part of a commit of several kinds',
  ],
  'a removal of several records that compares the first version only': [
    commits.removesAnyVersionButTheFirst,
    'remove of several records says for each',
  ],
  'a removal of several records that reports all of them': [
    commits.reportsAllRemoved,
    'remove of several records says for each',
    'remove takes the maximum number',
  ],
  'removals that are reported in another order': [
    commits.reportsRemovalsInItsOwnOrder,
    'remove of several records says for each',
  ],
  'a removal of records of one kind only': [
    commits.removesOfOneKind,
    'remove of several records says for each',
  ],
  'a removal of a part of the records': [
    commits.removesFirst500,
    'remove takes the maximum number',
  ],
  'list entries of records that were removed together': [
    commits.removesTogetherWithoutPlaces,
    'records that are removed together',
  ],
  'a load in parts': [sizes.loadsInParts, 'one load of the maximum number of keys is one snapshot'],
  'a commit in parts': [
    sizes.commitsInParts,
    'one load of the maximum number of keys is one snapshot',
    'loses a race with a commit of the maximum size',
  ],
  'a removal in parts, of which the first compares versions': [
    sizes.removesInParts,
    'of the maximum number of records that are removed at once',
  ],
  'a page in parts, by their distance from its cursor': [
    sizes.pagesByOffset,
    'pages of the maximum length have each earlier record once',
  ],
  'load in another order': [reads.loadAllInItsOwnOrder, 'returns a record for each key'],
  'load without missing records': [reads.loadAllWithoutMissing, 'undefined for none'],
  'load by id alone': [reads.loadAllIgnoresKinds, 'returns a record for each key'],
  'load that answers a key once': [
    reads.loadAllAnswersOnce,
    'load takes the maximum number of keys',
  ],
  'load that returns a value twice': [reads.loadAllSharesValues, 'share nothing with any other'],
  'load of several keys from a replica': [
    reads.laggingLoadAll,
    'load of several keys sees a commit',
    'load of several keys from a second store sees',
  ],
  'values read at two moments': [values.readsTwice, 'stored as it was at one moment'],

  'large commits that are rejected': [
    commits.rejectsLargeCommits,
    'the maximum number of changes',
    'the maximum size writes changes',
    'its last change or guard fails',
  ],
  'commits of the maximum size that are rejected': [
    commits.rejectsGreatestCommits,
    'the maximum number of changes',
  ],
  'large commits that never succeed': [
    commits.losesLargeCommits,
    'the maximum number of changes',
    'the maximum size writes changes',
  ],
  'changes after the 25th that are dropped': [
    commits.truncatesLargeCommits,
    'the maximum number of changes',
    'the maximum size writes changes',
  ],
  'list entries after the 25th that are dropped': [
    indexes.dropsLaterEntries,
    'the maximum size writes changes',
  ],
  'large commits in several parts': [commits.splitsLargeCommits, 'its last change or guard fails'],
  'guards after the 25th that are dropped': [
    commits.truncatesGuards,
    'its last change or guard fails',
  ],
  'a commit that becomes visible kind by kind': [
    commits.writesKindByKind,
    'a part of a commit of several kinds',
  ],
  'a commit that becomes visible kind by kind, in another order': [
    commits.writesKindByKindReversed,
    'a part of a commit of several kinds',
  ],
  'a commit that loads show before lists do': [
    indexes.listsShowLater,
    'a part of a commit of several kinds',
  ],
  'list entries that show after their records': [
    indexes.entriesShowLater,
    'a part of a commit of several kinds',
  ],
  'a commit that load of one key shows before load of several': [
    indexes.loadAllShowsLater,
    'a part of a commit of several kinds',
  ],
  'list entries of lost commits': [
    indexes.lostCommitsLeaveEntries,
    'a creation that fails changes no list',
    'a replacement that fails changes no list',
    'a guard that fails changes no list',
    'leaves no trace in lists and due times',
  ],
  'list entries of commits whose guard failed': [
    indexes.lostGuardsLeaveEntries,
    'a guard that fails changes no list',
  ],
  'due times of lost commits': [
    indexes.lostCommitsLeaveDueTimes,
    'a creation that fails changes no list',
    'a replacement that fails changes no list',
    'a guard that fails changes no list',
  ],
  'list entries that a lost commit removes': [
    indexes.lostCommitsRemoveEntries,
    'a creation that fails changes no list',
    'a replacement that fails changes no list',
    'a guard that fails changes no list',
  ],
  'due times that a lost commit removes': [
    indexes.lostCommitsRemoveDueTimes,
    'a creation that fails changes no list',
    'a replacement that fails changes no list',
    'a guard that fails changes no list',
  ],
  'list entries of the winner that a loser removes': [
    indexes.losersUndoTheWinner,
    'a replacement that fails changes no list',
    'leaves no trace in lists and due times',
  ],
  'places that a lost removal removes': [
    indexes.lostRemovalsRemoveEntries,
    'a removal that fails changes no list',
  ],
  'due filled with what was put off': [indexes.postponedFillsDue, 'records that were put off'],
  'due filled with what is done': [indexes.doneFillsDue, 'no longer have a due time'],
  'due filled with removed records': [indexes.removedFillsDue, 'removed records do not count'],
  'due filled with other kinds': [indexes.otherKindsFillDue, 'records of other kinds and name'],
  'due filled with other namespaces': [
    indexes.otherNamespacesFillDue,
    'records of other kinds and name',
  ],
  'pages filled with other kinds': [indexes.otherKindsFillPages, 'do not fill its pages'],
}

/** Enough for a fault of every kind; a fault of one kind is planted below. */
const two = ['grant', 'event'] as const

const rows = Object.entries(faults).map(([fault, [breaks, ...cases]]) => ({ fault, breaks, cases }))

describe('the suite passes on', () => {
  describe('two memory stores over the same data', () => {
    const cases = casesOf((store) => ({ ...store }), isLong ? {} : { kinds: two })
    for (const { name, run } of cases) test(name, run)
  })

  describe.runIf(isLong)('two memory stores, with real shapes only', () => {
    const cases = casesOf((store) => ({ ...store }), { shapes: 'real' })
    for (const { name, run } of cases) test(name, run)
  })

  test.runIf(isLong).each<[string, (store: OneRecordStore) => OneRecordStore]>([
    ['a wrapping around each record', values.translated({})],
    ['lists that it sorts itself', reads.relisted(reads.byPlaceAndId)],
  ])('a store with %s', async (_, decorate) => {
    for (const each of casesOf(decorate, { kinds: two }))
      expect(await problemOf(each), each.name).toBeUndefined()
  })

  test('a store whose due lags within the permitted time', async () => {
    const cases = storeConformance(() => broken(reads.laggingDue)(memoryStore()), {
      kinds: two,
    })
    for (const each of cases) {
      if (!isLong && each.rule !== 'due') continue
      expect(await problemOf(each), each.name).toBeUndefined()
    }
  })

  test.runIf(isLong)('one store on which every case runs twice, all concurrently', async () => {
    const shared = memoryStore()
    // A case takes as long as all of them do together.
    const options: ConformanceOptions = { kinds: ['event'], timeoutMs: patient.timeoutMs }
    const both = [0, 1].flatMap(() => storeConformance(() => shared, options))
    const problems = await Promise.all(both.map(problemOf))
    expect(problems.filter((problem) => problem !== undefined)).toEqual([])
  })
})

async function demandFound(each: ConformanceCase): Promise<void> {
  const problem = await problemOf(each)
  expect(problem, `"${each.name}" does not find the fault`).toBeDefined()
  expect(problem).toMatch(/^Store contract, (rule [1-6]|ids|due|remove|load) \([a-z, -]+\): .{20}/s)
}

/** `npm test` tries one wrong store for each case; `npm run test:long` tries each of them with all of its cases. */
describe('the suite finds', () => {
  test.each(allCases)('by "$name", a wrong store', async ({ name }) => {
    const row = rows.find(({ cases }) => cases.some((part) => name.includes(part)))
    if (row === undefined) throw new Error('no wrong store is listed with this case')
    const found = casesOf(row.breaks, { kinds: two, timeoutMs: 500 }).find(
      (each) => each.name === name,
    )
    await demandFound(found as ConformanceCase)
  })

  test.runIf(isLong).each(rows)('$fault', async ({ breaks, cases }) => {
    for (const part of cases) {
      const named = casesOf(breaks, { kinds: two, timeoutMs: 500 }).filter(({ name }) =>
        name.includes(part),
      )
      expect(named, `cases with a name like "${part}"`).not.toEqual([])
      for (const each of named) await demandFound(each)
    }
  })
})

/**
 * Faults in the records of one kind, each with a part of the name of the case that finds it, and the rule that the
 * case then names. `translated` stores add a layer around all records of a kind, so they are tried on that kind alone.
 */
const planted: readonly (readonly [
  fault: string,
  RecordKind,
  (store: OneRecordStore) => OneRecordStore,
  named: string,
  ConformanceRule,
])[] = [
  ['no version check', 'incoming-payment', commits.lastWriteWins, 'replaces only the version', 1],
  ['a reversed list', 'incoming-payment', reads.backwardsReversed, 'ascending by place', 6],
  ['amounts as floats', 'incoming-payment', values.floatAmounts, 'every real shape', 4],
  ['instants cut to seconds', 'incoming-payment', values.cutsInstants, 'every real shape', 4],
  ['no metadata', 'incoming-payment', values.dropsMetadata, 'every real shape', 4],
  [
    'a version check before the write',
    'budget',
    commits.checkThenAct,
    '16 concurrent writers repl',
    2,
  ],
  ['older versions accepted', 'budget', commits.takesOlderVersions, 'only the version', 1],
  ['any version accepted', 'budget', commits.takesAnyVersion, 'only the version', 1],
  [
    'any version accepted beside other kinds',
    'budget',
    commits.takesAnyVersionBesideOthers,
    'one replacement that fails',
    1,
  ],
  [
    'a comparison before the write',
    'budget',
    commits.comparesBudgetsFirst,
    '16 concurrent writers repl',
    2,
  ],
  [
    'a comparison before the write of a payment',
    'budget',
    commits.comparesBudgetsFirstBesidePayments,
    'leaves no trace',
    2,
  ],
  ['later versions accepted', 'budget', commits.takesLaterVersions, 'only the version', 1],
  [
    'a payment that shows before or after its budget',
    'outgoing-payment',
    commits.writesPairOneByOne('budget', 'outgoing-payment'),
    'of several kinds, by load',
    1,
  ],
  ['amounts as floats', 'budget', values.floatAmounts, 'every real shape', 4],
  [
    'rejections under contention',
    'budget',
    commits.failsUnderContention,
    '16 concurrent writers creates',
    2,
  ],
  [
    'list entries that outlive their record',
    'outgoing-payment',
    reads.removeLeavesPlaces,
    'created again after',
    'remove',
  ],
  [
    'pages that reject',
    'outgoing-payment',
    reads.rejectsRemovedRecords,
    'a page does not reject',
    6,
  ],
  ['a cursor by the place alone', 'outgoing-payment', reads.cursorByTime, 'next to its cursor', 6],
  ['no metadata', 'outgoing-payment', values.dropsMetadata, 'every real shape', 4],
  ['due returns an old copy', 'event', reads.dueKeepsCopies, 'due returns the latest', 'due'],
  ['due in the order of text', 'event', reads.textOrder, 'due orders instants', 'due'],
  ['normalised text', 'event', values.normalisesText, 'composed and decomposed', 4],
  ['guards ignored', 'grant', commits.ignoresGuards, 'a guard holds while', 2],
  ['guards answered by a replica', 'grant', reads.guardsFromReplica, 'a guard sees a commit', 3],
  ['guards that do not lock', 'grant', commits.guardsFirst, 'was replaced before', 2],
  ['hashes in lower case', 'grant', values.lowersHashes, 'every real shape', 4],
  [
    'text of the basic plane only',
    'grant',
    values.dropsSupplementary,
    'outside the basic plane',
    4,
  ],
  ['an upsert', 'replay', commits.upsert, 'does not exist exactly once', 1],
  ['ids in lower case', 'replay', values.foldsCase, 'differ in one byte', 'ids'],
  [
    'removal of any version',
    'replay',
    commits.removesAnyVersion,
    'only removes a record',
    'remove',
  ],
  ['ids cut to 64 characters', 'transfer', values.cutsLongIds, '128 characters', 'ids'],
  ['a partial commit', 'transfer', commits.halfCommit, 'one creation that fails', 1],
  ['removed records restored', 'transfer', commits.resurrects, 'replaces a removed record', 1],
  [
    'true for a missing record',
    'transfer',
    commits.removesWhatIsNotThere,
    'does not exist or exists',
    'remove',
  ],
  ['asset codes in upper case', 'quote', values.raisesAssetCodes, 'every real shape', 4],
  ['unescaped URLs', 'quote', values.unescapesUrls, 'every real shape', 4],
  ['text cut to 32 characters', 'quote', values.cutsTextAt32, 'every real shape', 4],
  ['loads that lag', 'quote', reads.laggingLoad, 'load sees a commit', 3],
  [
    'the namespace matched as a pattern',
    'quote',
    reads.dueByPattern,
    'compares the namespace',
    'due',
  ],
]

describe('the suite finds, in the records of one kind', () => {
  // `npm test` tries one of each kind. The rows are printed as a table by
  // npx vitest run --mode long packages/testing/test/conformance.test.ts -t 'records of one kind' --reporter verbose
  const kinds = planted.map(([, kind]) => kind)
  const some = planted.filter(([, kind], i) => isLong || kinds.indexOf(kind) === i)
  const table = some.map(([fault, kind, breaks, named, rule]) => {
    const about = typeof rule === 'number' ? `rule ${rule}` : rule
    return [kind, fault, about, named, rule, breaks] as const
  })

  test.each(table)('%s, %s: %s, by "%s"', async (kind, _, about, named, rule, breaks) => {
    const [found] = casesOf(plantedIn(kind, breaks)).filter(({ name }) => name.includes(named))
    if (found === undefined) throw new Error(`no case is named like "${named}"`)
    expect(found.rule).toBe(rule)
    const problem = (await problemOf(found)) ?? ''
    // Cases that use a second kind also fail for the kind beside which the broken one stands.
    expect(problem).toMatch(
      new RegExp(`^Store contract, ${about} \\([a-z, -]*${kind}[a-z, -]*\\): `),
    )
  })

  test('as often as the host asks for', async () => {
    let commitsMade = 0
    const store = memoryStore()
    const counting: Store = {
      ...store,
      commit(commit) {
        commitsMade += 1
        return store.commit(commit)
      },
    }
    const made = []
    for (const searches of [1, 3]) {
      const all = storeConformance(() => counting, { kinds: two, searches })
      const [search] = all.filter(({ name }) => name.includes('16 concurrent writers creates'))
      expect(search).toMatchObject({ search: true, timeoutMs: 2 * 60_000 * searches + 1_000 })
      await search?.run()
      made.push(commitsMade)
      commitsMade = 0
    }
    expect(made[1]).toBe(3 * (made[0] ?? 0))
  })
})

describe('the suite', () => {
  test('removes everything that it wrote, also when it fails', async () => {
    const counted = memoryStore()
    const left = new Set<string>()
    const watched: Store = {
      ...counted,
      async commit(commit) {
        const committed = await counted.commit(commit)
        for (const { kind, next } of committed ? commit.changes : []) left.add(`${kind} ${next.id}`)
        return committed
      },
      async remove(records) {
        const removed = await counted.remove(records)
        for (const [i, { kind, id }] of records.entries()) {
          if (removed[i]) left.delete(`${kind} ${id}`)
        }
        return removed
      },
    }
    for (const { run } of storeConformance(() => watched, { kinds: two })) await run()
    const failing = storeConformance(() => broken(reads.backwardsReversed)(watched), { kinds: two })
    for (const each of failing) if (each.rule === 6) await problemOf(each)
    expect([...left]).toEqual([])
  })

  test.each([
    ['kinds', { kinds: [] }],
    ['kinds', { kinds: ['payment'] }],
    ['shapes', { shapes: 'some' }],
    ['searches', { searches: 0 }],
    ['dueLagMs', { dueLagMs: '1s' }],
    ['timeoutMs', { timeoutMs: Number.NaN }],
  ])('rejects an invalid value of %s', (option, options) => {
    const make = () => storeConformance(memoryStore, options as ConformanceOptions)
    expect(make).toThrow(invalidInput(option))
  })

  test('rejects a store in the place of the function that returns one', () => {
    const store = memoryStore() as unknown as typeof memoryStore
    expect(() => storeConformance(store)).toThrow(invalidInput('makeStore'))
  })

  test('says which guard was expected to hold', async () => {
    const cases = casesOf(commits.refusesNothing, { kinds: two })
    const alone = cases.find(({ name }) => name.includes('a commit of guards alone'))
    expect(alone && (await problemOf(alone))).toMatch(/grant \S+ guarded at version 1/)
  })

  test('has cases for every rule, each with a unique name', () => {
    const names = allCases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    const covered = new Set(allCases.map(({ rule }) => rule))
    expect(covered).toEqual(new Set([1, 2, 3, 4, 5, 6, 'ids', 'due', 'remove', 'load']))
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
    for (const { rule, run } of storeConformance(() => ({ ...memoryStore(), made: made++ }), {
      kinds: two,
    })) {
      if (rule !== 1 && !isLong) continue
      const before = made
      await run()
      expect(made).toBe(before + 1)
    }
  })

  test('reports what a store did and what it should have done', async () => {
    const cases = casesOf(commits.upsert, { kinds: two })
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    expect(creates && (await problemOf(creates))).toBe(
      'Store contract, rule 1 (grant, event): creating an existing record returned true; expected false',
    )
  })

  test('reports the error of a store that rejected, and what to do instead', async () => {
    const cases = casesOf(commits.rejectsDuplicates, { kinds: two })
    const creates = cases.find(({ name }) => name.includes('creates a record that does not exist'))
    const problem = creates && (await problemOf(creates))
    expect(problem).toMatch(
      /: commit rejected with: duplicate key value violates unique constraint/,
    )
    expect(problem).toContain('return false for a conflict with another writer')
  })

  test('reports the error of a store that cannot remove the records of a case', async () => {
    const remove = () => Promise.reject(new Error('Lock wait timeout exceeded'))
    const [first] = storeConformance(() => ({ ...memoryStore(), remove }), { kinds: two })
    const problem = first && (await problemOf(first))
    expect(problem).toMatch(
      /^Store contract, remove: remove rejected with: Lock wait timeout exceeded/,
    )
    expect(problem).toContain('retry serialization failures and deadlocks')
  })

  test('stops waiting for a store that hangs', async () => {
    const hanging: Store = { ...memoryStore(), commit: () => new Promise(() => {}) }
    const [first] = storeConformance(() => hanging, { timeoutMs: 20 })
    const problem = first && (await problemOf(first))
    expect(problem).toContain('within 20 ms the case did not finish')
    expect(problem).toContain('outside of the connection of its transaction')
    expect(problem).toContain('the pool must have a free connection')
  })

  test('fails when the store cannot be made', async () => {
    const makeStore = () => Promise.reject(new Error('no database'))
    for (const { run } of storeConformance(makeStore, { kinds: two }))
      await expect(run()).rejects.toThrow('no database')
  })
})
