import { calm } from '../faults.js'
import type { ServerProcess } from '../servers.js'
import type { World } from '../world.js'
import { type Caller, createCaller } from './caller.js'
import { continueGrant, replaceKey, revoke, rotate } from './grants.js'
import { complete, consume, receive, send, sweep } from './host.js'
import { amend, confirm, decide, order, withdraw } from './owner.js'
import { createIncoming, listPaid, pay, payAgain, readIncoming, readSpent } from './payments.js'
import { requestPaying, requestReceiving } from './requests.js'

type ClientAction = (caller: Caller) => Promise<void>
type HostAction = (world: World, server: ServerProcess) => Promise<void>

/** What can begin, with its usual weight. */
const clientActions: readonly (readonly [weight: number, action: ClientAction])[] = [
  [3, requestReceiving],
  [5, requestPaying],
  [8, continueGrant],
  [5, rotate],
  [1, revoke],
  [1, replaceKey],
  [5, createIncoming],
  [2, readIncoming],
  [12, pay],
  [4, payAgain],
  [1, readSpent],
  [2, listPaid],
]

const hostActions: readonly (readonly [weight: number, action: HostAction])[] = [
  [8, decide],
  [1, withdraw],
  [2, amend],
  [6, confirm],
  [6, order],
  [8, receive],
  [1, complete],
  [5, send],
  [3, sweep],
  [8, consume],
]

const minute = 60_000
const leaps = [
  11_000,
  minute,
  6 * minute,
  11 * minute,
  60 * minute,
  25 * 60 * minute,
  8 * 1_440 * minute,
]

/** Most lives begin with clients that hold grants, before any fault occurs. */
export async function openShops(world: World): Promise<void> {
  const { scheduler, climate, servers, clients } = world
  const { draw } = scheduler
  const { weather } = climate
  climate.weather = { ...weather, ...calm }
  climate.isPeaceful = true
  for (const { entry, process } of clients) {
    if (draw.chance(20)) continue
    const caller = createCaller(world, entry, process)
    const asClient = (action: ClientAction) => () =>
      scheduler.perform(process, action.name, () => void action(caller))
    async function asOwner(): Promise<void> {
      const server = draw.pick(servers)
      if (server === undefined) return
      await scheduler.perform(server.process, decide.name, () => void decide(world, server))
    }
    for (const act of [
      asClient(requestReceiving),
      asClient(requestPaying),
      asOwner,
      asClient(continueGrant),
      asClient(createIncoming),
      asClient(pay),
      asClient(pay),
    ]) {
      await act()
      await scheduler.rest()
      // A client that polls has to wait.
      scheduler.leap(6_000)
    }
  }
  // The owner pays, too, and the operator sends some of the payments.
  for (const action of [order, consume, send, send, send]) {
    const server = draw.pick(servers)
    if (server === undefined) continue
    await scheduler.perform(server.process, action.name, () => void action(world, server))
    await scheduler.rest()
  }
  climate.weather = weather
  climate.isPeaceful = false
}

/** Returns a function that begins one random action of a client, the host or fate. */
export function createActors(world: World): () => Promise<void> {
  const { scheduler, servers, network, climate } = world
  const { draw } = scheduler
  const callers = world.clients.map(({ entry, process }) => createCaller(world, entry, process))
  // Each life leaves some actions out and prefers others, so that lives differ more than single steps do.
  const weigh = <Action>(actions: readonly (readonly [number, Action])[]) =>
    actions.map(([weight, action]) => [weight * draw.one(0, 1, 1, 1, 1, 1, 3, 3), action] as const)
  const clientChoices = weigh(clientActions)
  const hostChoices = weigh(hostActions)
  const choices = [...clientChoices, ...hostChoices]
  const total = choices.reduce((sum, [weight]) => sum + weight, 0)

  function disaster(): void {
    const server = draw.pick(servers)
    switch (draw.one('restart', 'leap', 'replay', 'replay')) {
      case 'restart':
        if (server !== undefined) world.restart(server)
        break
      case 'leap':
        scheduler.leap(draw.pick(leaps) ?? 0)
        break
      case 'replay':
        network.replay()
    }
  }

  async function beginOne(): Promise<void> {
    let rest = draw.below(total || 1)
    for (const [weight, action] of clientChoices) {
      rest -= weight
      const caller = rest < 0 ? draw.pick(callers) : undefined
      if (caller === undefined) continue
      return scheduler.perform(caller.process, action.name, () => void action(caller))
    }
    for (const [weight, action] of hostChoices) {
      rest -= weight
      const server = rest < 0 ? draw.pick(servers) : undefined
      if (server === undefined) continue
      return scheduler.perform(server.process, action.name, () => void action(world, server))
    }
  }

  return async function begin() {
    if (draw.chance(climate.weather.disasterPercent)) return disaster()
    const before = scheduler.size()
    for (let tries = 0; tries < triesMax && scheduler.size() === before; tries++) await beginOne()
  }
}

/** How many actions are tried in one step if they find nothing to do, such as to rotate without a token. */
const triesMax = 6
