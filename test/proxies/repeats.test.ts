import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { typescript } from '../support/clients/all.js'
import type { Dialect, Message } from '../support/clients/dialect.js'
import type { Answered } from '../support/clients/send.js'
import {
  type Call,
  type CallResult,
  calls,
  type Results,
  successes,
} from '../support/clients/sequence.js'
import type { Reply } from '../support/faulty-proxy.js'
import {
  headerOf,
  installedProxies,
  type ProxiedWallet,
  startProxiedWallet,
} from '../support/proxied-wallet.js'
import { changed, configurations, reverseProxies } from '../support/proxies.js'

type Change = readonly [from: string, to: string]

/** What happens to the first answer to each signed request. */
type Fault = 'is lost' | 'is late' | typeof twice

const twice = 'is that to one of two copies'

interface Row {
  readonly name: string
  readonly how: string
  readonly changes: readonly Change[]
  readonly faults: readonly Fault[]
  /** The methods of the requests that this configuration sends again, after an answer that was lost or late. */
  readonly repeated: readonly string[]
}

/** nginx sends nothing to a process for 10 s after each answer that it lost. */
const nginx: readonly Change[] = [
  ['server 127.0.0.1:3000;', 'server 127.0.0.1:3000 max_fails=0;'],
  ['server 127.0.0.1:3001;', 'server 127.0.0.1:3001 max_fails=0;'],
]
const off = 'proxy_next_upstream off; # otherwise, GET and DELETE are sent to both'
const varnish: readonly Change[] = [['import directors;', 'import directors;\nimport std;']]

/** How long each proxy waits for an answer that is late. A slow machine has to answer all others within it. */
const impatient: Readonly<Record<string, Change>> = {
  nginx: ['proxy_read_timeout 40s;', 'proxy_read_timeout 3s;'],
  HAProxy: ['timeout server 40s', 'timeout server 3s'],
  Apache: ['ProxyTimeout 40', 'ProxyTimeout 3'],
  Caddy: ['keepalive off', 'keepalive off\n      response_header_timeout 3s'],
  Varnish: ['.first_byte_timeout = 40s;', '.first_byte_timeout = 3s;'],
}

const rows: readonly Row[] = [
  {
    name: 'nginx',
    how: 'as the document configures it',
    changes: nginx,
    faults: ['is lost', twice],
    repeated: [],
  },
  {
    name: 'nginx',
    how: 'with its default, which repeats what is idempotent',
    changes: [...nginx, [off, '']],
    faults: ['is late'],
    repeated: ['DELETE', 'GET'],
  },
  {
    name: 'nginx',
    how: 'where it repeats everything',
    changes: [...nginx, [off, 'proxy_next_upstream error timeout non_idempotent;']],
    faults: ['is lost'],
    repeated: ['DELETE', 'GET', 'POST'],
  },
  {
    name: 'HAProxy',
    how: 'as the document configures it',
    changes: [],
    faults: ['is lost', 'is late', twice],
    repeated: [],
  },
  {
    name: 'HAProxy',
    how: 'with a rule that repeats everything',
    changes: [
      [
        '\nbackend wallet\n',
        '\nbackend wallet\n  retry-on all-retryable-errors\n  option redispatch 1\n',
      ],
    ],
    faults: ['is lost', 'is late'],
    repeated: ['DELETE', 'GET', 'POST'],
  },
  {
    name: 'Apache',
    how: 'as the document configures it',
    changes: [],
    faults: ['is lost', 'is late', twice],
    repeated: [],
  },
  {
    name: 'Caddy',
    how: 'as the document configures it',
    changes: [],
    faults: ['is lost', 'is late', twice],
    repeated: [],
  },
  {
    name: 'Caddy',
    how: 'with a time in which it tries again',
    changes: [['    transport http', '    lb_try_duration 5s\n    transport http']],
    faults: ['is lost'],
    repeated: ['GET'],
  },
  {
    name: 'Varnish',
    how: 'as the document configures it',
    changes: varnish,
    faults: ['is lost', 'is late', twice],
    repeated: [],
  },
  {
    name: 'Varnish',
    how: 'with a rule that repeats everything',
    changes: [
      ...varnish,
      ['return (pass)', 'std.cache_req_body(1MB);\n  return (pass)'],
      ['sub vcl_init', 'sub vcl_backend_error {\n  return (retry);\n}\n\nsub vcl_init'],
    ],
    faults: ['is lost', 'is late'],
    repeated: ['DELETE', 'GET', 'POST'],
  },
]

