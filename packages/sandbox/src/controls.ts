import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StartPage } from 'create-open-payments-server/wallet/start-page/page'
import type { RequestLog } from 'create-open-payments-server/wallet/start-page/requests'
import { bodyBytesMax, type HttpResponse } from 'open-payments-server/adapter'
import { endUnread, headerLines, readNodeBody } from '../../../adapters/node-request.js'
import type { SandboxDescription } from './description.js'
import { SandboxError } from './error.js'
import type { PlantedFault } from './faults.js'
import { failure, json, send } from './front.js'
import type { SandboxKey } from './keys.js'
import type { Decided } from './owners.js'

/** What the pages of the sandbox show and change. */
export interface Controls {
  readonly log: RequestLog
  /** The document that `--json` prints. */
  describe(): SandboxDescription
  clock(): { readonly now: string; readonly offsetMs: number }
  moveClock(change: unknown): Promise<void>
  decide(decision: unknown): Promise<Decided>
  /** Returns the number of grants that were revoked. */
  revoke(grants: unknown): Promise<number>
  faults(): readonly PlantedFault[]
  plant(fault: unknown): PlantedFault & { readonly key?: SandboxKey }
  /** Returns the faults that were removed. */
  remove(id?: string): readonly PlantedFault[]
  readonly page: StartPage
}

type Route = (body: unknown, id: string) => Promise<HttpResponse> | HttpResponse

/** Serves the page and the JSON of the sandbox, below `/sandbox`. */
export function controlsOf(
  controls: Controls,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { log } = controls
  const requests = () => ({ requests: log.list() })
  const faults = () => ({ faults: controls.faults() })
  const routes: Readonly<Record<string, Route>> = {
    'GET /sandbox': () => json(200, { ...controls.describe(), ...faults(), ...requests() }),
    'GET /sandbox/requests': () => json(200, requests()),
    'DELETE /sandbox/requests': () => {
      log.clear()
      return json(200, requests())
    },
    'GET /sandbox/clock': () => json(200, controls.clock()),
    'POST /sandbox/clock': async (body) => {
      await controls.moveClock(body)
      return json(200, controls.clock())
    },
    'POST /sandbox/decide': async (body) => json(200, await controls.decide(body)),
    'POST /sandbox/revoke': async (body) => json(200, { revoked: await controls.revoke(body) }),
    'GET /sandbox/faults': () => json(200, faults()),
    'POST /sandbox/faults': (body) => json(201, controls.plant(body)),
    'DELETE /sandbox/faults': () => {
      controls.remove()
      return json(200, faults())
    },
    'DELETE /sandbox/faults/{id}': (_body, id) =>
      controls.remove(id).length > 0 ? json(200, faults()) : failure(404, 'no such fault'),
  }

  return async (request, response) => {
    const { url = '', headers } = request
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const body = await readNodeBody(request, {}, '')
    if (body === undefined) return
    endUnread(request, response, body)
    if (headers.accept?.includes('text/html')) {
      const shown = await controls.page({ method, url, headers: headerLines(request), body })
      if (shown !== undefined) return send(response, shown)
    }
    const path = (url.split('?', 1)[0] ?? '').replace(/\/$/, '')
    const [, id = ''] = /^\/sandbox\/faults\/([^/]+)$/.exec(path) ?? []
    const name = id === '' ? path : '/sandbox/faults/{id}'
    const route = routes[`${method} ${name}`]
    if (route === undefined) {
      const isKnown = Object.keys(routes).some((each) => each.endsWith(` ${name}`))
      return send(response, isKnown ? failure(405, 'this path has other methods') : unknownPath)
    }
    send(response, await answerTo(route, method, headers['content-type'], body, id))
  }
}

const unknownPath = failure(
  404,
  'the paths are /sandbox, and below it /requests, /clock, /decide, /revoke, /faults',
)

async function answerTo(
  route: Route,
  method: string,
  type: string | undefined,
  body: Uint8Array,
  id: string,
): Promise<HttpResponse> {
  let value: unknown
  if (method === 'POST') {
    // Pages of other sites cannot send this type.
    if (!/^application\/json\s*(;|$)/i.test(type ?? '')) {
      return failure(415, 'Content-Type must be application/json')
    }
    if (body.length > bodyBytesMax) return failure(413, 'the body is too large')
    try {
      value = JSON.parse(new TextDecoder().decode(body))
    } catch {
      return failure(400, 'the body is not JSON')
    }
  }
  try {
    return await route(value, id)
  } catch (error) {
    if (error instanceof SandboxError) {
      return failure(error.code === 'ERR_NO_EFFECT' ? 409 : 400, error.message, error.code)
    }
    throw error
  }
}
