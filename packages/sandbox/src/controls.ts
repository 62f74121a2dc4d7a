import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyBytesMax, type HttpResponse } from 'open-payments-server/adapter'
import { readNodeBody } from '../../../adapters/node-request.js'
import type { SandboxDescription } from './description.js'
import { SandboxError } from './error.js'
import type { PlantedFault } from './faults.js'
import { failure, json, send } from './front.js'
import type { SandboxKey } from './keys.js'
import { pageOf, rowOf } from './page.js'
import type { RequestLog } from './requests.js'

/** What the pages of the sandbox show and change. */
export interface Controls {
  readonly log: RequestLog
  /** The document that `--json` prints. */
  describe(): SandboxDescription
  clock(): { readonly now: string; readonly offsetMs: number }
  moveClock(change: unknown): Promise<void>
  faults(): readonly PlantedFault[]
  plant(fault: unknown): PlantedFault & { readonly key?: SandboxKey }
  /** Returns the faults that were removed. */
  remove(id?: string): readonly PlantedFault[]
  readonly stopping: AbortSignal
}

type Route = (body: unknown, id: string) => Promise<HttpResponse> | HttpResponse

const followersMax = 20

/** Serves the page and the JSON of the sandbox, below `/sandbox`. */
export function controlsOf(
  controls: Controls,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { log } = controls
  let followers = 0
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
    'GET /sandbox/faults': () => json(200, faults()),
    'POST /sandbox/faults': (body) => json(201, controls.plant(body)),
    'DELETE /sandbox/faults': () => {
      controls.remove()
      return json(200, faults())
    },
    'DELETE /sandbox/faults/{id}': (_body, id) =>
      controls.remove(id).length > 0 ? json(200, faults()) : failure(404, 'no such fault'),
  }

  function follow(response: ServerResponse): void {
    if (followers >= followersMax) {
      send(response, failure(503, 'too many pages are open'))
      return
    }
    followers += 1
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
    response.writeHead(200, headers).write('retry: 1000\n\n')
    const stop = log.follow((request) => {
      // A page that does not read is not worth memory.
      if (response.writableNeedDrain) response.destroy()
      else response.write(`id: ${request.id}\ndata: ${rowOf(request)}\n\n`)
    })
    const end = () => response.end()
    controls.stopping.addEventListener('abort', end)
    response.once('close', () => {
      followers -= 1
      stop()
      controls.stopping.removeEventListener('abort', end)
    })
  }

  return async (request, response) => {
    const { url = '', headers } = request
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const path = (url.split('?', 1)[0] ?? '').replace(/\/$/, '')
    const wants = headers.accept ?? ''
    if (method === 'GET' && path === '/sandbox/requests' && wants.includes('text/event-stream')) {
      return follow(response)
    }
    if (method === 'GET' && path === '/sandbox' && wants.includes('text/html')) {
      return send(response, pageOf(controls.describe(), log.list()))
    }
    const [, id = ''] = /^\/sandbox\/faults\/([^/]+)$/.exec(path) ?? []
    const name = id === '' ? path : '/sandbox/faults/{id}'
    const route = routes[`${method} ${name}`]
    if (route === undefined) {
      const isKnown = Object.keys(routes).some((each) => each.endsWith(` ${name}`))
      return send(response, isKnown ? failure(405, 'this path has other methods') : unknownPath)
    }
    const body = await readNodeBody(request, {}, '')
    if (body === undefined) return
    send(response, await answerTo(route, method, headers['content-type'], body, id))
  }
}

const unknownPath = failure(404, 'the paths are /sandbox, and below it /requests, /clock, /faults')

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
    if (error instanceof SandboxError) return failure(400, error.message)
    throw error
  }
}
