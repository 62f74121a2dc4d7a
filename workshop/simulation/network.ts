import type { HttpRequest, HttpResponse } from '../../src/entry-adapter.js'
import type { Handler } from '../../src/index.js'
import type { Climate } from './connection.js'
import type { Process, Scheduler } from './scheduler.js'

/** A server process that requests reach. */
export interface Reachable {
  readonly process: Process
  readonly handle: Handler
}

export type Network = ReturnType<typeof createNetwork>

/** A signed request, and how many copies of it are on their way or have arrived. */
interface Message {
  readonly request: HttpRequest
  copies: number
}

/** The response to one of the copies of a request, if it arrived. */
export interface Received {
  readonly response: HttpResponse | undefined
  /** With more than one, another copy may have taken effect although this one was refused. */
  readonly copies: number
}

/** How many messages an eavesdropper keeps, to send them again. */
const capturedMax = 20

/**
 * Carries requests to one of the servers, and responses back. It loses, delays and doubles messages, and an
 * eavesdropper sends captured ones again.
 *
 * @param watch sees each response that a server has given, also one that gets lost.
 */
export function createNetwork(
  scheduler: Scheduler,
  climate: Climate,
  servers: () => readonly Reachable[],
  watch: (request: HttpRequest, response: HttpResponse, faultsBefore: number, at: number) => void,
) {
  const { draw } = scheduler
  const captured: Message[] = []
  const open = new Map<Process, Set<() => void>>()

  function deliver(request: HttpRequest, answer: (response?: HttpResponse) => void): void {
    const server = draw.pick(servers())
    if (server === undefined) {
      answer()
      return
    }
    const { process, handle } = server
    const hangUp = () => answer()
    const exchanges = open.get(process) ?? new Set()
    open.set(process, exchanges.add(hangUp))
    const [faultsBefore, at] = [climate.faults, scheduler.now()]
    scheduler.enter(process)
    void handle(request).then((response) => {
      exchanges.delete(hangUp)
      scheduler.trace.note(`${response.status} ${response.body ?? ''}`)
      watch(request, response, faultsBefore, at)
      if (draw.chance(climate.weather.lostPercent)) answer()
      else answer(response)
    })
  }

  return {
    /** Sends a request for the current process. */
    send(request: HttpRequest): Promise<Received> {
      const sender = scheduler.current()
      const label = `${request.method} ${request.url}`
      const message: Message = { request, copies: 1 }
      captured.push(message)
      if (captured.length > capturedMax) captured.shift()
      return new Promise((resolve) => {
        let answered = false
        const answer = (response?: HttpResponse) => {
          if (answered) return
          answered = true
          const told = response === undefined ? 'no response' : `receives ${response.status}`
          scheduler.post(sender, `${told} of ${label}`, () =>
            resolve({ response, copies: message.copies }),
          )
        }
        if (draw.chance(climate.weather.lostPercent)) return answer()
        scheduler.post(scheduler.world, label, () => deliver(request, answer))
        if (!draw.chance(climate.weather.doubledPercent)) return
        message.copies += 1
        scheduler.post(scheduler.world, `second ${label}`, () => deliver(request, answer))
      })
    },
    /** Sends a captured request again; nobody receives the response. */
    replay(): void {
      const message = draw.pick(captured)
      if (message === undefined) return
      const { request } = message
      message.copies += 1
      const label = `replay of ${request.method} ${request.url}`
      scheduler.post(scheduler.world, label, () => deliver(request, () => undefined))
    },
    /** Breaks the connections to a process that has died. */
    hangUp(process: Process): void {
      for (const end of open.get(process) ?? []) end()
      open.delete(process)
    },
  }
}
