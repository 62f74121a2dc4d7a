import { beforeAll, describe, expect, test } from 'vitest'
import type { Refusal, ServerOperation } from '../../src/index.js'
import { refusals } from '../../workshop/scripts/refusals.js'
import { arrange, beforehand, type Scene } from '../support/faults.js'
import { entrances, everyAnswerOf, type Given, sent } from '../support/given.js'
import { type DocumentedOperation, documentedOperations } from '../support/openapi.js'
import { listed, promised, tableUnder } from '../support/operations-page.js'
import { cell, createSurface } from '../support/surface.js'
import { grantEndpoint } from '../support/world.js'

let documented: readonly DocumentedOperation[] = []
let given: readonly Given[] = []
const { routes } = await createSurface()
const operations = routes.map(({ operation }) => operation)

const own = tableUnder('Served beyond the documents').map(([handler, route, answers]) => ({
  handler: handler as ServerOperation,
  route,
  answers: listed(answers),
}))

beforeAll(async () => {
  documented = await documentedOperations()
  const all: Given[] = []
  for (const operation of operations) all.push(...(await everyAnswerOf(operation)))
  given = all
})

function answersOf(handler: ServerOperation) {
  return given.filter(({ operation }) => operation === handler).map(({ answer }) => answer)
}

/** The operation of the documents that a handler serves. */
function documentOf(handler: ServerOperation): DocumentedOperation {
  const row = promised.find((each) => each.handler === handler)
  const found = documented.find(({ operationId }) => operationId === row?.operationId)
  if (found === undefined) throw new Error(`${handler} is not in the documents`)
  return found
}

/** Returns where a handler is served, without the path of a wallet address. */
function routesOf(handler: ServerOperation): readonly string[] {
  return routes
    .filter(({ operation }) => operation === handler)
    .map(({ method, path }) => `${method} ${path.replace('{path}', '') || '/'}`)
}

const unique = (values: readonly string[]) => [...new Set(values)].toSorted()

describe('the operations of the published documents', () => {
  test('are all listed on the page, served or not', () => {
    const served = promised.map(({ operationId }) => operationId)
    const notServed = tableUnder('Not served').map(([operationId = '']) => operationId)
    const all = documented.map(({ operationId }) => operationId)
    expect([...served, ...notServed].toSorted()).toEqual(all.toSorted())
  })

  test.each(promised)('are served where the documents say: $operationId', ({ handler, ...row }) => {
    const { document, method, path } = documentOf(handler)
    expect([document, `${method} ${path}`]).toEqual([row.document, row.route])
    expect(routesOf(handler)).toEqual([row.route])
  })

  test('are all served operations, except the additional ones that the page lists', () => {
    for (const { handler, route } of own) expect(routesOf(handler)).toEqual([route])
    const handlers = [...promised, ...own].map(({ handler }) => handler)
    expect(handlers.toSorted()).toEqual(operations.toSorted())
  })

  test.each(['listIncomingPayments', 'listOutgoingPayments'] as const)(
    'accept every documented query parameter: %s',
    async (handler) => {
      const { ask, send } = await createSurface()
      const [required, ...optional] = documentOf(handler).query
      const { url, ...asked } = ask(handler)
      expect(url).toContain(`?${required}=`)
      const values = { first: '7', last: '7', cursor: Buffer.from('0 0').toString('base64url') }
      expect(optional.toSorted()).toEqual(Object.keys(values).toSorted())
      for (const [name, value] of Object.entries(values)) {
        const answer = await send({ ...asked, url: `${url}&${name}=${value}` })
        expect(answer.status, name).toBe(200)
      }
    },
  )

  test('are the only operations with a query', () => {
    const withQuery = documented.filter(({ query }) => query.length > 0)
    expect(withQuery.map(({ operationId }) => operationId)).toEqual([
      'list-incoming-payments',
      'list-outgoing-payments',
    ])
  })
})

