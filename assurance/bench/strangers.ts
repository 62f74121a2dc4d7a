import type { HttpRequest } from 'open-payments-server/adapter'
import {
  type HostileRequest,
  hostileRequests,
  serversWithoutKeys,
} from '../../test/support/hostile-requests.js'
import { benchWallet, creation, type Library, newToken, origin } from './fixtures.js'
import { type Figure, interleaved, perCallUs, ratioFigure } from './measure.js'

const rounds = 11
const calls = 3
/** One for each call and one more round, with which `interleaved` warms up. */
const variants = (rounds + 1) * calls
/** How many of the most expensive requests are printed. */
const shown = 10
/** The first requests would otherwise run code that is not compiled yet. */
const warmUps = 20

/** Measures hostile requests of a stranger, whose keys the servers do not know, against one verification. */
export async function strangers(library: Library): Promise<Figure[]> {
  const wallet = benchWallet(library)
  const request = await creation(wallet, (await newToken(wallet)).value)
  // On a clock that stands still, no request is refused for its age instead.
  const at = Math.floor(Date.now() / 1000)
  const clock = { now: () => at * 1000 }
  const verifySignature = library.createSignatureVerifier({ url: origin, clock })
  const verification = () =>
    perCallUs(10 * calls, async () => {
      const { ok } = await verifySignature(request, wallet.key.jwk)
      if (!ok) throw new Error('not verified')
    })

  const handlers = serversWithoutKeys(library, { store: library.memoryStore(), clock })
  const requests = hostileRequests(at, variants)
  const send = async ({ server }: HostileRequest, request: HttpRequest | undefined) => {
    const { status } = await handlers[server](request as HttpRequest)
    if (status < 400 || status >= 500) throw new Error(`the server responded with ${status}`)
  }
  for (let i = 0; i < warmUps; i++) {
    for (const hostile of requests) await send(hostile, hostile.variants[0])
  }
  const figures: Figure[] = []
  for (const hostile of requests) {
    let next = 0
    const nextVariant = () => hostile.variants[next++ % hostile.variants.length]
    const measured = await interleaved(rounds, {
      hostile: () => perCallUs(calls, () => send(hostile, nextVariant())),
      verification,
    })
    const name = `request of a stranger, relative to a verification: ${hostile.name}`
    figures.push(ratioFigure(name, measured.hostile, measured.verification, { most: 10 }))
  }
  return figures.toSorted((a, b) => b.value - a.value).slice(0, shown)
}
