import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { openApi } from '../../workshop/scripts/openapi.js'
import { everyAnswerOf } from '../support/given.js'
import {
  type DocumentedOperation,
  documentedOperations,
  ownOperations,
} from '../support/openapi.js'
import { promised } from '../support/operations-page.js'
import { createSurface } from '../support/surface.js'

const { routes } = await createSurface()
let own: readonly DocumentedOperation[] = []
let published: readonly DocumentedOperation[] = []

beforeAll(async () => {
  own = await ownOperations()
  published = await documentedOperations()
})

/** The operation of the document at a route, with the prefixes of `createWallet`. */
function at(method: string, path: string): DocumentedOperation | undefined {
  const paths = [`/auth${path}`, path, path.replace('{path}', '/{path}')]
  return own.find((each) => each.method === method && paths.includes(each.path))
}

describe('the OpenAPI document of the library', () => {
  test('is what npm run docs:tables writes', async () => {
    expect(JSON.parse(readFileSync('openapi.json', 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(await openApi())),
    )
  })

  test('has every route and no other', () => {
    const found = routes.map(({ method, path }) => at(method, path))
    expect(found).not.toContain(undefined)
    expect(own.length).toBe(routes.length)
  })

  test.each(routes)('describes every answer of $operation', async ({ operation, method, path }) => {
    const described = at(method, path)
    const answers = await everyAnswerOf(operation)
    expect(answers.length).toBeGreaterThan(0)
    for (const { answer } of answers) {
      const text = JSON.stringify(answer.body)
      const problems = described?.problemsOf(answer.status, answer.body)
      expect([answer.status, text, problems]).toEqual([answer.status, text, []])
      const code = answer.body?.error?.code
      if (code !== undefined) expect(described?.codesOf(answer.status)).toContain(code)
    }
  })

  test.each(promised)('has the successes of the published one: $operationId', (row) => {
    const document = published.find(({ operationId }) => operationId === row.operationId)
    const mine = own.find(({ operationId }) => operationId === row.operationId)
    const good = document?.statuses.filter((status) => status < 300) ?? []
    expect(good.length).toBeGreaterThan(0)
    expect(mine?.statuses).toEqual(expect.arrayContaining([...good]))
    expect(mine?.query).toEqual(document?.query)
  })
})
