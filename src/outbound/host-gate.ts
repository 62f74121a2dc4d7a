import type { Instant } from '../core/decision.js'
import type { Clock } from '../ports/clock.js'
import { hasCode } from '../util/error-code.js'

/** Limits the concurrent requests per host, so that clients cannot use the library to attack others. */
export interface HostGate {
  /** Runs a request when its host has a free slot. Rejects with a `GateFullError` if too many wait. */
  run<Result>(host: string, request: () => Promise<Result>): Promise<Result>
  /** When the last request to the host started. */
  lastAskedAt(host: string): Instant | undefined
}

/** The request was not sent, because a limit was reached. The error says nothing about the host. */
export interface GateFullError extends Error {
  readonly code: 'ERR_GATE_FULL'
}

interface HostState {
  active: number
  readonly waiting: (() => void)[]
  askedAt: Instant | undefined
}

const activeMax = 2
const waitingMax = 8
const hostsBusyMax = 256
const hostsRememberedMax = 10_000

export function hostGate(clock: Clock): HostGate {
  const hosts = new Map<string, HostState>()
  let busyHosts = 0

  async function enter(state: HostState): Promise<void> {
    if (state.active >= activeMax) return queueUp(state)
    if (state.active === 0) {
      if (busyHosts >= hostsBusyMax) throw gateFullError('too many hosts have requests in progress')
      busyHosts += 1
    }
    state.active += 1
  }

  function leave(state: HostState): void {
    const next = state.waiting.shift()
    if (next !== undefined) {
      next()
      return
    }
    state.active -= 1
    if (state.active === 0) busyHosts -= 1
  }

  return {
    async run(host, request) {
      const state = stateOf(hosts, host)
      await enter(state)
      state.askedAt = clock.now()
      try {
        return await request()
      } finally {
        leave(state)
      }
    },
    lastAskedAt: (host) => hosts.get(host)?.askedAt,
  }
}

/** Returns the state of a host, which becomes the newest. */
function stateOf(hosts: Map<string, HostState>, host: string): HostState {
  const state = hosts.get(host) ?? { active: 0, waiting: [], askedAt: undefined }
  hosts.delete(host)
  hosts.set(host, state)
  if (hosts.size > hostsRememberedMax) forgetOldest(hosts)
  return state
}

/** Removes the oldest host without active requests. */
function forgetOldest(hosts: Map<string, HostState>): void {
  for (const [host, { active }] of hosts) {
    if (active > 0) continue
    hosts.delete(host)
    return
  }
}

/** Waits for a slot. A finished request passes its slot on, so it is already counted when the wait ends. */
function queueUp({ waiting }: HostState): Promise<void> {
  if (waiting.length >= waitingMax) throw gateFullError('too many requests to one host')
  return new Promise((resolve) => waiting.push(resolve))
}

function gateFullError(problem: string): GateFullError {
  return Object.assign(new Error(problem), { code: 'ERR_GATE_FULL' as const })
}

export function isGateFull(error: unknown): error is GateFullError {
  return hasCode(error, 'ERR_GATE_FULL')
}