describe('an answer', () => {
  test('has the refusal, the status and the code that the table of faults names', () => {
    for (const { operation, answer, refused } of given) {
      const what = `${operation}: ${answer.status} ${JSON.stringify(answer.body)}`
      if (refused === undefined) expect(answer.status, what).toBeLessThan(300)
      else expect([what, refused.as, cell(answer)]).toEqual([what, refused.meant, refused.cell])
    }
  })

  test.each(promised)('matches the documents and the page: $handler', (row) => {
    const { problemsOf } = documentOf(row.handler)
    const answers = answersOf(row.handler).map((answer) => {
      const problems = problemsOf(answer.status, answer.body)
      if (answer.status < 300) expect(problems, JSON.stringify(answer.body)).toEqual([])
      return { answer, asDocumented: problems.length === 0 }
    })
    const good = answers.filter(({ asDocumented }) => asDocumented)
    const others = answers.filter(({ asDocumented }) => !asDocumented)
    expect(unique(good.map(({ answer }) => String(answer.status)))).toEqual(row.documented)
    expect(unique(others.map(({ answer }) => cell(answer)))).toEqual(row.beyond)
  })

  test.each(own)('is on the page if it is undocumented: $handler', ({ handler, answers }) => {
    expect(unique(answersOf(handler).map(cell))).toEqual(answers)
  })

  test('omits a documented response only where the page says so', () => {
    const missing = promised.flatMap(({ handler, operationId }) => {
      const { statuses, codesOf } = documentOf(handler)
      const seen = answersOf(handler).flatMap((answer) => [cell(answer), String(answer.status)])
      const wanted = statuses.flatMap((status) => {
        const codes = codesOf(status)
        return codes.length === 0 ? [String(status)] : codes.map((code) => `${status} ${code}`)
      })
      return wanted.filter((one) => !seen.includes(one)).map((one) => `${operationId} ${one}`)
    })
    const known = tableUnder('Documented responses that do not occur').map(
      ([operationId, one]) => `${operationId} ${one}`,
    )
    expect(missing.toSorted()).toEqual(known.toSorted())
  })

  test('has a reason on the page if the documents do not contain it', () => {
    const reasons = tableUnder('Why').flatMap(([answers]) => listed(answers))
    expect(reasons.toSorted()).toEqual(unique(promised.flatMap(({ beyond }) => beyond)))
  })

  test('has no undocumented member, except those that the page lists', () => {
    const found = promised.flatMap(({ handler }) =>
      answersOf(handler).flatMap(({ status, body }) =>
        documentOf(handler)
          .unnamedIn(status, body)
          .map((member) => `${handler} ${member}`),
      ),
    )
    const known = tableUnder('Members beyond the documents').flatMap(([member, handlers]) =>
      listed(handlers).map((handler) => `${handler} ${member}`),
    )
    expect(unique(found)).toEqual(known.toSorted())
  })

  test('with 401 names the authorization server in the documented form', () => {
    const challenged = given.filter(({ answer }) => answer.status === 401)
    expect(challenged.length).toBeGreaterThan(50)
    for (const { answer } of challenged) {
      expect(answer.headers['www-authenticate']).toBe(`GNAP as_uri=${grantEndpoint}`)
    }
  })
})

const servers = Object.entries(entrances)

describe('before its operation is known', () => {
  test.each(beforehand)('a request gets the response on the page: $refusal', async (each) => {
    const surface = await createSurface()
    const found: string[] = []
    for (const [, { operation, ...asked }] of servers) {
      const key = surface.shop.key
      const scene: Scene = { surface, operation, asked: { ...asked, key }, sending: {} }
      await arrange(scene, [each])
      const answer = await sent(scene)
      const [report] = surface.world.refusals.splice(0)
      expect([report?.refusal, report?.operation]).toEqual([each.refusal, undefined])
      expect(cell(answer)).toBe(each.at[operation])
      found.push(cell(answer))
    }
    const rows = tableUnder('Before the operation is known')
    expect(rows).toHaveLength(beforehand.length)
    expect(rows).toContainEqual([each.refusal, ...found])
  })
})

/** Returns the entry of the table of refusals that an operation uses for a refusal. */
function entryOf(refusal: Refusal, operation: ServerOperation): string {
  if (operation in refusals[refusal]) return operation
  const document = promised.find(({ handler }) => handler === operation)?.document
  if (document === 'resource server') return 'resourceServer'
  return document === 'wallet addresses' ? 'walletAddressServer' : 'authorizationServer'
}

test('the tests produce every entry of the table of refusals', () => {
  const met = [
    ...beforehand.flatMap(({ refusal }) => servers.map(([server]) => `${refusal} ${server}`)),
    ...given.flatMap(({ operation, refused }) =>
      refused?.as === undefined ? [] : [`${refused.as} ${entryOf(refused.as, operation)}`],
    ),
  ]
  const all = (Object.keys(refusals) as Refusal[]).flatMap((refusal) =>
    Object.keys(refusals[refusal]).map((where) => `${refusal} ${where}`),
  )
  expect(unique(met)).toEqual(all.toSorted())
})
