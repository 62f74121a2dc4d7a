import type { Refusal, ServerOperation } from '../../src/index.js'
import { arrange, type Fault, faults, type Scene } from './faults.js'
import { impatiently } from './impatiently.js'
import { successes } from './successes.js'
import { type Ask, createSurface, type Surface, switchesOff } from './surface.js'
import { type Answer, alice, grantEndpoint, resourceServer } from './world.js'

/** A response that an operation actually returned. */
export interface Given {
  readonly operation: ServerOperation
  readonly answer: Answer
  /** The refusal that the operator's log reports, and the refusal that the test intended. */
  readonly refused?: {
    readonly as: Refusal | undefined
    readonly meant: Refusal
    /** Status and code in the table of faults. */
    readonly cell: string | undefined
  }
}

/** Produces every response that an operation can return. */
export async function everyAnswerOf(operation: ServerOperation): Promise<readonly Given[]> {
  const surface = await createSurface()
  const given: Given[] = []
  for (const fault of faults.filter(({ at }) => operation in at)) {
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
  const { world, switches, shop } = surface
  const scene: Scene = { surface, operation, asked: surface.ask(operation), sending: {} }
  await arrange(scene, [fault])
  world.refusals.length = 0
  const answer = await sent(scene)
  Object.assign(switches, switchesOff())
  world.clientKeys.unavailable = false
  world.clientKeys.publish('https://shop.example', shop.key)
  const refused = {
    as: world.refusals.at(-1)?.refusal,
    meant: fault.refusal,
    cell: fault.at[operation],
  }
  return { operation, answer, refused }
}

/** Sends the request of a scene. */
export function sent({ surface, asked, sending }: Scene): Promise<Answer> {
  const send = () => surface.send(asked, sending)
  return surface.switches.store === 'contended' ? impatiently(send) : send()
}

/** A request to each server for an existing resource. */
export const entrances: Readonly<Record<string, Ask & { readonly operation: ServerOperation }>> = {
  authorizationServer: { operation: 'requestGrant', method: 'POST', url: grantEndpoint },
  resourceServer: {
    operation: 'listIncomingPayments',
    method: 'GET',
    url: `${resourceServer}/incoming-payments`,
  },
  walletAddressServer: { operation: 'getWalletAddress', method: 'GET', url: alice },
}
