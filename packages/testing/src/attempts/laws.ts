import type { AttemptsHistory } from './history.js'
import { type AttemptsSubject, amount, type Called, createWorld, type World } from './world.js'

/**
 * The laws that a history broke.
 *
 * @example
 * ```ts
 * import { AttemptsError, attemptsConformance, type AttemptsSubject } from 'open-payments-server-testing'
 *
 * async function brokenLaws(subject: AttemptsSubject) {
 *   const laws = new Set<string>()
 *   for (const { run } of attemptsConformance(subject)) {
 *     await run().catch((error) => {
 *       if (error instanceof AttemptsError) for (const law of error.laws) laws.add(law)
 *     })
 *   }
 *   return laws
 * }
 * ```
 */
export class AttemptsError extends Error {
  /** `L1` to `L8`: all that are broken at the same time. */
  readonly laws: readonly string[]

  /** @param broken the problem of each law, in the order of the laws. */
  constructor(broken: ReadonlyMap<string, string>) {
    super([...broken].map(([law, problem]) => `${law}: ${problem}`).join('; '))
    this.laws = [...broken.keys()]
  }
}

/** How often the host calls after everything works again, before the settlement must have ended. */
const callsMax = 60
/** The longest time after a rejection until the event is delivered again. */
const redeliveredMs = 1_000
const hourMs = 3_600_000

interface Sums {
  readonly inDoubt: bigint
  readonly byWord: bigint
  readonly denied: bigint
}

/** Runs a history, and throws an `AttemptsError` if it breaks a law. */
export async function runHistory(
  subject: AttemptsSubject,
  history: AttemptsHistory,
): Promise<void> {
  const world = await createWorld(subject, history)
  const { accounts, clock } = world
  const start = clock.now()
  const isHonest = history.denied === 0
  const others = history.other?.amount ?? 0n
  const last: { called: Called; count: number } = { called: { state: 'rejected' }, count: 0 }
  const hasEnded = () => last.called.state === 'ended'

  async function call(lagMs: number): Promise<void> {
    const called = await world.settle()
    last.called = called
    if (history.other?.afterCall === last.count) accounts.payByOther(history.other.amount)
    last.count += 1
    checkWhileRunning(world, called, isHonest)
    if (called.state === 'ended') return
    const at = called.state === 'again' ? called.retryAt : clock.now() + redeliveredMs
    await world.advanceTo(Math.max(clock.now() + 1, at + lagMs))
  }

  for (const lagMs of history.lagsMs) if (!hasEnded()) await call(lagMs)
  const healedAt = clock.now()
  world.heal()
  for (let left = callsMax; !hasEnded(); left--) {
    law('L4', left > 0, 'it does not end', { calls: last.count, state: last.called.state })
    await call(0)
  }
  // What is still under way arrives, or is too late.
  await world.advanceTo(clock.now() + hourMs)
  if (world.isReadable()) last.called = await world.settle()
  const isEarly = healedAt - start < 600_000 && last.count < 30
  checkEnd(world, last.called, await sumsOf(world), {
    isHonest,
    trustMax: subject.trustMax,
    others,
    mustArrive: isEarly && isHonest && others === 0n && history.unreadable < 4,
  })
  await checkDecided(world)
}

function law(name: string, holds: boolean, problem: string, shown: object): void {
  if (!holds) throw new AttemptsError(new Map([[name, problemText(problem, shown)]]))
}

function problemText(problem: string, shown: object): string {
  const text = Object.entries(shown).map(([key, value]) => `${key} ${value}`)
  return `${problem} (${text.join(', ')})`
}

function checkWhileRunning({ accounts }: World, called: Called, isHonest: boolean): void {
  if (!isHonest) return
  const arrived = accounts.arrived()
  law('L2', arrived <= amount, 'more arrived than was to', { arrived, amount })
  if (called.state !== 'again' && called.state !== 'ended') return
  const { proven } = called.totals
  law('L1', proven <= arrived, 'what is proven has not arrived', { proven, arrived })
}

async function sumsOf(world: World): Promise<Sums> {
  const sums = { inDoubt: 0n, byWord: 0n, denied: 0n }
  for (const { kind, amount: value } of await world.listed()) {
    if (kind === 'in_doubt') sums.inDoubt += BigInt(value)
    if (kind === 'by_word') sums.byWord += BigInt(value)
    if (kind === 'denied') sums.denied += BigInt(value)
  }
  return sums
}

/** The laws at the end, when the host has debited what arrived and what is in doubt. */
function checkEnd(
  world: World,
  called: Called,
  { inDoubt, byWord, denied }: Sums,
  given: { isHonest: boolean; trustMax: bigint | undefined; others: bigint; mustArrive: boolean },
): void {
  const { isHonest, trustMax = 0n, others, mustArrive } = given
  const arrived = world.accounts.arrived()
  law('L4', called.state === 'ended', 'it began again', { state: called.state })
  if (called.state !== 'ended') return
  const debited = called.arrived + called.inDoubt
  // Only what others have paid can be taken for the host's.
  const unproven = others > 0n ? byWord : 0n
  const shown = { debited, arrived, inDoubt, byWord, denied }
  const broken = new Map<string, string>()
  const check = (name: string, holds: boolean, problem: string) => {
    if (!holds) broken.set(name, problemText(problem, shown))
  }
  check('L1', debited - arrived <= inDoubt + unproven, 'the payer was debited too much')
  if (isHonest) {
    check('L2', arrived <= debited, 'more arrived than was debited')
    check('L3', called.inDoubt === inDoubt, 'what is in doubt is not listed')
  } else {
    check('L2', arrived <= debited + trustMax + amount, 'more arrived than is trusted')
    check('L3', arrived - debited <= denied, 'what was denied is not listed')
  }
  check('L5', called.arrived <= arrived + unproven, 'what it calls arrived did not')
  const isComplete = called.arrived >= amount
  check('L6', !isComplete || arrived + unproven >= amount, 'it is complete, and less arrived')
  check('L7', !world.isReadable() || called.inDoubt === 0n, 'it could have asked')
  // What was denied is not sent again without end.
  check('L8', !mustArrive || denied > trustMax || arrived === amount, 'it gave up too early')
  if (broken.size > 0) throw new AttemptsError(broken)
}

/** An operator who knows decides what is listed. Then both books are equal. */
async function checkDecided(world: World): Promise<void> {
  world.makeReadable()
  for (const { kind, reference } of await world.listed()) {
    if (kind === 'excess') continue
    await world.decide(world.hasArrived(reference) ? 'arrived' : 'never', reference)
  }
  const called = await world.settle()
  law('L4', called.state === 'ended', 'it began again', { state: called.state })
  if (called.state !== 'ended') return
  const [debited, arrived] = [called.arrived + called.inDoubt, world.accounts.arrived()]
  law('L3', debited === arrived, 'both books differ, and nothing is listed', { debited, arrived })
}
