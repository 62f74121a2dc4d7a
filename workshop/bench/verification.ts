import { hash, verify } from 'node:crypto'
import { validateSignature, validateSignatureHeaders } from '@interledger/http-signature-utils'
import type { HttpRequest } from 'open-payments-server/adapter'
import { contentDigest } from '../../test/support/sign.js'
import {
  benchWallet,
  creation,
  floorSignature,
  type Library,
  newToken,
  origin,
  signed,
} from './fixtures.js'
import { type Figure, interleaved, medianFigure, perCallUs, ratioFigure } from './measure.js'

const rounds = 21
const calls = 300

/** Measures verification alone, against its lower bound and against the published verifier. */
export async function verification(library: Library): Promise<Figure[]> {
  const wallet = benchWallet(library)
  const { key } = wallet
  const request = await creation(wallet, (await newToken(wallet)).value)
  // On a clock that stands still, the signature remains valid for the whole measurement.
  const now = Date.now()
  const clock = { now: () => now }
  const verifySignature = library.createSignatureVerifier({ url: origin, clock })
  const published = {
    method: request.method,
    url: request.fullUrl,
    headers: Object.fromEntries(request.headers),
    body: request.text,
  }
  const { base, signature } = floorSignature(key)

  const figures = await interleaved(rounds, {
    floor: () =>
      perCallUs(calls, () => {
        hash('sha512', request.body, 'buffer')
        if (!verify(null, base, key.publicKey, signature)) throw new Error('not verified')
      }),
    ours: () =>
      perCallUs(calls, async () => {
        const { ok } = await verifySignature(request, key.jwk)
        if (!ok) throw new Error('not verified')
      }),
    published: () =>
      perCallUs(calls, async () => {
        const verified =
          validateSignatureHeaders(published) &&
          (await validateSignature(key.jwk as never, published))
        if (!verified) throw new Error('not verified')
      }),
  })
  return [
    medianFigure('verification, in process', figures.ours, 'µs'),
    medianFigure('floor: one verify and one SHA-512', figures.floor, 'µs'),
    ratioFigure('verification: speed against the floor', figures.floor, figures.ours, {
      least: 0.85,
    }),
    ratioFigure(
      'verification: speed against the published verifier',
      figures.published,
      figures.ours,
      { least: 1.1 },
    ),
  ]
}

/** Measures whole operations through `handle` on the memory store, and refusals relative to them. */
export async function operations(library: Library): Promise<Figure[]> {
  const wallet = benchWallet(library)
  const { auth, resources, key, counts } = wallet
  let token = await newToken(wallet)
  const { base, signature } = floorSignature(key)
  const { value: creating } = await newToken(wallet)
  const good = () => creation(wallet, creating)
  const { body } = await good()

  async function rotate(): Promise<number> {
    let spent = 0
    for (let i = 0; i < calls; i++) {
      const { manage: url, value } = token
      const request = await signed(key, { method: 'POST', url, token: value })
      const start = process.hrtime.bigint()
      const response = await auth.handle(request)
      spent += Number(process.hrtime.bigint() - start)
      if (response.status !== 200) throw new Error(response.body)
      token = JSON.parse(response.body ?? '').access_token
    }
    return spent / 1_000 / calls
  }

  // Signed in each round, so that none is refused for its age instead.
  const refused = (fault: keyof Refused) => async () => {
    const { [fault]: request } = refusedRequests(await good())
    return perCallUs(calls, async () => {
      const { status } = await resources.handle(request)
      if (status !== 401) throw new Error(`the server responded with ${status}`)
    })
  }

  const figures = await interleaved(rounds, {
    floor: () =>
      perCallUs(calls, () => {
        hash('sha512', body, 'buffer')
        verify(null, base, key.publicKey, signature)
      }),
    async create() {
      const request = await good()
      return perCallUs(calls, async () => {
        const { status } = await resources.handle(request)
        if (status !== 201) {
          throw new Error(`the server responded with ${status}: ${wallet.refusals.last}`)
        }
      })
    },
    rotate,
    coverage: refused('coverage'),
    age: refused('age'),
    digest: refused('digest'),
  })

  const fetched = counts.fetches
  counts.store = 0
  for (const request of Object.values(refusedRequests(await good()))) {
    await resources.handle(request)
  }
  const refusalCalls = counts.store
  await resources.handle(await good())
  const most = { most: 0.15 }
  return [
    medianFigure('create incoming payment, through handle', figures.create, 'µs'),
    medianFigure('rotate token, through handle', figures.rotate, 'µs'),
    ratioFigure('create incoming payment: speed against the floor', figures.floor, figures.create),
    ratioFigure('rotate token: speed against the floor', figures.floor, figures.rotate),
    ratioFigure(
      'refusal for coverage, relative to the cost of an acceptance',
      figures.coverage,
      figures.create,
      most,
    ),
    ratioFigure(
      'refusal for age, relative to the cost of an acceptance',
      figures.age,
      figures.create,
      most,
    ),
    ratioFigure(
      'refusal for digest, relative to the cost of an acceptance',
      figures.digest,
      figures.create,
      most,
    ),
    {
      name: 'store calls of three refusals',
      value: refusalCalls,
      unit: 'calls',
      target: { most: 0 },
    },
    {
      name: 'key fetches while warm',
      value: counts.fetches - fetched,
      unit: 'calls',
      target: { most: 0 },
    },
  ]
}

type Refused = ReturnType<typeof refusedRequests>

/** Returns requests that are each refused for one reason, and are otherwise valid. */
function refusedRequests(request: HttpRequest) {
  const replace = (name: string, change: (value: string) => string) => ({
    ...request,
    headers: request.headers.map(([each, text]) =>
      each === name ? ([each, change(text)] as const) : ([each, text] as const),
    ),
  })
  return {
    coverage: replace('signature-input', (text) => text.replace(' "content-digest"', '')),
    age: replace('signature-input', (text) => text.replace(/created=\d+/, 'created=1700000000')),
    digest: replace('content-digest', () => contentDigest(Buffer.from('other'), 'sha-512')),
  }
}
