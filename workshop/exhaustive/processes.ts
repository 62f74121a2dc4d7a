import type { Stored } from '../../src/core/stored.js'
import { deepFreeze } from '../../test/support/frozen.js'
import type { Move, System } from './search.js'

/** A write of a commit: a compare-and-set, as `RecordChange` of the store. Keys are the ids of records. */
export interface Change {
  readonly key: string
  readonly next: Stored
}

/** What a process commits and answers after it has decided. */
export interface Attempt {
  readonly changes: readonly Change[]
  /** Records that must still be at the version that was loaded, although the commit does not write them. */
  readonly guards?: readonly { readonly key: string; readonly version: number }[]
  readonly result: { readonly ok: boolean }
}

/** A request or a call of the host, with everything that is fixed before the first attempt. */
export interface Operation {
  /** The command id, `c:<n>`. */
  readonly id: string
  readonly label: string
  readonly now: number
}

/** An operation in one process. */
export interface Process<Op extends Operation> {
  readonly op: Op
  /** What it has loaded in this attempt. */
  readonly seen: readonly (Stored | undefined)[]
  /** Whether an earlier attempt failed, if that makes a difference. */
  readonly again: boolean
  readonly attempt?: Attempt
  /** A commit whose call timed out, and which may still take effect. */
  readonly late?: Attempt
  /** Whether a commit of this operation has taken effect. */
  readonly applied: boolean
  /** False once the process has died and left a late commit. */
  readonly alive: boolean
}

export type Records = Readonly<Record<string, Stored | undefined>>

/** The store, the processes, and what an observer has noted. */
export interface World<Op extends Operation, Facts> {
  readonly records: Records
  readonly processes: readonly Process<Op>[]
  readonly facts: Facts
  /** The next unused number for an id or a secret. */
  readonly serial: number
}

/** Facts after a step, and the law that the step broke. */
export interface Noted<Facts> {
  readonly facts: Facts
  readonly broken?: string | undefined
}

/** A state machine with the operations that the services build on it. */
export interface Machine<Op extends Operation, Facts> {
  readonly name: string
  readonly begins: readonly { readonly label: string; readonly world: World<Op, Facts> }[]
  /** The operations that may begin now. Ids and secrets are numbered from `serial`. */
  starts(world: World<Op, Facts>): readonly Op[]
  /** The record that the operation is about. */
  target(op: Op): string
  /** Whether a retry of the operation loads other records than its first attempt. */
  retriesDiffer(op: Op): boolean
  /** The record that the operation loads next, or several in one load; `undefined` if it can decide. */
  nextLoad(
    op: Op,
    seen: Process<Op>['seen'],
    again: boolean,
  ): string | readonly string[] | undefined
  decide(op: Op, seen: Process<Op>['seen'], again: boolean): Attempt
  /** Notes a commit, and checks the laws of a commit. */
  committed(
    before: World<Op, Facts>,
    after: World<Op, Facts>,
    op: Op,
    attempt: Attempt,
  ): Noted<Facts>
  /** Notes an answer, and checks the laws of an answer. */
  answered(world: World<Op, Facts>, op: Op, attempt: Attempt): Noted<Facts>
  /** Whether the operation may take effect again after another one undid its effect. Default: never. */
  mayRepeat?(op: Op, before: World<Op, Facts>, attempt: Attempt): boolean
  /** Checks the laws of a state. */
  broken(world: World<Op, Facts>): string | undefined
  /** The world after some time; `undefined` if no time may pass now. */
  passed(world: World<Op, Facts>): { label: string; world: World<Op, Facts> } | undefined
  /** The records and facts that distinguish a world from others. */
  visible(world: World<Op, Facts>): readonly string[]
  /** The text of a record, without what no decision can read any more. */
  textOf(record: Stored): string
  /** The text of an operation. */
  operationText(op: Op): string
}

const processesMax = 2

/**
 * Lets two processes carry out the operations of a machine on one store, as `transact` does: load, decide, commit,
 * and start over after a lost race or an unknown outcome. At every call of the store the process may die, and a
 * commit may be lost, take effect without an answer, or take effect later.
 */
