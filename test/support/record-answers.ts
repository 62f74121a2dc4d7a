import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, vi } from 'vitest'
import type { HttpRequest, HttpResponse } from '../../src/entry-adapter.js'
import type { ServerOperation } from '../../src/index.js'
import { type DocumentedOperation, documentedOperations } from './openapi.js'
import { type Promised, promised } from './operations-page.js'

/*
 * The setup file of `OPENAPI=1 npx vitest run …`: it validates every answer of every handler in the process of a test
 * against the OpenAPI documents and the tables in docs/operations.md. A test with a wrong answer fails.
 */

interface Recorder {
  readonly operations: ReadonlyMap<string, { row: Promised; document: DocumentedOperation }>
  /** How many answers are beyond the documents, by status, code and operation; `''` counts all others. */
  counts: Map<string, number>
  problems: string[]
}

/** Test files share the modules of their worker, but not this one. */
const shared = globalThis as typeof globalThis & { answers?: Promise<Recorder> }
shared.answers ??= opened()
const recorder = await shared.answers

async function opened(): Promise<Recorder> {
  const documents = await documentedOperations()
  const operations = promised.flatMap((row) => {
    const document = documents.find(({ operationId }) => operationId === row.operationId)
    return document === undefined ? [] : [[row.handler, { row, document }] as const]
  })
  return { operations: new Map(operations), counts: new Map(), problems: [] }
}

vi.mock('../../src/http/pipeline.js', async (importOriginal) => {
  const { createHandlers, ...others } =
    await importOriginal<typeof import('../../src/http/pipeline.js')>()
  const { resolveTarget } = await import('../../src/http/target.js')
  const { matchRoute } = await import('../../src/http/routes.js')
  const recorded: typeof createHandlers = (pipeline) => {
    const made = createHandlers(pipeline)
    const recording =
      (handle: typeof made.handle): typeof made.handle =>
      async (request) => {
        const answer = await handle(request)
        const target = resolveTarget(request.url, pipeline.url, pipeline.strippedPrefix)
        const match = target.ok
          ? matchRoute(made.routes, request.method, target.value.path)
          : undefined
        record(match?.ok ? match.value.route.operation : undefined, request, answer)
        return answer
      }
    const handlers = Object.entries<typeof made.handle>(made.handlers)
    return {
      ...made,
      handle: recording(made.handle),
      handlers: Object.fromEntries(
        handlers.map(([name, handle]) => [name, recording(handle)]),
      ) as typeof made.handlers,
    }
  }
  return { ...others, createHandlers: recorded }
})

function record(
  operation: ServerOperation | undefined,
  { method, url }: HttpRequest,
  { status, body }: HttpResponse,
): void {
  const value = body ? JSON.parse(body) : undefined
  const code = value?.error?.code
  const cell = code === undefined ? String(status) : `${status} ${code}`
  const known = recorder.operations.get(operation ?? '')
  const problems = method === 'HEAD' ? [] : (known?.document.problemsOf(status, value) ?? [cell])
  const key = problems.length === 0 ? '' : `${cell} of ${operation ?? 'no operation'}`
  recorder.counts.set(key, (recorder.counts.get(key) ?? 0) + 1)
  if (known === undefined) return
  // Some refusals precede the operation, such as of a body that is too large.
  if (problems.length === 0 || known.row.beyond.includes(cell) || early.includes(cell)) return
  if (status === 200 && isFromRfc9635(value)) return
  recorder.problems.push(`${method} ${url}: ${cell}, ${problems.join('; ')}\n${body}`)
}

/** Several tokens, their labels and subjects are from RFC 9635, and only for clients that ask for them. */
function isFromRfc9635(value: { access_token?: { label?: string }; subject?: object }): boolean {
  const { access_token, subject } = value
  return Array.isArray(access_token) || access_token?.label !== undefined || subject !== undefined
}

const early = [
  '400 invalid_request',
  '413 invalid_request',
  '415 invalid_request',
  '415 unsupported_media_type',
]

function requireNone(): void {
  const problems = recorder.problems.splice(0)
  if (problems.length > 0) throw new Error(`answers beyond the documents:\n${problems.join('\n')}`)
}

afterEach(requireNone)
afterAll(() => {
  const counts = [...recorder.counts]
  recorder.counts.clear()
  const path = process.env['OPENAPI_ANSWERS'] ?? ''
  if (path !== '') appendFileSync(path, counts.map((each) => `${JSON.stringify(each)}\n`).join(''))
  requireNone()
})
