import type { HttpRequest, HttpResponse } from '../../../src/entry-adapter.js'
import type { Passage } from './check.js'
import type { Kind } from './kinds.js'

export interface Problem {
  readonly problem: string
  /** The seed of the batch that contains this input. */
  readonly batch: string
  readonly kind: Kind
  readonly request: HttpRequest
  readonly response: HttpResponse | undefined
}

/**
 * What is counted: the kinds of inputs, the statuses, the statuses with the codes of refusals, the refusals, and the
 * refusals of requests whose nonce or signature was stored.
 */
type Counted = 'kind' | 'status' | 'code' | 'refusal' | 'nonce'

export interface Report {
  readonly inputs: number
  readonly counts: Readonly<Record<Counted, Readonly<Record<string, number>>>>
  /** The first inputs with a problem. */
  readonly problems: readonly Problem[]
  /** How many inputs had a problem. */
  readonly failed: number
  /** Bytes of the heap in use after a tenth of the inputs, and after all of them. */
  readonly memory: { readonly before: number; readonly after: number }
  readonly slowest: { readonly ms: number; readonly kind: string; readonly status: number }
}

const problemsKept = 10

export function createTally() {
  const counts: Record<Counted, Record<string, number>> = {
    kind: {},
    status: {},
    code: {},
    refusal: {},
    nonce: {},
  }
  const problems: Problem[] = []
  let inputs = 0
  let failed = 0
  let slowest = { ms: 0, kind: '', status: 0 }
  const add = (what: Counted, name: string) => {
    counts[what][name] = (counts[what][name] ?? 0) + 1
  }
  return {
    count(served: { kind: Kind; passage: Passage; status: number; ms: number }) {
      const { kind, passage, status, ms } = served
      const { refusal, written } = passage
      inputs += 1
      add('kind', kind)
      add('status', String(status))
      add('code', refusal === undefined ? String(status) : `${status} ${refusal.code}`)
      if (refusal !== undefined) add('refusal', refusal.refusal)
      if (refusal !== undefined && written.length > 0) add('nonce', refusal.refusal)
      if (ms > slowest.ms) slowest = { ms, kind, status }
    },
    fail(problem: Problem) {
      failed += 1
      if (problems.length < problemsKept) problems.push(problem)
    },
    report: (memory: Report['memory']): Report => {
      return { inputs, counts, problems, failed, memory, slowest }
    },
  }
}

/**
 * How many bytes of the heap a run of any length may leave in use after its first tenth. A short run over sockets is
 * still compiling code then: the client of Redis leaves 4.4 MiB after 10,000 inputs.
 */
export const growthMaxBytes = 8 * 2 ** 20

/** Prints an input with a problem so that it can be sent again. */
export function problemText({ problem, batch, kind, request, response }: Problem): string {
  const body = Buffer.from(request.body).toString('base64')
  const sent = JSON.stringify({ ...request, body })
  return `${problem}\n  batch ${batch}, ${kind}\n  ${sent}\n  ${JSON.stringify(response)}`
}
