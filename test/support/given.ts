import type { Refusal, ServerOperation } from '../../src/index.js'
import { type Fault, faults, type Scene } from './faults.js'
import { withHeader } from './sign.js'
import { successes } from './successes.js'
import { type Ask, createSurface, type Surface, switchesOff } from './surface.js'
import { type Answer, alice, grantEndpoint, resourceServer } from './world.js'

/** A response that an operation actually returned. */
export interface Given {
  readonly operation: ServerOperation
  readonly answer: Answer
  /** The refusal that the operator's log reports, and the refusal that the test intended. */
  readonly refused?: { readonly as: Refusal | undefined; readonly meant: Refusal }
}

/** Produces every response that an operation can return. */
export async function everyAnswerOf(operation: ServerOperation): Promise<readonly Given[]> {
  const surface = await createSurface()
  const given: Given[] = []
  for (const fault of faults.filter(({ at }) => at.includes(operation))) {
    const used = fault.spoils ? await createSurface() : surface
    given.push(await refusedFor(fault, used, operation))
  }
  for (const success of successes.filter((each) => each.operation === operation)) {
    given.push({ operation, answer: await success.run(surface) })
  }
  // Runs last, because the earlier refusals do not change any state.
  given.push({ operation, answer: await surface.send(surface.ask(operation)) })
  return given
}

async function refusedFor(
  fault: Fault,
  surface: Surface,
  operation: ServerOperation,
): Promise<Given> {
  const { world, switches, shop, send } = surface
  const scene: Scene = { surface, operation, asked: surface.ask(operation), sending: {} }
  await fault.arrange(scene)
  world.refusals.length = 0
  const sent = () => send(scene.asked, scene.sending)
  const answer = await (switches.store === 'contended' ? impatiently(sent) : sent())
  Object.assign(switches, switchesOff())
  world.clientKeys.unavailable = false
  world.clientKeys.publish('https://shop.example', shop.key)
  const refused = { as: world.refusals.at(-1)?.refusal, meant: fault.refusal }
  return { operation, answer, refused }
}

/** Skips the time during which a commit is retried. */
async function impatiently<Result>(work: () => Promise<Result>): Promise<Result> {
  const { now } = performance
  let elapsedMs = 0
  performance.now = () => (elapsedMs += 10_000)
  try {
    return await work()
  } finally {
    performance.now = now
  }
}

/** Sends a request to each server for an existing resource. */
export const entrances: Readonly<Record<string, Ask>> = {
  authorizationServer: { method: 'POST', url: grantEndpoint },
  resourceServer: { method: 'GET', url: `${resourceServer}/incoming-payments` },
  walletAddressServer: { method: 'GET', url: alice },
}

/** The refusals of every server before it reads the requested resource. */
export const beforehand: readonly {
  readonly refusal: Refusal
  readonly ask: (asked: Ask, surface: Surface) => Promise<Answer>
}[] = [
  {
    refusal: 'body_too_large',
    ask: (asked, { send }) =>
      send(asked, { bend: (request) => ({ ...request, body: new Uint8Array(64 * 1024 + 1) }) }),
  },
  {
    refusal: 'route_unknown',
    ask: (asked, { send }) => send({ ...asked, url: `${asked.url}/%2F` }),
  },
  {
    refusal: 'method_unknown',
    ask: (asked, { send }) => send({ ...asked, method: 'PATCH' }),
  },
  {
    refusal: 'headers_invalid',
    ask: (asked, { send }) =>
      send(asked, { bend: (request) => withHeader(request, 'Host', 'one', 'two') }),
  },
  {
    refusal: 'media_type_unsupported',
    ask: (asked, { send }) =>
      send(asked, { bend: (request) => withHeader(request, 'Content-Encoding', 'gzip') }),
  },
]