export function processesOf<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
): System<World<Op, Facts>> {
  return {
    name: machine.name,
    begins: machine.begins.map(({ label, world }) => ({ label, next: world })),
    broken: (world) => machine.broken(world),
    parts: (world) => partsOf(machine, world),
    *moves(world) {
      const passed = machine.passed(world)
      if (passed !== undefined) yield { label: passed.label, next: passed.world }
      if (world.processes.length < processesMax) {
        for (const op of machine.starts(world)) yield begun(world, op)
      }
      for (const index of world.processes.keys()) yield* stepsOf(machine, world, index)
    },
  }
}

type Step<Op extends Operation, Facts> = Move<World<Op, Facts>>

function begun<Op extends Operation, Facts>(world: World<Op, Facts>, op: Op): Step<Op, Facts> {
  const process: Process<Op> = { op, seen: [], again: false, applied: false, alive: true }
  const processes = [...world.processes, process]
  return { label: `begin: ${op.label}`, next: { ...world, processes, serial: world.serial + 1 } }
}

function* stepsOf<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  world: World<Op, Facts>,
  index: number,
): Iterable<Step<Op, Facts>> {
  const process = world.processes[index] as Process<Op>
  const { op, attempt, late } = process
  const named = (what: string) => `${op.label}: ${what}`

  if (late !== undefined) {
    const { world: next, broken } = applied(machine, world, index, late)
    const landed = process.alive ? next : without(next, index)
    yield { label: named('the late commit takes effect'), next: landed, broken }
  }
  if (!process.alive) {
    yield { label: named('the late commit is lost'), next: without(world, index) }
    return
  }
  if (attempt === undefined) {
    yield loaded(machine, world, index)
  } else {
    const { world: next, broken } = applied(machine, world, index, attempt)
    const said = machine.answered(next, op, attempt)
    const answered = { ...without(next, index), facts: said.facts }
    yield { label: named('commits and answers'), next: answered, broken: broken ?? said.broken }
    yield { label: named('commits, but the store reports a failure'), next, broken }
    yield { label: named('commits, and the process dies'), next: without(next, index), broken }
    const again = retry(machine, process)
    yield { label: named('the commit is lost'), next: withProcess(world, index, again) }
    // One late commit at a time keeps the number of states within reach.
    if (world.processes.every((each) => each.late === undefined)) {
      const waiting = { ...again, late: attempt }
      yield { label: named('the commit times out'), next: withProcess(world, index, waiting) }
    }
  }
  yield { label: named('the process dies'), next: died(world, index) }
}

/** Loads the next record. After the last one, the process decides, and answers if there is nothing to write. */
function loaded<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  world: World<Op, Facts>,
  index: number,
): Step<Op, Facts> {
  const process = world.processes[index] as Process<Op>
  const { op, again } = process
  const next = machine.nextLoad(op, process.seen, again)
  if (next === undefined) throw new Error('a process that has loaded everything must have decided')
  const keys = typeof next === 'string' ? [next] : next
  const label = `${op.label}: loads the ${keys.map(nameOf).join(', ')}`
  const seen = [...process.seen, ...keys.map((key) => world.records[key])]
  if (machine.nextLoad(op, seen, again) !== undefined) {
    return { label, next: withProcess(world, index, { ...process, seen }) }
  }
  const attempt = deepFreeze(machine.decide(op, seen, again))
  if (attempt.changes.length === 0) {
    const { facts, broken } = machine.answered(world, op, attempt)
    const isLast = process.applied && world.records[machine.target(op)]?.commandId === op.id
    const forgot =
      isLast && !attempt.result.ok ? 'a command that was carried out is not refused' : undefined
    const left = { ...without(world, index), facts }
    return { label: `${label} and answers`, next: left, broken: broken ?? forgot }
  }
  // A commit on versions that are no longer current fails, whenever it arrives.
  const decided = fits(world.records, attempt)
    ? { ...process, seen: [], attempt }
    : retry(machine, process)
  return { label, next: withProcess(world, index, decided) }
}

/** A key for a path that people read. */
const nameOf = (key: string) => (key.startsWith('g:') ? 'nonce' : key)

const versionOf = (record: Stored | undefined) => record?.version ?? 0

/** The keys of the records that must be as they were loaded. */
function neededBy({ changes, guards = [] }: Attempt): readonly string[] {
  return [...changes, ...guards].map(({ key }) => key)
}

function fits(records: Records, { changes, guards = [] }: Attempt): boolean {
  return (
    changes.every(({ key, next }) => versionOf(records[key]) === next.version - 1) &&
    guards.every(({ key, version }) => versionOf(records[key]) === version)
  )
}