/** The client, once more with a nonce in each signature. */
const withNonces: Dialect = {
  ...typescript,
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`, `nonce="${randomUUID()}"`],
}

/** Clients with and without nonces, which pay by quote and with an amount. */
const clients = [typescript, withNonces].flatMap((dialect) =>
  [false, true].map((isDirect) => ({ dialect, isDirect })),
)

/**
 * The options of a client that says with a header of its own that it signs a call again: until an answer says what was
 * done, except for a payment without a quote.
 */
function asking({ dialect, isDirect }: (typeof clients)[number]) {
  let isAgain = false
  return {
    isDirect,
    dialect: {
      ...dialect,
      lines: (message: Message) => [
        ...dialect.lines(message),
        ...(isAgain ? [['X-Again', '1'] as const] : []),
      ],
    },
    repeats(result: Answered | 'no response', call: Call) {
      isAgain = !(isDirect && call === 'create an outgoing payment') && saysNothing(result)
      return isAgain
    },
  }
}

describe.each(reverseProxies)('behind $name', (proxy) => {
  if (!installedProxies.includes(proxy)) return test.skip('skipped: run .ci/proxies', () => {})

  let wallet: ProxiedWallet
  beforeAll(async () => {
    wallet = await startProxiedWallet()
  })
  afterAll(() => wallet.stop())

  /** What the processes answered to each signature, in the order of the answers. */
  const answers = new Map<string, Reply[]>()
  const arrived = new Set<string>()
  /** The methods of requests that arrived again. Without a nonce, it may be the client that sends equal bytes. */
  const again = new Set<string>()

  function breakLinks(fault: Fault) {
    answers.clear()
    arrived.clear()
    again.clear()
    for (const [index, link] of wallet.links.entries()) {
      const other = wallet.links[1 - index]
      link.fault = async (request, forward) => {
        const signature = headerOf(request, 'signature')
        if (signature === undefined) return forward(request)
        const isAsked = headerOf(request, 'x-again') !== undefined
        const isFirst = !arrived.has(signature)
        arrived.add(signature)
        const hasNonce = headerOf(request, 'signature-input')?.includes(';nonce=')
        if (!isFirst && hasNonce === true) again.add(request.method)
        const answered = (reply: Reply) => {
          answers.set(signature, [...(answers.get(signature) ?? []), reply])
          return reply
        }
        if (isFirst && !isAsked && fault === twice) {
          const copy = forward(request, other?.upstream).then(answered)
          const [, second] = await Promise.all([forward(request).then(answered), copy])
          return second
        }
        const reply = answered(await forward(request))
        if (!isFirst || isAsked) return reply
        return { ...reply, ...(fault === 'is lost' ? { isLost: true } : { isLate: true }) }
      }
    }
  }

  const cases = rows
    .filter(({ name }) => name === proxy.name)
    .flatMap((row) => row.faults.map((fault) => ({ ...row, fault })))

  test.each(cases)(
    '$how, if the first answer $fault, the money goes once, and no answer says that it was not done',
    async ({ changes, fault, repeated }) => {
      breakLinks(fault)
      const [config = ''] = configurations(proxy.language)
      const wait = impatient[proxy.name]
      const all = fault === 'is late' && wait !== undefined ? [...changes, wait] : changes
      const before = await wallet.payments()
      const run = () => Promise.all(clients.map((client) => wallet.live(asking(client))))
      const results = await wallet.behind(proxy, run, changed(config, all))
      expect({
        payments: (await wallet.payments()) - before,
        contradictions: [...answers.values()].flatMap(contradictions),
        unsettled: clients.flatMap((client, index) => unsettled(results[index] as Results, client)),
        again: [...again].toSorted(),
      }).toEqual({
        payments: clients.length,
        contradictions: [],
        unsettled: [],
        again: fault === twice ? [] : repeated,
      })
    },
  )
})

/** Whether a client cannot know from what it read whether the request was carried out. */
function saysNothing(result: CallResult): boolean {
  if (typeof result === 'string') return result === 'no response'
  return result.status >= 500 || isRepeat(result.status, result.body?.error?.code)
}

function isRepeat(status: number, code: unknown): boolean {
  return status === 409 && code === 'signature_used'
}

/** The answers that say that a request was refused, to one signature of which another answer says that it was done. */
function contradictions(replies: readonly Reply[]): readonly string[] {
  if (!replies.some(({ status }) => status < 300)) return []
  return replies
    .filter(({ status, body }) => {
      if (status < 300 || status >= 500) return false
      return !isRepeat(status, JSON.parse(body).error?.code)
    })
    .map(({ status, body }) => `${status} ${body}`)
}

/** The calls that did not come to their end. What became of a payment may be unknown, if it is not signed again. */
function unsettled(
  results: Results,
  { isDirect }: (typeof clients)[number],
): readonly (readonly [Call, CallResult])[] {
  return calls.flatMap((call) => {
    const result = results[call]
    if (typeof result !== 'string' && result.status === successes[call]) return []
    const isUnknown = isDirect && call === 'create an outgoing payment' && saysNothing(result)
    const isBehind = isDirect && call === 'read an outgoing payment' && result === 'not reached'
    return isUnknown || isBehind ? [] : [[call, result] as const]
  })
}
