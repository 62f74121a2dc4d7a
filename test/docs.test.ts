import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { sections } from '../site/.vitepress/pages.js'
import { precedence } from '../src/http/public-errors.js'
import { compatibilityGroup } from '../src/servers/compatibility.js'
import { readInput } from '../src/util/input.js'
import {
  memberTable,
  optionTables,
  settlementTable,
  valueTable,
} from '../workshop/scripts/api-table.js'
import { errorTable, meaningTable, publicReasonTable } from '../workshop/scripts/error-table.js'
import { refusalMeanings } from '../workshop/scripts/refusal-meanings.js'

const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'workshop/README.md',
  'site/index.md',
].concat(
  readdirSync('packages').map((name) => `packages/${name}/README.md`),
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

function sourcesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter((path) => /\.c?[jt]s$/.test(path) && !/node_modules|\.next|\/dist\//.test(path))
}

const exampleFiles = sourcesIn('examples')

/** The text of a document outside of its code blocks. */
function proseOf(document: string): string {
  return read(document).replace(/^[ \t]*```[\s\S]*?^[ \t]*```$/gm, '')
}

function codeBlocksOf(document: string) {
  const found = read(document).matchAll(/^([ \t]*)```(\w*)\n([\s\S]*?)^\1```$/gm)
  return [...found].map(([, , language = '', code = '']) => ({ language, code }))
}

/** Returns the ids of the headings of a document, as GitHub and the site make them. */
function anchorsOf(document: string): readonly string[] {
  return [...proseOf(document).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )
}

const folders = ['adapters', 'workshop', 'docs', 'examples', 'packages', 'site', 'src', 'test']

/** Returns the files and folders of the repository that a document names in code. */
function pathsIn(document: string): readonly string[] {
  const inline = [...proseOf(document).matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
  const shell = codeBlocksOf(document).filter(({ language }) => language === 'sh')
  const path = new RegExp(`(?<=^|[\\s'"=])(?:${folders.join('|')}|\\.ci|\\.github)/[\\w./-]+`, 'g')
  const code = [...inline, ...shell.map(({ code }) => code)].join('\n')
  return [...code.matchAll(path)].map(([found]) => found.replace(/[.]$/, ''))
}

const policyMembers = new Set(
  ['authorization', 'resource'].flatMap((server) =>
    [...read(`src/servers/${server}-policy.ts`).matchAll(/readonly (\w+)\??:/g)].map(
      ([, name]) => name,
    ),
  ),
)

/** The adapters by the names of their files, as the documents spell them. */
const adapters: Readonly<Record<string, string>> = {
  express: 'Express',
  fastify: 'Fastify',
  hono: 'Hono',
  opentelemetry: 'OpenTelemetry',
  postgres: 'PostgreSQL',
  sqlite: 'SQLite',
}

describe('the documents', () => {
  test.each(snippets)(
    '$document shows $name exactly as in $file, which is compiled or run',
    ({ file, name, code }) => {
      expect(code.trim()).toBe(region(file, name))
    },
  )

  test('docs/stack.md shows each file of the stack, whole (`npm run docs:tables` updates it)', () => {
    const shown = read('docs/stack.md').matchAll(/^<!-- ([^\s#]+) -->\n```ts\n([\s\S]*?)^```$/gm)
    const codes = Object.fromEntries([...shown].map(([, file = '', code]) => [file, code]))
    const files = sourcesIn('examples/stack').map((file) => [file, read(file)])
    expect(codes).toEqual(Object.fromEntries(files))
  })

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

  test('and the code to copy listen to errors of each pool and of its clients, also in a transaction', () => {
    const templates = 'packages/create-open-payments-server/templates'
    const blocks = documents.flatMap((document) =>
      codeBlocksOf(document).map(({ code }) => ({ place: document, code })),
    )
    const files = [...exampleFiles, ...sourcesIn(templates)].map((place) => {
      return { place, code: read(place) }
    })
    const pools = [...blocks, ...files].filter(({ code }) => /new Pool\(/.test(code))
    expect(pools.length).toBeGreaterThan(5)
    const silent = pools.filter(
      ({ code }) =>
        !/\.on\('error'/.test(code) ||
        !/\.on\('connect', \(client\) => client\.on\('error'/.test(code),
    )
    expect(silent.map(({ place }) => place)).toEqual([])
  })

  test('show each region of the examples', () => {
    const shown = new Set(snippets.map(({ file, name }) => `${file}#${name}`))
    const regions = exampleFiles.flatMap((file) =>
      [...read(file).matchAll(/^\s*\/\/ #region (\S+)$/gm)].map(([, name]) => `${file}#${name}`),
    )
    expect(regions.length).toBeGreaterThan(30)
    expect(regions.filter((one) => !shown.has(one))).toEqual([])
  })
})

describe('the README', () => {
  test('begins with a complete wallet that fits a screen, including its imports', () => {
    const [first] = snippets
    expect(first?.document).toBe('README.md')
    expect(first?.code).toMatch(/^(?:import|}) .*from 'open-payments-server'$/m)
    expect(first?.code.trim().split('\n').length).toBeLessThanOrEqual(25)
  })

  test('and the site name each page by its title', () => {
    const guides = sections
      .flatMap(({ pages }) => pages)
      .filter(({ source }) => /^docs\//.test(source))
    const titles = guides.map(({ source }) => [source, read(source).match(/^# (.*)$/m)?.[1]])
    expect(guides.map(({ source, title }) => [source, title])).toEqual(titles)
    const [, table = ''] = read('README.md').split('## Documentation')
    const listed = [...table.matchAll(/\[([^\]]+)\]\((docs\/[^)]+)\)/g)]
    expect(listed.map(([, title, source]) => [source, title]).sort()).toEqual(titles.sort())
  })

  test('leads to the tasks, each of which leads to pages by their titles', () => {
    expect(read('README.md').split('\n## ', 1)[0]).toContain('](docs/tasks.md)')
    const links = [...read('docs/tasks.md').matchAll(/\[([^\]]+)\]\((?!\.\.)([^)#]+)/g)]
    expect(links.length).toBeGreaterThan(25)
    const titles = links.map(([, , page]) => [page, read(`docs/${page}`).match(/^# (.*)$/m)?.[1]])
    expect(links.map(([, text, page]) => [page, text])).toEqual(titles)
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
  test('links to existing files and headings', () => {
    for (const [, link = '', anchor] of read(document).matchAll(
      /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
    )) {
      const file = link === '' ? document : join(dirname(document), link)
      expect(existsSync(file), link).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(file), `${link}#${anchor}`).toContain(anchor)
    }
  })

  test('names documents by their titles, and not by their files', () => {
    const texts = [...proseOf(document).matchAll(/\[([^\]]+)\]\([^)]+\)/g)].map(([, text]) => text)
    expect(texts.filter((text) => /\.md$/.test(text ?? ''))).toEqual([])
  })

  test('has no line of code of more than 88 characters, which the site would cut off', () => {
    const lines = codeBlocksOf(document).flatMap(({ code }) => code.split('\n'))
    expect(lines.filter((line) => line.length > 88)).toEqual([])
  })

  test('names existing files and folders', () => {
    expect(pathsIn(document).filter((path) => !existsSync(path))).toEqual([])
  })

  test('names existing members of the policies', () => {
    const named = [...proseOf(document).matchAll(/`policy\.([\w.]+)/g)].map(([, path = '']) => path)
    const unknown = named.filter((path) => path.split('.').some((one) => !policyMembers.has(one)))
    expect(unknown).toEqual([])
  })

  test('lists all adapters, if it lists the adapters', () => {
    const names = Object.values(adapters)
    for (const block of read(document).split(/\n(?:\n|(?=\|))/)) {
      const listed = names.filter((name) => block.includes(name))
      if (!listed.includes('OpenTelemetry') || listed.length < 4) continue
      expect(listed, block).toEqual(names)
    }
  })
})

test.each(['README.md', 'docs/architecture.md'])('%s names every package', (document) => {
  const text = read(document)
  const unnamed = readdirSync('packages').filter((name) => !text.includes(`packages/${name}/`))
  expect(unnamed).toEqual([])
})

test('a search for either name of those who serve accounts finds their page', () => {
  const [title = ''] = read('docs/account-servicing-entities.md').split('\n')
  expect(title.toLowerCase()).toContain('account servicing entities')
  expect(title.toLowerCase()).toContain('financial service providers')
})

test('each adapter that the package exports has a name in the documents', () => {
  const { exports } = JSON.parse(read('package.json'))
  const entries = readdirSync('adapters').filter(
    (name) => `./${name.replace('.ts', '')}` in exports,
  )
  const known = Object.keys(adapters)
  expect(entries.length).toBeGreaterThan(4)
  expect(entries.filter((name) => !known.includes(name.replace('.ts', '')))).toEqual([])
})

test('the pages of the API and of its options list what the main entry exports', () => {
  for (const table of [memberTable(), valueTable(), settlementTable()])
    expect(read('docs/api.md')).toContain(table)
  const page = read('docs/options.md')
  const tables = [...optionTables().values()]
  for (const table of tables) expect(page).toContain(table)
  const rowsIn = (text: string) => text.match(/^\| `/gm) ?? []
  expect(rowsIn(page)).toHaveLength(tables.flatMap(rowsIn).length)
})

test.each(['server', 'client'])('the first %s runs as JavaScript, as its guide says', (name) => {
  const source = readFileSync(`examples/first-server/${name}.ts`, 'utf8')
  expect(() => transformSync(source, { loader: 'js' })).not.toThrow()
})

test('docs/errors.md contains the generated tables of errors (`npm run docs:tables` updates it)', () => {
  expect(read('docs/errors.md')).toContain(errorTable())
  expect(read('docs/errors.md')).toContain(meaningTable())
  expect(read('docs/errors.md')).toContain(publicReasonTable())
})

test('each refusal has a meaning and a remedy, in the order of the other table', () => {
  expect(Object.keys(refusalMeanings)).toEqual([...precedence])
  for (const texts of Object.values(refusalMeanings)) {
    for (const text of texts) expect(text).toMatch(/^\S.{3,}[^.\s]$/)
  }
})

/** Returns the tests that a document quotes, each with its file. */
function quotedTests(text: string) {
  const found = text.matchAll(/\["([^"]+)"\]\(\.\.\/((?:workshop|test|packages)\/[^)]+)\)/g)
  return [...found].map(([, title = '', file = '']) => ({ file, title }))
}

test.each([
  ['docs/security.md', 70],
  ['docs/mandates.md', 24],
  ['docs/migrating-from-rafiki.md', 34],
])('%s quotes existing test titles', (document, least) => {
  const quoted = quotedTests(read(document))
  expect(quoted.length).toBeGreaterThan(least)
  for (const { file, title } of quoted) expect(titlesOf(file), title).toContain(title)
})

/** The titles in a test file: each string before the function of its test. */
function titlesOf(file: string): string {
  const found = read(file).matchAll(/(['"`])([^\n]*)\1,\s*(?:async )?(?:\(|\w+(?:,? =>|\)))/g)
  return [...found].map(([, , title]) => title).join('\n')
}

test('docs/security.md names a test for every threat', () => {
  const rows = read('docs/security.md').match(/^\| .*$/gm) ?? []
  const threats = rows.filter((row) => !row.startsWith('| threat |'))
  expect(threats.length).toBeGreaterThan(70)
  expect(threats.filter((threat) => quotedTests(threat).length === 0)).toEqual([])
})

test('docs/migrating-from-rafiki.md names a test for all that a backend needs, but for liquidity of peers', () => {
  const [, text = ''] = read('docs/migrating-from-rafiki.md').split('| your backend |')
  const rows = (text.split('\n\n')[0] ?? '').split('\n').slice(2)
  expect(rows.length).toBeGreaterThan(28)
  const missing = rows.filter((row) => quotedTests(row).length === 0)
  expect(missing).toEqual([expect.stringMatching(/^\| liquidity of peers.*stay with Rafiki/)])
})

test('docs/mandates.md names a test for every parameter, or says that it is missing', () => {
  const rows = read('docs/mandates.md').match(/^\| (?!parameter|demand|constraint|-).*$/gm) ?? []
  expect(rows.length).toBeGreaterThan(35)
  const isMissing = (row: string) => /\| – \| missing\b/.test(row)
  expect(rows.filter((row) => quotedTests(row).length > 0 === isMissing(row))).toEqual([])
})

test('docs/clients.md lists each member of compatibility with its default', () => {
  const [, section = ''] = read('docs/clients.md').split('## The option `compatibility`')
  const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` \| `([\w-]+)`/gm)]
  expect(Object.fromEntries(rows.map(([, name, value]) => [name, value]))).toEqual(
    readInput('compatibility', compatibilityGroup, {}),
  )
})