function retry<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  process: Process<Op>,
): Process<Op> {
  const { attempt: _attempt, ...rest } = process
  return { ...rest, seen: [], again: machine.retriesDiffer(rest.op) }
}

function withProcess<Op extends Operation, Facts>(
  world: World<Op, Facts>,
  index: number,
  process: Process<Op>,
): World<Op, Facts> {
  return { ...world, processes: world.processes.with(index, process) }
}

function without<Op extends Operation, Facts>(world: World<Op, Facts>, index: number) {
  return { ...world, processes: world.processes.toSpliced(index, 1) }
}

/** The world after a process died. A commit that has been sent may still take effect. */
function died<Op extends Operation, Facts>(world: World<Op, Facts>, index: number) {
  const process = world.processes[index] as Process<Op>
  if (process.late === undefined) return without(world, index)
  const { attempt: _attempt, ...rest } = process
  return withProcess(world, index, { ...rest, seen: [], alive: false })
}

/** Writes a commit. The process that sent it does not know yet, and starts over. */
function applied<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  world: World<Op, Facts>,
  index: number,
  attempt: Attempt,
): { readonly world: World<Op, Facts>; readonly broken: string | undefined } {
  const { op, applied: before } = world.processes[index] as Process<Op>
  const written = new Set(attempt.changes.map(({ key }) => key))
  const records = { ...world.records }
  let broken =
    before && !machine.mayRepeat?.(op, world, attempt) ? 'a command takes effect once' : undefined
  for (const { key, next } of attempt.changes) {
    if (next.commandId !== op.id || next.id !== key)
      broken ??= 'a new version keeps the id and records the command'
    // Versions are only compared with each other, and every version that is not current is given up below.
    records[key] = deepFreeze({ ...next, version: 1 })
  }
  const processes = world.processes.map((process, at) => {
    const current = outdated(machine, process, written)
    return at === index ? { ...retry(machine, current), applied: true } : current
  })
  const after = { ...world, records, processes }
  const noted = machine.committed(world, after, op, attempt)
  return { world: { ...after, facts: noted.facts }, broken: broken ?? noted.broken }
}

/** A process after these records changed: what it wanted to commit to them fails. */
function outdated<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  process: Process<Op>,
  written: ReadonlySet<string>,
) {
  const concerns = (attempt: Attempt | undefined) =>
    attempt !== undefined && neededBy(attempt).some((key) => written.has(key))
  let next = process
  if (concerns(next.late)) {
    const { late: _late, ...rest } = next
    next = rest
  }
  if (concerns(next.attempt)) next = retry(machine, next)
  if (next.seen.some((record) => record !== undefined && written.has(record.id))) {
    const seen = next.seen.map((record) =>
      record !== undefined && written.has(record.id) ? { ...record, version: -1 } : record,
    )
    next = { ...next, seen }
  }
  return next
}

/** An attempt that still fits is determined by its operation and the current records, so its keys suffice. */
function attemptText(attempt: Attempt | undefined): string {
  return attempt?.changes.map(({ key }) => key).join('+') ?? ''
}

function processText<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  { op, seen, again, attempt, late, applied, alive }: Process<Op>,
): string {
  const loaded = seen.map((record) => (record ? machine.textOf(record) : 'none')).join()
  const flags = `${Number(again)}${Number(applied)}${Number(alive)}`
  return `${machine.operationText(op)} ${flags} [${loaded}] ${attemptText(attempt)} / ${attemptText(late)}`
}

function partsOf<Op extends Operation, Facts>(
  machine: Machine<Op, Facts>,
  world: World<Op, Facts>,
): string[] {
  const ids = new Set(world.processes.map(({ op }) => op.id))
  // The processes are alike, so it does not matter which one carries out which operation.
  const processes = world.processes.toSorted((a, b) => (a.op.label < b.op.label ? -1 : 1))
  const running = processes.map((process) => processText(machine, process))
  const text = [...machine.visible(world), ...running].join('\n')
  const names = new Map<string, string>()
  // Ids and secrets are only compared with each other. Nobody presents the id of an operation that is over.
  const renamed = text.replace(/\b([a-z]):\d+/g, (symbol, kind: string) => {
    if (kind === 'c' && !ids.has(symbol)) return 'c:-'
    const known = names.get(symbol)
    if (known !== undefined) return known
    const name = `${kind}:${names.size}`
    names.set(symbol, name)
    return name
  })
  return renamed.split('\n')
}
