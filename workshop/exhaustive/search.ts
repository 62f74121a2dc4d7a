/** A step from one state to another, or into a state that breaks a law. */
export interface Move<State> {
  readonly label: string
  readonly next: State
  /** The law that the step breaks. */
  readonly broken?: string | undefined
}

/** A system with a finite number of distinguishable states. */
export interface System<State> {
  readonly name: string
  readonly begins: readonly Move<State>[]
  moves(state: State): Iterable<Move<State>>
  /** The law that the state breaks. */
  broken(state: State): string | undefined
  /**
   * The texts that together distinguish a state from every other one from which something else may happen. States that
   * differ only in the names of their ids and secrets, or in what nobody can read any more, have the same texts.
   */
  parts(state: State): readonly string[]
}

/** What a search found. */
export interface Found {
  readonly name: string
  readonly states: number
  readonly moves: number
  /** The number of steps from the beginning to the last state. */
  readonly depth: number
  /** Whether every reachable state was visited, after any number of steps. */
  readonly complete: boolean
  readonly seconds: number
  /** The first law that does not hold, and a shortest path to the step that breaks it. */
  readonly broken?: { readonly law: string; readonly path: readonly string[] }
}

/** Visits the states of a system, nearest first, and stops at the first broken law. */
export function search<State>(system: System<State>, depthMax = Number.POSITIVE_INFINITY): Found {
  const startedAt = process.cpuUsage()
  const visited = createVisited(system)
  let moves = 0
  let depth = 0
  const found = (complete: boolean, broken?: Found['broken']): Found => {
    const { user, system: kernel } = process.cpuUsage(startedAt)
    const seconds = (user + kernel) / 1e6
    const count = { name: system.name, states: visited.count(), moves, depth, complete, seconds }
    return broken === undefined ? count : { ...count, broken }
  }

  let level: { readonly state: State; readonly number: number }[] = []
  let reached: typeof level = []
  const meet = ({ label, next, broken }: Move<State>, from: number): Found | undefined => {
    moves += 1
    const number = broken === undefined ? visited.add(next, from, label) : undefined
    if (broken === undefined && number === undefined) return undefined
    const law = broken ?? system.broken(next)
    if (law !== undefined) return found(false, { law, path: [...visited.path(from), label] })
    if (number !== undefined) reached.push({ state: next, number })
    return undefined
  }

  for (const begin of system.begins) {
    const end = meet(begin, -1)
    if (end !== undefined) return end
  }
  while (reached.length > 0 && depth < depthMax) {
    level = reached
    reached = []
    for (const { state, number } of level) {
      for (const move of system.moves(state)) {
        const end = meet(move, number)
        if (end !== undefined) return end
      }
    }
    if (reached.length > 0) depth += 1
  }
  return found(reached.length === 0)
}

/** Remembers states by their parts, which are compared in full, and how each was first reached. */
function createVisited<State>(system: System<State>) {
  const parts = new Map<string, number>()
  const states = new Set<string>()
  const froms: number[] = []
  const labels: string[] = []

  function numberOf(part: string): number {
    const known = parts.get(part)
    if (known !== undefined) return known
    parts.set(part, parts.size)
    return parts.size - 1
  }

  return {
    count: () => states.size,
    /** Returns the number of a state that is new. */
    add(state: State, from: number, label: string): number | undefined {
      const key = system.parts(state).map(numberOf).join()
      if (states.has(key)) return undefined
      states.add(key)
      froms.push(from)
      labels.push(label)
      return froms.length - 1
    },
    path(number: number): string[] {
      const path: string[] = []
      for (let at = number; at >= 0; at = froms[at] ?? -1) path.unshift(labels[at] ?? '')
      return path
    },
  }
}

/** Returns the text of an object that never changes and that many states share, made once. */
export function remembered<Part extends object>(textOf: (part: Part) => string) {
  const texts = new WeakMap<Part, string>()
  return (part: Part): string => {
    const text = texts.get(part) ?? textOf(part)
    texts.set(part, text)
    return text
  }
}

/** Describes what was searched, for the output of the tests. */
export function told({ name, states, moves, depth, complete, seconds }: Found): string {
  const extent = complete ? 'every reachable state' : 'cut off'
  const counts = `${states.toLocaleString('en')} states, ${moves.toLocaleString('en')} steps`
  return `${name}: ${counts}, depth ${depth} (${extent}), ${seconds.toFixed(1)} s of CPU`
}
