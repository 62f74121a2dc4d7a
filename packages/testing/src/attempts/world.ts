import { memoryStore, type Store } from 'open-payments-server'
import type { Attempts, Settled } from 'open-payments-server/attempts'
import { type ManualClock, manualClock } from '../clock.js'
import { type OtherAccounts, otherAccounts, type TrueAccounts } from './accounts.js'
import { type AttemptsHistory, forEver, type RequestFate } from './history.js'

/** What the driver of a test is created with. Use nothing else to reach the other side, the store and the time. */
export interface AttemptsPorts {
  /** Sends a request to the other side, over a link that fails as the history says. */
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>
  readonly store: Store
  readonly clock: ManualClock
}

/** The functions of a host that the search calls. A driver of `attempts` has them. */
export type AttemptsHost = Pick<Attempts, 'settle' | 'inDoubt' | 'decide'>

/** A host's driver, and the API of the other side. */
export interface AttemptsSubject {
  /** Creates the driver as in production, except for the ports. Called for each process of a history. */
  readonly create: (ports: AttemptsPorts) => AttemptsHost
  /** Returns how the other side answers a request, as its API does. */
  readonly otherSide: (accounts: OtherAccounts) => (request: Request) => Promise<Response>
  /** Whether a request only reads, and moves no money. Default: its method is GET. */
  readonly isRead?: (request: Request) => boolean
  /** A store for each history. Default: the memory store. */
  readonly store?: () => Store | Promise<Store>
  /** The `trustMax` of the driver, for evidence by a sum: the receiver then also denies what it has received. */
  readonly trustMax?: bigint
}

/** What is settled in each history. */
export const amount = 1_000n

/** How a call of `settle` ended; `killed` with its process. */
export type Called = Settled | { readonly state: 'killed' } | { readonly state: 'rejected' }

export type World = Awaited<ReturnType<typeof createWorld>>

/** A host and another side, with a link between them that fails as the history says. */
export async function createWorld(subject: AttemptsSubject, history: AttemptsHistory) {
  // Histories may share a database.
  const id = crypto.randomUUID()
  const clock = manualClock()
  const accounts = otherAccounts(clock, history.behindMs)
  const store = (await subject.store?.()) ?? memoryStore()
  const answer = subject.otherSide(accounts)
  const isRead = subject.isRead ?? (({ method }: Request) => method === 'GET')
  const late: { readonly at: number; readonly request: Request }[] = []
  const state = {
    fates: [...history.fates],
    readsFailing: history.unreadable,
    reads: 0,
    denying: history.denied,
    kills: [...history.kills].sort((a, b) => a.write - b.write),
    writes: 0,
  }
  let process = startProcess()

  /** Runs a process of the host until it is killed. */
  function startProcess() {
    let isDead = false
    let crash: (value: Called) => void = () => undefined
    const crashed = new Promise<Called>((resolve) => {
      crash = resolve
    })
    const kill = (): never => {
      isDead = true
      crash({ state: 'killed' })
      throw new Error('the process was killed')
    }
    const alive = () => {
      if (isDead) throw new Error('the process was killed')
    }
    const host = subject.create({
      clock,
      store: dyingStore(alive, kill),
      fetch: async (url, init) => {
        alive()
        const request = new Request(url, init)
        const response = isRead(request) ? await read(request) : await order(request, kill)
        alive()
        return response
      },
    })
    return { host, crashed }
  }

  function dyingStore(alive: () => void, kill: () => never): Store {
    return {
      ...store,
      load(keys) {
        alive()
        return store.load(keys)
      },
      async commit(commit) {
        alive()
        const [next] = state.kills
        const isLast = next !== undefined && next.write === state.writes
        state.writes += 1
        if (isLast) state.kills.shift()
        if (isLast && !next.after) kill()
        const isCommitted = await store.commit(commit)
        if (isLast) kill()
        alive()
        return isCommitted
      },
    }
  }

  async function read(request: Request): Promise<Response> {
    state.reads += 1
    if (state.reads > 1 && state.readsFailing > 0) {
      state.readsFailing -= 1
      throw new TypeError('no connection')
    }
    return answer(request)
  }

  async function order(request: Request, kill: () => never): Promise<Response> {
    if (state.denying > 0) {
      state.denying -= 1
      accounts.denies = true
      await answer(request)
      accounts.denies = false
      throw new TypeError('no reply')
    }
    const {
      fate,
      status = 503,
      lateMs = 0,
    } = state.fates.shift() ?? ({ fate: 'arrives' } as RequestFate)
    const copy = request.clone()
    const inBetween = () => new Response('<h1>an error</h1>', { status })
    switch (fate) {
      case 'arrives':
        return answer(request)
      case 'request lost':
        throw new TypeError('no connection')
      case 'reply lost':
        await answer(request)
        throw new TypeError('no reply')
      case 'answered in between, forwarded':
        await answer(request)
        return inBetween()
      case 'answered in between, not forwarded':
        return inBetween()
      case 'late':
        late.push({ at: clock.now() + lateMs, request })
        throw new TypeError('no reply')
      case 'twice':
        late.push({ at: clock.now() + lateMs, request: copy })
        return answer(request)
      case 'sender killed before it left':
        return kill()
      case 'sender killed before the reply':
        await answer(request)
        return kill()
    }
  }

  /** Lets time pass. What is late arrives meanwhile. */
  async function advanceTo(instant: number): Promise<void> {
    for (const each of late.splice(0).sort((a, b) => a.at - b.at)) {
      if (each.at > instant) late.push(each)
      else {
        if (each.at > clock.now()) clock.set(each.at)
        await answer(each.request)
      }
    }
    if (instant > clock.now()) clock.set(instant)
  }

  return {
    clock,
    accounts: accounts as TrueAccounts,
    advanceTo,
    /** Calls `settle` as a handler of events does. A process that was killed is followed by another. */
    async settle(): Promise<Called> {
      const { host, crashed } = process
      const settled = host.settle({ id, amount }).catch((): Called => ({ state: 'rejected' }))
      const called = await Promise.race([crashed, settled])
      if (called.state === 'killed') process = startProcess()
      return called
    },
    /** Everything works from now on. Reads that fail for ever still do. */
    heal(): void {
      state.fates.length = 0
      state.kills.length = 0
      state.denying = 0
      if (history.unreadable !== forEver) state.readsFailing = 0
    },
    makeReadable(): void {
      state.readsFailing = 0
    },
    isReadable: () => state.readsFailing === 0,
    /** Whether an attempt arrived, by its reference, or by the id if that is the key of the other side. */
    hasArrived: (reference: string) =>
      (accounts as TrueAccounts).hasArrived(reference) || (accounts as TrueAccounts).hasArrived(id),
    async listed() {
      for await (const view of process.host.inDoubt()) if (view.id === id) return view.doubts
      return []
    },
    decide: (what: 'arrived' | 'never', reference: string) =>
      process.host.decide(id, what, 'the search', { reference }),
  }
}
