import { withDeadline } from '../../src/network/index.js'
import { boundedIntrospect } from '../../src/outbound/bounded-introspection.js'
import type { Introspect, Introspection } from '../../src/ports/host.js'
import type { Climate } from './connection.js'
import type { Scheduler } from './scheduler.js'
import type { ServerProcess } from './servers.js'

const timeoutMs = 2_000

/**
 * Introspection as `remoteGrants` sends it, at one of the authorization servers. The network delays requests and
 * answers, and loses some. An answer does not tell the version of the grant.
 */
export function introspectRemotely(
  scheduler: Scheduler,
  climate: Climate,
  servers: () => readonly ServerProcess[],
): Introspect {
  const { draw } = scheduler
  const isLost = () => draw.chance(climate.weather.portFailsPercent)

  function send(query: Parameters<Introspect>[0]): Promise<Introspection> {
    const caller = scheduler.current()
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void) => {
        if (caller.alive && !isLost()) scheduler.post(caller, 'introspection answered', settle)
      }
      if (isLost()) return
      scheduler.post(scheduler.world, 'introspection', () => {
        const server = draw.pick(servers())
        if (server === undefined) return
        scheduler.enter(server.process)
        server.auth.introspect(query).then(
          (token) => answer(() => resolve(withoutVersion(token))),
          () => answer(() => reject(new Error('the response has status 503'))),
        )
      })
    })
  }

  return boundedIntrospect(async (query) => {
    try {
      return await withDeadline(timeoutMs, () => send(query))
    } catch (error) {
      climate.faults += 1
      throw error
    }
  })
}

function withoutVersion(token: Introspection): Introspection {
  if (!token.active) return token
  const { grantVersion: _grantVersion, ...rest } = token
  return rest
}
