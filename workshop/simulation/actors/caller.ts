import type { KeyPair } from '../../../test/support/keys.js'
import { signedRequest } from '../../../test/support/sign.js'
import type { ClientEntry, TokenEntry } from '../journal.js'
import type { Process } from '../scheduler.js'
import type { World } from '../world.js'

export interface Asked {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly body?: object
  readonly token?: string
  readonly key?: KeyPair
  readonly idempotencyKey?: string
  readonly nonce?: boolean
}

export interface Answer {
  readonly status: number
  /** How many requests may have arrived until this response: one that has none may have taken effect. */
  readonly attempts: number
  // biome-ignore lint/suspicious/noExplicitAny: the actors read what they need
  readonly body: any
}

export type Caller = ReturnType<typeof createCaller>

/** Signs and sends the requests of one client. */
export function createCaller(world: World, entry: ClientEntry, process: Process) {
  const { scheduler, network, journal } = world
  const { draw } = scheduler
  const unique = () => `${entry.name}-${++entry.names}`

  /** Sends one signed request. Resolves to `undefined` if no response arrives. */
  async function ask(asked: Asked): Promise<Answer | undefined> {
    const { method, url, body, token, key = entry.key, idempotencyKey } = asked
    const { nonce = draw.chance(50) } = asked
    const seconds = Math.floor((scheduler.now() + process.skewMs) / 1000)
    const request = signedRequest({
      method,
      url,
      key,
      created: seconds,
      ...(body && { body: JSON.stringify(body) }),
      ...(token === undefined ? {} : { token }),
      ...(nonce && { nonce: unique() }),
      headers: idempotencyKey === undefined ? [] : [['Idempotency-Key', idempotencyKey]],
    })
    const { response, copies } = await network.send(request)
    if (response === undefined) return undefined
    const { status, body: text } = response
    return { status, attempts: copies, body: text === undefined ? undefined : JSON.parse(text) }
  }

  /** Sends a request again, with a new signature each time, until there is a response other than 5xx. */
  async function insist(asked: Asked, attempts = 3): Promise<Answer | undefined> {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(asked)
      if (answer !== undefined && answer.status < 500) {
        return { ...answer, attempts: answer.attempts + attempt - 1 }
      }
      if (attempt >= attempts) return undefined
    }
  }

  /** Uses a token at the resource server. If it was known to be dead before, the request must be refused. */
  async function use(token: TokenEntry, asked: Asked, attempts = 1): Promise<Answer | undefined> {
    const { dead } = token
    const answer = await insist({ ...asked, token: token.value }, attempts)
    if (answer !== undefined && answer.status < 300 && dead !== undefined) {
      const { method, url } = asked
      journal.breaches.push(`${method} ${url} was served with a token that had been ${dead}`)
    }
    return answer
  }

  return { world, entry, process, ask, insist, use, unique }
}
