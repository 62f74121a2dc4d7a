import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { errorTable } from '../scripts/error-table.js'

const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples/wallet/README.md',
  'packages/create-open-payments-server/README.md',
  'packages/testing/README.md',
].concat(
  readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
)

function read(path: string): string {
  return readFileSync(path, 'utf8')
}

/** Returns the lines of a source file between `// #region name` and `// #endregion name`. */
function region(file: string, name: string): string {
  const [, inside = ''] = read(file).split(new RegExp(`// #(?:end)?region ${name}\n`))
  return inside.trim()
}

const snippets = documents.flatMap((document) => {
  const found = read(document).matchAll(/<!-- (\S+)#(\S+) -->\n```(?:ts|js)\n([\s\S]*?)```/g)
  return [...found].map(([, file = '', name = '', code = '']) => ({ document, file, name, code }))
})

describe('the documents', () => {
  test.each(snippets)(
    '$document shows $name exactly as in $file, which is compiled or run',
    ({ file, name, code }) => {
      expect(code.trim()).toBe(region(file, name))
    },
  )

  test.each(documents)(
    '%s has no line of more than 120 characters, as .editorconfig says',
    (name) => {
      const prose = read(name).replace(/^```[\s\S]*?^```$/gm, '')
      const tooLong = prose
        .split('\n')
        .filter((line) => line.length > 120 && !line.startsWith('|') && /\S\s+\S/.test(line))
      expect(tooLong).toEqual([])
    },
  )

  test('contain a snippet for each part that a host writes', () => {
    const shown = snippets.map(({ name }) => name)
    expect(shown).toEqual([
      'first-server',
      'servers',
      'wallet-addresses',
      'consent',
      'funds',
      'invoice',
      'wallet',
      'koa',
      'nest',
      'next-route',
      'next-wallet',
      'bun',
      'deno',
      'worker',
      'fetch-keys',
      'jest',
      'client',
      'rate-limit',
      'ilp-receiver',
      'ilp-sender',
      'authorization-process',
      'resource-process',
      'cut-over',
      'raw-body',
      'helmet',
      'cors',
      'brands',
      'report-feeder',
      'quotes',
      'payments',
      'may-pay',
      'holds-table',
      'hold',
      'own-servers',
      'scene',
      'wallet',
      'pool',
      'kysely',
      'drizzle',
      'prisma',
      'knex',
      'typeorm',
    ])
  })
})

describe('the README', () => {
  test('begins with a complete server of at most twenty lines, including its imports', () => {
    const [first] = snippets
    expect(first?.document).toBe('README.md')
    expect(first?.code).toMatch(/^import .* from 'open-payments-server'$/m)
    expect(first?.code.trim().split('\n').length).toBeLessThanOrEqual(20)
  })

  test('names existing npm scripts', () => {
    const { scripts } = JSON.parse(read('package.json'))
    for (const [, name = ''] of read('README.md').matchAll(
      /npm (?:run )?(demo|start|test|bench)/g,
    )) {
      expect(scripts).toHaveProperty(name)
    }
  })
})

describe.each(documents)('%s', (document) => {
  test('links to existing files', () => {
    for (const [, link = ''] of read(document).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      expect(existsSync(join(dirname(document), link)), link).toBe(true)
    }
  })
})

test('docs/errors.md contains the generated table of errors (`npm run docs:tables` updates it)', () => {
  expect(read('docs/errors.md')).toContain(errorTable())
})

/** Returns the tests that a document quotes, each with its file. */
function quotedTests(text: string) {
  const found = text.matchAll(/\(\.\.\/(test\/[^)]+)\) "([^"]+)"/g)
  return [...found].map(([, file = '', title = '']) => ({ file, title }))
}

test.each(['docs/rules.md', 'docs/security.md'])('%s quotes existing test titles', (document) => {
  const quoted = quotedTests(read(document))
  expect(quoted.length).toBeGreaterThan(20)
  for (const { file, title } of quoted) expect(read(file), title).toContain(title)
})

test('docs/security.md names a test for every threat', () => {
  const rows = read('docs/security.md').match(/^\| .*$/gm) ?? []
  const threats = rows.filter((row) => !row.startsWith('| threat |'))
  expect(threats.length).toBeGreaterThan(70)
  expect(threats.filter((threat) => quotedTests(threat).length === 0)).toEqual([])
})
