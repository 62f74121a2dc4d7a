import { randomBytes } from 'node:crypto'
import type { Store } from 'open-payments-server'
import type { RecordChange } from 'open-payments-server/adapter'
import { expect, test } from 'vitest'
import { loadOne } from './one-record.js'
import type { PgStatements, SentStatements } from './sent-statements.js'

/** A way into a transaction of the host. */
export interface WayIn {
  /** Runs work in a transaction, which commits if the work resolves, and is rolled back if the work rejects. */
  run(work: (inside: Store) => Promise<void>): Promise<unknown>
  /** A store over the same tables, outside of the transaction. */
  readonly outside: Store
  /** The statements that the transaction sends. */
  readonly sent: SentStatements
  /** Whether it rejects if the transaction has ended before the work has. */
  readonly checksEnd: boolean
}

export interface Abilities {
  /** The number of moments at which another promise of the host rejects. */
  readonly moments: number
  /** Whether code of the host can run between the statements of a commit. */
  readonly interleaves?: boolean
}

function changeOf(id: string, version: number): RecordChange {
  return { kind: 'quote', next: { id, version, commandId: id }, expectedVersion: version - 1 }
}

const guards = [] as const

/** The records of one case, and what the library does with them in a transaction. */
function createCase(outside: Store) {
  const prefix = `ended-${randomBytes(6).toString('hex')}`
  const id = (name: string) => `${prefix}-${name}`
  const create = (name: string) => changeOf(id(name), 1)
  const replace = (name: string) => changeOf(id(name), 2)
  return {
    prepare: () => outside.commit({ changes: ['replaced', 'removed'].map(create), guards }),
    /** A commit that loses, one that succeeds, and a removal. */
    async calls(inside: Store): Promise<void> {
      await inside.commit({ changes: [create('lost'), create('removed')], guards })
      await inside.commit({ changes: [replace('replaced'), create('created')], guards })
      await inside.remove([{ kind: 'quote', id: id('removed'), version: 1 }])
    },
    /** The versions of the records, read outside of the transaction. */
    async versions() {
      const names = ['lost', 'replaced', 'created', 'removed']
      const found = await Promise.all(names.map((name) => loadOne(outside, 'quote', id(name))))
      return found.map((record) => record?.version)
    },
  }
}

const untouched = [undefined, 1, undefined, 1]
const done = [undefined, 2, 1, undefined]

type Case = ReturnType<typeof createCase>

/** Runs the calls, which go on when `given` has rejected, until they have ended too. */
async function ended(
  way: WayIn,
  { calls }: Case,
  given: (working: Promise<void>) => Promise<unknown>,
) {
  let working: Promise<void> | undefined
  const outcome = await way
    .run(async (inside) => {
      working = calls(inside)
      working.catch(() => undefined)
      await given(working)
      way.sent.stop()
    })
    .then(
      () => 'committed',
      (error: unknown) => error,
    )
  await working?.catch(() => undefined)
  return outcome
}

/** A promise that rejects when it is told to. */
function timeLimit() {
  const error = new Error('the time limit of the host')
  let exceed = () => {}
  const exceeded = new Promise<never>((_, reject) => {
    exceed = () => reject(error)
  })
  exceeded.catch(() => undefined)
  return { error, exceeded, exceed }
}

/** Calls back with the cases of the first statement, the second…, until there is no such statement. */
async function forEachStatement(
  way: WayIn,
  check: (own: Case, number: number) => Promise<boolean>,
): Promise<number> {
  for (let number = 1; ; number++) {
    const own = createCase(way.outside)
    await own.prepare()
    if (!(await check(own, number).finally(() => way.sent.stop()))) return number - 1
  }
}

/** What the transaction wrote is not stored, its repeat stores everything, and the connection is usable. */
async function expectNothing(way: WayIn, own: Case, where: string): Promise<void> {
  expect(await own.versions(), where).toEqual(untouched)
  await way.run(own.calls)
  expect(await own.versions(), where).toEqual(done)
}

/**
 * States that a statement stores nothing which arrives after the query builder has ended the transaction.
 *
 * @param open the way in, whose transactions end at a time limit, and one whose transactions do not.
 */
export function testLateStatements(
  open: () => readonly [impatient: WayIn & { readonly sent: PgStatements }, patient: WayIn],
): void {
  test('stores nothing if a statement of the library arrives after ROLLBACK', async () => {
    const [impatient, patient] = open()
    let number = 1
    for (;;) {
      const own = createCase(impatient.outside)
      await own.prepare()
      const isLate = impatient.sent.late(number)
      const outcome = await ended(impatient, own, (working) => working)
      impatient.sent.stop()
      if (outcome === 'committed' && !isLate()) break
      expect(outcome, `statement ${number}`).toBeInstanceOf(Error)
      await expectNothing(patient, own, `statement ${number}`)
      // On a slow machine, the transaction may end before this statement.
      if (isLate()) number++
    }
    expect(number).toBeGreaterThan(5)
  })
}

/** States what a transaction leaves that ended before the library's calls in it: nothing, whenever it ended. */
export function describeEndedTransactions(
  open: () => WayIn,
  { moments, interleaves = true }: Abilities,
): void {
  test('stores nothing if the host gives up while a statement of the library is under way', async () => {
    const way = open()
    const tried = await forEachStatement(way, async (own, number) => {
      const limit = timeLimit()
      const reached = way.sent.when(number, limit.exceed)
      const outcome = await ended(way, own, (working) => Promise.race([working, limit.exceeded]))
      if (!reached()) return false
      const where = `statement ${number}: ${way.sent.last()}`
      expect(outcome, where).toBe(limit.error)
      await expectNothing(way, own, where)
      return true
    })
    expect(tried).toBeGreaterThan(5)
  })

  test('stores nothing if another promise of the host rejects at any moment', async () => {
    for (let moment = 0; moment < moments; moment++) {
      const way = open()
      const own = createCase(way.outside)
      await own.prepare()
      const screened = async () => {
        // Some calls of a driver take turns of the event loop, others only those of promises.
        const turn = moment % 2 === 0 ? undefined : () => new Promise(setImmediate)
        for (let i = 0; i < moment; i++) await turn?.()
        throw new Error('the screening service is unreachable')
      }
      const outcome = await ended(way, own, (working) => Promise.all([working, screened()]))
      expect(outcome).toEqual(new Error('the screening service is unreachable'))
      await expectNothing(way, own, `moment ${moment}`)
    }
  })

  test('refuses calls of the library after the work has rejected', async () => {
    const way = open()
    const own = createCase(way.outside)
    await own.prepare()
    let kept: Store | undefined
    const work = way.run(async (inside) => {
      kept = inside
      throw new Error('the host changed its mind')
    })
    await expect(work).rejects.toThrow('the host changed its mind')
    const late = kept && own.calls(kept)
    await expect(late).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
    await expectNothing(way, own, 'after the end')
  })

  if (!interleaves) return

  test('stores nothing if the host sends ROLLBACK directly after a statement of the library', async () => {
    const way = open()
    await forEachStatement(way, async (own, number) => {
      const reached = way.sent.when(number, (rollBack) => rollBack())
      const outcome = await ended(way, own, (working) => working)
      if (!reached()) return false
      const where = `statement ${number}: ${way.sent.last()}`
      if (way.checksEnd) expect(outcome, where).toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
      await expectNothing(way, own, where)
      return true
    })
  })
}
